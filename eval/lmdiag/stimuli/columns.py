"""Converts columns to their types: how a value may be written, and what it is read as.

Core columns have types, and so do the own columns of a diagnostic. All other columns keep their
values: they are break-downs or text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE_COLUMNS, SENTENCE_COLUMNS
from lmdiag.stimuli.table import RawTable, RowNames
from lmdiag.text import suggest, truncated
from lmdiag.types import BadInput

_TRUTH = {"true": True, "1": True, "false": False, "0": False}
"""How text files write truth values; compared in lower case."""

_QUOTED = r"""(?:'[^'\\]*'|"[^"\\]*")"""
_PYTHON_LIST = re.compile(rf"\[\s*(?:{_QUOTED}\s*(?:,\s*{_QUOTED}\s*)*,?\s*)?\]")
"""A list of words in Python's notation, which pandas writes into csv files."""

_ROW_NAMES = ("", "__index_level_0__")
"""Column of row names that R or pandas add: it is ignored."""

_DEFAULTS: Mapping[str, Any] = {"item": "", "condition": "", "right_context": "", "expected": []}
"""Core column -> its value where the data have none."""


# ---- values --------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """Text; integers too, because items are often numbered."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"expected text, not {value!r}")


def _sentence(value: Any) -> str | None:
    """Text without leading and trailing blanks, which do not belong to any word."""
    text = _text(value)
    return None if text is None else text.strip()


def _number(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {value!r}") from None


def _truth(value: Any) -> bool | None:
    if value is None or value == "" or isinstance(value, bool):
        return None if value == "" else value
    if str(value).lower() not in _TRUTH:
        raise ValueError(f"expected true or false, not {value!r}")
    return _TRUTH[str(value).lower()]


def words(value: Any) -> list[str]:
    """Returns a list of words; an empty one for a missing value.

    Raises:
        ValueError: it is neither a list of words nor text that is one. Commas and semicolons
            outside a written list are refused: "a, b" as one word would never be predicted, and
            accuracy would be 0 without a hint.

    >>> words("bird|tree"), words('["bird", "tree"]'), words(None)
    (['bird', 'tree'], ['bird', 'tree'], [])
    """
    if value is None or value == "":
        return []
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a list of words, not {value!r}")
    if value.startswith("["):
        return _written_list(value)
    if len(value) > 1 and re.search("[,;]", value):
        raise ValueError(f'{value!r}: separate words by |, or write a list: ["bird", "tree"]')
    return [word.strip() for word in value.split("|")]


def _written_list(text: str) -> list[str]:
    """The words of a list in the notation of JSON or of Python."""
    try:
        return words(json.loads(text))
    except (ValueError, RecursionError):
        if not _PYTHON_LIST.fullmatch(text):
            raise ValueError(f'{text!r} is not a list of words such as ["bird", "tree"]') from None
        return [word[1:-1] for word in re.findall(_QUOTED, text)]


# ---- columns -------------------------------------------------------------------------------------

_Convert = Callable[[Any], Any]

_UNCHANGED: Mapping[_Convert, type] = {_text: str, _truth: bool, _number: float}
"""Converter -> the type whose values it returns as they are."""

_CORE: Mapping[str, _Convert] = dict.fromkeys((*CORE_COLUMNS, *SENTENCE_COLUMNS), _text) | {
    "good": _truth, "expected": words, "sentence": _sentence,
}  # fmt: skip

_BY_TYPE: Mapping[str, _Convert] = {"number": _number, "words": words, "boolean": _truth}
"""Type of a diagnostic's own column -> its converter; text is not converted."""


def converted(table: RawTable, task: str) -> dict[str, list[Any]]:
    """Returns the columns with converted values, core columns first.

    `good` and `contrast` are present if rows are compared; the other core columns always are.

    Args:
        table: as it was read.
        task: what the rows are; only the own columns of a diagnostic have types.

    Raises:
        BadInput: a column is missing, has another type, or lacks a value in some row.
    """
    if not len(table):
        raise BadInput(f"{table.name} has no rows")
    diagnostic = diagnostics.get(task, table.form)
    core, needed = diagnostic.core_columns, diagnostic.needed_columns
    optional = set(core) - set(needed)
    columns = {
        name: list(table.columns[name])
        for name in table.columns
        if _is_kept(table, name, may_be_empty=name not in optional)
    }
    for name in needed:
        if name not in columns:
            _refuse_without(name, needed, list(table.columns), table.name)
    for there, other in (("good", "contrast"), ("contrast", "good")):
        if there in columns and other not in columns:
            raise BadInput(
                f"{table.name}: there is a column {there} but no {other}: give both, or leave both "
                "out if no rows are compared"
            )
    columns.setdefault("id", [f"{task}-{row + 1}" for row in range(len(table))])
    for name in [name for name in core if name in _DEFAULTS]:
        columns.setdefault(name, [_DEFAULTS[name]] * len(table))
    own = {column.name: _BY_TYPE.get(column.type) for column in diagnostic.columns}
    for name, convert in {**own, **{name: _CORE[name] for name in core}}.items():
        if convert and name in columns:
            values = _converted(name, columns[name], convert, table.where)
            columns[name] = _filled(name, values, table.where) if name in core else values
    order = dict.fromkeys((*core, *columns))
    return {name: columns[name] for name in order if name in columns}


def _refuse_without(
    name: str, needed: Sequence[str], columns: Sequence[str], table: str
) -> NoReturn:
    message = f"{missing_column(table, name, columns)}; every row needs {' and '.join(needed)}"
    if set(needed).isdisjoint(columns):
        message += ", or a sentence, or sentence_good and sentence_bad"
    raise BadInput(message)


def missing_column(table: str, name: str, columns: Sequence[str]) -> str:
    """Returns the beginning of a message: what is missing, what may be meant, what is there."""
    found = truncated(", ".join(columns))
    return f"{table}: the column {name} is missing{suggest(name, columns)}; found: {found}"


def _is_kept(table: RawTable, name: str, *, may_be_empty: bool) -> bool:
    """False for row names and for an optional core column without any value."""
    empty = all(value is None or value == "" for value in table.columns[name])
    if name == "" and not empty and name != next(iter(table.columns)):
        raise BadInput(f"{table.name}: a column has no name: name it in the header")
    return name not in _ROW_NAMES and (may_be_empty or not empty)


def _converted(name: str, column: Sequence[Any], convert: _Convert, where: RowNames) -> list[Any]:
    """The values of a column in its type, or an error that names the first bad row."""
    if set(map(type, column)) == {_UNCHANGED.get(convert)}:
        return list(column)
    values = []
    for row, value in enumerate(column):
        try:
            values.append(convert(value))
        except ValueError as error:
            raise BadInput(f"{where(row)}: the column {name}: {error}") from error
    return values


def _filled(name: str, values: list[Any], where: RowNames) -> list[Any]:
    """The values of a core column, of which none may be missing if it has no default."""
    if name not in _DEFAULTS and None in values:
        raise BadInput(f"{where(values.index(None))}: the column {name} is empty")
    return [_DEFAULTS[name] if value is None else value for value in values]
