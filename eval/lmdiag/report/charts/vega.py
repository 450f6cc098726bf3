"""The parts of a Vega-Lite specification, which is a dictionary.

What the parts may have stands in the documentation of Vega-Lite, https://vega.github.io/vega-lite.
"""

from __future__ import annotations

from typing import Any, Literal

Spec = dict[str, Any]
"""A specification or a part of one: a channel, a layer, a scale, an axis."""

_TYPES = {"numbers": "quantitative", "names": "nominal", "ordered": "ordinal"}


def field(column: str, of: Literal["numbers", "names", "ordered"], **options: Any) -> Spec:
    """Returns a channel (x, color, ...) that shows the values of a column.

    `of` says what they are; `options` are further keys of the channel, e.g. `title` or `scale`.

    >>> field("value", "numbers", title="share")
    {'field': 'value', 'type': 'quantitative', 'title': 'share'}
    """
    return {"field": column, "type": _TYPES[of], **options}


def mark(kind: str, encoding: Spec, **options: Any) -> Spec:
    """Returns a layer with a mark ("point", "rule", "line", "text", ...) for each row of the data.

    `encoding` is name of a channel (x, y, color, ...) -> the channel; `options` are those of all
    marks, e.g. `strokeWidth`.

    >>> mark("rule", {"x": field("low", "numbers")}, strokeWidth=2)["mark"]
    {'type': 'rule', 'strokeWidth': 2}
    """
    return {"mark": {"type": kind, **options}, "encoding": encoding}


def where(layer: Spec, condition: str | Spec) -> Spec:
    """Returns a layer of only the rows for which a condition holds, e.g. "datum.value > 0".

    It is tested before the other transforms of the layer.

    >>> where({"mark": {"type": "point"}}, "datum.value > 0")
    {'mark': {'type': 'point'}, 'transform': [{'filter': 'datum.value > 0'}]}
    """
    return layer | {"transform": [{"filter": condition}, *layer.get("transform", ())]}


def choice(test: str, yes: Any, no: Any) -> Spec:
    """Returns a channel that is `yes` for rows in which a test holds, and `no` for all others.

    >>> choice("datum.solid", "black", "transparent")
    {'condition': {'test': 'datum.solid', 'value': 'black'}, 'value': 'transparent'}
    """
    return {"condition": {"test": test, "value": yes}, "value": no}
