"""The hand that draws: figures of one size and style, as inline SVG in the page's own colours.

A picture is drawn in stand-in colours that the SVG then names as CSS variables (`var(--ink)`), so
that it is readable on light and on dark. Text stays text. Styles become attributes, which a strict
Content-Security-Policy allows, and ids are made unique to the picture.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.4
"""Inches; a picture is 389 points wide, so that its letters can be read on a phone."""

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
COLOURS = ("#050501", "#050502", "#050503", "#050504", "#050505", "#050506")
RIGHT, WRONG = COLOURS[0], COLOURS[1]
MARKERS = ("o", "s", "D", "^", "v", "P")

VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    PAPER: "var(--paper)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(COLOURS, start=1)},
}
"""Stand-in colour -> the page's own."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lmdiag",
    "text.parse_math": False,  # a "$" in a model's name is a "$"
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "legend.borderaxespad": 0,
    "figure.facecolor": "none",
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@contextmanager
def drawing(height: float) -> Iterator[Figure]:
    """Gives an empty figure in the report's style; nothing global is left changed.

    Args:
        height: inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def legend(figure: Figure, axes: Axes, title: str = "") -> None:
    """Puts the names of what is drawn above the axes, as many in a row as fit."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) < 2:
        return  # the caption says what a single kind of mark is
    labels = [shortened(label) for label in labels]
    columns = next(n for n in range(len(labels), 0, -1) if n == 1 or _legend_width(labels, n) <= 1)
    order = [i for column in range(columns) for i in range(column, len(handles), columns)]
    figure.legend(
        [handles[i] for i in order], [labels[i] for i in order],  # matplotlib fills columns first
        loc="outside upper left", ncols=columns, title=title or None, title_fontsize=11,
        alignment="left", handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def _legend_width(labels: Sequence[str], columns: int) -> float:
    """About how much of a picture's width a legend of so many columns takes."""
    longest = [max(map(len, labels[column::columns])) for column in range(columns)]
    return sum(6.2 * length + 30 for length in longest) / (72 * WIDTH)  # points: letters, mark


def shortened(label: str, most: int = 48) -> str:
    """Returns a label without its middle where it is too long to be drawn."""
    half = (most - 1) // 2
    return label if len(label) <= most else f"{label[:half]}…{label[-half:]}"


def percent_axis(axes: Axes) -> None:
    """Makes the level axis one of percentages from 0 to 100."""
    axes.set_xlim(-2, 102)
    axes.set_xticks(range(0, 101, 20), [*map(str, range(0, 100, 20)), "100 %"])


def to_svg(
    figure: Figure, name: str, description: str, titles: Mapping[str, str] | None = None
) -> str:
    """Returns a figure as an `<svg>` element to stand in a page.

    Args:
        figure: drawn within `drawing`.
        name: unique in the page; begins all its ids.
        description: what a reader who cannot see it is told.
        titles: link -> what is shown when a pointer rests on it.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for element in list(root.iter()):
        _style_as_attributes(element)
        _rename(element, name)
        link = element.get(f"{{{XLINK}}}href", "")
        if titles and element.tag == f"{{{SVG}}}a" and link in titles:
            _title(element, titles[link])
    for unwanted in ("metadata", "style"):
        _drop(root, unwanted)
    for unused in ("width", "height", "version"):
        root.attrib.pop(unused, None)
    root.set("role", "img")
    root.set("aria-label", description)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return _shorter(ElementTree.tostring(root, encoding="unicode"))


def _style_as_attributes(element: ElementTree.Element) -> None:
    """Turns `style="fill: #010101"` into `fill="var(--ink)"`."""
    for declaration in (element.attrib.pop("style", "") or "").split(";"):
        key, _, value = declaration.partition(":")
        key, value = key.strip(), value.strip()
        if key == "font":  # the page's own font; only size and weight are the picture's
            size = re.search(r"([\d.]+)px", value)
            element.set("font-size", size[1] if size else "11")
        elif key:
            element.set(key, value)
    for key in ("fill", "stroke"):
        colour = element.get(key, "").lower()
        if colour in VARIABLES:
            element.set(key, VARIABLES[colour])


def _rename(element: ElementTree.Element, name: str) -> None:
    """Begins an id, and each reference to one, with the name of the picture."""
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    for key, value in element.attrib.items():
        if value.startswith("url(#"):
            element.set(key, f"url(#{name}-{value[5:]}")
        elif key.endswith("href") and element.tag == f"{{{SVG}}}use":
            element.set(key, f"#{name}-{value[1:]}")


def _title(element: ElementTree.Element, text: str) -> None:
    title = ElementTree.Element(f"{{{SVG}}}title")
    title.text = text
    element.insert(0, title)


def _drop(root: ElementTree.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in parent.findall(f"{{{SVG}}}{tag}"):
            parent.remove(child)


def _shorter(svg: str) -> str:
    """Numbers with two decimals are exact enough for an eye, and halve the page."""
    svg = re.sub(r"(\d+\.\d\d)\d+", r"\1", svg)
    return re.sub(r">\s+<", "><", svg)


def power(exponent: int) -> str:
    """A power of ten as text: `10⁻³`."""
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "1" if exponent == 0 else f"10{str(exponent).translate(digits)}"
