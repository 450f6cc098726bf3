"""Charts: specifications that are valid, have the figures of the run, and take text as text."""

from __future__ import annotations

import gzip
import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE, hostile_rows
from runs import make_run

import lmdiag
from lmdiag import diagnostics
from lmdiag.protocol import Protocol
from lmdiag.report.charts import output, specs
from lmdiag.report.charts.kinds import CHART_KINDS
from lmdiag.report.charts.output import palette, resolved, theme
from lmdiag.report.charts.specs import Plot
from lmdiag.report.html import charts
from lmdiag.results import Place, Run, load_run
from lmdiag.text import visible


@pytest.fixture(scope="module")
def plots(runs: dict[str, Run]) -> dict[str, list[Plot]]:
    """The charts of one run, of one with agreement, of two models, of checkpoints."""
    given = {
        "one": [runs["strong"]],
        "agreement": [runs["all"]],
        "two": [runs["strong"], runs["weak"]],
        "checkpoints": [runs[f"step{step}"] for step in (0, 1000, 64000)],
    }
    return {name: charts(several) for name, several in given.items()}


def rows(plot: Plot) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = plot.spec["data"]["values"]
    return values


def named(plots: list[Plot], name: str) -> Plot:
    return next(plot for plot in plots if plot.name == name)


def test_every_declared_kind_is_made(plots: dict[str, list[Plot]]) -> None:
    declared = {chart.kind for each in diagnostics.built_in().values() for chart in each.charts}
    assert declared <= set(CHART_KINDS)
    made = {plot.kind for each in plots.values() for plot in each}
    assert made >= set(CHART_KINDS) - {"regions"} | {"steps", "differences"}  # test_sentences
    for each in plots.values():
        assert len({plot.name for plot in each}) == len(each)


@pytest.mark.slow
def test_altair_takes_every_chart(plots: dict[str, list[Plot]]) -> None:
    """altair validates them by the schema of Vega-Lite."""
    for plot in {plot.kind: plot for plot in chain(*plots.values())}.values():
        chart = output.notebook(plot)
        assert chart.properties(background="white").to_dict()["background"] == "white"


def test_numbers_are_those_of_the_results(
    plots: dict[str, list[Plot]], runs: dict[str, Run]
) -> None:
    results = runs["strong"].results
    for row in rows(named(plots["one"], "cprag102-measures")):
        settings = {"Orig": "none", "Shuf": "shuf", "Trunc": "trunc", "Shuf + Trunc": "shuf_trunc"}
        figure = results.figure(Place("cprag102", settings[row["series"]], row["label"]))
        assert figure is not None
        for field, value in (
            ("value", figure.value), ("low", figure.ci_low), ("high", figure.ci_high),
            ("n", figure.n), ("sd", figure.sd), ("chance", figure.chance),
        ):  # fmt: skip
            assert row.get(field) == value
    shuffled = rows(named(plots["one"], "cprag102-shuffles"))
    for row in shuffled:
        if "mean" in row:
            mine = [each for each in shuffled if each["label"] == row["label"] and "count" in each]
            assert sum(each["count"] for each in mine) == row["runs"] == 3
            mean = sum(each["count"] * each["value"] for each in mine) / 3
            assert mean == pytest.approx(row["mean"])
    by_level = {
        (row["label"], row["series"]): row["value"]
        for row in rows(named(plots["one"], "neg136-subset-polarity-sensitivity"))
    }
    place = Place("neg136", "none", "sensitivity", "subset/polarity", "simp/negative")
    figure = results.figure(place)
    assert figure is not None
    assert figure.value in by_level.values()


def test_agreement_has_curves_for_all_cutoffs(
    plots: dict[str, list[Plot]], runs: dict[str, Run]
) -> None:
    for row in rows(named(plots["agreement"], "agreement-cutoffs-mw-ew")):
        name = f"{row['series'].lower()}@{row['end']}={row['cutoff']:g}"
        measure = runs["all"].results.measure("agreement", "none", name)
        assert measure is not None
        assert row["value"] == measure.value
    small = rows(named(plots["agreement"], "agreement-cutoffs-constructions"))
    measure = runs["all"].results.measure("agreement", "none", "ew")
    assert measure is not None
    assert len({row["panel"] for row in small}) == len(measure.by["construction"])


