"""How a user's own table is read, in named steps; `lmdiag check` prints them.

1. columns: which column is what (`columns`);
2. filter: which rows are read (`layout.keep_rows`), each once (`mistakes`);
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
from lmdiag.stimuli.layout import in_long_form, keep_rows
from lmdiag.stimuli.mistakes import without_repeated_rows
from lmdiag.table_files import RawTable, as_frame, plain_frame, read_memory, read_table
from lmdiag.types import AS_IT_IS, BadInput, TableOptions

if TYPE_CHECKING:
    from pandas import DataFrame


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
    table = name_columns(table, options.columns, ITEM_COLUMNS, wide=options.wide)
    if problems := near_names(table, options.wide):
        raise BadInput(f"{table.name}: {'; '.join(problems)}")
    table = keep_rows(table, options.filter)
    table = without_repeated_rows(table, allowed=allow_duplicates)
    return in_long_form(table, options)


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
        reads: options for the parts of sentences that the caller takes.

    Raises:
        BadInput: the file cannot be read, or an option does not fit it.
    """
    for option in {"gap", "separator", "critical"} - {*reads}:
        if getattr(options, option):
            raise BadInput(f"--{option} is for sentences: leave it out, nothing is read by it here")
    is_file = isinstance(source, str | Path)
    table = read_table(user_path(str(source)), raw=raw) if is_file else read_memory(source)
    table = name_columns(table, options.columns, known, copies=copies, wide=options.wide)
    return in_long_form(keep_rows(table, options.filter), options, text)


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
