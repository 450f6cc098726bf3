"""Published figures are reproduced, and docs/reproduced.md says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import reproduced
from reproduced import ITO, NATURAL_STORIES, TRIALS, Reproduction


def check(rows: list[Reproduction]) -> None:
    """Every figure is equal, and stands in the page as it is."""
    text = reproduced.PAGE.read_text("utf-8")
    for row in rows:
        assert row.holds, row
        (shown,) = re.findall(rf"^\| {re.escape(row.figure)} \| (\S+) \| (\S+) \|", text, re.M)
        assert shown[0] == row.published
        assert Reproduction("", shown[1], row.computed, row.tolerance).holds


@pytest.mark.parametrize("model", NATURAL_STORIES)
def test_natural_stories(human: Path, model: str) -> None:
    check(reproduced.natural_stories(human, model))


LONG = {("brothers", "pythia"): pytest.mark.slow, ("brothers", "mamba"): pytest.mark.nightly}
"""Data and family of models -> when they are tested; the others, by `make test`."""


@pytest.mark.parametrize(
    ("data", "model"),
    [
        pytest.param(data, model, marks=LONG.get((data, model.partition("-")[0]), []))
        for data, model in TRIALS
    ],
)
def test_trials(human: Path, data: str, model: str) -> None:
    check(reproduced.trials(human, data, model))


@pytest.mark.parametrize("model", ITO)
def test_items_of_ito(human: Path, model: str) -> None:
    check(reproduced.ito(human, model))


def test_sizes_and_human_figures_of_ettinger(data_dir: Path) -> None:
    check(reproduced.ettinger(data_dir))


def test_the_example_of_newman() -> None:
    check(reproduced.newman())


def test_the_page_has_what_comparisons_with_other_programs_kept() -> None:
    assert "\n".join(reproduced.peers()) in reproduced.PAGE.read_text("utf-8")
