"""Responses of people at blanks: a row per response becomes a row per word, with its share.

The rules are those of docs/specification.md, section 4 (Cloze norms).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from lmdiag.stimuli.proposing.other_rows import naming_option, responses
from lmdiag.stimuli.proposing.response_columns import amount_column
from lmdiag.stimuli.reading.conversion import check_values
from lmdiag.stimuli.reading.forms import without_gaps
from lmdiag.stimuli.reading.steps import first_steps, refuse_options
from lmdiag.stimuli.values.kinds import values_of
from lmdiag.stimuli.values.layouts import TableLayout
from lmdiag.stimuli.values.names import named
from lmdiag.tables.table_files import (
    ROW_NAMES,
    Problems,
    Table,
    as_numbers,
    name_texts,
    written_text,
)
from lmdiag.text import first_few, folded, plain_response, shortened
from lmdiag.types import SHARE_ROUNDING, BadInput, TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame

FORM = "cloze"
"""The form of rows of words that people gave."""

_ITEM = ["item", "context", "right_context"]
_WORDS = ("response", "word", "target")
_SHARES = ("cloze", "target_cloze")
_KNOWN = frozenset((*_ITEM, "sentence", "participant", "count", *_WORDS, *_SHARES))
_RULE = "a row is a response (item, context, response), or a word with its count or cloze"
_SEVERAL = re.compile(r"[^;|,/\n]*\w\s*[;|,/\n]\s*\w").match
_ROUNDING = 0.5  # of percentages
_LIST = re.compile(r"\[.*\]|\{.*\}", re.DOTALL).fullmatch


def are_responses(table: Table, options: TableOptions) -> bool:
    """Returns whether a table has a row per response, or per word with its count or share.

    That is where a column `response`, or `word` beside `count` or `cloze`, has words, a context or
    a sentence with a gap stands beside it, and no word is a target.
    """
    given = dict(text.partition("=")[::2] for text in options.columns)
    names = {column: name for name, column in given.items()}
    columns = {names.get(column, column): values for column, values in table.columns.items()}
    plain = {*map(folded, columns)}
    has_words = "response" in plain or (
        "word" in plain and not plain.isdisjoint(("count", "cloze"))
    )
    if (
        table.form
        or not has_words
        or "target" in plain
        or plain.isdisjoint(("context", "sentence"))
    ):
        return False
    word = next(name for name in columns if folded(name) in ("response", "word"))
    columns["response"] = columns.pop(word)
    found = responses(TableLayout(columns))
    if found is None:
        return False
    named = {name: column for name, column in found.columns.items() if name != "item"}
    return not found._replace(columns=named).option


def response_rows(table: Table, options: TableOptions) -> Table:
    """Returns a row per item and word: item, context, right_context, target, cloze, maybe count.

    Args:
        table: as it was read, with a row per response, or per word with its count or cloze. Its
            columns are context (or sentence, with a gap) and response or word; item (else each
            context is one), right_context, and count or cloze are optional.
        options: how it is read. `keep_case`: Goal and goal are two words.

    Raises:
        BadInput: a column is missing, or a value cannot be used (column and row are named).
    """
    refuse_options(options, ("gap", "keep_case"))
    has_item = "item" in map(folded, table.columns) or any(
        x[:5] == "item=" for x in options.columns
    )
    table = first_steps(table, options, _KNOWN)
    if options.wide and not has_item:  # contexts may repeat, and the numbers of rows do not
        table = table.having({}, without=("item",))
    table = _with_contexts(table, options.gap)
    _refuse_unread_amounts(table)
    rows = _rows(table)
    _refuse_contexts(table, rows)
    table = table.having({}, *_json_notes(table.columns["target"]))
    written = [plain_response(text) for text in rows["target"]]
    rows["target"] = written if options.keep_case else [text.lower() for text in written]
    said = rows[rows["target"] != ""]
    if said.empty:
        raise BadInput(f"{table.name} has no responses: {_RULE}")
    _check(table, said)
    items = _with_item_per_context(said)
    notes = [*table.notes]
    if "item" not in table.columns:
        notes.append("no column item: each context is an item")
    if empty := rows.index.difference(said.index).tolist():
        notes.append(f"empty responses left out: {len(empty)} ({table.places(empty)})")
    if capital := [x for x in written if x != x.lower() and not options.keep_case]:
        always = [*dict.fromkeys(text for text in capital if text.lower() not in written)]
        never = f"; never written so: {first_few(always, 5)} (--keep-case)" if always else ""
        notes.append(f"responses with capitals read in lower case: {len(capital):,}{never}")
    if several := [*said["item"][items["item"] != said["item"]].unique()]:
        notes.append(f"each context of items with several is an item: {first_few(several, 5)}")
    if unused := [x for x in _unused(table.columns) if not (options.wide and x == "condition")]:
        notes.append(f"not used: {first_few(unused, 8)}")
    words = _counted(table.name, items).to_dict("list")
    return Table.of(table.name, words, form=FORM, notes=tuple(notes))


def _with_contexts(table: Table, gap: str) -> Table:
    """The table with context and target; `BadInput` with the remedy where a column is missing."""
    word = next((name for name in _WORDS if name in table.columns), "")
    perhaps = ""
    if not word or "context" not in table.columns:
        option = naming_option(table.columns, "cloze")
        perhaps = f"; perhaps {option}" if option else ""
    if not word:
        rule = f"{_RULE}; --response names the column of responses{perhaps}"
        raise table.lacks(_WORDS[0], rule)
    divided = without_gaps(table.having({"target": table.columns[word]}), gap)
    if "context" not in divided.columns:
        mark = "; a sentence has ___ in the place of the word, or another mark: --gap TEXT"
        raise table.lacks("context", _RULE + mark * ("sentence" in table.columns) + perhaps)
    return divided


def _rows(table: Table) -> DataFrame:
    """The rows of a table: item, context, right_context, target, and count or cloze."""
    import numpy as np
    from pandas import DataFrame, Series

    columns = table.columns
    share = next((name for name in _SHARES if name in columns), "")
    absent = [""] * len(table)
    if "item" in columns:
        name_texts(table.rows["item"])  # refuses numbers that are not whole
    rows = DataFrame({
        name: [
            "" if x in (None, "NA") else written_text(x).strip() for x in columns.get(name, absent)
        ]
        for name in (*_ITEM, "target")
    })  # fmt: skip
    rows["target"] = [_of_cell(table, row, text) for row, text in enumerate(rows["target"])]
    _refuse_lists(table, rows["target"])
    if "gap_spaces" in columns:
        rows["gap_spaces"] = columns["gap_spaces"]
    if "item" not in columns:
        rows["item"] = rows["context"]
    if not share and "count" not in columns:
        return rows.assign(count=1.0)
    column = share or "count"
    values = as_numbers(Series(columns[column], dtype=object), column, table.where)
    most = 1.0 if share else float(2**53)
    if (wrong := np.flatnonzero(~((values >= 0) & (values <= most)))).size:
        wanted = "a share from 0 to 1" if share else "a number from 0 up"
        if share and 1 < np.nanmax(values) <= 100 + _ROUNDING:
            wanted += " (percentages are read as numbers, --columns count=COLUMN)"
        problem = f"the column {column}: expected {wanted}, not {columns[column][wrong[0]]!r}"
        raise table.error(int(wrong[0]), problem)
    return rows.assign(**{"cloze" if share else "count": values})


def _unused(columns: Collection[str]) -> list[str]:
    """The columns that are not read; names of people are none of them."""
    share = next((name for name in _SHARES if name in columns), "")
    used = {*_KNOWN, "gap_spaces", *ROW_NAMES, *named("reader", columns)}
    used -= {"count"} if share else set()
    return [name for name in columns if name not in used]


def _refuse_unread_amounts(table: Table) -> None:
    """Refuses rows of words, each once, beside numbers that may be their counts or shares."""
    if not {"count", "participant", *_SHARES}.isdisjoint(table.columns):
        return
    never = {*_KNOWN, *ROW_NAMES} - {"context", "target"}
    columns = {x: values_of(v) for x, v in table.columns.items() if x not in never}
    found = amount_column(columns, "context", "target")
    if found:
        kind, column = found
        what = {"count": "how often it was given", "cloze": "its share"}[kind]
        remedy = f"give --columns {kind}={shlex.quote(column)}, or rename this column"
        problem = f"each word stands once with its context, and {column} may be {what}"
        raise BadInput(f"{table.name}: {problem}: {remedy}")


def _of_cell(table: Table, row: int, text: str) -> str:
    """The response of a cell: its text, or the one text of a JSON list or object.

    Programs of experiments write such lists (jsPsych). `BadInput` for one of several texts.
    """
    if text[:1] not in ("[", "{"):
        return text
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    texts = [*content.values()] if isinstance(content, dict) else content
    if len(texts) > 1 or not all(isinstance(part, str) for part in texts):
        problem = f"the response {shortened(text, 40)} is not one text: write a row per response"
        raise table.error(row, problem)
    return texts[0].strip() if texts else ""


def _refuse_lists(table: Table, texts: Sequence[str]) -> None:
    """Refuses responses of which most are several, with a sign between them."""
    several = [*map(_SEVERAL, texts)]
    n_filled = sum(map(bool, texts))
    if 2 * sum(map(bool, several)) > n_filled > 0:
        row = next(row for row, match in enumerate(several) if match)
        problem = f"the response {shortened(texts[row], 40)} is several: write a row per response"
        raise table.error(row, problem)


def _refuse_contexts(table: Table, rows: DataFrame) -> None:
    """Refuses responses of which most have their context in them."""
    pairs = [*zip(rows["context"], rows["target"], strict=True)]
    inside = [bool(context) and word.startswith(context) for context, word in pairs]
    if 2 * sum(inside) > len(inside):
        has = f"the response {shortened(pairs[inside.index(True)][1], 60)} begins with its context"
        raise table.error(inside.index(True), f"{has}: write the words after it alone")


def _json_notes(cells: Sequence[object]) -> Iterator[str]:
    """Yields a line if responses are written as lists or objects of JSON."""
    lists = [cell for cell in cells if isinstance(cell, str) and _LIST(cell.strip())]
    if lists:
        example = shortened(lists[0], 40)
        yield f"responses written as lists, of which the text is read: {len(lists):,}, as {example}"


def _check(table: Table, rows: DataFrame) -> None:
    """Refuses two spellings of a context, and texts that no model is asked."""
    place = rows["context"] + "\n" + rows["right_context"]
    unasked = "write the text before the word, or what follows it into right_context"
    for name, texts, remedy in (
        ("context", place.str.strip(), unasked),
        ("item", rows["item"], "number the contexts"),
    ):
        if (empty := rows.index[texts == ""]).size:
            raise table.error(empty[0], f"the column {name} is empty: {remedy}")
    alike = place.str.lower().str.replace(r"[^\w\n]+", " ", regex=True).str.strip()
    spelling = place.groupby([rows["item"], alike]).transform("first")
    if (different := rows.index[place != spelling]).size:
        earlier = table.where((place == spelling[different[0]]).idxmax())
        problem = f"the context differs from that in {earlier} in case, blanks or punctuation alone"
        raise table.error(different[0], f"{problem}: write both alike")
    columns = rows.to_dict("list")
    columns["id"] = [*map(str, rows.index)]  # a row of a wide table is several here
    problems = Problems()
    check_values(columns, table.of_rows_at(rows.index), problems)
    problems.refuse()


def _with_item_per_context(rows: DataFrame) -> DataFrame:
    """Returns the rows with an item for each context: item 7 with two contexts is 7.1 and 7.2.

    Where the table has an item of such a name, more points stand before the number, as in 7..1.
    """
    place = (rows["context"] + "\n" + rows["right_context"]).groupby(rows["item"])
    number = place.transform(lambda texts: texts.factorize()[0] + 1)
    is_alone = number.groupby(rows["item"]).transform("max") == 1
    mark = "."
    while {*rows["item"]} & {*(rows["item"] + mark + number.map(str))[~is_alone]}:
        mark += "."
    new_items = rows["item"] + mark + number.map(str)
    return rows.assign(item=rows["item"].where(is_alone, new_items))


def _counted(name: str, rows: DataFrame) -> DataFrame:
    """The words of each item, the most frequent first; ties in the order of the table."""
    import numpy as np

    amount = "cloze" if "cloze" in rows else "count"
    texts = [name for name in (*_ITEM, "gap_spaces") if name in rows]
    words = rows.groupby([*texts, "target"], sort=False)[amount].sum().reset_index()
    amounts = words.groupby("item", sort=False)[amount]
    total = amounts.transform("sum")
    if amount == "count":
        words["cloze"] = words["count"] / total
    elif (above := total > 1 + SHARE_ROUNDING * amounts.transform("size") + 1e-9).any():
        item = words["item"][above].iloc[0]
        rule = "it is the share of a word; a table of single responses has no column cloze"
        raise BadInput(f"{name}: cloze of item {item} adds up to {total[above].iloc[0]:g}: {rule}")
    return words.iloc[np.lexsort([-words["cloze"], amounts.ngroup()])]
