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
        """The specification with every text escaped, see `escape_value`."""
        spec: dict[str, Any] = escape_spec(self.chart)
        return spec


_JAVASCRIPT_PROPERTIES = frozenset((
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
    "toString", "valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__",
    "__lookupSetter__",
))  # fmt: skip
"""Names that every JavaScript object has.

Vega keeps groups of rows in an object, by their names: a group with one of these names would seem
to exist already.
"""


def escape_value(value: Any) -> Any:
    """Returns a value for a chart; a text that is a property of JavaScript objects is changed.

    Vega cannot draw a group of rows that is called, for example, "constructor". Such a text gets a
    word joiner (U+2060), which is invisible; every other value is returned as it is.
    """
    if isinstance(value, str) and value in _JAVASCRIPT_PROPERTIES:
        return f"{value}\u2060"
    return value


def escape_spec(spec: Any) -> Any:
    """Returns a Vega-Lite specification, or a part of one, with `escape_value` of every text.

    The rows below the key "data" are kept: they were escaped when they were put there.
    """
    if isinstance(spec, dict):
        parts = {}
        for key, part in spec.items():
            parts[key] = part if key == "data" else escape_spec(part)
        return parts
    if isinstance(spec, list):
        return [escape_spec(part) for part in spec]
    return escape_value(spec)


def name_part(text: str) -> str:
    """Returns a text as a part of a file name.

    >>> name_part("Sensitivity, by verb")
    'sensitivity-by-verb'
    """
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
