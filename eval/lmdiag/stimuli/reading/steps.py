"""How a user's own table is read, in named steps; `lmdiag check` prints them.

1. columns: which column is what (`columns`);
2. filter: which rows are read, and each once;
3. layout: a row per text, contrasts and conditions in columns of their own;
4. gap, regions and the critical word: the parts of a sentence (`forms`);
5. conditions: the columns that are factors of a design (`design`).

Each step takes a table and returns one, with a note on what it did. Commands on items take all
steps; those on words, responses and tables of items take the first three, which are here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeGuard

from lmdiag import diagnostics
from lmdiag.diagnostics.base import levels_of
from lmdiag.files.reading import user_path
from lmdiag.stimuli.reading.columns import ITEM_COLUMNS, misspelt_names, name_columns
from lmdiag.stimuli.reading.filters import Condition
from lmdiag.stimuli.reading.forms import with_form
from lmdiag.stimuli.values.codes import combine_codes, is_determined_by, n_distinct, n_distinct_by
from lmdiag.stimuli.values.critical_words import column_and_start, with_one_critical
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import FEW_ROWS, DistinctValues, is_numeral, values_of
from lmdiag.stimuli.values.names import TEXT_COLUMNS, is_named_as, is_outcome
from lmdiag.stimuli.values.splits import parts_of
from lmdiag.tables.table_files import (
    ROW_NAMES,
    Problems,
    Table,
    as_frame,
    as_texts,
    read_memory,
    read_table,
    row_index,
)
from lmdiag.text import DATA_SUFFIX, first_few, is_composed, is_decomposed, misread_word
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame

_SAMPLE = 200  # rows of which a word is looked for in their texts
_MOST_OF_ITEM = 8  # rows of an item of any name, of which some have the texts of other items

# option that some commands have no use for -> what it is for
_USE_OF_OPTION = {
    "gap": "sentences",
    "separator": "sentences",
    "critical": "sentences",
    "good": "pairs of items",
    "contrast": "pairs of items",
    "language": "words at a blank and regions of sentences",
    "keep_case": "responses of people",
}


def read_items(
    table: Table, task: str, options: TableOptions, *,
    check: Callable[[Table], None], allow_duplicates: bool,
) -> Table:  # fmt: skip
    """Returns the rows of a task after all steps: a row per text, with its form.

    Args:
        table: as it was read.
        task: name of a diagnostic, or of the user's own data.
        options: how the user says that the table is read.
        check: raises an error for a table whose layout is not known. It is called when the columns
            have their names, unless options say the layout, and when the table has its form.
        allow_duplicates: keep one of identical rows; else they are an error.

    `BadInput`, beside those of the steps: the table lacks texts, or columns of the diagnostic that
    the task is named after; options for data that are not the user's own.
    """
    is_own = task not in diagnostics.built_in()
    if is_own and not table.form:  # suites and folders of pairs have a form already
        table = first_steps(
            table, options, ITEM_COLUMNS, allow_duplicates=allow_duplicates, check=check
        )
    elif options != AS_IT_IS:
        option = next(iter(options.stored()))
        what = f"--{option.replace('_', '-')} is for tables of your own"
        raise BadInput(f"{what}, and {table.name} is none")
    table = with_form(table, task, options)
    if is_own:
        check(table)
        table = _with_texts_once(_with_item(table))
    if missing := diagnostics.get(task).missing_columns(table.columns):
        reason = f"is missing, which the diagnostic {task} has: give rows of your own another name"
        raise BadInput(f"{table.name}: the column {missing[0]} {reason}")
    return table


def _with_item(table: Table) -> Table:
    """The table with a column `item`: a copy of the column that groups rows with related texts.

    It is returned as it is if it has items or contrasts, if it has no column of texts, or if no
    column groups the rows in this way.
    """
    text_columns = [name for name in TEXT_COLUMNS if name in table.columns]
    if {"item", "contrast"} & table.columns.keys() or table.form == "suites" or not text_columns:
        return table
    parts = zip(*(table.columns[name] for name in text_columns), strict=True)
    texts = [" ".join(str(part or "") for part in row) for row in parts]
    columns = {
        name: values_of(values)
        for name, values in table.columns.items()
        if name not in (*text_columns, "id")
    }
    name = item_column(columns, texts)
    if not name:
        return table
    own_name = name.removesuffix(DATA_SUFFIX)
    note = f"columns: {own_name} as item, since its rows have related texts"
    return table.with_columns({"item": table.columns[name]}, note)


def _with_texts_once(table: Table) -> Table:
    """The table with each text of an item once, where most texts stand in several rows.

    For example, a table with a row for each reader and sentence, with reading times, becomes a
    table with a row per sentence, without the columns of readers and times. These columns differ
    between rows with the same text.

    The table is returned as it is where the rows of a text may be needed. In a table with items,
    they may be of several conditions, unless one of the differing columns seems to have responses;
    in a table without items, a differing column may name the items. Contrasts stay, too.
    """
    import numpy as np

    if "contrast" in table.columns or table.form not in ("", "sentences"):
        return table
    if table.form == "sentences":
        text_columns = ["sentence", "regions"]
    else:
        text_columns = ["context", "target", "right_context", "regions"]
    text_columns = [name for name in text_columns if name in table.columns]
    if len(table) < FEW_ROWS or not text_columns:
        return table
    has_items = "item" in table.columns
    names = ["item", *text_columns] if has_items else text_columns
    texts = [*zip(*(map(str, table.columns[name]) for name in names), strict=True)]
    first_row: dict[tuple[str, ...], int] = {}  # text, with its item -> its first row
    for row, text in enumerate(texts):
        first_row.setdefault(text, row)
    if 2 * len(first_row) > len(table):
        return table
    number_of_text = {text: number for number, text in enumerate(first_row)}
    codes = np.array([number_of_text[text] for text in texts], dtype=np.intp)  # of each row
    columns = {
        name: values_of(values)
        for name, values in table.columns.items()
        if name not in (*names, "id", *ROW_NAMES)
    }
    # columns that have several values in the rows of some text
    differing = {x: v for x, v in columns.items() if not _is_constant_within(v, codes)}
    if _are_stimuli(differing, codes, has_items=has_items):
        return table
    unit = "sentences" if table.form else "texts"
    of_items = " of items" if has_items else ""
    note = f"rows: {len(table):,} have {len(first_row):,} {unit}{of_items}"
    note += ", each of which is read once"
    if differing:
        note += f", without {first_few([*differing])}, which differ between its rows"
    return table.of_rows_at([*first_row.values()]).with_columns({}, note, without=differing)


def _are_stimuli(
    differing: Mapping[str, DistinctValues], texts: NDArray[np.intp], *, has_items: bool
) -> bool:
    """Whether the rows of one text may be several stimuli, and not responses to one.

    Args:
        differing: columns with several values in the rows of some text.
        texts: number of the text of each row, (n rows,).
        has_items: whether the table has a column of items.
    """
    if not {*differing}.isdisjoint(ITEM_COLUMNS - {"condition"}):
        return True  # they differ in expected words, for example
    if has_items:  # without responses, the rows of a text may be of several conditions
        return not any(_may_have_responses(name, values) for name, values in differing.items())
    # the rows of a text may be of several items
    return any(_may_be_items(name, values, texts) for name, values in differing.items())


def _may_have_responses(name: str, values: DistinctValues) -> bool:
    """Whether a column is named as a response, or has numbers that do not count or name rows."""
    may_be_measure = values.is_number and not values.are_running_numbers
    return is_outcome(name) or (may_be_measure and not _has_other_role(name))


def _may_be_items(name: str, values: DistinctValues, texts: NDArray[np.intp]) -> bool:
    """Whether a column groups rows as items do: some rows each, of which no two have one text.

    Templates make the same sentence for several items.

    Args:
        name: of the column.
        values: of the column.
        texts: number of the text of each row, (n rows,).
    """
    if len(values.levels) <= FEW_ROWS or is_named_as(name, "reader"):
        return False
    n_rows = values.counts  # of each value
    has_some_rows = n_rows.min() > 1 and n_rows.max() <= _MOST_OF_ITEM
    n_pairs = n_distinct(combine_codes(values.codes, texts))
    return bool(has_some_rows) and n_pairs == values.n_filled


def _has_other_role(name: str) -> bool:
    """Whether the name is that of a list, an item, a participant, a set or a position."""
    return any(is_named_as(name, role) for role in ("list", "item", "reader", "set", "position"))


def _is_constant_within(values: DistinctValues, texts: NDArray[np.intp]) -> bool:
    """Whether all rows with one text (by number, (n rows,)) have one value, or all have none."""
    codes = values.codes + 1  # a missing value counts as one more value
    return is_determined_by(codes, [texts])


def read_frame_rows(
    source: str | Path | DataFrame, options: TableOptions, known: Collection[str],
    *, raw: bool = False, **how: Any,
) -> tuple[DataFrame, tuple[str, ...]]:  # fmt: skip
    """Returns what `read_rows` returns, with the same arguments, as a DataFrame, and the notes.

    A DataFrame is returned as it is if there are no options and no known names.
    """
    if not isinstance(source, str | Path) and options == AS_IT_IS and not known:
        return source, ()
    table = read_rows(source, options, known, raw=raw, **how)
    return as_frame(table, raw=raw), table.notes


def read_rows(
    source: str | Path | DataFrame, options: TableOptions, known: Collection[str], *,
    raw: bool = False, reads: Collection[str] = (), **how: Any,
) -> Table:  # fmt: skip
    """Returns the rows of a file or a DataFrame after the first three steps.

    These name the columns, filter the rows, and make a row per text.

    Args:
        source: path of a file, or a DataFrame.
        options: how the user says that the table is read.
        known: names of columns that a difference of spelling is read as.
        raw: leave missing values of a text file as they are written.
        reads: options for pairs and for the parts of sentences that the caller takes.
        how: further arguments of `first_steps`.
    """
    refuse_options(options, reads)
    if isinstance(source, str | Path):
        table = read_table(user_path(str(source)), raw=raw, sheet=options.sheet)
    else:
        table = read_memory(source)
    return first_steps(table, options, known, **how)


def refuse_options(options: TableOptions, reads: Collection[str]) -> None:
    """Refuses options for pairs and for parts of sentences that a command does not take.

    Args:
        options: that the user gave.
        reads: names of those options of this kind that the command takes.
    """
    for option in options.stored():
        if option in _USE_OF_OPTION and option not in reads:
            what = f"--{option.replace('_', '-')} is for {_USE_OF_OPTION[option]}"
            raise BadInput(f"{what}: leave it out, nothing is read by it here")


def first_steps(
    table: Table,
    options: TableOptions,
    known: Collection[str],
    *,
    allow_duplicates: bool | None = None,
    check: Callable[[Table], None] | None = None,
    copies: bool = False,
    text: str = "",
) -> Table:
    """Returns a table after the first three steps: columns, filter and layout.

    They name the columns, filter the rows, and make a row per text. Problems are collected in one
    message; those with the names of columns are raised before values are looked at.

    Args:
        table: as it was read.
        options: how the user says that the table is read.
        known: names of columns that a difference of spelling is read as.
        allow_duplicates: keep one of identical rows, else they are an error; None for tables in
            which rows may be identical and columns have nearly known names.
        check: refuses a table of another layout, before rows that may be responses are judged.
        copies: see `name_columns`.
        text: column of the values of wide columns; "" for `target` beside contexts or sentences,
            `context` beside targets alone, and else `sentence`.
    """
    if not len(table):
        raise BadInput(f"{table.name} has no rows")
    problems = Problems()
    # tables of words and measures (`copies`) keep their values as they are written
    table = table if copies else _without_outer_blanks(table)
    table = name_columns(table, options, known, problems, copies=copies)
    if allow_duplicates is not None:
        problems += [f"{table.name}: {problem}" for problem in misspelt_names(table, options.wide)]
    for condition in options.filter:
        with problems.collected():
            table = _filter_rows(table, condition)
    made_columns = {"item"}  # by later steps
    if options.wide:
        made_columns.add(wide_condition(table.columns, options.wide))
    for option, name in _columns_of_options(options, table.columns):
        if name and name not in made_columns:
            with problems.collected():
                table.column_of(name, option)  # an error if it is not there
    problems.raise_all()
    if allow_duplicates is not None:
        if check and not (options.wide or options.critical):
            check(table)  # identical responses of people are not duplicates
        with problems.collected():
            table = _without_repeated_rows(table, allowed=allow_duplicates)
    with problems.collected():
        if options.wide:
            names = [table.column_of(name, "--wide") for name in options.wide]
            condition = wide_condition(table.columns, names)
            table = _with_row_per_text(table, names, text)
            table = with_one_critical(table, options.critical, names, condition)
        if options.good or options.contrast:
            table = _with_contrasts(table, options)
        for split in options.split:
            table = _with_parts(table, split)
    problems.raise_all()
    return table.with_notes(*notes_on_letter_forms(table), *notes_on_odd_characters(table))


def _without_outer_blanks(table: Table) -> Table:
    """The table without blanks at the edges of texts and labels, which nobody sees.

    For example, "sg " becomes "sg", beside which it would be another level. A note names the rows.
    """
    stripped = {}  # column -> its values without blanks
    rows: set[int] = set()
    for name, values in table.columns.items():
        # each distinct text is looked at once
        padded = {value for value in {*filter(_is_text, values)} if value != value.strip()}
        if padded:
            rows |= {row for row, x in enumerate(values) if _is_text(x) and x in padded}
            stripped[name] = [value.strip() if _is_text(value) else value for value in values]
    if not stripped:
        return table
    where = f"{table.places(sorted(rows))}, in {first_few([*stripped])}"
    return table.with_columns(
        stripped, f"blanks: removed at the edges of texts and labels ({where})"
    )


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text."""
    return isinstance(value, str)


