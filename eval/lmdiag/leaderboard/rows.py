"""The rows of the leaderboard: models in order of rank, and requests that have no run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

from lmdiag import stats
from lmdiag.comparison import side_of
from lmdiag.hub.benchmark import columns, leaderboard_figures
from lmdiag.hub.requests import Entry
from lmdiag.leaderboard.board import Board
from lmdiag.results import Figure, Run
from lmdiag.text import file_name
from lmdiag.types import ModelInfo

_MAY_FLIP = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 4}
"""Dtype -> items on which two machines may differ, since two words are closer than its rounding."""


@dataclass(frozen=True)
class Row:
    """One model in one precision, as the leaderboard ran it.

    Attributes:
        entry: the request.
        run: of the request.
        figures: id of the leaderboard's column -> figure, without undefined ones.
        rank: by the first column of the overview; equal figures share one.
    """

    entry: Entry
    run: Run
    figures: Mapping[str, Figure]
    rank: int | None = None

    @property
    def model(self) -> ModelInfo:
        """The facts on the model."""
        return self.run.results.model

    @property
    def page(self) -> str:
        """Address of the report of its run in the site."""
        return f"models/{file_name(self.entry.name, self.entry.key)}.html"

    @property
    def differing(self) -> dict[str, float]:
        """Column -> the claimed value, where it differs from the computed one beyond rounding."""
        flips = _MAY_FLIP["bfloat16" if self.model.quantization else self.model.dtype]
        return {
            key: value
            for key, value in self.entry.claimed.items()
            if (figure := self.figures.get(key)) is None
            or abs(value - (figure.value or 0.0)) > flips / (figure.n or 1) + 1e-9
        }


def make_rows(board: Board, entries: Iterable[Entry]) -> tuple[list[Row], list[Entry]]:
    """Returns the rows in order of rank, and by name the entries that have no run, with reasons."""
    rows, others = [], []
    for entry in entries:
        if entry.request is None:
            others.append(entry)
        elif run := board.run(entry.request):
            rows.append(Row(entry, run, leaderboard_figures(run.results)))
        else:
            others.append(replace(entry, reason=board.failure(entry.request).reason))
    return ranked(rows), sorted(others, key=lambda entry: (entry.name, entry.key))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Returns rows in order, with ranks by the first column; the next ones decide the order."""
    overview = [column.task_id for column in columns().values() if column.is_overview]

    def values(row: Row) -> list[float]:
        figures = [row.figures.get(key) for key in overview]
        return [-1.0 if x is None or x.value is None else x.value for x in figures]

    first = [values(row)[0] for row in rows]
    with_ranks = [
        replace(row, rank=1 + sum(other > value for other in first) if value >= 0 else None)
        for row, value in zip(rows, first, strict=True)
    ]
    return sorted(with_ranks, key=lambda row: ([-x for x in values(row)], row.page))


# ---- two rows compared ---------------------------------------------------------------------------


def outcomes(rows: Sequence[Row]) -> dict[str, pd.DataFrame]:
    """Returns id of a column -> a table (row, item) of 1 right, 0 wrong, NaN no outcome.

    Columns whose items are not right or wrong are left out.
    """
    sides = [side_of(row.run) for row in rows]
    scores = [{task: side.scores(task, "none") for task, _ in side.settings} for side in sides]
    tables = {}
    for place, column in columns().items():
        of_rows = {}
        for i, of_tasks in enumerate(scores):
            part = of_tasks.get(place.task, {}).get(place.measure)
            if part and place.by:
                part = part.by.get(place.by, {}).get(place.level)
            if part and part.statistic == "proportion" and len(part.items):
                of_rows[i] = pd.Series(part.values, index=part.items)
        if of_rows:
            tables[column.task_id] = pd.DataFrame(of_rows, columns=range(len(rows))).T
    return tables


def comparisons(tables: Iterable[pd.DataFrame]) -> dict[str, list[float | None]]:
    """Returns the interval and the p of every comparison that two rows can give.

    They depend on three numbers only: on how many items both have an outcome, and on how many of
    these only the first, or only the second, is right. Swapping the two rows swaps the latter.

    Returns:
        "n first second" -> lower and upper end of the 95% interval of first minus second, p of
        McNemar's exact test; first is at least second. None for an end that is not defined.
    """
    counts = [np.empty((0, 3), int)]
    for table in tables:
        right, wrong = (table == 1).to_numpy(int), (table == 0).to_numpy(int)
        n, wins = (right + wrong) @ (right + wrong).T, right @ wrong.T
        more, fewer = np.maximum(wins, wins.T), np.minimum(wins, wins.T)
        counts.append(np.stack([n, more, fewer], axis=-1).reshape(-1, 3))
    distinct = np.unique(np.concatenate(counts), axis=0).tolist()
    return {" ".join(map(str, x)): _interval_and_p(*x) for x in distinct if x[1]}


@cache
def _interval_and_p(n: int, first: int, second: int) -> list[float | None]:
    """As `lmdiag compare` computes them: paired bootstrap over items, exact McNemar."""
    a, b = np.repeat([1.0, 0.0, 0.0], [first, second, n - first - second]), np.zeros(n)
    b[first : first + second] = 1.0
    rng = np.random.default_rng([n, first, second])
    figures = *stats.paired_bootstrap(a, b, "proportion", rng), stats.mcnemar(a, b)
    return [None if math.isnan(figure) else round(figure, 4) for figure in figures]
