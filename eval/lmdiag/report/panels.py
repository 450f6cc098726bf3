"""Panels: rectangles of a picture with a scale at each side, and the legend above them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lmdiag.report.drawing import (
    GRID,
    MUTED,
    WIDTH,
    Point,
    Shape,
    Sheet,
    Stroke,
)

LETTER, LINE = 5.9, 18
"""Width of a letter, about, and height of a line of text, in points."""
GAP = 12
"""Points between two panels."""


def _even(value: float) -> float:
    return value


@dataclass(frozen=True)
class Side:
    """What a side of a panel measures, from left to right or from below to above.

    Attributes:
        low, high: the values at its ends, in either order.
        ticks: value -> label of a line of the grid.
        name: what is measured.
        warp: what the scale is even in: a logarithm, say.
        grid: whether there are lines at the ticks.
    """

    low: float
    high: float
    ticks: Mapping[float, str] = field(default_factory=dict)
    name: str = ""
    warp: Callable[[float], float] = _even
    grid: bool = True

    def share(self, value: float) -> float:
        """Returns how far along the side a value lies: 0 at its low end, 1 at its high end."""
        low, high = self.warp(self.low), self.warp(self.high)
        return (self.warp(value) - low) / (high - low)


def percents(low: float = -2, step: int = 20, name: str = "") -> Side:
    """A side of percentages up to 100."""
    first = max(0, step * math.ceil(low / step))
    ticks = {float(value): str(value) for value in range(first, 100, step)}
    return Side(low, 102, ticks | {100.0: "100 %"}, name)


def probabilities(low: float, name: str) -> Side:
    """A side of probabilities, from a power of ten up to 1, by their logarithm."""
    exponents = range(round(math.log10(low)), 1)
    ticks = {10.0**exponent: power(exponent) for exponent in exponents}
    return Side(0.7 * low, 1.4, ticks, name, math.log10)


@dataclass(frozen=True)
class Panel:
    """A rectangle of a sheet; what is put on it is given in the units of its sides.

    Attributes:
        sheet: what it is drawn on.
        x, y: its sides.
        corner: its lower left corner, in points.
        wide, high: its size, in points.
    """

    sheet: Sheet
    x: Side
    y: Side
    corner: Point
    wide: float
    high: float

    def at(self, x: float, y: float) -> Point:
        """Returns the place of a pair of values on the sheet."""
        left, bottom = self.corner
        return left + self.wide * self.x.share(x), bottom + self.high * self.y.share(y)

    def lines(self, lines: Sequence[Sequence[Point]], stroke: Stroke) -> None:
        """Draws lines, each through its pairs of values."""
        self.sheet.lines([[self.at(*pair) for pair in line] for line in lines], stroke)

    def across(self, y: Sequence[float], stroke: Stroke) -> None:
        """Draws level lines from side to side."""
        self.lines([[(self.x.low, value), (self.x.high, value)] for value in y], stroke)

    def upright(self, x: Sequence[float], stroke: Stroke) -> None:
        """Draws upright lines from below to above."""
        self.lines([[(value, self.y.low), (value, self.y.high)] for value in x], stroke)

    def marks(self, pairs: Sequence[Point], shape: Shape, links: Sequence[str] = ()) -> None:
        """Puts a mark on each pair of values, a link where there are links."""
        self.sheet.marks([self.at(*pair) for pair in pairs], shape, links)

    def areas(
        self, outlines: Sequence[Sequence[Point]], fills: Sequence[tuple[str, float]]
    ) -> None:
        """Fills areas with outlines through pairs of values, see `Sheet.areas`."""
        self.sheet.areas([[self.at(*pair) for pair in line] for line in outlines], fills)

    def draw(self, title: str, *, below: bool, beside: bool) -> None:
        """Draws the grid and the title, and what the sides measure where it is wanted."""
        (left, bottom), line = self.corner, Stroke(GRID, 0.6)
        if self.x.grid:
            self.upright(list(self.x.ticks), line)
        if self.y.grid:
            self.across(list(self.y.ticks), line)
        edge = [(left, bottom + self.high), (left, bottom), (left + self.wide, bottom)]
        self.sheet.lines([edge], Stroke(MUTED, 0.8))
        if title:
            size = 11 if len(title) * LETTER < self.wide else 9
            self.sheet.text(title, left, bottom + self.high + 6, size=size)
        if below:
            for value, label in self.x.ticks.items():
                x = self.at(value, self.y.low)[0]
                self.sheet.text(label, x, bottom - 4, size=10.5, across="center", up="top")
            if self.x.name:
                middle = left + self.wide / 2
                self.sheet.text(self.x.name, middle, bottom - LINE - 2, across="center", up="top")
        if beside:
            for value, label in self.y.ticks.items():
                y = self.at(self.x.low, value)[1]
                self.sheet.text(label, left - 5, y, size=10.5, across="right", up="center")
            if self.y.name:
                x = left - 8 - _widest(self.y)
                middle = bottom + self.high / 2
                self.sheet.text(self.y.name, x, middle, across="right", up="center", upwards=True)


def panels(
    sheet: Sheet,
    sides: Sequence[tuple[Side, Side]],
    *,
    columns: int = 1,
    titles: Sequence[str] = (),
    square: bool = False,
) -> list[Panel]:
    """Fills what is left of a sheet with panels, and draws their grids.

    Room for text is reckoned by the letter. Only the outer panels say what their sides measure.

    Args:
        sheet: with its legend, if it has one.
        sides: of each panel, row by row.
        columns: how many panels are beside each other.
        titles: of the panels.
        square: whether they are as wide as high.
    """
    rows = math.ceil(len(sides) / columns)
    title = LINE + 2 if any(titles) else 0
    left = 8 + max(_widest(y) + LINE * bool(y.name) for _, y in sides)
    bottom = 4 + (LINE - 2) * any(x.ticks for x, _ in sides) + LINE * any(x.name for x, _ in sides)
    right = 3 * LETTER
    wide = (WIDTH - left - right - GAP * (columns - 1)) / columns
    high = (sheet.top - bottom - GAP * (rows - 1) - title * rows) / rows
    if square:
        wide = high = min(wide, high)
    found = []
    for i, (x, y) in enumerate(sides):
        row, column = divmod(i, columns)
        corner = (left + column * (wide + GAP), bottom + (rows - 1 - row) * (high + title + GAP))
        panel = Panel(sheet, x, y, corner, wide, high)
        last = i + columns >= len(sides)
        panel.draw(titles[i] if titles else "", below=last, beside=column == 0)
        found.append(panel)
    return found


def _widest(side: Side) -> float:
    """About how wide the labels of a side are, in points."""
    lines = [line for label in side.ticks.values() for line in label.split("\n")]
    return LETTER * max(map(len, lines), default=0)


# ---- the legend ----------------------------------------------------------------------------------


class Entry(NamedTuple):
    """What the legend says of a kind of mark.

    Attributes:
        label: its name.
        shape: its mark, if it has one.
        stroke: its line, if it has one.
    """

    label: str
    shape: Shape | None = None
    stroke: Stroke | None = None


MARK = 24
"""Points that a mark takes in the legend, before its name."""


def legend(sheet: Sheet, entries: Sequence[Entry], title: str = "") -> None:
    """Names what will be drawn, at the top of a sheet, as many in a row as fit.

    A single kind of mark is left to the caption.
    """
    if len(entries) < 2:
        sheet.top -= 6
        return
    labels = [shortened(entry.label) for entry in entries]
    columns = next(
        n for n in range(len(labels), 0, -1) if n == 1 or sum(_widths(labels, n)) <= WIDTH
    )
    widths = _widths(labels, columns)
    y = sheet.top - LINE + 4
    if title:
        sheet.text(title, 0, y)
        y -= LINE
    for i, (entry, label) in enumerate(zip(entries, labels, strict=True)):
        row, column = divmod(i, columns)
        _sample(sheet, entry, sum(widths[:column]), y - LINE * row + 4)
        sheet.text(label, sum(widths[:column]) + MARK, y - LINE * row)
    sheet.top = y - LINE * ((len(labels) - 1) // columns) - 8


def _widths(labels: Sequence[str], columns: int) -> list[float]:
    """About how wide the columns of a legend are, in points."""
    return [
        MARK + LETTER * max(map(len, labels[column::columns])) + 12 for column in range(columns)
    ]


def _sample(sheet: Sheet, entry: Entry, x: float, y: float) -> None:
    if entry.stroke:
        sheet.lines([[(x, y), (x + MARK - 6, y)]], entry.stroke)
    if entry.shape:
        sheet.marks([(x + (MARK - 6) / 2, y)], entry.shape)


# ---- words ---------------------------------------------------------------------------------------


def power(exponent: int) -> str:
    """A power of ten as text: `10⁻³`."""
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "1" if exponent == 0 else f"10{str(exponent).translate(digits)}"


def shortened(label: str, most: int = 48) -> str:
    """Returns a label without its middle where it is too long to be drawn."""
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[-half:]}"