def notes_on_letter_forms(table: Table) -> list[str]:
    """Returns a line if some texts have composed letters and others decomposed ones; else none.

    In Unicode, "é" is one character (composed), or "e" and an accent (decomposed).
    """
    decomposed_rows = set()
    composed_rows = set()
    for values in table.columns.values():
        for row, value in enumerate(values):
            if isinstance(value, str) and not value.isascii():
                if is_decomposed(value):
                    decomposed_rows.add(row)
                elif is_composed(value):
                    composed_rows.add(row)
    if not (decomposed_rows and composed_rows):
        return []
    rows = f"{table.where(min(decomposed_rows))} has letters and marks apart (decomposed)"
    composed = f"{table.where(min(composed_rows))} as one character (composed)"
    what = "a model may read other tokens; words are compared in one form (Unicode's C)"
    return [f"letters: {rows}, {composed}: {what}"]


def notes_on_odd_characters(table: Table) -> list[str]:
    """Returns lines on words in a wrong encoding, and on byte-order marks inside texts."""
    misread_rows: dict[int, tuple[str, str]] = {}  # row -> a word, and what it was
    marked_rows = set()
    for values in table.columns.values():
        texts = {value for value in {*filter(_is_text, values)} if not value.isascii()}
        misread = {text: misread_word(text) for text in texts}  # text -> a word, and what it was
        misread = {text: (word, meant) for text, (word, meant) in misread.items() if word}
        marked = {text for text in texts if "\ufeff" in text}
        if not (misread or marked):
            continue
        for row, value in enumerate(values):
            if _is_text(value):
                if value in misread:
                    misread_rows.setdefault(row, misread[value])
                if value in marked:
                    marked_rows.add(row)
    lines = []
    if misread_rows:
        where = f"{table.name}, {table.places(sorted(misread_rows))}"
        word, meant = misread_rows[min(misread_rows)]
        what = f"{word!r} seems to be {meant!r} in a wrong encoding, and models read it as it is"
        lines.append(f"letters: {where}: {what}: write the file anew, as UTF-8")
    if marked_rows:
        where = f"{table.name}, {table.places(sorted(marked_rows))}"
        what = "a byte-order mark (U+FEFF) inside a text, which models read"
        lines.append(f"letters: {where}: {what}: remove it")
    return lines


