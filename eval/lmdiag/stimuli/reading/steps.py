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
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeGuard

from lmdiag import diagnostics
from lmdiag.diagnostics.base import levels_of
from lmdiag.files.reading import user_path
from lmdiag.stimuli.reading.columns import ITEM_COLUMNS, name_columns, near_names
from lmdiag.stimuli.reading.filters import Condition
from lmdiag.stimuli.reading.forms import in_form
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

# options that some commands have no use for -> what they are for
_OF_ITEMS = dict.fromkeys(("gap", "separator", "critical"), "sentences")
_OF_ITEMS |= dict.fromkeys(("good", "contrast"), "pairs of items")
_OF_ITEMS["language"] = "words at a blank and regions of sentences"
_OF_ITEMS["keep_case"] = "responses of people"


def read_items(
    table: Table, task: str, options: TableOptions, *,
    check: Callable[[Table], None], allow_duplicates: bool,
) -> Table:  # fmt: skip
    """Returns the rows of a task after all steps: a row per text, with its form.

    Args:
        check: raises an error for a table whose layout is not known, before and after its form is.

    `BadInput`, beside those of the steps: the table lacks texts, or columns of the diagnostic that
    the task is named after; options for data that are not the user's own.
    """
    is_own = task not in diagnostics.built_in()
    if is_own and not table.form:
        table = first_steps(
            table, options, ITEM_COLUMNS, allow_duplicates=allow_duplicates, check=check
        )
    elif options != AS_IT_IS:
        option = next(iter(options.stored()))
        what = f"--{option.replace('_', '-')} is for tables of your own"
        raise BadInput(f"{what}, and {table.name} is none")
    table = in_form(table, task, options)
    if is_own:
        check(table)
        table = _with_texts_once(_with_item(table))
    if missing := diagnostics.get(task).missing_columns(table.columns):
        reason = f"is missing, which the diagnostic {task} has: give rows of your own another name"
        raise BadInput(f"{table.name}: the column {missing[0]} {reason}")
    return table


def _with_item(table: Table) -> Table:
    """The table with the item of each row, where one column groups rows with related texts."""
    texts = [name for name in TEXT_COLUMNS if name in table.columns]
    if {"item", "contrast"} & table.columns.keys() or table.form == "suites" or not texts:
        return table
    parts = zip(*(table.columns[name] for name in texts), strict=True)
    rows = [" ".join(str(part or "") for part in row) for row in parts]
    never = (*texts, "id")
    columns = {x: values_of(v) for x, v in table.columns.items() if x not in never}
    name = item_column(columns, rows)
    if not name:
        return table
    own_name = name.removesuffix(DATA_SUFFIX)
    note = f"columns: {own_name} as item, since its rows have related texts"
    return table.having({"item": table.columns[name]}, note)


def _with_texts_once(table: Table) -> Table:
    """The table with each text of an item once, where most texts stand in several rows.

    Columns that differ between rows with the same text are about these rows, as responses are.
    Rows with items stay unless one of these columns has numbers, since others may be conditions.
    """
    import numpy as np

    if "contrast" in table.columns or table.form not in ("", "sentences"):
        return table
    words = [name for name in TEXT_COLUMNS if name != "sentence"]
    texts_of = [*(["sentence"] if table.form else words), "regions"]
    if len(table) < FEW_ROWS or table.columns.keys().isdisjoint(texts_of):
        return table
    items = ["item"] if "item" in table.columns else []
    names = [*items, *(name for name in texts_of if name in table.columns)]
    texts = [*zip(*(map(str, table.columns[name]) for name in names), strict=True)]
    first_row: dict[tuple[str, ...], int] = {}
    for row, text in enumerate(texts):
        first_row.setdefault(text, row)
    if 2 * len(first_row) > len(table):
        return table
    numbers = {text: number for number, text in enumerate(first_row)}
    codes = np.array([numbers[text] for text in texts], dtype=np.intp)
    names += ["id", *ROW_NAMES]
    columns = {x: values_of(v) for x, v in table.columns.items() if x not in names}
    differing = {x: v for x, v in columns.items() if not _is_known(v, codes)}
    have_responses = any(
        is_outcome(x) or (v.is_number and not (v.are_counted or _is_named_else(x)))
        for x, v in differing.items()
    )
    are_read = not {*differing}.isdisjoint(ITEM_COLUMNS - {"condition"})
    may_have_items = any(_may_be_items(x, v, codes) for x, v in differing.items())
    if are_read or (items and not have_responses) or (not items and may_have_items):
        return table
    unit = "sentences" if table.form else "texts"
    of_items = " of items" if items else ""
    note = (
        f"rows: {len(table):,} have {len(first_row):,} {unit}{of_items}, each of which is read once"
    )
    note += (
        f", without {first_few([*differing])}, which differ between its rows" if differing else ""
    )
    return table.of_rows_at([*first_row.values()]).having({}, note, without=differing)


