"""Rows of a table: which of them are read, and one row for each text of a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lmdiag.diagnostics.base import levels_of
from lmdiag.table_files import FILTER, Problems, RawTable
from lmdiag.text import shortened
from lmdiag.types import BadInput, TableOptions

_ROW_NAMES = ("", "__index_level_0__")
"""Columns of row names, which R and pandas add."""


def check_columns_of(table: RawTable, options: TableOptions, problems: Problems) -> None:
    """Adds the columns of the options of later steps that are not there to the problems."""
    named = [("--wide", name) for name in options.wide]
    named += [("--contrast", name) for name in options.contrast]
    named += [("--split", split.partition("=")[0]) for split in options.split]
    named += [("--good", options.good.partition("=")[0]), ("--critical", options.critical)]
    made = {"condition", "item"} if options.wide else set()
    for option, name in named:
        with problems:
            if name and name not in made:
                table.column_of(name, option)


def keep_rows(table: RawTable, filters: Sequence[str], problems: Problems) -> RawTable:
    """Returns the rows that meet all conditions, COLUMN=VALUE[,VALUE] or COLUMN!=VALUE.

    Rows keep the ids that they have without the filter. A value that no row has is a problem.
    """
    for text in filters:
        with problems:
            kept = [row for row, is_kept in enumerate(_meets(table, text, "--filter")) if is_kept]
            if not kept:
                raise BadInput(f"{table.name}: --filter {text} leaves no row")
            n_out = len(table) - len(kept)
            counts = f"keeps {len(kept):,} of {len(table):,} rows, {n_out:,} are left out"
            table = table.numbered().of(kept).noting(f"filter: {text} {counts}")
    return table


def filter_values(text: str, levels: Sequence[str]) -> list[str]:
    """Returns the values that a filter names: one that has commas, or several between them."""
    return [text] if text in levels else [part.strip() for part in text.split(",")]


def _meets(table: RawTable, text: str, option: str) -> list[bool]:
    """Whether each row meets a condition."""
    match = FILTER.fullmatch(text)
    if not match or match[2] not in ("=", "!="):
        raise BadInput(f"{option} {text!r}: write COLUMN=VALUE or COLUMN!=VALUE")
    column = table.column_of(match[1], option)
    levels = [level or "" for level in levels_of(table.columns[column])]
    wanted = filter_values(match[3], levels)
    if missing := [value for value in wanted if value not in levels]:
        there = ", ".join(dict.fromkeys(map(shortened, levels)))
        problem = f"no row has {missing[0]!r} in {column}, which has {there:.600}"
        raise BadInput(f"{table.name}: {option} {text}: {problem}")
    return [(level in wanted) == (match[2] == "=") for level in levels]


def without_repeated_rows(table: RawTable, *, allowed: bool) -> RawTable:
    """Returns the rows, each once; `BadInput` for identical rows if they are not allowed."""
    columns = [values for name, values in table.columns.items() if name not in _ROW_NAMES]
    first: dict[int, int] = {}
    same = [
        first.setdefault(hash(repr(x)), row) for row, x in enumerate(zip(*columns, strict=True))
    ]
    repeated = [row for row, earlier in enumerate(same) if earlier != row]
    if repeated and not allowed:
        earlier = table.lines([same[repeated[0]]])
        every = f"{len(repeated)} repeated: {table.lines(repeated)}"
        remedy = "remove them, or keep one of each by --allow-duplicates"
        raise table.error(repeated[0], f"the row is identical to {earlier} ({every}): {remedy}")
    return table.of(sorted(first.values())) if repeated else table


def in_long_form(table: RawTable, options: TableOptions, text: str = "") -> RawTable:
    """Returns a table with a row per text: wide and split columns divided, contrasts marked.

    Args:
        text: column of the texts of wide columns; "" for `target` beside contexts or sentences,
            `context` beside targets alone, and else `sentence`.

    Raises:
        BadInput: an option does not fit the columns or their values.
    """
    if options.wide:
        table = _long(table, [table.column_of(name, "--wide") for name in options.wide], text)
    if options.good or options.contrast:
        table = _with_contrasts(table, options)
    for split in options.split:
        table = _with_parts(table, split)
    return table


def _long(table: RawTable, names: Sequence[str], text: str) -> RawTable:
    """A row for each of the wide columns in which a row has a text."""
    others = table.columns.keys() - {*names}
    if not text and "target" in others and not {"context", "sentence"} & table.columns.keys():
        text = "context"
    text = text or ("target" if {"context", "sentence"} & others else "sentence")
    for made in (text, "condition"):
        if made in table.columns and made not in names:
            there = f"--wide makes a column {made}, which is there"
            raise BadInput(f"{table.name}: {there}: rename it in the file")
    table = table.numbered()
    cells = [
        (row, name)
        for row in range(len(table))
        for name in names
        if table.columns[name][row] not in (None, "")
    ]
    long = table.of([row for row, _ in cells])
    columns: dict[str, Any] = {x: v for x, v in long.columns.items() if x not in names}
    columns[text] = [table.columns[name][row] for row, name in cells]
    columns["condition"] = [name for _, name in cells]
    ids = zip(columns.get("id", long.row_names), columns["condition"], strict=True)
    row_names = [f"{row}-{name}" for row, name in ids]
    if "id" in columns:
        columns["id"] = row_names
    n_empty = len(table) * len(names) - len(cells)
    note = f"wide: {len(table):,} rows make {len(cells):,}, one for each {text}"
    note += f", {n_empty:,} empty cells make none" if n_empty else ""
    if "item" not in columns:
        columns["item"] = [*map(str, long.row_names)]
        note += "; item is the number of the row"
    return replace(long, row_names=row_names).having(columns, note)


def _with_contrasts(table: RawTable, options: TableOptions) -> RawTable:
    """The table with `good` and `contrast`, where the user says which rows they are."""
    if not options.good or not options.contrast:
        raise BadInput("--good COLUMN=VALUE and --contrast COLUMN are given together")
    good = _meets(table, options.good, "--good")
    names = [table.column_of(name, "--contrast") for name in options.contrast]
    keys = zip(*(table.columns[name] for name in names), strict=True)
    contrasts = ["-".join(map(str, key)) for key in keys]
    by = f"{len({*contrasts}):,} by {', '.join(names)}"
    note = f"contrasts: {by}; good rows have {options.good}"
    return table.having({**table.columns, "good": good, "contrast": contrasts}, note)


def _with_parts(table: RawTable, split: str) -> RawTable:
    """The table with the conditions that are the parts of a column, in its place."""
    match = re.fullmatch(r"(.+?)=(.*):([^:]+)", split, re.DOTALL)
    if not match:
        raise BadInput(f"--split {split!r}: write COLUMN=SEPARATOR:NAME,NAME")
    column = table.column_of(match[1], "--split")
    names = [name.strip() for name in match[3].split(",")]
    if taken := [name for name in names if name in table.columns]:
        raise BadInput(f"{table.name}: --split {split}: there is a column {taken[0]}: rename one")
    levels = levels_of(table.columns[column])
    parts = [level_parts(level or "", match[2]) for level in levels]
    sizes = {row: len(of_row) for row, of_row in enumerate(parts) if len(of_row) != len(names)}
    rule = f"not {len(names)} ({', '.join(names)}): leave such rows out by --filter"
    has = {row: f"{levels[row] or ''!r} has {n} parts, {rule}" for row, n in sizes.items()}
    of_column = f"--split {split}: the column {column}"
    table.refuse({row: f"{of_column}: {problem}" for row, problem in has.items()})
    made = dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))
    columns = {name: x for name, x in table.columns.items() if name != column}
    return table.having(columns | made, f"split: {column} into {', '.join(names)}")


def level_parts(level: str, separator: str) -> list[str]:
    """Returns the parts of a level; without a separator, its characters."""
    return [part.strip() for part in level.split(separator)] if separator else [*level]
