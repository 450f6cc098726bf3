"""The pictures that every report has: each function draws plain data and returns an inline SVG."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from lmdiag.hub.text import visible
from lmdiag.report.drawing import (
    COLOURS,
    GRID,
    INK,
    MUTED,
    PAPER,
    RIGHT,
    SHAPES,
    WRONG,
    Point,
    Shape,
    Sheet,
    Stroke,
)
from lmdiag.report.items import BLANK, Item
from lmdiag.report.panels import Entry, Panel, Side, legend, panels, percents, probabilities
from lmdiag.report.records import Cell

FLOOR = 1e-8
"""Smallest probability that a picture tells from smaller ones, which stand on its edge."""
DIAMOND = Shape("d", INK, "none", 8)
"""Stands for a published figure."""
INTERVAL, DEVIATION = Stroke(INK, opacity=0.55), Stroke(INK, 6, opacity=0.3)
"""Stand for a 95% interval over items, and for a standard deviation over shuffles."""
GUESSING = Stroke(INK, 1.1, (1.5, 2))
"""Stands for what guessing gives."""


def shape(i: int) -> Shape:
    """Returns the mark of the i-th of several kinds."""
    return Shape(SHAPES[i % len(SHAPES)], COLOURS[i % len(COLOURS)])


# ---- figures with their intervals ----------------------------------------------------------------


class Series(NamedTuple):
    """Figures of one kind, drawn in one colour: a name, and a cell for each row of the picture."""

    name: str
    cells: Sequence[Cell | None]


class Dot(NamedTuple):
    """A figure in its place: which series, how far from above in rows."""

    series: int
    y: float
    cell: Cell


def dots(name: str, description: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Draws percentages as dots with their intervals, published figures as hollow diamonds.

    A thin line is the interval over items, a broad one the standard deviation over shuffles, and a
    dotted upright line what guessing gives.

    Args:
        name: of the picture, see `Sheet.svg`.
        description: for who cannot see it.
        labels: of the rows, from top to bottom.
        series: drawn below each other within a row.
    """
    step = 0.7 / max(len(series), 1)
    known = [
        Dot(i, row + (i - (len(series) - 1) / 2) * step, cell)
        for i, kind in enumerate(series)
        for row, cell in enumerate(kind.cells)
        if cell is not None and cell.value is not None
    ]
    published = [(d.cell.published.figure.value, d.y) for d in known if d.cell.published]
    shuffled = [d for d in known if d.cell.sd is not None]
    guessing = [chance_line(d, step) for d in known if d.cell.chance is not None]
    drawn = sorted({dot.series for dot in known})
    lines = max(label.count("\n") + 1 for label in labels)
    rows_high = max(12 + 9 * len(series), 4 + 13 * lines) * len(labels)
    sheet = Sheet(58 + 20 * bool(shuffled) + rows_high)
    entries = [Entry(series[i].name, shape(i)) for i in drawn]
    entries += [Entry("published", DIAMOND)] * bool(published)
    entries += [Entry("chance", stroke=GUESSING)] * bool(guessing)
    legend(sheet, entries + SPREADS * bool(shuffled))
    rows = Side(len(labels) - 0.5, -0.5, dict(enumerate(labels)), grid=False)
    (panel,) = panels(sheet, [(percents(), rows)])
    panel.across([row - 0.5 for row in range(1, len(labels))], Stroke(GRID, 0.6))
    panel.lines(guessing, GUESSING)
    for i in drawn:
        spreads = [[(100 * x, d.y) for x in deviation(d.cell)] for d in shuffled if d.series == i]
        panel.lines(spreads, DEVIATION._replace(colour=shape(i).edge))
        whiskers = [[(100 * x, d.y) for x in whisker(d.cell)] for d in known if d.series == i]
        panel.lines(whiskers, INTERVAL._replace(colour=shape(i).edge))
    panel.marks(published, DIAMOND)
    for i in drawn:
        panel.marks([(percent(d.cell), d.y) for d in known if d.series == i], shape(i))
    return sheet.svg(name, description)


