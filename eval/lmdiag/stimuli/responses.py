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
from lmdiag.stimuli.values.names import named_columns
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
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

FORM = "cloze"
"""The form of rows of words that people gave."""

_ITEM = ["item", "context", "right_context"]
_WORDS = ("response", "word", "target")
_SHARES = ("cloze", "target_cloze")
_KNOWN = frozenset((*_ITEM, "sentence", "participant", "count", *_WORDS, *_SHARES))
_RULE = "a row is a response (item, context, response), or a word with its count or cloze"
# words with a sign between them
_is_several_words = re.compile(r"[^;|,/\n]*\w\s*[;|,/\n]\s*\w").match
_ROUNDING = 0.5  # percentages may be this much above 100
_is_json_text = re.compile(r"\[.*\]|\{.*\}", re.DOTALL).fullmatch


def are_responses(table: Table, options: TableOptions) -> bool:
    """Returns whether a table has a row per response, or per word with its count or share.

    For example, a table with the columns context and response, or sentence ("The ___ sat."), word
    and count. A table with a column `target` has none: its words are those that a model is asked.

    Args:
        table: as it was read.
        options: `columns` that name columns otherwise.
    """
    renamed_columns = {}  # name -> column, of the options NAME=COLUMN
    for text in options.columns:
        name, _, column = text.partition("=")
        renamed_columns[name] = column
    new_names = {column: name for name, column in renamed_columns.items()}
    columns = {new_names.get(column, column): values for column, values in table.columns.items()}
    plain = {folded(name) for name in columns}
    has_amounts = "count" in plain or "cloze" in plain
    has_words = "response" in plain or ("word" in plain and has_amounts)
    has_texts = "context" in plain or "sentence" in plain
    if table.form or "target" in plain or not (has_words and has_texts):
        return False
    # the columns fit if nothing has to be named once the words are called responses
    word_column = next(name for name in columns if folded(name) in ("response", "word"))
    columns["response"] = columns.pop(word_column)
    proposal = responses(TableLayout(columns))
    if proposal is None:
        return False
    # `cloze` reads the table without an option: the columns have the names that it needs. An item
    # of another name may be missing, since each context is an item then.
    without_item = {name: column for name, column in proposal.columns.items() if name != "item"}
    return not proposal._replace(columns=without_item).option


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
    is_item_named = any(text.startswith("item=") for text in options.columns)
    has_item = is_item_named or any(folded(name) == "item" for name in table.columns)
    table = first_steps(table, options, _KNOWN)
    if options.wide and not has_item:  # contexts may repeat, and the numbers of rows do not
        table = table.with_columns({}, without=("item",))
    # the rows as texts: contexts, and responses in the column target
    table = _with_contexts(table, options.gap)
    _refuse_unread_amounts(table)
    rows = _rows_as_texts(table)
    _refuse_contexts(table, rows)
    table = table.with_notes(*_json_notes(table.columns["target"]))
    written = [plain_response(text) for text in rows["target"]]
    rows["target"] = written if options.keep_case else [text.lower() for text in written]
    filled = rows[rows["target"] != ""]
    if filled.empty:
        raise BadInput(f"{table.name} has no responses: {_RULE}")
    _check_contexts(table, filled)
    items = _with_item_per_context(filled)
    # what was read otherwise than it is written, or not at all
    notes = [*table.notes]
    if "item" not in table.columns:
        notes.append("no column item: each context is an item")
    empty_rows = rows.index.difference(filled.index).tolist()
    if empty_rows:
        notes.append(f"empty responses left out: {len(empty_rows)} ({table.places(empty_rows)})")
    if not options.keep_case:
        notes += _notes_on_capitals(written)
    divided_items = [*filled["item"][items["item"] != filled["item"]].unique()]
    if divided_items:
        names = first_few(divided_items, 5)
        notes.append(f"each context of items with several is an item: {names}")
    unused = _unused(table.columns)
    if options.wide:
        unused = [name for name in unused if name != "condition"]
    if unused:
        notes.append(f"not used: {first_few(unused, 8)}")
    words = _words_with_shares(table.name, items).to_dict("list")
    return Table.of(table.name, words, form=FORM, notes=tuple(notes))


def _notes_on_capitals(written: Sequence[str]) -> Iterator[str]:
    """Yields one note if responses with capitals are read in lower case.

    It names those that are never written in lower case, such as names of people.
    """
    capitalised = [text for text in written if text != text.lower()]
    if capitalised:
        always = [text for text in dict.fromkeys(capitalised) if text.lower() not in written]
        never = f"; never written so: {first_few(always, 5)} (--keep-case)" if always else ""
        yield f"responses with capitals read in lower case: {len(capitalised):,}{never}"