def _may_be_items(name: str, values: DistinctValues, texts: NDArray[np.intp]) -> bool:
    """Whether a column groups rows as items do: some rows each, of which no two have one text.

    Templates make the same sentence for several items.
    """
    counts = values.counts
    is_few = len(values.levels) > FEW_ROWS and counts.min() > 1 and counts.max() <= _MOST_OF_ITEM
    n_pairs = n_distinct(combine_codes(values.codes, texts))
    return bool(is_few) and n_pairs == values.n_filled and not is_named_as(name, "reader")


def _is_named_else(name: str) -> bool:
    """Whether the name is that of a list, an item, a participant, a set or a position."""
    return any(is_named_as(name, role) for role in ("list", "item", "reader", "set", "position"))


def _is_known(values: DistinctValues, texts: NDArray[np.intp]) -> bool:
    """Whether all rows with one text have one value, or all have none."""
    return is_determined_by(values.codes + 1, [texts])


def read_frame_rows(
    source: str | Path | DataFrame, options: TableOptions, known: Collection[str],
    *, raw: bool = False, **how: Any,
) -> tuple[DataFrame, tuple[str, ...]]:  # fmt: skip
    """Returns what `read_rows` returns as a DataFrame, see `as_frame`, and the notes.

    A DataFrame of which nothing is to be read in another way is returned as it is.
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

    Args:
        source, raw: see `lmdiag.tables.table_files.read_table`.
        options, known, how: see `first_steps`.
        reads: options for pairs and for the parts of sentences that the caller takes.
    """
    refuse_options(options, reads)
    is_file = isinstance(source, str | Path)
    table = (
        read_table(user_path(str(source)), raw=raw, sheet=options.sheet)
        if is_file
        else read_memory(source)
    )
    return first_steps(table, options, known, **how)


def refuse_options(options: TableOptions, reads: Collection[str]) -> None:
    """Refuses options for pairs and the parts of sentences that are not among those it reads."""
    for option in options.stored():
        if option in _OF_ITEMS and option not in reads:
            what = f"--{option.replace('_', '-')} is for {_OF_ITEMS[option]}"
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
    """Returns a table after the first three steps, whose problems are in one message.

    What columns are called is judged before their values.

    Args:
        known: names of columns that a difference of spelling is read as.
        allow_duplicates: keep one of identical rows; None for tables in which rows may be identical
            and columns have nearly known names.
        check: refuses a table of another layout, before rows that may be responses are judged.
        copies: see `name_columns`.
        text: column of the values of wide columns; "" for `target` beside contexts or sentences,
            `context` beside targets alone, and else `sentence`.
    """
    if not len(table):
        raise BadInput(f"{table.name} has no rows")
    problems = Problems()
    table = table if copies else _without_outer_blanks(table)
    table = name_columns(table, options, known, problems, copies=copies)
    if allow_duplicates is not None:
        problems += [f"{table.name}: {problem}" for problem in near_names(table, options.wide)]
    for condition in options.filter:
        with problems.kept():
            table = _filtered(table, condition)
    made = {"item", wide_condition(table.columns, options.wide)} if options.wide else {"item"}
    for option, name in _named_columns(options, table.columns):
        if name and name not in made:
            with problems.kept():
                table.column_of(name, option)
    problems.refuse()
    if allow_duplicates is not None:
        if check and not (options.wide or options.critical):
            check(table)  # identical responses of people are not duplicates
        with problems.kept():
            table = _without_repeated_rows(table, allowed=allow_duplicates)
    with problems.kept():
        if options.wide:
            names = [table.column_of(name, "--wide") for name in options.wide]
            condition = wide_condition(table.columns, names)
            table = _long(table, names, text)
            table = with_one_critical(table, options.critical, names, condition)
        if options.good or options.contrast:
            table = _with_contrasts(table, options)
        for split in options.split:
            table = _with_parts(table, split)
    problems.refuse()
    return table.having({}, *two_forms(table), *odd_characters(table))


