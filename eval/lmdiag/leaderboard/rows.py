"""The rows of the leaderboard: models in order of rank, and requests that have no run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
