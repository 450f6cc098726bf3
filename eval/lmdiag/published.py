"""Figures of the papers, kept as data, to stand beside a run's own (SPEC 6).

`published.json` holds tables 4, 5, 7, 8, 9, 11, 12 and 14 of Ettinger (2020) for BERT base and
large (uncased), and what people did in the studies that the items come from. Newman et al. (2021)
print a table of MW, EW and TSE, too; the text of it that this project was given has no table, so
none is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HALF_A_DIGIT = 0.05
"""Percentage points by which rounding to one decimal may move a published figure."""


@dataclass(frozen=True)
class Figure:
    """A number in a table of a paper.

    Attributes:
        source: key of the paper in `published.json`.
        table: number of the table, or of the section for what only the text says.
        model: Hub id.
        task, setting, measure: where our own figure stands in `results.json`.
        by, level: the same for a break-down; "" for the whole.
        value: percent, as printed, or as the count in the text gives it.
        sd: percentage points, where the paper gives a standard deviation over runs.
        n: items that the figure is a share of.
    """

    source: str
    table: str
    model: str
    task: str
    setting: str
    measure: str
    by: str
    level: str
    value: float
    sd: float | None
    n: int


@dataclass(frozen=True)
class Beside:
    """A published figure beside our own.

    Attributes:
        figure: the published one.
        ours: our value in percent.
        difference: ours minus the published one, percentage points.
        within: whether the published one, but for its rounding, lies in our 95% interval; None
        where
            we have no interval.
    """

    figure: Figure
    ours: float
    difference: float
    within: bool | None


@cache
def document() -> Mapping[str, Any]:
    """Returns the content of `published.json`."""
    text = Path(__file__).with_name("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@cache
def figures() -> tuple[Figure, ...]:
    """Returns all published figures, in the order of the tables."""
    columns = document()["columns"]
    return tuple(Figure(**dict(zip(columns, row, strict=True))) for row in document()["figures"])


def lookup(model_id: str) -> list[Figure]:
    """Returns the published figures of a model; none for most.

    Args:
        model_id: Hub id; the old short form and the one with the organisation are the same model.
    """
    name = model_id.removeprefix("google-bert/")
    return [figure for figure in figures() if figure.model == name]


def beside(results: Mapping[str, Any]) -> list[Beside]:
    """Returns each published figure of a run's model that the run has a counterpart of.

    Args:
        results: the content of `results.json`.
    """
    found = []
    for figure in lookup(results["model"]["id"]):
        cell = counterpart(figure, results["tasks"])
        if cell is not None and cell["value"] is not None:
            ours = 100 * cell["value"]
            found.append(Beside(figure, ours, ours - figure.value, lies_within(figure.value, cell)))
    return found


def counterpart(figure: Figure, tasks: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns our cell for a published figure; None where the run has none."""
    settings = tasks.get(figure.task, {})
    cell: Mapping[str, Any] | None = (
        settings.get(figure.setting, {}).get("measures", {}).get(figure.measure)
    )
    if cell is None or not figure.by:
        return cell
    broken_down: Mapping[str, Any] | None = cell["by"].get(figure.by, {}).get(figure.level)
    return broken_down


def lies_within(percent: float, cell: Mapping[str, Any]) -> bool | None:
    """Returns whether a published figure lies in our interval, widened by its rounding."""
    low, high = cell["ci_low"], cell["ci_high"]
    if low is None or high is None:
        return None
    return bool(100 * low - HALF_A_DIGIT <= percent <= 100 * high + HALF_A_DIGIT)


def human(task: str) -> Iterator[Mapping[str, Any]]:
    """Yields what the papers say of people on a task: averages that the data cannot give."""
    return (fact for fact in document()["human"] if fact["task"] == task)