def _with_contexts(table: Table, gap: str) -> Table:
    """Returns the table with columns context and target, of which the latter has the responses.

    `BadInput` with the remedy where a column is missing. `gap` is the mark of the missing word in
    sentences, if it is not a usual one.
    """
    word = next((name for name in _WORDS if name in table.columns), "")
    perhaps = ""
    if not word or "context" not in table.columns:
        option = naming_option(table.columns, "cloze")
        perhaps = f"; perhaps {option}" if option else ""
    if not word:
        rule = f"{_RULE}; --response names the column of responses{perhaps}"
        raise table.missing_column_error(_WORDS[0], rule)
    divided = without_gaps(table.with_columns({"target": table.columns[word]}), gap)
    if "context" not in divided.columns:
        rule = _RULE
        if "sentence" in table.columns:
            rule += "; a sentence has ___ in the place of the word, or another mark: --gap TEXT"
        raise table.missing_column_error("context", rule + perhaps)
    return divided


def _rows_as_texts(table: Table) -> DataFrame:
    """Returns the rows of a table as texts: item, context, right_context and target; "" for none.

    The column count, or cloze, has numbers: 1 for each row of a table without one.
    """
    from pandas import DataFrame, Series

    columns = table.columns
    if "item" in columns:
        name_texts(table.rows["item"])  # refuses numbers that are not whole
    texts = {}
    for name in (*_ITEM, "target"):
        values = columns.get(name, [""] * len(table))
        texts[name] = [  # NA is missing; nan and the like may be words that people gave
            "" if value in (None, "NA") else written_text(value).strip() for value in values
        ]
    rows = DataFrame(texts)
    rows["target"] = [_text_of_cell(table, row, text) for row, text in enumerate(rows["target"])]
    _refuse_lists(table, rows["target"])
    if "gap_spaces" in columns:
        rows["gap_spaces"] = columns["gap_spaces"]
    if "item" not in columns:
        rows["item"] = rows["context"]
    share_column = _share_column(columns)
    column = share_column or "count"
    if column not in columns:
        return rows.assign(count=1.0)
    amounts = as_numbers(Series(columns[column], dtype=object), column, table.where)
    _refuse_wrong_amounts(table, column, amounts, is_share=bool(share_column))
    return rows.assign(**{"cloze" if share_column else "count": amounts})


def _share_column(columns: Collection[str]) -> str:
    """Returns the column that has the share of a word among the responses; "" for none."""
    return next((name for name in _SHARES if name in columns), "")


def _refuse_wrong_amounts(
    table: Table, column: str, amounts: NDArray[np.float64], *, is_share: bool
) -> None:
    """Refuses shares that are not from 0 to 1, and counts below 0 or too large to be exact.

    For example, "row 3: the column count: expected a number from 0 to 2**53, not -1".

    Args:
        table: whose row the error names.
        column: that has the amounts.
        amounts: its values as numbers, (n rows,).
        is_share: whether they are shares.
    """
    import numpy as np

    most = 1.0 if is_share else float(2**53)  # above 2**53, floats leave whole numbers out
    wrong_rows = np.flatnonzero(~((amounts >= 0) & (amounts <= most)))  # NaN is wrong, too
    if not wrong_rows.size:
        return
    row = int(wrong_rows[0])
    wanted = "a share from 0 to 1" if is_share else "a number from 0 to 2**53"
    if is_share and 1 < np.nanmax(amounts) <= 100 + _ROUNDING:
        wanted += " (percentages are read as numbers, --columns count=COLUMN)"
    problem = f"the column {column}: expected {wanted}, not {table.columns[column][row]!r}"
    raise table.error(row, problem)


def _unused(columns: Collection[str]) -> list[str]:
    """Returns the columns that are not read, without those of people's names."""
    used = {*_KNOWN, "gap_spaces", *ROW_NAMES, *named_columns("reader", columns)}
    if _share_column(columns):
        used.remove("count")
    return [name for name in columns if name not in used]


def _refuse_unread_amounts(table: Table) -> None:
    """Refuses a table of words, each once in its context, with an unread column of numbers.

    The numbers may be the counts or shares of the words, which would else count once each.
    """
    if not {"count", "participant", *_SHARES}.isdisjoint(table.columns):
        return
    never = {*_KNOWN, *ROW_NAMES} - {"context", "target"}
    columns = {
        name: values_of(values) for name, values in table.columns.items() if name not in never
    }
    kind_and_column = amount_column(columns, "context", "target")
    if kind_and_column:
        kind, column = kind_and_column
        what = {"count": "how often it was given", "cloze": "its share"}[kind]
        remedy = f"give --columns {kind}={shlex.quote(column)}, or rename this column"
        problem = f"each word stands once with its context, and {column} may be {what}"
        raise BadInput(f"{table.name}: {problem}: {remedy}")


