"""The papers' figures: whether their arithmetic holds, and how they stand beside our own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from lmdiag.published import Figure, figures, lookup
from runs import perfect

from lmdiag import evaluation, published, stimuli
from lmdiag.schema import Protocol

MODELS = ("bert-base-uncased", "bert-large-uncased")
TABLES = {"4": 16, "5": 4, "7": 16, "8": 16, "9": 4, "11": 4, "12": 4, "14": 8}
"""Table of Ettinger (2020) -> its number of cells, both models together."""

NOT_A_SHARE = {
    # 7 of 17 is 41.18, which rounds to 41.2
    ("8", "bert-base-uncased", "accuracy@5", "cloze_quartile", "4"): 41.1,
}
"""Cells that are no share of their n, rounded to one decimal."""

MEANS = ("shuf", "shuf_trunc")
"""Settings whose figures are means over 100 runs, so that any decimal is possible."""


def is_share(percent: float, n: int) -> bool:
    """Whether a figure is 100 k / n for some whole k, rounded to one decimal."""
    return any(round(100 * k / n, 1) == percent for k in range(n + 1))


def pick(**wanted: str) -> list[Figure]:
    return [
        figure
        for figure in figures()
        if all(getattr(figure, name) == value for name, value in wanted.items())
    ]


def test_every_table_is_there_whole() -> None:
    assert {table: len(pick(table=table)) for table in TABLES} == TABLES
    assert {figure.model for figure in figures()} == set(MODELS)
    keys = [(f.model, f.task, f.setting, f.measure, f.by, f.level) for f in figures()]
    assert len(keys) == len(set(keys))


def test_every_proportion_is_k_of_n_but_for_those_that_are_listed() -> None:
    found = {
        (f.table, f.model, f.measure, f.by, f.level): f.value
        for f in figures()
        if f.setting not in MEANS and not is_share(f.value, f.n)
    }
    assert found == NOT_A_SHARE


def test_a_share_is_told_from_another_number() -> None:
    assert is_share(38.9, 18)  # 7 of 18
    assert not is_share(39.0, 18)


def test_only_shuffled_figures_have_a_deviation() -> None:
    for figure in figures():
        assert (figure.sd is not None) == (figure.setting in MEANS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("measure", ["accuracy@1", "accuracy@5"])
def test_the_quartiles_of_table_8_add_up_to_table_7(model: str, measure: str) -> None:
    parts = pick(table="8", model=model, measure=measure)
    [whole] = pick(table="7", model=model, measure=measure, setting="none")
    right = sum(round(part.value * part.n / 100) for part in parts)
    assert sum(part.n for part in parts) == whole.n == 88
    assert round(100 * right / 88, 1) == whole.value


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("level", ["natural", "less_natural"])
def test_the_polarities_of_table_14_add_up_to_the_text(model: str, level: str) -> None:
    cells = [
        pick(table="14", model=model, level=f"{level}/{p}")[0] for p in ("affirmative", "negative")
    ]
    [whole] = pick(table="section 9.4", model=model, level=level)
    assert sum(cell.value for cell in cells) / 2 == whole.value


def test_lookup_knows_both_names_of_a_model_and_no_other() -> None:
    assert lookup("google-bert/bert-base-uncased") == lookup("bert-base-uncased") != []
    assert len(lookup("bert-large-uncased")) == len(figures()) // 2
    assert (
        lookup("bert-base-cased") == lookup("demo:masked") == lookup("me/bert-base-uncased") == []
    )


def places(data: str, tasks: Iterable[str]) -> dict[str, Any]:
    """The `tasks` of a run with perfect predictions, unperturbed."""
    found = {}
    for task in tasks:
        rows = stimuli.load(data, task)
        found[task] = {"none": evaluation.evaluate(rows, [perfect(rows.columns())], Protocol(), True)}
    return found


def test_every_unperturbed_figure_has_its_counterpart_with_the_same_n(data_dir: Path) -> None:
    tasks = places(str(data_dir), ("cprag102", "role88", "neg136"))
    for figure in pick(setting="none"):
        cell = published.counterpart(figure, tasks)
        assert cell is not None, figure
        assert cell["n"] == figure.n, figure


def test_figures_beside_a_run(data_dir: Path) -> None:
    results = {
        "model": {"id": "google-bert/bert-base-uncased"},
        "tasks": places(str(data_dir), ("neg136",)),
    }
    beside = {(b.figure.table, b.figure.level): b for b in published.beside(results)}
    assert {table for table, _ in beside} == {"11", "12", "14", "section 9.2", "section 9.4"}
    found = beside["14", "natural/negative"]
    assert (found.ours, found.difference) == (100.0, 12.5)
    assert found.within is True  # 87.5, in Wilson's 67.6 to 100 for 8 of 8
    assert beside["12", "simp/negative"].difference == 100.0
    assert beside["12", "simp/negative"].within is False
    assert published.beside({"model": {"id": "gpt2"}, "tasks": results["tasks"]}) == []


def test_rounding_does_not_put_a_figure_outside() -> None:
    cell = {"ci_low": 0.38912, "ci_high": 0.5}
    assert published.lies_within(38.9, cell)
    assert not published.lies_within(38.8, cell)
    assert published.lies_within(38.9, {"ci_low": None, "ci_high": None}) is None


def test_undefined_figures_are_not_compared() -> None:
    cell = {"value": None, "n": 0, "ci_low": None, "ci_high": None, "by": {}}
    tasks = {"cprag102": {"none": {"measures": {"accuracy@1": cell}}}}
    assert published.beside({"model": {"id": "bert-base-uncased"}, "tasks": tasks}) == []


def test_what_is_said_of_people() -> None:
    facts = {fact["fact"]: fact["value"] for fact in published.human("role88")}
    assert facts == {"mean cloze difference of appropriate and reversed contexts": 0.233}
    assert len(list(published.human("cprag102"))) == 4
    assert list(published.human("own")) == []
