"""Charts: specifications that have the figures of the runs, and take text as text."""

from __future__ import annotations

import gzip
import json
import re
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pytest
from hostile import HOSTILE, hostile_rows
from runs import make_run

import lmdiag
from lmdiag import diagnostics
from lmdiag.protocol import Protocol
from lmdiag.report.charts import Plot, kinds, output
from lmdiag.report.charts.conditions import means_chart
from lmdiag.report.charts.drawing import dot_chart
from lmdiag.report.charts.items import axis_of
from lmdiag.report.charts.kinds import CHART_KINDS
from lmdiag.report.charts.output import palette, resolved, theme
from lmdiag.report.html import charts
from lmdiag.report.items import items
from lmdiag.results import Place, Run, load_run
from lmdiag.text import visible

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def plots(runs: dict[str, Run], forms: dict[str, Run]) -> dict[str, list[Plot]]:
    """The charts of one run, of one with agreement, of two models, of checkpoints, of suites."""
    given = {
        "one": [runs["strong"]],
        "agreement": [runs["all"]],
        "two": [runs["strong"], runs["weak"]],
        "checkpoints": [runs[f"step{step}"] for step in (0, 1000, 64000)],
        "suites": [forms["suites"]],
        "pairs": [forms["pairs"]],
    }
    return {name: charts(several) for name, several in given.items()}


def rows(plots: list[Plot], name: str) -> Rows:
    values: Rows = next(plot for plot in plots if plot.name == name).spec["data"]["values"]
    return values


def test_every_declared_kind_is_made(plots: dict[str, list[Plot]]) -> None:
    declared = {chart.kind for one in diagnostics.built_in().values() for chart in one.charts}
    assert declared <= set(CHART_KINDS)
    made = {plot.kind for of_runs in plots.values() for plot in of_runs}
    assert made >= {*CHART_KINDS, "steps", "differences"}
    for of_runs in plots.values():
        assert len({plot.name for plot in of_runs}) == len(of_runs)


@pytest.mark.slow
def test_altair_takes_every_chart(plots: dict[str, list[Plot]], run_dirs: dict[str, Path]) -> None:
    """altair validates them by the schema of Vega-Lite; charts of a run can be changed."""
    for plot in {plot.kind: plot for plot in chain(*plots.values())}.values():
        output.notebook(plot).properties(background="white").to_dict()
    shown: Any = lmdiag.load_run(run_dirs["strong"]).charts()
    assert len((shown["role88-cloze"] + shown["role88-pairs"]).layer) == 2


# ---- figures are those of the runs ---------------------------------------------------------------


def test_figures_shuffles_and_levels(plots: dict[str, list[Plot]], runs: dict[str, Run]) -> None:
    results = runs["strong"].results
    settings = {"Orig": "none", "Shuf": "shuf", "Trunc": "trunc", "Shuf + Trunc": "shuf_trunc"}
    for row in rows(plots["one"], "cprag102-measures"):
        figure = results.figure(Place("cprag102", settings[row["series"]], row["label"]))
        assert figure is not None
        for field, value in (
            ("value", figure.value), ("low", figure.ci_low), ("high", figure.ci_high),
            ("n", figure.n), ("sd", figure.sd), ("chance", figure.chance),
        ):  # fmt: skip
            assert row.get(field) == value
    shuffled = rows(plots["one"], "cprag102-shuffles")
    for row in (row for row in shuffled if "mean" in row):
        counted = [x for x in shuffled if x["label"] == row["label"] and "shuffles" in x]
        assert sum(x["shuffles"] for x in counted) == 3
        assert fmean(x["shuffles"] * x["value"] for x in counted) * len(counted) / 3 == (
            pytest.approx(row["mean"])
        )
    place = Place("neg136", "none", "sensitivity", "subset/polarity", "simp/negative")
    figure = results.figure(place)
    assert figure is not None
    levels = rows(plots["one"], "neg136-subset-polarity-sensitivity")
    assert figure.value in [row["value"] for row in levels if row["series"] == "sensitivity"]