def _columns_of_options(options: TableOptions, columns: Collection[str]) -> list[tuple[str, str]]:
    """(option, column) for each column that options of later steps name, as ("--wide", "match")."""
    pairs = [("--wide", name) for name in options.wide]
    pairs += [("--contrast", name) for name in options.contrast]
    pairs += [("--split", split.partition("=")[0]) for split in options.split]
    pairs += [("--critical", column_and_start(text, columns)[0]) for text in options.critical]
    pairs.append(("--good", options.good.partition("=")[0]))
    return pairs


# ---- filter --------------------------------------------------------------------------------------


def _filter_rows(table: Table, condition: str) -> Table:
    """The rows that meet a condition, as kind=a,b; their ids are those without the filter."""
    import numpy as np

    kept_rows = np.flatnonzero(_meet_condition(table, condition, "--filter"))
    if not kept_rows.size:
        raise BadInput(f"{table.name}: --filter {condition} leaves no row")
    n_out = len(table) - len(kept_rows)
    counts = f"keeps {len(kept_rows):,} of {len(table):,} rows, {n_out:,} are left out"
    return table.of_rows_at(kept_rows).with_notes(f"filter: {condition} {counts}")


def _meet_condition(table: Table, text: str, option: str) -> NDArray[np.bool_]:
    """Whether each row meets a condition, (n rows,).

    Args:
        table: rows.
        text: the condition, COLUMN=VALUE[,VALUE] or COLUMN!=VALUE.
        option: that has it, for messages.
    """
    condition = Condition.of(text)
    if not condition or not condition.names_values:
        raise BadInput(f"{option} {text!r}: write COLUMN=VALUE or COLUMN!=VALUE")
    column = table.column_of(condition.column, option)
    texts = as_texts(table.rows[column]).fillna("").tolist()
    try:
        return condition.is_met(texts)
    except BadInput as problem:
        raise BadInput(f"{table.name}: {option} {text}: {problem}") from None


