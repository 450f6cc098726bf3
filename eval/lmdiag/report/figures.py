"""The pictures that every report has: each function draws plain data and returns an inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from lmdiag.hub.text import visible
from lmdiag.report.drawing import (
    COLOURS,
    GRID,
    INK,
    MARKERS,
    MUTED,
    PAPER,
    RIGHT,
    WRONG,
    drawing,
    legend,
    percent_axis,
    power,
    to_svg,
)
from lmdiag.report.items import BLANK, Item
from lmdiag.report.records import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

FLOOR = 1e-8
"""Smallest probability that a picture tells from smaller ones, which stand on its edge."""


# ---- figures with their intervals ----------------------------------------------------------------


class Series(NamedTuple):
    """Figures of one kind, drawn in one colour: a name, and a cell for each row of the picture."""

    name: str
    cells: Sequence[Cell | None]


def dots(name: str, description: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Draws percentages as dots with their intervals, published figures as hollow diamonds.

    Args:
        name: of the picture, see `to_svg`.
        description: for who cannot see it.
        labels: of the rows, from top to bottom.
        series: drawn below each other within a row.
    """
    step = 0.7 / max(len(series), 1)
    lines = max(label.count("\n") + 1 for label in labels)
    row = max(0.17 + 0.12 * len(series), 0.05 + 0.18 * lines)
    with drawing(0.8 + row * len(labels)) as figure:
        axes = figure.add_subplot()
        for i, kind in enumerate(series):
            _dots(axes, kind, (i - (len(series) - 1) / 2) * step, i)
        _label_published(axes, series)
        percent_axis(axes)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        for edge in range(1, len(labels)):
            axes.axhline(edge - 0.5, color=GRID, linewidth=0.6)
        legend(figure, axes)
        return to_svg(figure, name, description)


def _dots(axes: Axes, kind: Series, offset: float, i: int) -> None:
    """One series: whiskers, dots, and the paper's figures."""
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    there = []
    for row, cell in enumerate(kind.cells):
        if cell is None or cell.value is None:
            continue
        there.append((100 * cell.value, row + offset))
        low, high = whisker(cell)
        axes.plot([100 * low, 100 * high], [row + offset] * 2, color=colour, alpha=0.55)
        if cell.published is not None:
            _diamond(axes, cell.published.figure.value, row + offset)
    if there:
        axes.plot(*zip(*there, strict=True), marker, color=colour, label=kind.name, zorder=4)


def _diamond(axes: Axes, x: float, y: float, label: str = "") -> None:
    """A published figure."""
    axes.plot(
        [x], [y], "d", markersize=8, markerfacecolor="none", markeredgecolor=INK, zorder=3,
        label=label or None,
    )  # fmt: skip


def _label_published(axes: Axes, series: Sequence[Series]) -> None:
    """Names the diamonds, if there are any."""
    if any(cell and cell.published for kind in series for cell in kind.cells):
        _diamond(axes, math.nan, math.nan, label="published")


def whisker(cell: Cell) -> tuple[float, float]:
    """Returns the interval, or the standard deviation over shuffled runs to either side."""
    value = cell.value or 0.0
    if cell.sd is not None:
        return max(0.0, value - cell.sd), min(1.0, value + cell.sd)
    return (value if cell.low is None else cell.low), (value if cell.high is None else cell.high)


# ---- probabilities -------------------------------------------------------------------------------


def good_and_bad(name: str, found: Sequence[Item], threshold: float) -> str:
    """Draws the probability of the good against the bad completion of every contrast, on log axes.

    Above the diagonal the good one is preferred, above the dashed curve by more than the threshold.
    Each point links to its item.
    """
    known = [item for item in found if item.difference is not None]
    above = f"{threshold:g}".removeprefix("0")
    strict = [item for item in known if item.by_threshold]
    plain = [item for item in known if item.prefers_good and not item.by_threshold]
    wrong = [item for item in known if not item.prefers_good]
    kinds = (
        (f"good by > {above}", strict, "o", RIGHT, RIGHT),
        ("good", plain, "o", PAPER, RIGHT),
        ("bad", wrong, "X", WRONG, WRONG),
    )
    with drawing(4.9) as figure:
        axes = figure.add_subplot()
        low = _log_square(axes, [p for i in known for p in (i.good, i.bad) if p is not None])
        _boundaries(axes, low, threshold)
        for label, chosen, marker, fill, edge in kinds:
            points = axes.scatter(
                [max(item.bad or 0, low) for item in chosen],
                [max(item.good or 0, low) for item in chosen],
                s=34, marker=marker, facecolor=fill, edgecolor=edge, linewidth=1.1, zorder=3,
                label=f"{label}: {len(chosen)}",
            )  # fmt: skip
            points.set_urls([link(item) for item in chosen])
        legend(figure, axes, title="prefers")
        titles = {link(item): told(item) for item in known}
        return to_svg(figure, name, "Probability of good against bad completions", titles)


def density(name: str, found: Sequence[Item]) -> str:
    """Draws what `good_and_bad` does, of so many pairs that only their density can be seen."""
    known = [item for item in found if item.difference is not None]
    with drawing(4.7) as figure:
        axes = figure.add_subplot()
        values = [p for i in known for p in (i.good, i.bad) if p is not None]
        low = decade_below(values)
        axes.hexbin(
            [max(item.bad or 0, low) for item in known],
            [max(item.good or 0, low) for item in known],
            xscale="log", yscale="log", gridsize=36, mincnt=1, bins="log", linewidths=0,
            cmap=_fading(), extent=(math.log10(low), 0, math.log10(low), 0),
        )  # fmt: skip
        _boundaries(axes, _log_square(axes, values), 0)  # hexbin has set the scales anew
        return to_svg(figure, name, "Density of probabilities of good against bad completions")


