"""Charts of results as specifications of Vega-Lite, for the report page, files and notebooks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MOST_BESIDE = 4
"""Models whose figures are in columns; more are the rows of a table."""


class Plot(NamedTuple):
    """A chart with its caption.

    Attributes:
        kind: a key of `lmdiag.report.charts.kinds.PLOTS_OF`, or e.g. `steps`, `differences`.
        name: unique among the charts of a report; the name of its file.
        caption: what it shows and how to read it.
        chart: its Vega-Lite specification with data, without a `config`; colours are CSS variables
            (`var(--c1)`).
        is_further: whether it is one of many, which a page folds.
        heading: name of its model or diagnostic, where there are charts of several.
        is_repeated: whether a table of the page shows the same, which leaves it out.
    """

    kind: str
    name: str
    caption: str
    chart: dict[str, Any]
    is_further: bool = False
    heading: str = ""
    is_repeated: bool = False

    @property
    def title(self) -> str:
        """The first sentence of the caption."""
        return self.caption.partition(". ")[0]

    @property
    def spec(self) -> dict[str, Any]:
        """The specification with escaped texts."""
        spec: dict[str, Any] = escaped_parts(self.chart)
        return spec


_OF_OBJECTS = frozenset((
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
    "toString", "valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__",
    "__lookupSetter__",
))  # fmt: skip
"""Names that every object of JavaScript has, which Vega takes for groups of rows that are there."""


def escaped(value: Any) -> Any:
    """Returns a value of a chart, with a word joiner, which is not seen, behind such a name."""
    return f"{value}\u2060" if isinstance(value, str) and value in _OF_OBJECTS else value


def escaped_parts(spec: Any) -> Any:
    """Returns a specification with escaped texts; those of `inline` rows are escaped already."""
    if isinstance(spec, dict):
        return {key: part if key == "data" else escaped_parts(part) for key, part in spec.items()}
    if isinstance(spec, list):
        return [escaped_parts(part) for part in spec]
    return escaped(spec)


def name_part(text: str) -> str:
    """Returns text as a part of a file name."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
