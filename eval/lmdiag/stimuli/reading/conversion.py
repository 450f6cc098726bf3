"""Tables of rows: as they were read, and their conversion and checks.

Types and rules are those of docs/specification.md, section 1, for the columns that
`lmdiag.diagnostics` declares. All other columns keep their values: they are break-downs or text.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from shlex import quote
from typing import Any

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE, SENTENCES, Column
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.marks import GAP, MARKUP
from lmdiag.stimuli.values.misspelt import lookalike_levels, lookalike_problems
from lmdiag.tables.table_files import (
    ROW_NAMES,
    Problems,
    Table,
    as_numbers,
    not_a_name,
    written_text,
)
from lmdiag.text import shortened
from lmdiag.types import BadInput

# a character of each gap and of all markup
_SIGNS = re.compile(r"[_\[<{X$\\&]").search
_NAMES_ROWS = ("id", "item", "contrast")
# how text files write truth values, in lower case
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
# type of a column -> the type of its converted values; a list is always looked into
_CONVERTED_TYPES = {"text": str, "number": float, "boolean": bool, "words": None}

_SPLIT = (
    "write what is left of it into context, and what follows it into right_context, or give "
    "--columns sentence={column} if the text has both sides"
)
_WHOLE = (
    "write whole sentences, or give the word that is scored there in a column target (people's "
    "responses are for `lmdiag cloze`)"
)
_COMPARED = (
    "say which rows are good by --good COLUMN=VALUE and what tells pairs apart by --contrast "
    "COLUMN, or rename it if no rows are compared"
)
_ALONE = "which can never be one of the top words: give each word on its own, without spaces at its"

_RULES = [
    (("id", "contrast"), r"^$", "is empty"),
    (("context", "right_context"), GAP, f"has a blank in it, {{!r}}: {_SPLIT}"),
    (
        ("context", "right_context", "target", "sentence"),
        MARKUP,
        "has markup in it, {!r}, which would be read as text: remove it",
    ),
    (("context",), r"\s\Z", "ends in a space: remove it"),
    (("gap_spaces",), r"\A(?!(?:both|before|after|none)?\Z)", "is not both, before, after or none"),
    (("target",), r"\A\s*\Z", "is empty: name the word to score"),
    (("target",), r"\A\s|\s\Z", "has a space at its edge: remove it"),
    (("sentence",), r"\A\s*\Z", "is empty: write a sentence, or give --filter {missing}"),
    (("sentence",), GAP, f"has a blank in it, {{!r}}: {_WHOLE}"),
    (
        ("sentence",),
        r"\A\s*(?:\*+|\?\*?\??)\s?(?=[^\W\d_])(?!.*\*)",
        "begins with {!r}, as bad sentences often do, which would be read as text: remove it, and "
        "say which rows are good by a column and --good COLUMN=VALUE --contrast COLUMN",
    ),
    (("expected",), r"\A\Z", "has an empty word"),
    (("expected",), r"\A\s|\s\Z|[,;|]\s+\S", f"has {{1!r}}, {_ALONE} edges"),
]
"""Columns, a pattern that none of their texts may have, what is wrong with those that do.