def test_many_contrasts_become_a_density() -> None:
    spec = specs.density([0.5, 0.5, 0.0, 1.0], [0.1, 0.1, 0.2, 1e-30])
    assert sum(row["count"] for row in spec["data"]["values"]) == 4


@pytest.mark.parametrize(
    ("values", "lowest"),
    [([0.5, 0.02], 0.01), ([0.01], 0.01), ([1e-30, 0.5], 1e-8), ([0.0], 0.1)],
)
def test_axes_reach_down_to_the_smallest_probability_within_reason(
    values: list[float], lowest: float
) -> None:
    pairs = [{"item": "x", "p_good": value, "p_bad": value, "verdict": "bad"} for value in values]
    domain = specs.scatter(pairs, 0.01)["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    assert domain[0] == pytest.approx(0.7 * lowest)


def test_what_is_undefined_is_left_out() -> None:
    row = {"label": "a", "series": "b", "value": 0.5, "low": None, "high": float("nan"), "sd": 0.6}
    (shown,) = specs.dots([row])["data"]["values"]
    assert shown == {"label": "a", "series": "b", "value": 0.5, "sd": 0.6}


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
    asked = Protocol(tasks=("own",))
    loaded = [
        load_run(make_run(tmp_path / name, own, asked, id=tried[i], name=None, seed=i))
        for i, name in enumerate("ab")
    ]
    for plot in charts(loaded):
        outside = texts_outside_data(plot.spec)
        assert not [text for text in tried if any(visible(text) in each for each in outside)]
        assert not {"\x1b", "\x00", "\u202e"} & set(json.dumps(plot.spec, ensure_ascii=False))


# ---- files and notebooks -------------------------------------------------------------------------


def test_figures_have_the_width_of_a_column(plots: dict[str, list[Plot]], tmp_path: Path) -> None:
    plot = named(plots["one"], "role88-pairs")
    for kind in ("svg", "pdf", "png"):
        (path,) = output.write_figures([plot], tmp_path / kind, kind, 8)
        assert path.name == f"role88-pairs.{kind}"
        assert path.with_suffix(".txt").read_text() == f"{plot.caption}\n"
    svg = (tmp_path / "svg/role88-pairs.svg").read_text()
    width = re.search(r'width="([\d.]+)pt"', svg)
    assert width is not None
    assert float(width[1]) == pytest.approx(8 / 2.54 * 72, abs=3)
    assert "var(" not in svg
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "pdf/role88-pairs.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) == pytest.approx(float(width[1]), abs=0.1)
    header = (tmp_path / "png/role88-pairs.png").read_bytes()[16:20]
    assert int.from_bytes(header) == pytest.approx(8 / 2.54 * 300, abs=12)


def test_colours_come_from_the_style_sheet_and_data_keep_their_text() -> None:
    assert palette()["var(--c1)"].startswith("#")
    spec = {"mark": {"color": "var(--c1)"}, "data": {"values": [{"x": "var(--c1)"}]}}
    assert resolved(spec)["mark"]["color"] == palette()["var(--c1)"]
    assert resolved(spec)["data"] == spec["data"]
    assert "var(" not in json.dumps(resolved(json.loads(theme())))


@pytest.mark.slow
def test_a_run_and_measures_give_charts_in_a_notebook(run_dirs: dict[str, Path]) -> None:
    shown = lmdiag.load_run(run_dirs["strong"]).charts()
    assert "role88-cloze" in shown
    both: Any = shown["role88-cloze"]
    assert len((both + shown["role88-pairs"]).layer) == 2


def test_the_library_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    made = iter(["first", "second"])
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: next(made))
    assert gzip.decompress(output.library()) == b"first"
    assert gzip.decompress(output.library()) == b"first"
    monkeypatch.setenv("LMDIAG_CACHE", "/dev/null/nowhere")  # which cannot be written to
    assert gzip.decompress(output.library()) == b"second"