def _without_outer_blanks(table: Table) -> Table:
    """The table without blanks at the edges of texts and labels, which nobody sees."""
    made = {}
    rows: set[int] = set()
    for name, values in table.columns.items():
        texts = {value for value in {*filter(_is_text, values)} if value != value.strip()}
        if texts:
            rows.update(
                row for row, value in enumerate(values) if _is_text(value) and value in texts
            )
            made[name] = [value.strip() if _is_text(value) else value for value in values]
    if not made:
        return table
    where = f"{table.places(sorted(rows))}, in {first_few([*made])}"
    return table.having(made, f"blanks: removed at the edges of texts and labels ({where})")


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def two_forms(table: Table) -> list[str]:
    """Returns a line if some texts have composed letters and others decomposed ones; else none."""
    firsts: dict[bool, int] = {}  # whether decomposed -> the first such row
    for values in table.columns.values():
        for row, value in enumerate(values):
            if isinstance(value, str) and not value.isascii():
                if is_decomposed(value):
                    firsts[True] = min(row, firsts.get(True, row))
                elif is_composed(value):
                    firsts[False] = min(row, firsts.get(False, row))
    if len(firsts) < 2:
        return []
    rows = f"{table.where(firsts[True])} has letters and marks apart (decomposed)"
    return [
        f"letters: {rows}, {table.where(firsts[False])} as one character (composed): a model may "
        "read other tokens; words are compared in one form (Unicode's C)"
    ]


def odd_characters(table: Table) -> list[str]:
    """Returns lines on words in a wrong encoding, and on byte-order marks inside texts."""
    misread: dict[int, tuple[str, str]] = {}  # row -> a word, and what it was
    marks = set()
    for values in table.columns.values():
        others = {value for value in {*filter(_is_text, values)} if not value.isascii()}
        words = {value: found for value in others if (found := misread_word(value))[0]}
        marked = {value for value in others if "\ufeff" in value}
        for row, value in enumerate(values if words or marked else ()):
            if _is_text(value):
                if value in words:
                    misread.setdefault(row, words[value])
                if value in marked:
                    marks.add(row)
    lines = []
    if misread:
        where = f"{table.name}, {table.places(sorted(misread))}"
        word, meant = misread[min(misread)]
        what = f"{word!r} seems to be {meant!r} in a wrong encoding, and models read it as it is"
        lines.append(f"letters: {where}: {what}: write the file anew, as UTF-8")
    if marks:
        where = f"{table.name}, {table.places(sorted(marks))}"
        what = "a byte-order mark (U+FEFF) inside a text, which models read"
        lines.append(f"letters: {where}: {what}: remove it")
    return lines


def _named_columns(options: TableOptions, columns: Collection[str]) -> list[tuple[str, str]]:
    """The columns that the options of the later steps name, after the name of the option."""
    named = [("--wide", name) for name in options.wide]
    named += [("--contrast", name) for name in options.contrast]
    named += [("--split", split.partition("=")[0]) for split in options.split]
    named += [("--critical", column_and_start(text, columns)[0]) for text in options.critical]
    return [*named, ("--good", options.good.partition("=")[0])]


# ---- filter --------------------------------------------------------------------------------------


