"""Converts columns to their types and checks their values (docs/specification.md, section 1).

The columns are declared in `lmdiag.diagnostics`; all others keep their values: they are break-downs
or text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmdiag import diagnostics
from lmdiag.diagnostics import Column
from lmdiag.stimuli.table import RawTable
from lmdiag.text import suggest, truncated
from lmdiag.types import BadInput

_TRUTH = {"true": True, "1": True, "false": False, "0": False}
"""How text files write truth values; compared in lower case."""

_ROW_NAMES = ("", "__index_level_0__")
"""Column of row names that R or pandas add: it is ignored."""

_BLANK = r"_{3,}|(?<!\w)__(?!\w)|\[BLANK\]|<blank>"
"""How a blank is often written. Two underscores may be part of a name."""

_SPLIT_TEXT = "write what is left of the blank into context, and what follows it into right_context"
_WHOLE = "write whole sentences, or give context and target to score a word at a blank"

_RULES: Mapping[str, Sequence[tuple[str, str]]] = {
    "id": [(r"^$", "is empty")],
    "contrast": [(r"^$", "is empty")],
    "context": [
        (_BLANK, f"has a blank in it, {{!r}}: {_SPLIT_TEXT}"),
        (r"\s\Z", "ends in a space: remove it"),
    ],
    "right_context": [(_BLANK, f"has a blank in it, {{!r}}: {_SPLIT_TEXT}")],
    "target": [
        (r"\A\s*\Z", "is empty: name the word to score"),
        (r"\A\s|\s\Z", "has a space at its edge: remove it"),
    ],
    "sentence": [
        (r"\A\s*\Z", "is empty: write a sentence, or leave the row out"),
        (_BLANK, f"has a blank in it, {{!r}}: {_WHOLE}"),
    ],
    "expected": [
        (r"\A\Z", "has an empty word"),
        (
            r"\A\s|\s\Z|[,;|]\s+\S",
            "has {1!r}, which can never be one of the top words: give each word on its own, "
            "without spaces at its edges",
        ),
    ],
}
"""Column -> patterns that none of its texts may have, what is wrong with those that do.

The patterns take linear time: none begins with a repetition. A message has the match and the text.
"""

_COMPILED = {
    name: [(re.compile(pattern, re.IGNORECASE).search, message) for pattern, message in rules]
    for name, rules in _RULES.items()
}


# ---- types ---------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """Text; integers too, because items are often numbered."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"expected text, not {value!r}")