def test_cutoffs(plots: dict[str, list[Plot]], runs: dict[str, Run]) -> None:
    results = runs["all"].results
    for row in rows(plots["agreement"], "agreement-cutoffs-mw-ew"):
        end, cutoff = row["cut-off"].split()
        name = f"{row['score'].lower()}@{end}={float(cutoff):g}"
        measure = results.measure("agreement", "none", name)
        assert measure is not None
        assert row["value"] == measure.value
    measure = results.measure("agreement", "none", "ew")
    assert measure is not None
    small = rows(plots["agreement"], "agreement-cutoffs-constructions")
    assert len({row["label"] for row in small}) == len(measure.by["construction"])


def test_pairs_in_bits(plots: dict[str, list[Plot]], forms: dict[str, Run]) -> None:
    by_id = {item.id: item for item in items(forms["pairs"], "blimp")}
    marks = rows(plots["pairs"], "blimp-pairs")
    assert len(marks) == len(by_id) - 1
    for mark in marks:
        item = by_id[mark["item"]]
        assert mark["bad"] - mark["good"] == pytest.approx(item.difference)
        assert mark["verdict"] == ("good" if item.prefers_good else "bad")


def test_regions_have_the_mean_of_each_condition(
    plots: dict[str, list[Plot]], forms: dict[str, Run]
) -> None:
    means = rows(plots["suites"], "gym-regions-2-two-predictions")
    of_suite = [item for item in items(forms["suites"], "gym") if "two" in item.levels["suite"]]
    assert [row["level"] for row in means if row["series"] == "plaus"] == [
        "1 intro", "2 comma", "3 verb1", "4 verb2", "5 end",
    ]  # fmt: skip
    for row in means:
        place, condition = int(row["level"][0]) - 1, row["series"]
        of_rows = [c for item in of_suite for c in item.choices if c.condition == condition]
        bits = [choice.parts[place].bits or 0.0 for choice in of_rows]
        assert row["value"] == pytest.approx(fmean(bits))
        assert row["low"] <= row["value"] + 1e-9 <= row["high"] + 2e-9
        assert row["n"] == 8
    assert ("implaus", "2 comma") not in {(row["series"], row["level"]) for row in means}
    # of the first suite, whose prediction reads regions 3 and 4, the others are shown by a checkbox
    named = rows(plots["suites"], "gym-regions-1-center-embed")
    assert {row["level"] for row in named if row["named"]} == {"3 verb1", "4 verb2"}


def test_very_many_levels_are_drawn_by_the_level_they_belong_to(
    monkeypatch: pytest.MonkeyPatch, plots: dict[str, list[Plot]], forms: dict[str, Run]
) -> None:
    assert "blimp-uid-sensitivity" in {plot.name for plot in plots["pairs"]}
    monkeypatch.setattr(kinds, "_MOST_LEVELS", 2)
    parts = [plot for plot in charts(forms["pairs"]) if "-uid-" in plot.name]
    assert {plot.name: len(plot.spec["data"]["values"]) for plot in parts} == {
        "blimp-uid-sensitivity-island-effects": 2, "blimp-uid-sensitivity-argument-structure": 1,
        "blimp-uid-sensitivity-binding": 1,
    }  # fmt: skip
    assert all(plot.is_further for plot in parts)