def _filtered(table: Table, condition: str) -> Table:
    """The rows that meet a condition, with the ids that they have without the filter."""
    import numpy as np

    kept = np.flatnonzero(_meets(table, condition, "--filter"))
    if not kept.size:
        raise BadInput(f"{table.name}: --filter {condition} leaves no row")
    n_out = len(table) - len(kept)
    counts = f"keeps {len(kept):,} of {len(table):,} rows, {n_out:,} are left out"
    return table.of_rows_at(kept).having({}, f"filter: {condition} {counts}")


def _meets(table: Table, text: str, option: str) -> NDArray[np.bool_]:
    """Whether each row meets a condition, COLUMN=VALUE[,VALUE] or COLUMN!=VALUE."""
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
    """The rows, each once; `BadInput` for identical rows if they are not allowed."""
    earlier_row = _repeated(table)
    if not earlier_row:
        return table
    response = "" if allowed else _response_of(table)
    if response:
        n = f"{len(earlier_row):,} identical ones are left out ({table.places([*earlier_row])})"
        note = (
            f"rows: {n}; {response} differs between rows that are else identical, as responses do"
        )
        if values_of(table.columns[response]).is_number:
            note += f": `lmdiag analyse` with --response {quote(response)} reads all"
        table = table.having({}, note)
    elif not allowed:
        row, earlier = next(iter(earlier_row.items()))
        every = f"{len(earlier_row)} repeated: {table.places([*earlier_row])}"
        remedy = "remove them, or keep one of each by --allow-duplicates"
        problem = f"the row is identical to {table.places([earlier])} ({every})"
        raise table.error(row, f"{problem}: {remedy}")
    return table.of_rows_at([row for row in range(len(table)) if row not in earlier_row])


def _response_of(table: Table) -> str:
    """The column of numbers that differs between rows which are else identical; "" for none.

    It does so in a quarter of the groups of such rows, and is not named as a list or the like.
    """
    import numpy as np

    columns = {x: values_of(v) for x, v in table.columns.items() if x not in ROW_NAMES}
    for name, values in columns.items():
        has_numbers = 2 * sum(map(is_numeral, values.levels)) > len(values.levels)
        if _is_named_else(name) or not (has_numbers or is_outcome(name)):
            continue
        groups = combine_codes(*(x.codes + 1 for other, x in columns.items() if other != name))
        n_values = n_distinct_by(groups, values.codes)
        is_several = np.bincount(groups) > 1
        if is_several.any() and 4 * (n_values[is_several] > 1).sum() >= is_several.sum():
            return name
    return ""


def _repeated(table: Table) -> dict[int, int]:
    """Row -> the first row that is identical to it: 1 and True are two values."""
    import numpy as np

    names = [name for name in table.rows if name not in ROW_NAMES]
    plain = [x for x in names if not {list, tuple} & {*map(type, table.columns[x])}]
    equal = table.rows[plain]
    rows = np.flatnonzero(equal.duplicated(keep=False)) if plain else range(len(table))
    first: dict[str, int] = {}
    earlier_row = {}
    for row in map(int, rows):
        earlier = first.setdefault(repr([table.columns[name][row] for name in names]), row)
        if earlier != row:
            earlier_row[row] = earlier
    return earlier_row


# ---- layout --------------------------------------------------------------------------------------


def _long(table: Table, names: Sequence[str], text: str) -> Table:
    """A row for each of the wide columns in which a row has a text."""
    import numpy as np
    from pandas import isna

    others = table.columns.keys() - {*names}
    if not text:
        has_text = {"context", "sentence"} & others
        text = "target" if has_text else "context" if _are_contexts(table, names) else "sentence"
    if text in others:
        there = f"--wide makes a column {text}, which is there"
        raise BadInput(f"{table.name}: {there}: rename it in the file")
    condition = wide_condition(table.columns, names)
    cells = table.rows[[*names]].to_numpy(dtype=object)
    is_filled = (cells != "") & ~isna(cells)
    rows, columns = np.nonzero(is_filled)
    conditions = np.array([*names], dtype=object)[columns].tolist()
    # without the wide columns, of which each row would have all cells again
    long = table.having({}, without=names).of_rows_at(rows)
    row_names = long.labels("name")
    made: dict[str, list[Any]] = {text: cells[is_filled].tolist(), condition: conditions}
    ids = zip(long.columns.get("id", row_names), conditions, strict=True)
    cell_names = [f"{row}-{name}" for row, name in ids]
    if "id" in others:
        made["id"] = cell_names
    n_empty = is_filled.size - len(rows)
    n_lacking = int((~is_filled.any(axis=1)).sum())
    note = f"wide: {len(table):,} rows make {len(rows):,}, one for each {text}"
    note += f", {n_empty:,} empty cells make none" if n_empty else ""
    note += f"; {n_lacking:,} rows have no {text} there and are left out" if n_lacking else ""
    if "item" not in others:
        made["item"] = [*map(str, row_names)]
        note += "; item is the number of the row"
    if condition != "condition":
        note += f"; {condition} has the names of the columns, since there is a column condition"
    long = long.having(made, note)
    unit = long.rows.index.names[0]
    index = row_index(long.labels(unit), unit, below=cell_names, names=cell_names)
    return replace(long, rows=long.rows.set_axis(index))