def _without_repeated_rows(table: Table, *, allowed: bool) -> Table:
    """The table with one of each set of identical rows; `BadInput` where these are not allowed.

    Identical rows are mostly an error of copying, but not in a table of responses, since two
    readers may respond alike: they are always allowed where a column seems to have responses.
    """
    earlier_row = _repeated_rows(table)  # row -> the first row that is identical to it
    if not earlier_row:
        return table
    response = "" if allowed else _response_column(table)
    if response:
        n = f"{len(earlier_row):,} identical ones are left out ({table.places([*earlier_row])})"
        note = f"rows: {n}; {response} differs between rows that are else identical"
        note += ", as responses do"
        if values_of(table.columns[response]).is_number:
            note += f": `lmdiag analyse` with --response {quote(response)} reads all"
        table = table.with_notes(note)
    elif not allowed:
        row, earlier = next(iter(earlier_row.items()))
        every = f"{len(earlier_row)} repeated: {table.places([*earlier_row])}"
        remedy = "remove them, or keep one of each by --allow-duplicates"
        problem = f"the row is identical to {table.places([earlier])} ({every})"
        raise table.error(row, f"{problem}: {remedy}")
    return table.of_rows_at([row for row in range(len(table)) if row not in earlier_row])


def _response_column(table: Table) -> str:
    """The column that seems to have responses in numbers; "" for none.

    Rows that are identical in all other columns are a group, such as the rows of one item without a
    column of readers. Responses differ within such groups: in a quarter of them or more, since
    readers often respond alike. Columns named as lists, items, readers and the like do not count.
    """
    import numpy as np

    columns = {x: values_of(v) for x, v in table.columns.items() if x not in ROW_NAMES}
    for name, values in columns.items():
        has_numbers = 2 * sum(map(is_numeral, values.levels)) > len(values.levels)
        if _has_other_role(name) or not (has_numbers or is_outcome(name)):
            continue
        # rows of one group are identical in all other columns; a missing value is a value, too
        groups = combine_codes(*(x.codes + 1 for other, x in columns.items() if other != name))
        n_values = n_distinct_by(groups, values.codes)  # of each group
        has_several_rows = np.bincount(groups) > 1
        n_groups = int(has_several_rows.sum())
        n_differing = int((n_values[has_several_rows] > 1).sum())
        if n_groups and 4 * n_differing >= n_groups:
            return name
    return ""


