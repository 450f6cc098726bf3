"""The parts of a Vega-Lite specification, which is a dictionary.

What the parts may have stands in the documentation of Vega-Lite, https://vega.github.io/vega-lite.
"""

from __future__ import annotations

from typing import Any, Literal

Spec = dict[str, Any]

_TYPES = {"numbers": "quantitative", "names": "nominal", "ordered": "ordinal"}


def field(column: str, of: Literal["numbers", "names", "ordered"], **options: Any) -> Spec:
    """Returns what a channel shows: the values of a column, as numbers, names or ordered values."""
    return {"field": column, "type": _TYPES[of], **options}


def mark(kind: str, encoding: Spec, **options: Any) -> Spec:
    """Returns a layer with a mark for each row, e.g. "point", "rule", "line", "text"."""
    return {"mark": {"type": kind, **options}, "encoding": encoding}


def where(layer: Spec, condition: str | Spec) -> Spec:
    """Returns a layer with those rows alone for which a condition holds."""
    return layer | {"transform": [{"filter": condition}, *layer.get("transform", ())]}


def choice(test: str, yes: Any, no: Any) -> Spec:
    """Returns the values of a channel without a column: `yes` where a test holds, else `no`."""
    return {"condition": {"test": test, "value": yes}, "value": no}