The patterns take linear time: none begins with a repetition. A message has the match and the text.
"""

# core column -> its rules: a pattern, and the message about a text that has it
_RULES_OF = {
    name: [
        (re.compile(pattern, re.IGNORECASE), message)
        for columns, pattern, message in _RULES
        if name in columns
    ]
    for name in {name for columns, *_ in _RULES for name in columns}
}


def checked_columns(table: Table, task: str) -> dict[str, list[Any]]:
    """Returns the converted columns of a table; all problems of its values are one `BadInput`.

    Args:
        table: with its form.
        task: name of the diagnostic, which says what types the columns have.
    """
    problems = Problems()
    columns = converted_columns(table, task, problems)
    check_values(columns, table, problems)
    is_own = task not in diagnostics.built_in()  # data of the user
    if is_own and table.form in ("", "sentences"):
        _refuse_lookalike_levels(columns, table, problems)
    problems.raise_all()
    return columns


def converted_columns(table: Table, task: str, problems: Problems) -> dict[str, list[Any]]:
    """Returns the columns with converted values, core columns first.

    `good` and `contrast` are present if rows are compared; the other core columns always are. Only
    the columns that the diagnostic of the task declares have types. A column that is missing is a
    `BadInput`; one that has another type or lacks a value in some row is left out, and a problem.

    Args:
        table: with its form.
        task: name of the diagnostic.
        problems: gets what is wrong.
    """
    if not len(table):
        raise BadInput(f"{table.name} has no rows")
    diagnostic = diagnostics.get(task, table.form)
    needed = [column.name for column in diagnostic.core if column.required]
    columns = _present_columns(table, diagnostic.core_columns, needed)
    for there, other in (("good", "contrast"), ("contrast", "good")):
        if there in columns and other not in columns:
            problems.append(f"{table.name}: there is a column {there} but no {other}: {_COMPARED}")
    _refuse_missing_columns(table, columns, needed, problems)
    # ids, where the table has none, of the task and the number of the row
    columns.setdefault("id", [f"{task}-{name}" for name in table.labels("name")])
    if "context" in columns and "right_context" in columns:  # a blank may open the sentence
        columns["context"] = ["" if value is None else value for value in columns["context"]]
    absent = [None] * len(table)
    core: dict[str, list[Any]] = {}
    for column in diagnostic.core:
        if column.name in columns or column.default is not None:
            with problems.collected():
                core[column.name] = _core_values(table, column, columns.get(column.name, absent))
    with problems.collected():
        _refuse_rows_without_context(table, core)
    # all other columns keep their values, unless the diagnostic declares their type
    further = {name: [*v] for name, v in columns.items() if name not in diagnostic.core_columns}
    for column in diagnostic.columns:
        if column.name in columns and column.type != "text":
            with problems.collected():
                further[column.name] = _values(table, column, columns[column.name])
    return core | further


def _present_columns(
    table: Table, core: Collection[str], needed: Collection[str]
) -> dict[str, Sequence[Any]]:
    """Returns column -> its values, without names of rows and optional columns without any value.

    For example, a core column `right_context` whose cells are all empty counts as absent.

    Args:
        table: with its form.
        core: names of the core columns.
        needed: of them, those that every row needs.
    """
    columns: dict[str, Sequence[Any]] = {}
    for name, values in table.columns.items():
        is_optional = name in core and name not in needed
        is_absent = is_optional and all(value in (None, "") for value in values)
        if name not in ROW_NAMES and not is_absent:
            columns[name] = values
    return columns


def _refuse_rows_without_context(table: Table, core: Mapping[str, Sequence[Any]]) -> None:
    """Refuses rows with no text on either side of the target.

    A blank may open a sentence, so that the context is empty, but then a right context is needed.

    Args:
        table: whose rows the error names.
        core: core column -> converted values; nothing is refused without both contexts.
    """
    sides = zip(core.get("context", ()), core.get("right_context", ()), strict=False)
    remedy = "write the text before the word, or what follows it into right_context"
    problem_of_row = {}
    for row, (left, right) in enumerate(sides):
        if not left and not right.strip():
            problem_of_row[row] = f"the column context is empty: {remedy}"
    table.refuse_rows(problem_of_row)


def _refuse_missing_columns(
    table: Table, columns: Collection[str], needed: Sequence[str], problems: Problems
) -> None:
    """Raises all problems, if one of the columns that every row needs is not among the columns."""
    missing = [name for name in needed if name not in columns]
    if not missing:
        return
    other = ""
    if "target" in needed:
        other = ", or a sentence, or sentence_good and sentence_bad"
        text = "sentence" if "sentence" in columns else "COLUMN"
        other += f"; --columns sentence={text} reads the column {text}"
    rule = f"every row needs {' and '.join(needed)}{other}"
    problems.append(str(table.missing_column_error(missing[0], rule)))
    problems.raise_all()


def _core_values(table: Table, column: Column, values: Sequence[Any]) -> list[Any]:
    """The values of a core column in its type, with its default in place of missing ones.

    For example, ["a", ""] for the values ["a", None] of `right_context`, whose default is "".
    `BadInput` for a missing value in a column without a default, such as `target`.
    """
    converted_values = _values(table, column, values)
    if column.default is None and None in converted_values:
        source = table.sources.get(column.name, column.name)
        remedy = f"fill it in, or give --filter {quote(f'{source}!=')}"
        if table.is_text:
            remedy += " (NA and NaN are missing values: save such a word as JSON lines)"
        problem = f"the column {column.name} is empty: {remedy}"
        raise table.error(converted_values.index(None), problem)
    filled = [column.default if value is None else value for value in converted_values]
    # spaces at the edges of a sentence do not belong to any word
    return [text.strip() for text in filled] if column.name == "sentence" else filled


def _values(table: Table, column: Column, values: Sequence[Any]) -> list[Any]:
    """The values of a column in its type (text, number, boolean, words); None for missing ones.

    For example, [0.5, None] for the values ["0.5", ""] of a column of numbers, and [True, False]
    for ["TRUE", "0"] of a column of booleans. `BadInput` names the first row with a value that
    cannot be converted.
    """
    from pandas import Series

    if {*map(type, values)} == {_CONVERTED_TYPES[column.type]}:
        return [*values]  # nothing to convert
    if column.type == "number":
        numbers = as_numbers(Series([*values], dtype=object), column.name, table.where).tolist()
        return [None if math.isnan(number) else number for number in numbers]
    converted_values = []
    for row, value in enumerate(values):
        try:
            converted_values.append(_value(column.type, value))
        except ValueError as error:
            is_name = column.name in _NAMES_ROWS and isinstance(value, float)
            problem = not_a_name(value) if is_name else error
            raise table.error(row, f"the column {column.name}: {problem}") from error
    return converted_values


def _value(kind: str, value: Any) -> Any:
    """A value in the type of its column; None if it is missing, or an empty list for `words`.

    `ValueError` for a value that cannot be converted.

    Args:
        kind: "text", "boolean" or "words".
        value: as it was read.
    """
    if kind == "words":
        return _words(value)
    if value is None or (kind != "text" and value == ""):
        return None
    if kind == "text":  # integers too, because items are often numbered
        is_whole = isinstance(value, float) and value.is_integer()
        is_textual = isinstance(value, str | int) or is_whole
        if not is_textual or isinstance(value, bool):
            raise ValueError(f"expected text, not {value!r}")
        return written_text(value)
    if str(value).lower() not in _TRUTH:
        raise ValueError(f"expected true or false, not {value!r}")
    return _TRUTH[str(value).lower()]


def _words(value: Any) -> list[str]:
    """The words of a cell: `bird|tree`, a list, or a list in JSON's or Python's notation.

    [] for an empty cell; `ValueError` for other values.
    """
    if value is None or value == "":
        return []
    shown = shortened(value)
    if isinstance(value, str) and value.startswith("["):
        try:
            if re.search(r"""(['"])\s*\1""", value):  # no comma between two: Python joins them
                raise ValueError
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on a backslash, which stays in the word
                return _words(ast.literal_eval(value))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise ValueError(f'{shown!r} is not a list of words such as ["bird", "tree"]') from None
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(value)
    if not isinstance(value, str):
        raise ValueError(f"expected a list of words, not {shown!r}")
    # "a, b" as one word would never be predicted: accuracy would be 0 without a hint
    if len(value) > 1 and re.search("[,;]", value):
        raise ValueError(f'{shown!r}: separate words by |, or write a list: ["bird", "tree"]')
    return [word.strip() for word in value.split("|")]


def check_values(columns: Mapping[str, Sequence[Any]], table: Table, problems: Problems) -> None:
    """Adds the first row that breaks a rule in each of the converted columns to the problems.

    The rules are those of texts (`_RULES`), one id for each row, and for each contrast one good
    row and at least one bad one.
    """
    # "" names no diagnostic: the core columns are those of the form, whatever the task
    for name in diagnostics.get("", table.form).core_columns:
        if name in _RULES_OF and name in columns:
            with problems.collected():
                _check_texts(name, columns, table)
    contexts = columns.get("context", ())
    if contexts and all(text.endswith("_") for text in contexts):
        remedy = "remove it, since it would be read as text"
        problems.append(f"{table.name}: every context ends in _: {remedy}")
    with problems.collected():
        _check_ids(columns.get("id", ()), table)
    with problems.collected():
        _check_contrasts(columns.get("contrast", ()), columns.get("good", ()), table)


def _check_texts(name: str, columns: Mapping[str, Sequence[Any]], table: Table) -> None:
    """Refuses rows with texts in a core column that break one of its rules."""
    values = columns[name]
    # a row has several expected words, and one text in other columns
    texts_of_rows = values if name == "expected" else [[text] for text in values]
    texts = {*chain.from_iterable(texts_of_rows)}
    if name == "context" and "gap_spaces" in columns:  # as typed, e.g. after a line break
        texts = {text for text in texts if not text[-1:].isspace()}
    problem_of_text = _text_problems(name, texts, table.sources.get(name, name))
    if not problem_of_text:
        return
    problem_of_row = {}
    for row, texts_of_row in enumerate(texts_of_rows):
        wrong_texts = [text for text in texts_of_row if text in problem_of_text]
        if wrong_texts:
            problem_of_row[row] = f"the column {name} {problem_of_text[wrong_texts[0]]}"
    table.refuse_rows(problem_of_row)


def _check_ids(ids: Sequence[str], table: Table) -> None:
    """Refuses the first row that has the id of an earlier one."""
    row_of_id: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        earlier = row_of_id.setdefault(identifier, row)
        if earlier != row:
            has = f"has {identifier!r} again, first in {table.where(earlier)}"
            raise table.error(row, f"the column id {has}: every row needs an id of its own")


def _check_contrasts(contrasts: Sequence[str], good: Sequence[bool], table: Table) -> None:
    """Refuses the first contrast without exactly one good row and at least one bad row.

    Args:
        contrasts: the contrast of each row.
        good: whether each row is the good one of its contrast.
        table: for the place of the row.
    """
    n_rows_of: dict[str, Counter[bool]] = {}  # contrast -> numbers of good (True) and bad rows
    # without a column good there is nothing to count: its absence is a problem already
    for contrast, is_good in zip(contrasts, good, strict=False):
        n_rows_of.setdefault(contrast, Counter())[is_good] += 1
    for contrast, n in n_rows_of.items():
        if n[True] != 1 or not n[False]:
            has = f"{contrast!r} has {n[True]} good and {n[False]} bad rows"
            what = f"the column contrast: {has}, it needs exactly one good and at least one bad"
            what += ": name further columns by --contrast if they tell the pairs apart"
            raise table.error(contrasts.index(contrast), what)


def text_problem(column: str, text: str) -> str:
    """Returns what is wrong with a text in a core column, as "is empty"; "" if nothing is."""
    return _text_problems(column, {text}, column).get(text, "")


def markup_problem(text: str) -> str:
    """Returns what is wrong with a text that has markup in it; "" for a text without markup."""
    for rule, message in _RULES_OF["target"]:  # the rule of markup is the same for all texts
        match = rule.search(text) if rule.pattern == MARKUP else None
        if match:
            return message.format(match[0], text)
    return ""


def _text_problems(column: str, texts: Collection[str], source: str) -> dict[str, str]:
    """Text -> the first rule of its column that it breaks, as a message.

    For example, {"The ": "ends in a space: remove it"} for two contexts "The " and "A". Texts that
    break no rule are absent.

    Args:
        column: core column.
        texts: some of its texts.
        source: its name in the file, for remedies.
    """
    names = {"column": quote(source), "missing": quote(f"{source}!=")}
    texts_with_signs = [*filter(_SIGNS, texts)]  # few: all others have no gap and no markup
    problem_of_text: dict[str, str] = {}
    for rule, message in _RULES_OF[column]:
        needs_sign = rule.pattern in (GAP, MARKUP)
        for text in texts_with_signs if needs_sign else texts:
            match = rule.search(text)
            if match and text not in problem_of_text:
                problem_of_text[text] = message.format(match[0], text, **names)
    return problem_of_text


def _refuse_lookalike_levels(
    columns: Mapping[str, Sequence[Any]], table: Table, problems: Problems
) -> None:
    """Adds to the problems the levels that differ from another one in letter case alone.

    Only levels of items, and of columns that are conditions or break-downs, are looked at. Which
    columns are conditions is known by the items; in a table without items, any column may be.
    """
    ignored = {column.name for column in (*CORE, *SENTENCES)} - {"condition", "item"}
    values = {name: values_of(columns[name]) for name in columns if name not in ignored}
    misspelt = {name: levels for name, levels in values.items() if lookalike_levels(name, levels)}
    row_problems: list[tuple[int, str]] = []
    if misspelt and any(columns["item"]):
        row_problems += _lookalike_levels_of_items(columns)
    else:
        for name, levels in misspelt.items():
            row_problems += lookalike_problems(name, levels)
    for row, problem in row_problems:
        problems.append(str(table.error(row, problem)))


def _lookalike_levels_of_items(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[int, str]]:
    """Yields (row, problem) for each level of a condition or item that looks like another one.

    For example, (7, "the column number has 1 row as 'SG', 24 as 'sg', which differ in letter case
    alone: make them equal"). Columns that are not conditions may have such levels.
    """
    from pandas import DataFrame

    from lmdiag.stimuli.designs.column_warnings import lookalike_levels_of
    from lmdiag.stimuli.designs.conditions import uses_of

    never = ("regions", "expected", "good")  # lists and truth values have no levels to misspell
    table = DataFrame({name: x for name, x in columns.items() if name not in never})
    yield from lookalike_levels_of(uses_of(table))
