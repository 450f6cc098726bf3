"""Charts of whole sentences, and how notebooks show them."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from lmdiag.display import Measures
from lmdiag.report.charts.specs import Plot
from lmdiag.report.html import charts
from lmdiag.report.items import items
from lmdiag.results import Run


def test_predictions_and_measures_show_themselves_in_notebooks(forms: dict[str, Run]) -> None:
    run = forms["suites"]
    (said,) = run.predictions["gym"].values()
    frame = said.to_frame()
    assert [*frame.columns] == ["id", "log_prob", "n_tokens", "words", "perturbation", "run"]
    first = frame.words[0]
    assert frame.log_prob[0] == pytest.approx(sum(word.log_prob for word in first))
    shown = Measures(said, run.stimuli["gym"], run.results.protocol, cased=True)
    assert "two_predictions" in str(shown)
    assert "contrast" not in shown._repr_html_()
    assert "not computed" not in str(shown)


def rows_of(plots: list[Plot], name: str) -> list[dict[str, Any]]:
    (plot,) = (plot for plot in plots if plot.name == name)
    values: list[dict[str, Any]] = plot.spec["data"]["values"]
    return values


def test_pairs_are_drawn_in_bits(forms: dict[str, Run]) -> None:
    marks = rows_of(charts(forms["pairs"]), "blimp-pairs")
    by_id = {item.id: item for item in items(forms["pairs"], "blimp")}
    assert len(marks) == len(by_id) - 1
    for mark in marks:
        item = by_id[mark["item"]]
        assert mark["bad"] - mark["good"] == pytest.approx(item.difference)
        assert mark["verdict"] == ("good" if item.prefers_good else "bad")


def test_each_suite_has_its_regions_with_the_mean_of_each_condition(forms: dict[str, Run]) -> None:
    plots = charts(forms["suites"])
    rows = rows_of(plots, "gym-regions-2-two-predictions")
    own = [item for item in items(forms["suites"], "gym") if "two" in item.levels["suite"]]
    assert [row["region"] for row in rows if row["condition"] == "plaus"] == [
        "1 intro", "2 comma", "3 verb1", "4 verb2", "5 end",
    ]  # fmt: skip
    for row in rows:
        place, condition = int(row["region"][0]) - 1, row["condition"]
        bits = [c.parts[place].bits for i in own for c in i.choices if c.condition == condition]
        assert row["value"] == pytest.approx(statistics.fmean(bits))  # type: ignore[arg-type]
        assert row["low"] <= row["value"] + 1e-9
        assert row["value"] <= row["high"] + 1e-9
        assert row["n"] == 8
    assert ("implaus", "2 comma") not in {(row["condition"], row["region"]) for row in rows}


def test_very_many_levels_are_drawn_by_the_level_they_belong_to(
    monkeypatch: pytest.MonkeyPatch, forms: dict[str, Run]
) -> None:
    whole = {plot.name for plot in charts(forms["pairs"])}
    assert "blimp-uid-sensitivity" in whole
    monkeypatch.setattr("lmdiag.report.charts.charted._MOST_LEVELS", 2)
    plots = [plot for plot in charts(forms["pairs"]) if "-uid-" in plot.name]
    assert [plot.name for plot in plots] == [
        "blimp-uid-sensitivity-island-effects", "blimp-uid-sensitivity-argument-structure",
        "blimp-uid-sensitivity-binding",
    ]  # fmt: skip
    assert all(plot.is_further for plot in plots)
    assert [len(plot.spec["data"]["values"]) for plot in plots] == [2, 1, 1]