def test_axes_densities_and_undefined_values(
    monkeypatch: pytest.MonkeyPatch, plots: dict[str, list[Plot]], forms: dict[str, Run]
) -> None:
    for values, low in (([0.5, 0.02], 0.01), ([1e-30, 0.5], 1e-8), ([0.0], 0.1)):
        axis = axis_of("x", "p", "p", pd.Series(values), False)
        assert axis.to_dict()["scale"]["domain"] == [pytest.approx(low), 1]
    monkeypatch.setattr("lmdiag.report.charts.items.MAX_LISTED", 3)
    counts = rows(charts(forms["pairs"]), "blimp-pairs")
    assert sum(row["contrasts"] for row in counts) == len(rows(plots["pairs"], "blimp-pairs"))
    row = {"label": "a", "series": "b", "value": 0.5, "low": None, "high": float("nan")}
    assert dot_chart(pd.DataFrame([row])).to_dict()["data"]["values"] == [
        {"label": "a", "series": "b", "value": 0.5}
    ]
    # an interval of surprisals is cut at 0
    mean = {"level": "a", "series": "b", "panel": "", "value": 1.0, "low": -1.0, "high": 3.0}
    chart = means_chart(pd.DataFrame([mean]), "bits", possible=(0, 99)).to_dict()
    assert chart["layer"][0]["encoding"]["y"]["scale"] == {"zero": False, "domainMin": 0}


# ---- text from outside ---------------------------------------------------------------------------


def texts_outside_data(value: Any) -> set[str]:
    """All texts of a specification that are neither data nor domains of scales."""
    if isinstance(value, dict):
        parts = [part for key, part in value.items() if key not in ("data", "domain", "sort")]
        return set().union(*map(texts_outside_data, parts))
    if isinstance(value, list):
        return set().union(*map(texts_outside_data, value))
    return {value} if isinstance(value, str) else set()


def test_text_from_outside_is_data_only(tmp_path: Path) -> None:
    tried = list(HOSTILE.values())
    own = hostile_rows(tmp_path / "own.jsonl")
    loaded = [
        load_run(make_run(tmp_path / name, own, Protocol(tasks=("own",)), id=text, name=None))
        for name, text in zip("ab", tried, strict=False)
    ]
    for plot in charts(loaded):
        outside = texts_outside_data(plot.spec)
        assert not [text for text in tried if any(visible(text) in other for other in outside)]
        assert not {"\x1b", "\x00", "\u202e"} & set(json.dumps(plot.spec, ensure_ascii=False))


# ---- files and notebooks -------------------------------------------------------------------------


def test_figures_have_the_width_of_a_column(plots: dict[str, list[Plot]], tmp_path: Path) -> None:
    plot = next(plot for plot in plots["one"] if plot.name == "role88-pairs")
    for kind in ("svg", "pdf", "png"):
        (path,) = output.write_figures([plot], tmp_path / kind, kind, 8)
        assert path.name == f"role88-pairs.{kind}"
        assert path.with_suffix(".txt").read_text() == f"{plot.caption}\n"
    svg = (tmp_path / "svg/role88-pairs.svg").read_text()
    width = re.search(r'width="([\d.]+)pt"', svg)
    assert width is not None
    assert float(width[1]) == pytest.approx(8 / 2.54 * 72, abs=3)
    assert set(re.findall(r'font-family="(.*?)"', svg)) == {"sans-serif"}
    assert "var(" not in svg
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "pdf/role88-pairs.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) == pytest.approx(float(width[1]), abs=0.1)
    header = (tmp_path / "png/role88-pairs.png").read_bytes()[16:20]
    assert int.from_bytes(header) == pytest.approx(8 / 2.54 * 300, abs=12)


def test_colours_of_a_file_come_from_the_style_sheet_and_data_keep_their_text() -> None:
    spec = {"mark": "var(--c1)", "data": {"values": [{"x": "var(--c1)"}]}}
    assert resolved(spec) == spec | {"mark": palette()["var(--c1)"]}
    assert "var(" not in json.dumps(resolved(json.loads(theme())))


def test_the_library_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    made = iter(["first", "second"])
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: next(made))
    assert gzip.decompress(output.library()) == b"first"
    assert gzip.decompress(output.library()) == b"first"
    monkeypatch.setenv("LMDIAG_CACHE", "/dev/null/nowhere")  # which cannot be written to
    assert gzip.decompress(output.library()) == b"second"
