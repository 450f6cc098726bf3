"""Pictures with lines: scores over cut-offs, and over the steps of training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmdiag.report.drawing import MUTED, Sheet, Stroke
from lmdiag.report.figures import GUESSING, percent, shape, whisker
from lmdiag.report.numbers import count
from lmdiag.report.panels import Entry, Panel, Side, legend, panels, percents, power
from lmdiag.report.records import Cell


class Curve(NamedTuple):
    """A line with the interval of each point.

    Attributes:
        name: what the line is.
        x: where its points are: probability mass that is kept, or training steps.
        cells: their figures, parallel to `x`.
    """

    name: str
    x: Sequence[float]
    cells: Sequence[Cell]


class Ends(NamedTuple):
    """The curves from the top of the distribution, and those from its bottom."""

    title: str
    top: Sequence[Curve]
    bottom: Sequence[Curve]

    def curves(self) -> list[Curve]:
        """All of them."""
        return [*self.top, *self.bottom]


def entries(curves: Sequence[Curve], *, marked: bool = True) -> list[Entry]:
    """What the legend says of curves, which are drawn likewise."""
    return [
        Entry(curve.name, shape(i) if marked else None, Stroke(shape(i).edge))
        for i, curve in enumerate(curves)
    ]


def cutoffs(name: str, ends: Ends) -> str:
    """Draws scores of the most probable verbs (left), then of ever less probable ones (right)."""
    sheet = Sheet(238)
    chances = {cell.chance for curve in ends.curves() for cell in curve.cells} - {None}
    legend(sheet, entries(ends.top) + [Entry("chance", stroke=GUESSING)] * bool(chances))
    lowest = min(whisker(cell)[0] for curve in ends.curves() for cell in curve.cells)
    scores = percents(min(48, 100 * lowest - 2), 10 if lowest > 0.4 else 20)
    last = min((x for curve in ends.bottom for x in curve.x), default=0.1)
    marked = {0.5: ".5", 0.01: ".01", 1e-4: power(-4), 1e-6: power(-6)}
    reached = {x: label for x, label in marked.items() if x >= last}
    top = Side(0.05, 1.03, {0.1: ".1", 0.5: ".5", 1: "1"}, "top of the distribution")
    bottom = Side(0.8, 0.6 * last, reached, "bottom of it", math.log10)
    grid = panels(sheet, [(top, scores), (bottom, scores)], columns=2)
    for panel, curves in zip(grid, (ends.top, ends.bottom), strict=True):
        panel.across([100 * (chance or 0.0) for chance in chances], GUESSING)
        for i, curve in enumerate(curves):
            _line(panel, curve, i)
    return sheet.svg(name, f"{ends.title} by cut-off of the distribution")


def _line(panel: Panel, curve: Curve, i: int) -> None:
    """One curve and the band of its intervals; what is undefined is left out."""
    points = [
        (x, cell) for x, cell in zip(curve.x, curve.cells, strict=True) if cell.value is not None
    ]
    if not points:
        return
    low = [(x, 100 * whisker(cell)[0]) for x, cell in points]
    high = [(x, 100 * whisker(cell)[1]) for x, cell in points]
    line = [(x, percent(cell)) for x, cell in points]
    panel.areas([[*low, *reversed(high)]], [(shape(i).edge, 0.14)])
    panel.lines([line], Stroke(shape(i).edge))
    panel.marks(line, shape(i))


def small_cutoffs(name: str, grid: Sequence[Ends]) -> str:
    """Draws the curves of many constructions, small: cut-offs follow each other as in `cutoffs`."""
    sheet = Sheet(36 + 90 * math.ceil(len(grid) / 2))
    legend(sheet, entries(grid[0].top, marked=False))
    halves = {0.0: "0", 50.0: "50", 100.0: "100"}
    sides = [
        (Side(-0.5, len(ends.top[0].x) + len(ends.bottom[0].x) - 0.5), Side(0, 103, halves))
        for ends in grid
    ]
    titles = [ends.title for ends in grid]
    for panel, ends in zip(panels(sheet, sides, columns=2, titles=titles), grid, strict=True):
        panel.upright([len(ends.top[0].x) - 0.5], Stroke(MUTED, 0.8))
        for i, (first, second) in enumerate(zip(ends.top, ends.bottom, strict=True)):
            y = [percent(cell) for cell in (*first.cells, *second.cells)]
            line = [(x, value) for x, value in enumerate(y) if not math.isnan(value)]
            panel.lines([line], Stroke(shape(i).edge, 1.4))
    return sheet.svg(name, "Scores by cut-off for each construction")


def steps(name: str, description: str, curves: Sequence[Curve]) -> str:
    """Draws percentages over the training steps of a model's checkpoints."""
    sheet = Sheet(223 + 14 * math.ceil(len(curves) / 2))
    levels = {curve.cells[0].chance for curve in curves if curve.cells} - {None}
    legend(sheet, entries(curves) + [Entry("chance", stroke=GUESSING)] * bool(levels))
    found = sorted({x for curve in curves for x in curve.x})
    (panel,) = panels(sheet, [(training(found), percents())])
    for i, curve in enumerate(curves):
        if curve.cells and (chance := curve.cells[0].chance) is not None:
            panel.across([100 * chance], GUESSING._replace(colour=shape(i).edge))
        _line(panel, curve, i)
    return sheet.svg(name, description)


def training(found: Sequence[float]) -> Side:
    """The side of training steps: eight of them at most marked, by logarithm where they grow so."""
    marked = found[:: math.ceil(len(found) / 8)]
    ticks = {x: count(round(x)) for x in marked}
    first = next((x for x in found if x > 0), 1.0)
    if found[-1] > 20 * first:
        return Side(found[0] - 0.2 * first, 1.3 * found[-1], ticks, "training step", _from(first))
    room = 0.04 * (found[-1] - found[0]) or 1
    return Side(found[0] - room, found[-1] + room, ticks, "training step")


def _from(first: float) -> Callable[[float], float]:
    """A logarithm that is even below the first step after 0, so that 0 has a place."""
    return lambda x: x / first if x <= first else 1 + math.log10(x / first)