def _number(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {value!r}") from None


def _truth(value: Any) -> bool | None:
    if value is None or value == "":
        return None
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
    if isinstance(value, str) and value.startswith("["):  # the notation of JSON and of Python
        try:
            if re.search(r"""(['"])\s*\1""", value):  # no comma between two: Python joins them
                raise ValueError
            return words(ast.literal_eval(value))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise ValueError(f'{value!r} is not a list of words such as ["bird", "tree"]') from None
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a list of words, not {value!r}")
    if len(value) > 1 and re.search("[,;]", value):
        raise ValueError(f'{value!r}: separate words by |, or write a list: ["bird", "tree"]')
    return [word.strip() for word in value.split("|")]


_TYPES: Mapping[str, tuple[Callable[[Any], Any], type | None]] = {
    "text": (_text, str),
    "number": (_number, float),
    "boolean": (_truth, bool),
    "words": (words, None),
}
"""Type of a column -> its converter, and the type of values that it returns as they are."""


# ---- conversion ----------------------------------------------------------------------------------


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
    needed = [column.name for column in diagnostic.core if column.required]
    columns = {name: table.columns[name] for name in table.columns if _is_kept(table, name, needed)}
    for name in needed:
        if name not in columns:
            other = ", or a sentence, or sentence_good and sentence_bad" * ("target" in needed)
            rule = f"every row needs {' and '.join(needed)}{other}"
            raise missing_column(table, name, rule)
    for there, other in (("good", "contrast"), ("contrast", "good")):
        if there in columns and other not in columns:
            raise BadInput(
                f"{table.name}: there is a column {there} but no {other}: give both, or leave both "
                "out if no rows are compared"
            )
    columns.setdefault("id", [f"{task}-{row + 1}" for row in range(len(table))])
    core = {
        column.name: _filled(table, column, columns.get(column.name, [None] * len(table)))
        for column in diagnostic.core
        if column.name in columns or column.default is not None
    }
    typed = {
        column.name: _converted(table, column, columns[column.name])
        for column in diagnostic.columns
        if column.name in columns and column.type != "text"
    }
    further = {name: list(values) for name, values in columns.items() if name not in core}
    return core | further | typed


def missing_column(table: RawTable, name: str, rule: str) -> BadInput:
    """Returns the error that a column is missing: what may be meant, and what is there."""
    close, found = suggest(name, table.columns), truncated(", ".join(table.columns))
    return BadInput(f"{table.name}: the column {name} is missing{close}; found: {found}; {rule}")


def _is_kept(table: RawTable, name: str, needed: Sequence[str]) -> bool:
    """False for row names and for an optional core column without any value."""
    empty = all(value is None or value == "" for value in table.columns[name])
    if name == "" and not empty and name != next(iter(table.columns)):
        raise BadInput(f"{table.name}: a column has no name: name it in the header")
    core = diagnostics.get("", table.form).core_columns
    return name not in _ROW_NAMES and not (empty and name in core and name not in needed)


def _converted(table: RawTable, column: Column, values: Sequence[Any]) -> list[Any]:
    """The values of a column in its type, or an error that names the first bad row."""
    convert, unchanged = _TYPES[column.type]
    if set(map(type, values)) == {unchanged}:
        return list(values)
    found = []
    for row, value in enumerate(values):
        try:
            found.append(convert(value))
        except ValueError as error:
            raise table.error(row, f"the column {column.name}: {error}") from error
    return found


def _filled(table: RawTable, column: Column, values: Sequence[Any]) -> list[Any]:
    """The values of a core column, of which none may be missing if it has no default."""
    found = _converted(table, column, values)
    if column.default is None and None in found:
        r_note = " (NA is R's missing value: save the word NA as JSON lines)"
        is_text = table.name.endswith((".csv", ".tsv"))
        raise table.error(
            found.index(None),
            f"the column {column.name} is empty: fill it in{r_note if is_text else ''}",
        )
    found = [column.default if value is None else value for value in found]
    # blanks at the edges of a sentence do not belong to any word
    return [text.strip() for text in found] if column.name == "sentence" else found


# ---- checks --------------------------------------------------------------------------------------


def check(columns: Mapping[str, Sequence[Any]], table: RawTable) -> None:
    """Checks all rows.

    Args:
        columns: the core columns, with converted values; sentences, or contexts and targets.
        table: that they were read from.

    Raises:
        BadInput: the first row that breaks a rule, with its column.
    """
    core = diagnostics.get("", table.form).core_columns
    for name in [name for name in core if name in columns and name in _RULES]:
        cells = [columns[name]] if name != "expected" else columns[name]
        problems = {text: text_problem(name, text) for text in {t for cell in cells for t in cell}}
        if any(problems.values()):
            rows = columns[name] if name == "expected" else [[text] for text in columns[name]]
            found = ((row, problems[text]) for row, texts in enumerate(rows) for text in texts)
            row, problem = next(place for place in found if place[1])
            raise table.error(row, f"the column {name} {problem}")
    first: dict[str, int] = {}
    for row, identifier in enumerate(columns["id"]):
        if (earlier := first.setdefault(identifier, row)) != row:
            problem = f"has {identifier!r} again, first in {table.where(earlier)}"
            raise table.error(row, f"the column id {problem}: every row needs an id of its own")
    goods: dict[str, list[bool]] = {}
    for contrast, good in zip(columns.get("contrast", ()), columns.get("good", ()), strict=True):
        goods.setdefault(contrast, []).append(good)
    for contrast, marks in goods.items():
        if sum(marks) != 1 or len(marks) < 2:
            raise table.error(
                columns["contrast"].index(contrast),
                f"the column contrast: {contrast!r} has {sum(marks)} good and "
                f"{len(marks) - sum(marks)} bad rows, it needs exactly one good and at least one "
                "bad",
            )


def text_problem(column: str, text: str) -> str:
    """Returns what is wrong with a text in a core column; "" if nothing is."""
    for search, message in _COMPILED[column]:
        if match := search(text):
            return message.format(match[0], text)
    return ""
