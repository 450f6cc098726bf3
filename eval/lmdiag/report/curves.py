"""Pictures with lines: scores over cut-offs, and over the steps of training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report.drawing import COLOURS, MARKERS, MUTED, drawing, legend, power, to_svg
from lmdiag.report.figures import whisker
from lmdiag.report.numbers import count
from lmdiag.report.records import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def cutoffs(name: str, ends: Ends) -> str:
    """Draws scores of the most probable verbs (left), then of ever less probable ones (right)."""
    with drawing(3.3) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.15, 1))
        for axes, curves in ((left, ends.top), (right, ends.bottom)):
            for i, curve in enumerate(curves):
                _line(axes, curve, i)
            axes.axhline(50, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        left.set_xlim(0.05, 1.03)
        left.set_xticks([0.1, 0.5, 1], [".1", ".5", "1"])
        left.set_xlabel("top of the distribution")
        right.set_xscale("log")
        right.invert_xaxis()
        right.minorticks_off()
        right.set_xticks([0.5, 0.01, 1e-4, 1e-6], [".5", ".01", power(-4), power(-6)])
        right.set_xlabel("bottom of it")
        lowest = min(
            whisker(cell)[0] for curve in (*ends.top, *ends.bottom) for cell in curve.cells
        )
        left.set_ylim(min(48.0, 100 * lowest - 2), 101)
        left.yaxis.set_major_formatter("{x:.0f} %")
        legend(figure, left)
        return to_svg(figure, name, f"{ends.title} by cut-off of the distribution")


def _line(axes: Axes, curve: Curve, i: int) -> None:
    """One curve and the band of its intervals."""
    points = [
        (x, cell) for x, cell in zip(curve.x, curve.cells, strict=True) if cell.value is not None
    ]
    x = [x for x, _ in points]
    bounds = [whisker(cell) for _, cell in points]
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    low, high = [100 * low for low, _ in bounds], [100 * high for _, high in bounds]
    axes.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)
    y = [percent(cell) for _, cell in points]
    axes.plot(x, y, color=colour, marker=marker, markersize=4, label=curve.name)


def percent(cell: Cell) -> float:
    """Returns a proportion in percent, NaN where it is undefined."""
    return math.nan if cell.value is None else 100 * cell.value


def small_cutoffs(name: str, panels: Sequence[Ends]) -> str:
    """Draws the curves of many constructions, small: cut-offs follow each other as in `cutoffs`."""
    rows = math.ceil(len(panels) / 2)
    with drawing(0.5 + 1.25 * rows) as figure:
        grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).flatten()
        for axes, panel in zip(grid, panels, strict=False):
            _small(axes, panel)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        legend(figure, grid[0])
        return to_svg(figure, name, "Scores by cut-off for each construction")


def _small(axes: Axes, panel: Ends) -> None:
    for i, (first, second) in enumerate(zip(panel.top, panel.bottom, strict=True)):
        y = [percent(cell) for cell in (*first.cells, *second.cells)]
        axes.plot(y, color=COLOURS[i % len(COLOURS)], linewidth=1.4, label=first.name)
    axes.axvline(len(panel.top[0].cells) - 0.5, color=MUTED, linewidth=0.8)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xticks([])
    axes.set_ylim(0, 103)
    axes.set_yticks([0, 50, 100])


def steps(name: str, description: str, curves: Sequence[Curve]) -> str:
    """Draws percentages over the training steps of a model's checkpoints."""
    with drawing(3.1 + 0.2 * math.ceil(len(curves) / 2)) as figure:
        axes = figure.add_subplot()
        for i, curve in enumerate(curves):
            _line(axes, curve, i)
        _training_axis(axes, sorted({x for curve in curves for x in curve.x}))
        axes.set_ylim(-2, 102)
        axes.yaxis.set_major_formatter("{x:.0f} %")
        legend(figure, axes)
        return to_svg(figure, name, description)


def _training_axis(axes: Axes, found: Sequence[float]) -> None:
    """Marks the steps themselves, eight at most, by logarithm where they grow so."""
    positive = [x for x in found if x > 0]
    if positive and positive[-1] > 20 * positive[0]:
        axes.set_xscale("symlog", linthresh=positive[0])
        axes.minorticks_off()
    marked = found[:: math.ceil(len(found) / 8)]
    axes.set_xticks(marked, [count(round(x)) for x in marked])
    axes.set_xlabel("training step")