def percent(cell: Cell) -> float:
    """Returns a proportion in percent, NaN where it is undefined."""
    return math.nan if cell.value is None else 100 * cell.value


SPREADS = [
    Entry("95% interval over items", stroke=INTERVAL),
    Entry("± sd over shuffles", stroke=DEVIATION),
]
"""What the legend says where a picture has both."""


def chance_line(dot: Dot, step: float) -> list[Point]:
    """Returns the upright line at the chance level of a figure, as high as its share of the row."""
    x = 100 * (dot.cell.chance or 0.0)
    return [(x, dot.y - step / 2), (x, dot.y + step / 2)]


def deviation(cell: Cell) -> tuple[float, float]:
    """Returns the standard deviation over shuffled runs to either side, within [0, 1]."""
    value, sd = cell.value or 0.0, cell.sd or 0.0
    return max(0.0, value - sd), min(1.0, value + sd)


def whisker(cell: Cell) -> tuple[float, float]:
    """Returns the interval over items."""
    value = cell.value or 0.0
    return (value if cell.low is None else cell.low), (value if cell.high is None else cell.high)


# ---- probabilities -------------------------------------------------------------------------------


def good_and_bad(name: str, found: Sequence[Item], threshold: float) -> str:
    """Draws the probability of the good against the bad completion of every contrast, on log axes.

    Above the diagonal the good one is preferred, above the dashed curve by more than the threshold.
    Each point links to its item.
    """
    known = [item for item in found if item.difference is not None]
    strict = [item for item in known if item.by_threshold]
    plain = [item for item in known if item.prefers_good and not item.by_threshold]
    wrong = [item for item in known if not item.prefers_good]
    above = f"{threshold:g}".removeprefix("0")
    kinds = (
        (f"good by > {above}", strict, Shape("o", RIGHT, size=6)),
        ("good", plain, Shape("o", RIGHT, PAPER, 6)),
        ("bad", wrong, Shape("X", WRONG, size=6)),
    )
    low = decade_below([p for item in known for p in (item.good, item.bad) if p is not None])
    sheet = Sheet(353)
    legend(sheet, [Entry(f"{label}: {len(those)}", its) for label, those, its in kinds], "prefers")
    panel = _square(sheet, low, threshold)
    for _, those, its in kinds:
        panel.marks([_pair(item, low) for item in those], its, [link(item) for item in those])
    titles = {link(item): told(item) for item in known}
    return sheet.svg(name, "Probability of good against bad completions", titles)


BINS = 36
"""Of the density, along each side."""


def density(name: str, found: Sequence[Item]) -> str:
    """Draws what `good_and_bad` does, of so many pairs that only their density can be seen."""
    known = [item for item in found if item.difference is not None]
    low = decade_below([p for item in known for p in (item.good, item.bad) if p is not None])
    width = -math.log10(low) / BINS  # of a bin, in powers of ten
    bins: Counter[tuple[int, int]] = Counter()
    for item in known:
        x, y = (min(int((math.log10(p / low)) / width), BINS - 1) for p in _pair(item, low))
        bins[x, y] += 1
    most = math.log1p(max(bins.values(), default=1))
    panel = _square(sheet := Sheet(338), low, 0)
    panel.areas(
        [
            _rectangle(*(low * 10 ** (width * edge) for edge in (x, x + 1, y, y + 1)))
            for x, y in bins
        ],
        [(COLOURS[0], 0.1 + 0.9 * math.log1p(count) / most) for count in bins.values()],
    )
    return sheet.svg(name, "Density of probabilities of good against bad completions")


def _rectangle(left: float, right: float, low: float, high: float) -> list[Point]:
    return [(left, low), (right, low), (right, high), (left, high)]


def _pair(item: Item, low: float) -> Point:
    """Returns the probabilities of the bad and of the good completion, at least `low`."""
    return max(item.bad or 0, low), max(item.good or 0, low)


