"""Keywords of functions of the Python API that are the fields of records, which declare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from lmdiag.types import field_types

Function = TypeVar("Function", bound=Callable[..., Any])


def with_fields(*records: type) -> Callable[[Function], Function]:
    """Names the fields of records in the signature of a function that takes them as `**options`.

    `help` and the completion of notebooks then show them with types and defaults. A keyword that
    the function declares itself is not repeated.

    >>> from lmdiag.types import DesignOptions
    >>> @with_fields(DesignOptions)
    ... def analyse(table, *, by="item", **design):
    ...     return by
    >>> list(inspect.signature(analyse).parameters)
    ['table', 'by', 'conditions', 'item', 'region', 'levels', 'coding']
    """

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        kept = [x for x in own.parameters.values() if x.kind is not x.VAR_KEYWORD]
        named = {x.name: x for x in kept}
        for record in records:
            types = field_types(record)
            for field in fields(record):
                named.setdefault(
                    field.name,
                    inspect.Parameter(
                        field.name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=field.default,
                        annotation=types[field.name],
                    ),
                )
        shown = own.replace(parameters=[*named.values()])
        function.__signature__ = shown  # type: ignore[attr-defined]
        return function

    return decorate
