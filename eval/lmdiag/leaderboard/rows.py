"""The rows of the leaderboard: models in order of rank, and requests that have no run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from lmdiag import stats
from lmdiag.comparison import side_of
from lmdiag.hub.benchmark import columns, leaderboard_figures
from lmdiag.hub.requests import Entry, RunRequest, Unranked
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.running import failure
from lmdiag.results import Figure, Results, Run
from lmdiag.text import file_name

_MAY_FLIP = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 4}
"""Dtype -> items on which two machines may differ, since two words are closer than its rounding."""


@dataclass(frozen=True)
class Row:
    """One model in one precision, as the leaderboard ran it.

    Attributes:
        request: that asked for it.
        run: the run.
        figures: id of the leaderboard's column -> figure, without undefined ones.
        differing: id of a column -> the claimed value, where it is another one.
        rank: by the first column of the overview; equal figures share one.
    """

    request: RunRequest
    run: Run
    figures: Mapping[str, Figure]
    differing: Mapping[str, float] = field(default_factory=dict)
    rank: int | None = None

    @property
    def results(self) -> Results:
        """The results of the run."""
        return self.run.results

    @property
    def detail(self) -> str:
        """Commit and precision, which distinguish rows of one model."""
        return f"{self.results.model.commit.removeprefix('sha256:')[:7]} · {self.request.precision}"

    @property
    def page(self) -> str:
        """Address of the report of its run in the site."""
        identity = f"{self.request.model} {self.results.model.commit} {self.request.precision}"
        return f"models/{file_name(self.request.model, identity)}.html"


def make_rows(
    board: Board, entries: Sequence[Entry], refused: Sequence[Unranked]
) -> tuple[list[Row], list[Unranked]]:
    """Returns the rows in order of rank, and the requests that have no run, by name."""
    rows, unranked = [], [*refused]
    for entry in entries:
        request, claimed = entry.request, _claimed_values(entry)
        if run := board.run(request):
            figures = leaderboard_figures(run.results)
            rows.append(Row(request, run, figures, _differing(claimed, figures, request)))
        else:
            detail = " · ".join(filter(None, (request.commit[:7], request.precision)))
            unranked.append(Unranked(request.model, failure(board, request), detail, claimed))
    return ranked(rows), sorted(unranked, key=lambda x: (x.name, x.detail))


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Returns rows in order, with ranks by the first column; the next ones decide the order."""
    overview = [column.task_id for column in columns().values() if column.is_overview]

    def values(row: Row) -> list[float]:
        return [-1.0 if x is None or x.value is None else x.value
                for x in map(row.figures.get, overview)]  # fmt: skip

    first = [values(row)[0] for row in rows]
    with_ranks = [
        replace(row, rank=1 + sum(other > value for other in first) if value >= 0 else None)
        for row, value in zip(rows, first, strict=True)
    ]
    return sorted(with_ranks, key=lambda row: ([-x for x in values(row)], row.page))


def _claimed_values(entry: Entry) -> dict[str, float]:
    """Returns the claimed figures of an entry that are proportions."""
    if entry.claimed is None:
        return {}
    claimed = leaderboard_figures(entry.claimed)
    return {key: x.value for key, x in claimed.items() if x.value is not None and 0 <= x.value <= 1}


def _differing(
    claimed: Mapping[str, float], figures: Mapping[str, Figure], request: RunRequest
) -> dict[str, float]:
    """Returns the claimed values that differ from the computed ones by more than rounding."""
    flips = _MAY_FLIP[request.dtype] if request.quantization is None else max(_MAY_FLIP.values())
    return {
        key: value
        for key, value in claimed.items()
        if (figure := figures.get(key)) is None
        or abs(value - (figure.value or 0.0)) > flips / (figure.n or 1) + 1e-9
    }


# ---- two rows compared ---------------------------------------------------------------------------


def outcomes(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Returns for each row: id of a column -> outcome of each item: right `1`, wrong `0`, none `-`.

    The items are in the same order for all rows. Columns whose items are not right or wrong are
    left out.
    """
    scores = [dict(_verdicts(row.run)) for row in rows]
    keys = {key: None for verdicts in scores for key in verdicts}
    items = {key: sorted({x for verdicts in scores for x in verdicts.get(key, ())}) for key in keys}
    return [
        {
            key: "".join(verdicts[key].get(item, "-") for item in items[key])
            for key in keys
            if key in verdicts
        }
        for verdicts in scores
    ]


def _verdicts(run: Run) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the id of each column, and item -> its outcome."""
    side = side_of(run)
    scores = {task: side.scores(task, "none") for task in run.results.tasks}
    for place, column in columns().items():
        whole = scores.get(place.task, {}).get(place.measure)
        part = whole and (whole.by.get(place.by, {}).get(place.level) if place.by else whole)
        if part and part.statistic == "proportion" and len(part.items):
            values = ("1" if value else "0" for value in part.values)
            yield column.task_id, dict(zip(map(str, part.items), values, strict=True))


def comparisons(by_row: Sequence[Mapping[str, str]]) -> dict[str, list[float | None]]:
    """Returns the interval and the p of every comparison that two rows can give.

    They depend on three numbers only: on how many items both have an outcome, and on how many of
    these only the first, or only the second, is right. Swapping the two rows swaps the latter.

    Returns:
        "n first second" -> lower and upper end of the 95% interval of first minus second, p of
        McNemar's exact test; first is at least second. None for an end that is not defined.
    """
    counts = {
        (n, max(first, second), min(first, second))
        for i, row in enumerate(by_row)
        for other in by_row[:i]
        for key in row.keys() & other.keys()
        for n, first, second in [_discordant(row[key], other[key])]
        if first or second
    }
    return {" ".join(map(str, triple)): _interval_and_p(*triple) for triple in sorted(counts)}


def _discordant(a: str, b: str) -> tuple[int, int, int]:
    pairs = [pair for pair in zip(a, b, strict=True) if "-" not in pair]
    return len(pairs), pairs.count(("1", "0")), pairs.count(("0", "1"))


@cache
def _interval_and_p(n: int, first: int, second: int) -> list[float | None]:
    """As `lmdiag compare` computes them: paired bootstrap over items, exact McNemar."""
    a, b = np.zeros(n), np.zeros(n)
    a[:first] = 1.0
    b[first : first + second] = 1.0
    rng = np.random.default_rng([n, first, second])
    figures = *stats.paired_bootstrap(a, b, "proportion", rng), stats.mcnemar(a, b)
    return [None if math.isnan(figure) else round(figure, 4) for figure in figures]