def _repeated_rows(table: Table) -> dict[int, int]:
    """Row -> the first row that is identical to it, as {4: 1, 5: 1} if rows 1, 4 and 5 are.

    The values 1 and True differ. Names of rows do not count.
    """
    import numpy as np

    names = [name for name in table.rows if name not in ROW_NAMES]
    # pandas finds candidates quickly, but takes 1 for True and cannot compare lists
    without_lists = [x for x in names if {list, tuple}.isdisjoint(map(type, table.columns[x]))]
    if without_lists:
        candidates = np.flatnonzero(table.rows[without_lists].duplicated(keep=False)).tolist()
    else:
        candidates = [*range(len(table))]
    first_row: dict[str, int] = {}  # all values of a row, as one text -> the first such row
    earlier_row = {}
    for row in candidates:
        values = repr([table.columns[name][row] for name in names])
        earlier = first_row.setdefault(values, row)
        if earlier != row:
            earlier_row[row] = earlier
    return earlier_row


# ---- layout --------------------------------------------------------------------------------------


def _with_row_per_text(table: Table, names: Sequence[str], text: str) -> Table:
    """The table with a row for each text in one of the wide columns.

    For example, the row {"match": "A man sat.", "mismatch": "A man sit."} becomes the two rows
    {"sentence": "A man sat.", "condition": "match", "item": "1"} and {"sentence": "A man sit.",
    "condition": "mismatch", "item": "1"}. `item` is the number of the former row, in a table that
    has no column `item`. Empty cells make no row.

    Args:
        table: with the wide columns.
        names: of the wide columns.
        text: column of their values; "" where it follows from the other columns.
    """
    import numpy as np
    from pandas import isna

    other_columns = table.columns.keys() - {*names}
    if not text:
        text = _column_of_wide_texts(table, names)
    if text in other_columns:
        there = f"--wide makes a column {text}, which is there"
        raise BadInput(f"{table.name}: {there}: rename it in the file")
    condition = wide_condition(table.columns, names)
    cells = table.rows[[*names]].to_numpy(dtype=object)  # (n rows, n wide columns)
    is_filled = (cells != "") & ~isna(cells)
    rows, columns = np.nonzero(is_filled)  # of each new row, its former row and its wide column
    conditions = [names[column] for column in columns.tolist()]
    # without the wide columns, of which each row would have all cells again
    long = table.with_columns({}, without=names).of_rows_at(rows)
    # the text, condition, id and item of each new row
    row_names = long.labels("name")
    new_columns: dict[str, list[Any]] = {text: cells[is_filled].tolist(), condition: conditions}
    ids = zip(long.columns.get("id", row_names), conditions, strict=True)
    cell_names = [f"{row}-{name}" for row, name in ids]
    if "id" in other_columns:
        new_columns["id"] = cell_names
    # what the note says
    n_empty = is_filled.size - len(rows)
    n_lacking = int((~is_filled.any(axis=1)).sum())  # rows
    note = f"wide: {len(table):,} rows make {len(rows):,}, one for each {text}"
    if n_empty:
        note += f", {n_empty:,} empty cells make none"
    if n_lacking:
        note += f"; {n_lacking:,} rows have no {text} there and are left out"
    if "item" not in other_columns:
        new_columns["item"] = [*map(str, row_names)]
        note += "; item is the number of the row"
    if condition != "condition":
        note += f"; {condition} has the names of the columns, since there is a column condition"
    long = long.with_columns(new_columns, note)
    # each new row keeps the place of its former row, and gets a name of its own
    unit = long.rows.index.names[0]
    index = row_index(long.labels(unit), unit, below=cell_names, names=cell_names)
    return replace(long, rows=long.rows.set_axis(index))