def _fading() -> Colormap:
    """From nearly nothing to full in one colour: opacity works on light and on dark."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    colour = to_rgb(COLOURS[0])
    return LinearSegmentedColormap.from_list("fading", [(*colour, 0.12), (*colour, 1.0)])


def _log_square(axes: Axes, values: Sequence[float]) -> float:
    """Makes equal log axes that hold all values; returns their lower end."""
    low = decade_below(values)
    axes.set_aspect("equal")
    axes.set_xscale("log")
    axes.set_xlim(0.7 * low, 1.4)
    log_axis(axes, low)
    ticks = axes.get_yticks()
    axes.set_xticks(ticks, [text.get_text() for text in axes.get_yticklabels()])
    axes.minorticks_off()
    axes.set_xlabel("p(bad completion)")
    axes.set_ylabel("p(good completion)")
    return low


def log_axis(axes: Axes, low: float) -> None:
    """Makes the upright axis one of probabilities, from a power of ten up to 1."""
    axes.set_yscale("log")
    axes.set_ylim(0.7 * low, 1.4)
    axes.minorticks_off()
    exponents = range(round(math.log10(low)), 1)
    axes.set_yticks([10.0**e for e in exponents], [power(e) for e in exponents])


def decade_below(values: Sequence[float]) -> float:
    """Returns the power of ten at or below the smallest probability, within reason."""
    smallest = min((value for value in values if value > 0), default=0.1)
    return float(10.0 ** math.floor(math.log10(max(smallest, FLOOR))))


def _boundaries(axes: Axes, low: float, threshold: float) -> None:
    """The diagonal, and above it the curve where the good one is ahead by the threshold."""
    ends = (low / 2, 1.5)
    axes.plot(ends, ends, color=MUTED, linewidth=1)
    if threshold > 0:
        x = [ends[0] * (ends[1] / ends[0]) ** (i / 120) for i in range(121)]
        y = [value + threshold for value in x]
        axes.plot(x, y, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))


def cloze(name: str, found: Sequence[Item], cloze_of: Mapping[str, float]) -> str:
    """Draws a model's probability of the target against people's, for every row.

    Args:
        name: of the picture, see `to_svg`.
        found: the items.
        cloze_of: row id -> proportion of people who gave the target.
    """
    kinds = (("appropriate", True, "o", RIGHT, RIGHT), ("reversed", False, "^", PAPER, WRONG))
    rows = [(item, choice) for item in found for choice in item.choices]
    known = [(item, choice, choice.probability or 0.0) for item, choice in rows if choice.log_prob]
    low = decade_below([p for _, _, p in known])
    with drawing(3.6) as figure:
        axes = figure.add_subplot()
        for label, good, marker, fill, edge in kinds:
            chosen = [each for each in known if each[1].good is good]
            points = axes.scatter(
                [cloze_of[choice.id] for _, choice, _ in chosen],
                [max(p, low) for _, _, p in chosen],
                s=30, marker=marker, facecolor=fill, edgecolor=edge, linewidth=1.1, label=label,
            )  # fmt: skip
            points.set_urls([link(item) for item, _, _ in chosen])
        log_axis(axes, low)
        axes.set_xlabel("people's cloze probability")
        axes.set_ylabel("model's probability")
        legend(figure, axes)
        titles = {link(item): told(item) for item, _, _ in known}
        return to_svg(figure, name, "Model probability against cloze probability", titles)


def link(item: Item) -> str:
    """Returns where a mark leads: the item in the page."""
    return f"#{quote(visible(item.id))}"


def told(item: Item) -> str:
    """Returns what the pointer shows of an item."""
    words = dict.fromkeys(choice.target for choice in item.choices)
    return visible(f"{item.id}: {item.choices[0].context} {BLANK} ({' / '.join(words)})")


# ---- shuffled runs -------------------------------------------------------------------------------


class Shuffled(NamedTuple):
    """A figure over the runs of a shuffled setting.

    Attributes:
        label: what was measured in which setting.
        values: proportion in each run.
        cell: their mean and standard deviation, and the paper's.
        plain: the same figure without shuffling, None where unknown.
    """

    label: str
    values: Sequence[float]
    cell: Cell
    plain: float | None


def shuffles(name: str, rows: Sequence[Shuffled]) -> str:
    """Draws how often each value came up over the shuffled runs, and where the mean lies."""
    with drawing(0.6 + 0.95 * len(rows)) as figure:
        grid = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, row in zip(grid, rows, strict=True):
            _shuffled(axes, row)
        percent_axis(grid[-1])
        legend(figure, grid[0])
        return to_svg(figure, name, "Distribution over shuffled runs")


def _shuffled(axes: Axes, row: Shuffled) -> None:
    counts: dict[float, int] = {}
    for value in row.values:
        counts[100 * value] = counts.get(100 * value, 0) + 1
    axes.bar(list(counts), list(counts.values()), width=1.6, color=COLOURS[0], alpha=0.75)
    top = max(counts.values(), default=1)
    low, high = whisker(row.cell)
    axes.plot([100 * low, 100 * high], [1.2 * top] * 2, color=INK)
    axes.plot(100 * (row.cell.value or 0), 1.2 * top, "o", color=INK, label="mean ± sd")
    if row.cell.published is not None:
        _diamond(axes, row.cell.published.figure.value, 1.2 * top, label="published")
    if row.plain is not None:
        dashed = (0, (4, 2))
        axes.axvline(100 * row.plain, color=COLOURS[1], linestyle=dashed, label="not shuffled")
    axes.set_ylim(0, 1.45 * top)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(False, axis="y")
    axes.set_title(row.label)