def _text_of_cell(table: Table, row: int, text: str) -> str:
    """Returns the response of a cell: its text, or the one text of a JSON list or object.

    Programs of experiments write such lists, as '{"Q0": "cat"}' (jsPsych). `BadInput` for one of
    several texts, which names the row of the table.
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
    """Refuses responses of which most are several words with a sign between them, as "cat, dog"."""
    n_filled = sum(text != "" for text in texts)
    rows_of_several = [row for row, text in enumerate(texts) if _is_several_words(text)]
    if 2 * len(rows_of_several) > n_filled > 0:
        row = rows_of_several[0]
        problem = f"the response {shortened(texts[row], 40)} is several: write a row per response"
        raise table.error(row, problem)


def _refuse_contexts(table: Table, rows: DataFrame) -> None:
    """Refuses responses of which most begin with their context."""
    rows_with_context = []
    pairs = zip(rows["context"], rows["target"], strict=True)
    for row, (context, response) in enumerate(pairs):
        if context and response.startswith(context):
            rows_with_context.append(row)
    if 2 * len(rows_with_context) > len(rows):
        row = rows_with_context[0]
        has = f"the response {shortened(rows['target'][row], 60)} begins with its context"
        raise table.error(row, f"{has}: write the words after it alone")


def _json_notes(cells: Sequence[object]) -> Iterator[str]:
    """Yields a line if responses are written as lists or objects of JSON."""
    lists = [cell for cell in cells if isinstance(cell, str) and _is_json_text(cell.strip())]
    if lists:
        example = shortened(lists[0], 40)
        yield f"responses written as lists, of which the text is read: {len(lists):,}, as {example}"


def _check_contexts(table: Table, rows: DataFrame) -> None:
    """Refuses empty contexts and items, two spellings of a context, and texts no model can read.

    The index of the responses has their rows in the table, which the errors name.
    """
    contexts = rows["context"] + "\n" + rows["right_context"]
    remedies = {
        "context": "write the text before the word, or what follows it into right_context",
        "item": "number the contexts",
    }
    for name, texts in (("context", contexts.str.strip()), ("item", rows["item"])):
        empty_rows = rows.index[texts == ""]
        if empty_rows.size:
            raise table.error(empty_rows[0], f"the column {name} is empty: {remedies[name]}")
    # contexts of an item that are the same in lower case and without punctuation
    plain = contexts.str.lower().str.replace(r"[^\w\n]+", " ", regex=True).str.strip()
    first_spelling = contexts.groupby([rows["item"], plain]).transform("first")
    differing_rows = rows.index[contexts != first_spelling]
    if differing_rows.size:
        row = differing_rows[0]
        # `idxmax` of truth values is the first true one
        earlier = table.where((contexts == first_spelling[row]).idxmax())
        problem = f"the context differs from that in {earlier} in case, blanks or punctuation alone"
        raise table.error(row, f"{problem}: write both alike")
    columns = rows.to_dict("list")
    columns["id"] = [str(row) for row in rows.index]  # a row of a wide table is several here
    problems = Problems()
    check_values(columns, table.of_rows_at(rows.index), problems)
    problems.raise_all()


def _with_item_per_context(rows: DataFrame) -> DataFrame:
    """Returns the rows with an item for each context: item 7 with two contexts is 7.1 and 7.2.

    Where the table has an item of such a name, more points stand before the number, as in 7..1.
    """
    items = rows["item"]
    contexts = rows["context"] + "\n" + rows["right_context"]
    number = contexts.groupby(items).transform(lambda texts: texts.factorize()[0] + 1)
    is_alone = number.groupby(items).transform("max") == 1
    mark = "."
    numbered_items = items + mark + number.map(str)
    while {*items} & {*numbered_items[~is_alone]}:
        mark += "."
        numbered_items = items + mark + number.map(str)
    return rows.assign(item=items.where(is_alone, numbered_items))


def _words_with_shares(name: str, rows: DataFrame) -> DataFrame:
    """Returns a row for each item and word: context, word, share, and count if there are counts.

    For example, three responses "cat", "dog" and "cat" to one context make the rows cat (count 2,
    cloze 2/3) and dog (count 1, cloze 1/3). The most frequent word of an item comes first; words
    with equal counts are in the order of the table. `BadInput` if shares that the table gives add
    up to more than 1 in an item.

    Args:
        name: of the table, for messages.
        rows: a row for each response, or for each word with its count or share.
    """
    import numpy as np

    amount = "cloze" if "cloze" in rows else "count"
    texts = [column for column in (*_ITEM, "gap_spaces") if column in rows]
    words = rows.groupby([*texts, "target"], sort=False)[amount].sum().reset_index()
    amounts = words.groupby("item", sort=False)[amount]
    total = amounts.transform("sum")
    if amount == "count":
        words["cloze"] = words["count"] / total
    else:
        # each share may be rounded up; the last term is for sums of floats
        most = 1 + SHARE_ROUNDING * amounts.transform("size") + 1e-9
        is_above = total > most
        if is_above.any():
            item = words["item"][is_above].iloc[0]
            adds_up = f"cloze of item {item} adds up to {total[is_above].iloc[0]:g}"
            rule = "it is the share of a word; a table of single responses has no column cloze"
            raise BadInput(f"{name}: {adds_up}: {rule}")
    item_numbers = amounts.ngroup()
    order = np.lexsort([-words["cloze"], item_numbers])  # by item, then by share
    return words.iloc[order]
