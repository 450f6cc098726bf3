"""How a user's own table is read, in named steps; `lmdiag check` prints them.

1. columns: which column is what (`columns`);
2. filter: which rows are read and each once (`layout`);
3. layout: a row per text, contrasts and conditions in columns of their own (`layout`);
4. gap and regions: the parts of a sentence (`regions`, called by `forms.in_form`);
5. conditions: the columns that are factors of a design (`design`).

Each step takes a table and returns one, with a note on what it did. Commands on items take all
steps; those on words, responses and tables of items take the first three.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.files import user_path
from lmdiag.stimuli.columns import ITEM_COLUMNS, name_columns, near_names
from lmdiag.stimuli.extended import TEXT
from lmdiag.stimuli.layout import check_columns_of, in_long_form, keep_rows, without_repeated_rows
from lmdiag.table_files import Problems, RawTable, as_frame, plain_frame, read_memory, read_table
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame

_OF_ITEMS = dict.fromkeys(("gap", "separator", "critical"), "sentences")
_OF_ITEMS |= dict.fromkeys(("good", "contrast"), "pairs of items")
"""Options that some commands have no use for -> what they are for."""


def read_items(
    table: RawTable, task: str, options: TableOptions, *, allow_duplicates: bool
) -> RawTable:
    """Returns a user's own rows after the first three steps; other data as they are.

    Raises:
        BadInput: a column with nearly the name of a known one; an option that does not fit;
            identical rows, unless allowed; options for data that are not the user's own.
    """
    if table.form or task in diagnostics.built_in() or TEXT in table.columns:
        if options != AS_IT_IS:
            option = next(iter(options.stored()))
            raise BadInput(f"--{option} is for tables of your own, and {table.name} is none")
        return table
    return _first_steps(table, options, ITEM_COLUMNS, allow_duplicates=allow_duplicates)


def _first_steps(
    table: RawTable,
    options: TableOptions,
    known: Collection[str],
    *,
    allow_duplicates: bool | None = None,
    copies: bool = False,
    text: str = "",
) -> RawTable:
    """The rows after the first three steps, whose problems are in one message.

    What columns are called is judged before their values; identical rows and nearly known names
    where it is said whether rows may be identical.
    """
    problems = Problems()
    table = name_columns(table, options, known, problems, copies=copies)
    if allow_duplicates is not None:
        problems += [f"{table.name}: {problem}" for problem in near_names(table, options.wide)]
    table = keep_rows(table, options.filter, problems)
    check_columns_of(table, options, problems)
    problems.refuse()
    if allow_duplicates is not None:
        with problems:
            table = without_repeated_rows(table, allowed=allow_duplicates)
    with problems:
        table = in_long_form(table, options, text)
    problems.refuse()
    return table


def read_rows(
    source: str | Path | DataFrame, options: TableOptions, known: Collection[str], *,
    copies: bool = False, text: str = "", raw: bool = False, reads: Collection[str] = (),
) -> RawTable:  # fmt: skip
    """Returns the rows of a file or a DataFrame after the first three steps.

    Args:
        source: a table, see `lmdiag.table_files`.
        options: of the user.
        known: names of columns that a difference of spelling is read as.
        copies: see `name_columns`.
        text: column of the values of wide columns.
        raw: see `read_table`.
        reads: options for pairs and for the parts of sentences that the caller takes.

    Raises:
        BadInput: the file cannot be read, or an option does not fit it.
    """
    for option in options.stored():
        if option in _OF_ITEMS and option not in reads:
            what = _OF_ITEMS[option]
            raise BadInput(f"--{option} is for {what}: leave it out, nothing is read by it here")
    is_file = isinstance(source, str | Path)
    table = read_table(user_path(str(source)), raw=raw) if is_file else read_memory(source)
    return _first_steps(table, options, known, copies=copies, text=text)


def read_frame_rows(
    source: str | Path | DataFrame, options: TableOptions, known: Collection[str],
    *, raw: bool = False, **how: Any,
) -> tuple[DataFrame, tuple[str, ...]]:  # fmt: skip
    """Returns what `read_rows` returns as a DataFrame, and the notes; see `as_frame`.

    A DataFrame in which nothing is read in another way is returned as it is.
    """
    if not isinstance(source, str | Path):
        source = plain_frame(source)
        if options == AS_IT_IS and not known:
            return source, ()
    table = read_rows(source, options, known, raw=raw, **how)
    if not table.notes and not isinstance(source, str | Path):
        return source, ()
    return as_frame(table, raw=raw), table.notes
