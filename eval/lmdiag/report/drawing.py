"""The hand that draws: lines, marks and letters, as inline SVG in the colours of the page.

A picture is drawn by matplotlib in stand-in colours that the SVG then names as CSS variables
(`var(--ink)`), so that it is readable on light and on dark. Text stays text. Styles become
attributes, which a strict Content-Security-Policy allows, and ids are made unique to the picture.

Of matplotlib only the shapes and the SVG are used, not its axes, ticks, legends and layout engines,
which take most of the time of pictures as small as these and measure text in a font that the page
does not use. `lmdiag.report.panels` has ours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.artist import Artist

Point = tuple[float, float]

POINTS = 72
"""In an inch."""
WIDTH = 389
"""Of a picture, in points: so that its letters can be read on a phone."""

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
COLOURS = ("#050501", "#050502", "#050503", "#050504", "#050505", "#050506")
RIGHT, WRONG = COLOURS[0], COLOURS[1]
SHAPES = ("o", "s", "D", "^", "v", "P")

VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    PAPER: "var(--paper)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(COLOURS, start=1)},
}
"""Stand-in colour -> the page's own."""

STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "lmdiag"}

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


class Stroke(NamedTuple):
    """How a line is drawn.

    Attributes:
        colour: one of the stand-ins.
        width: in points.
        dashes: points on, points off; () for a whole line.
        opacity: of the line.
    """

    colour: str
    width: float = 1.6
    dashes: tuple[float, ...] = ()
    opacity: float = 1


class Shape(NamedTuple):
    """How a mark is drawn.

    Attributes:
        kind: a marker of matplotlib's.
        edge: its colour.
        fill: likewise, "none" for a hollow mark, "" for the edge's.
        size: its width in points.
    """

    kind: str
    edge: str
    fill: str = ""
    size: float = 5


class Sheet:
    """A picture being drawn. Places are points from its lower left corner.

    Attributes:
        top: the height up to which nothing is drawn yet.
    """

    def __init__(self, height: float) -> None:
        """Takes an empty sheet of a height in points."""
        from matplotlib.figure import Figure

        self.top = height
        self._figure = Figure(figsize=(WIDTH / POINTS, height / POINTS), dpi=POINTS)
        self._figure.patch.set_visible(False)

    def lines(self, lines: Sequence[Sequence[Point]], stroke: Stroke) -> None:
        """Draws lines, each through its points."""
        from matplotlib.collections import LineCollection

        if not lines:
            return
        style = (0, stroke.dashes) if stroke.dashes else "-"
        self._add(
            LineCollection(
                lines, colors=stroke.colour, linewidths=stroke.width, linestyles=[style],
                alpha=None if stroke.opacity == 1 else stroke.opacity,
            )
        )  # fmt: skip

    def marks(self, points: Sequence[Point], shape: Shape, links: Sequence[str] = ()) -> None:
        """Puts a mark on each point, a link where there are links."""
        from matplotlib.collections import PathCollection
        from matplotlib.markers import MarkerStyle
        from matplotlib.transforms import IdentityTransform

        if not points:
            return
        style = MarkerStyle(shape.kind)
        marks = PathCollection(
            [style.get_path().transformed(style.get_transform())], sizes=[shape.size**2],
            offsets=points, offset_transform=IdentityTransform(),
            facecolors=shape.fill or shape.edge, edgecolors=shape.edge, linewidths=1,
        )  # fmt: skip
        if links:
            marks.set_urls(links)
        self._add(marks)

    def areas(
        self, outlines: Sequence[Sequence[Point]], fills: Sequence[tuple[str, float]]
    ) -> None:
        """Fills areas, each of a colour and an opacity; one pair may stand for all."""
        from matplotlib.collections import PolyCollection

        self._add(PolyCollection(outlines, facecolors=fills, linewidths=0))

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        size: float = 11,
        across: str = "left",
        up: str = "baseline",
        upwards: bool = False,
    ) -> None:
        """Writes words.

        Args:
            words: lines are broken at line feeds only.
            x, y: in points.
            size: of the letters, in points.
            across: which edge of the words is at `x`: left, center, right.
            up: what of the words is at `y`: baseline, top, bottom, center.
            upwards: whether they run from below to above.
        """
        from matplotlib.text import Text

        self._add(
            Text(
                x, y, words, fontsize=size, color=INK, parse_math=False,  # a "$" is a "$"
                ha=across, va=up, rotation=90 if upwards else 0,
            )
        )  # fmt: skip

    def _add(self, artist: Artist) -> None:
        from matplotlib.transforms import IdentityTransform

        artist.set_transform(IdentityTransform())
        artist.set_zorder(0)  # what comes later lies above
        self._figure.add_artist(artist)

    def svg(self, name: str, description: str, titles: Mapping[str, str] | None = None) -> str:
        """Returns the picture as an `<svg>` element to stand in a page.

        Args:
            name: unique in the page; begins all its ids.
            description: what a reader who cannot see it is told.
            titles: link -> what is shown when a pointer rests on it.
        """
        import matplotlib

        buffer = io.StringIO()
        with matplotlib.rc_context(STYLE):
            self._figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
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