def _column_of_wide_texts(table: Table, names: Sequence[str]) -> str:
    """What the values of wide columns are: targets after texts, contexts of targets, or sentences.

    Args:
        table: with the wide columns.
        names: of the wide columns.
    """
    other_columns = table.columns.keys() - {*names}
    if "context" in other_columns or "sentence" in other_columns:
        return "target"
    return "context" if _are_contexts(table, names) else "sentence"


def wide_condition(columns: Collection[str], wide: Collection[str]) -> str:
    """Returns the name of the column that gets the names of wide columns as its values.

    >>> wide_condition(["item", "match"], ["match"]), wide_condition(["condition", "match"], [])
    ('condition', 'wide_condition')

    Args:
        columns: all columns of the table.
        wide: the wide columns.
    """
    is_taken = "condition" in columns and "condition" not in wide
    return "wide_condition" if is_taken else "condition"


def _are_contexts(table: Table, names: Sequence[str]) -> bool:
    """Whether wide columns have contexts of targets: most texts do not have their target in them.

    Args:
        table: perhaps with a column of targets.
        names: of the wide columns.
    """
    if "target" not in table.columns or "target" in names:
        return False
    rows = table.rows[["target", *names]].head(_SAMPLE).itertuples(index=False)
    are_inside = []  # for each text, whether the target is one of its words
    for target, *texts in rows:
        are_inside += [str(target) in str(text).split() for text in texts if text]
    return 2 * sum(are_inside) <= len(are_inside)