def _square(sheet: Sheet, low: float, threshold: float) -> Panel:
    """The panel of pairs: the diagonal, and above it where the good one is ahead by a threshold."""
    x, y = probabilities(low, "p(bad completion)"), probabilities(low, "p(good completion)")
    (panel,) = panels(sheet, [(x, y)], square=True)
    panel.lines([[(x.low, y.low), (x.high, y.high)]], Stroke(MUTED, 1))
    if threshold > 0:
        top = y.high - threshold
        curve = [x.low * (top / x.low) ** (i / 120) for i in range(121)]
        ahead = [(value, value + threshold) for value in curve if value + threshold >= y.low]
        panel.lines([ahead], Stroke(MUTED, 1, (4, 3)))
    return panel


def decade_below(values: Sequence[float]) -> float:
    """Returns the power of ten at or below the smallest probability, within reason."""
    smallest = min((value for value in values if value > 0), default=0.1)
    return float(10.0 ** math.floor(math.log10(max(smallest, FLOOR))))


def cloze(name: str, found: Sequence[Item], cloze_of: Mapping[str, float]) -> str:
    """Draws a model's probability of the target against people's, for every row.

    Args:
        name: of the picture, see `Sheet.svg`.
        found: the items.
        cloze_of: row id -> proportion of people who gave the target.
    """
    kinds = (
        ("appropriate", True, Shape("o", RIGHT, size=5.5)),
        ("reversed", False, Shape("^", WRONG, PAPER, 5.5)),
    )
    rows = [(item, choice) for item in found for choice in item.choices]
    known = [(item, choice, choice.probability or 0.0) for item, choice in rows if choice.log_prob]
    low = decade_below([p for _, _, p in known])
    most = max((cloze_of[choice.id] for _, choice, _ in known), default=1.0)
    tenths = {i / 10: f"{i / 10:.1f}" for i in range(math.floor(10 * most) + 1)}
    sheet = Sheet(259)
    legend(sheet, [Entry(label, its) for label, _, its in kinds])
    people = Side(-0.05 * most, 1.05 * most, tenths, "people's cloze probability")
    (panel,) = panels(sheet, [(people, probabilities(low, "model's probability"))])
    for _, good, its in kinds:
        those = [each for each in known if each[1].good is good]
        points = [(cloze_of[choice.id], max(p, low)) for _, choice, p in those]
        panel.marks(points, its, [link(item) for item, _, _ in those])
    titles = {link(item): told(item) for item, _, _ in known}
    return sheet.svg(name, "Model probability against cloze probability", titles)


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


MEAN = Shape("o", INK)
PLAIN = Stroke(COLOURS[1], dashes=(4, 2))


def shuffles(name: str, rows: Sequence[Shuffled]) -> str:
    """Draws how often each value came up over the shuffled runs, and where the mean lies."""
    sheet = Sheet(43 + 68 * len(rows))
    entries = [Entry("mean ± sd over shuffles", MEAN, DEVIATION)]
    entries += [Entry("published", DIAMOND)] * any(row.cell.published for row in rows)
    entries += [Entry("not shuffled", stroke=PLAIN)] * any(row.plain is not None for row in rows)
    legend(sheet, entries)
    counts = [Counter(100 * value for value in row.values) for row in rows]
    tops = [max(count.values(), default=1) for count in counts]
    sides = [(percents(), Side(0, 1.45 * top)) for top in tops]
    grid = panels(sheet, sides, titles=[row.label for row in rows])
    for panel, row, count, top in zip(grid, rows, counts, tops, strict=True):
        bars = [_rectangle(x - 0.8, x + 0.8, 0, n) for x, n in count.items()]
        panel.areas(bars, [(COLOURS[0], 0.75)])
        if row.plain is not None:
            panel.upright([100 * row.plain], PLAIN)
        panel.lines([[(100 * x, 1.2 * top) for x in deviation(row.cell)]], DEVIATION)
        panel.marks([(percent(row.cell), 1.2 * top)], MEAN)
        if row.cell.published is not None:
            panel.marks([(row.cell.published.figure.value, 1.2 * top)], DIAMOND)
    return sheet.svg(name, "Distribution over shuffled runs")