def wide_condition(columns: Collection[str], wide: Collection[str]) -> str:
    """Returns the column that has the names of wide columns, beside a column `condition` another.

    >>> wide_condition(["item", "match"], ["match"]), wide_condition(["condition", "match"], [])
    ('condition', 'wide_condition')
    """
    is_taken = "condition" in columns and "condition" not in wide
    return "wide_condition" if is_taken else "condition"


def _are_contexts(table: Table, names: Sequence[str]) -> bool:
    """Whether there are targets, which most texts of wide columns do not have in them."""
    if "target" not in table.columns or "target" in names:
        return False
    rows = table.rows[["target", *names]].head(_SAMPLE).itertuples(index=False)
    inside = [str(word) in str(text).split() for word, *texts in rows for text in texts if text]
    return 2 * sum(inside) <= len(inside)


def _with_contrasts(table: Table, options: TableOptions) -> Table:
    """The table with `good` and `contrast`, where the user says which rows they are."""
    from pandas import DataFrame

    from lmdiag.stimuli.values.levels import joined_names

    if not options.good or not options.contrast:
        raise BadInput("--good COLUMN=VALUE and --contrast COLUMN are given together")
    good = _meets(table, options.good, "--good").tolist()
    named = _with_item(table)  # whose column of items may have another name in the table
    sources = {name: named if name == "item" else table for name in options.contrast}
    columns = {
        name: as_texts(x.rows[x.column_of(name, "--contrast")]) for name, x in sources.items()
    }
    contrasts = joined_names(DataFrame(columns), "-").tolist()
    names = ", ".join(options.contrast)
    note = f"contrasts: {len({*contrasts}):,} by {names}; good rows have {options.good}"
    return named.having({"good": good, "contrast": contrasts}, note)


def _with_parts(table: Table, split: str) -> Table:
    """The table with the conditions that are the parts of a column, in its place."""
    match = re.fullmatch(r"(.+?)=(.*):([^:]+)", split, re.DOTALL)
    if not match:
        raise BadInput(f"--split {split!r}: write COLUMN=SEPARATOR:NAME,NAME")
    column = table.column_of(match[1], "--split")
    names = [name.strip() for name in match[3].split(",")]
    if taken := [name for name in names if name in table.columns and name != column]:
        raise BadInput(f"{table.name}: --split {split}: there is a column {taken[0]}: rename one")
    levels = [level or "" for level in levels_of(table.columns[column])]
    distinct = [*dict.fromkeys(levels)]
    parts_by_level = dict(zip(distinct, parts_of(distinct, match[2], len(names)), strict=True))
    parts = [parts_by_level[level] for level in levels]
    rule = f"not {len(names)} ({', '.join(names)}): leave such rows out by --filter"
    table.refuse({
        row: f"--split {split}: the column {column}: {level!r} has {len(of_level)} parts, {rule}"
        for row, (level, of_level) in enumerate(zip(levels, parts, strict=True))
        if len(of_level) != len(names)
    })  # fmt: skip
    made = dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))
    return table.having(made, f"split: {column} into {', '.join(names)}", without=(column,))