def _with_contrasts(table: Table, options: TableOptions) -> Table:
    """The table with `good` and `contrast`, as --good COLUMN=VALUE and --contrast COLUMN say.

    For example, with --good gram=yes and --contrast item number, the row with item 3, number sg and
    gram yes gets `contrast` "3-sg" and `good` True. Rows with the same values in the columns of
    --contrast are compared, and the good row of them meets the condition of --good.
    """
    from pandas import DataFrame

    from lmdiag.stimuli.values.levels import joined_names

    if not options.good or not options.contrast:
        raise BadInput("--good COLUMN=VALUE and --contrast COLUMN are given together")
    good = _meet_condition(table, options.good, "--good").tolist()
    table_with_item = _with_item(table)  # whose column of items may have another name in the table
    columns = {}
    for name in options.contrast:
        source = table_with_item if name == "item" else table
        columns[name] = as_texts(source.rows[source.column_of(name, "--contrast")])
    contrasts = joined_names(DataFrame(columns), "-").tolist()
    names = ", ".join(options.contrast)
    note = f"contrasts: {len({*contrasts}):,} by {names}; good rows have {options.good}"
    return table_with_item.with_columns({"good": good, "contrast": contrasts}, note)


def _with_parts(table: Table, split: str) -> Table:
    """The table with several columns in the place of one, whose values are divided into parts.

    For example, `cond=_:number,gender` divides "sg_fem" in `cond` into number "sg", gender "fem".

    Args:
        table: with the column.
        split: COLUMN=SEPARATOR:NAME,NAME, as --split takes it.
    """
    match = re.fullmatch(r"(.+?)=(.*):([^:]+)", split, re.DOTALL)
    if not match:
        raise BadInput(f"--split {split!r}: write COLUMN=SEPARATOR:NAME,NAME")
    column = table.column_of(match[1], "--split")
    separator = match[2]
    names = [name.strip() for name in match[3].split(",")]
    for name in names:
        if name in table.columns and name != column:
            raise BadInput(f"{table.name}: --split {split}: there is a column {name}: rename one")
    levels = [level or "" for level in levels_of(table.columns[column])]
    distinct = [*dict.fromkeys(levels)]
    parts_of_level = dict(zip(distinct, parts_of(distinct, separator, len(names)), strict=True))
    rule = f"not {len(names)} ({', '.join(names)}): leave such rows out by --filter"
    problems = {}
    for row, level in enumerate(levels):
        n_parts = len(parts_of_level[level])
        if n_parts != len(names):
            has = f"{level!r} has {n_parts} parts, {rule}"
            problems[row] = f"--split {split}: the column {column}: {has}"
    table.refuse_rows(problems)
    columns = {
        name: [parts_of_level[level][number] for level in levels]
        for number, name in enumerate(names)
    }
    return table.with_columns(
        columns, f"split: {column} into {', '.join(names)}", without=(column,)
    )
