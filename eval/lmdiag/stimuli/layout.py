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


def in_long_form(table: RawTable, options: TableOptions, text: str = "") -> RawTable:
    """Returns a table with a row per text: wide and split columns divided, contrasts marked.

    Args:
        text: column of the texts of wide columns; "" for `target` beside contexts or sentences,
            `context` beside targets alone, and else `sentence`.

    Raises:
        BadInput: an option names no column, or does not fit its values.
    """
    table = _long(table, options.wide, text)
    table = _with_contrasts(table, options)
    for split in options.split:
        table = _with_parts(table, split)
    return table


def check_columns_of(table: RawTable, options: TableOptions, problems: Problems) -> None:
    """Adds the columns of the options below that are not there to the problems."""
    named = [("--wide", name) for name in options.wide]
    named += [("--contrast", name) for name in options.contrast]
    named += [("--split", split.partition("=")[0]) for split in options.split]
    named += [("--good", options.good.partition("=")[0]), ("--critical", options.critical)]
    made = {"condition", "item"} if options.wide else {""}
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
            table = _kept(table, text)
    return table


def _kept(table: RawTable, text: str) -> RawTable:
    """The rows that meet a condition."""
    match = FILTER.fullmatch(text)
    if not match or match[2] not in ("=", "!="):
        raise BadInput(f"--filter {text!r}: write COLUMN=VALUE or COLUMN!=VALUE")
    column = table.column_of(match[1], "--filter")
    levels = [level or "" for level in levels_of(table.columns[column])]
    wanted = filter_values(match[3], levels)
    for value in wanted:
        if value not in levels:
            there = ", ".join(dict.fromkeys(map(shortened, levels)))
            problem = f"no row has {value!r} in {column}, which has {there:.600}"
            raise BadInput(f"{table.name}: --filter {text}: {problem}")
    kept = [row for row, x in enumerate(levels) if (x in wanted) == (match[2] == "=")]
    if not kept:
        raise BadInput(f"{table.name}: --filter {text} leaves no row")
    n_out = len(table) - len(kept)
    note = f"filter: {text} keeps {len(kept):,} of {len(table):,} rows, {n_out:,} are left out"
    return _with_names(table).of(kept).noting(note)


def filter_values(text: str, levels: Sequence[str]) -> list[str]:
    """Returns the values that a filter names: one that has commas, or several between them."""
    return [text] if text in levels else [part.strip() for part in text.split(",")]


def _with_names(table: RawTable) -> RawTable:
    """The table with the numbers of its rows, which ids are made of."""
    return table if table.row_names else replace(table, row_names=range(1, len(table) + 1))


def _with_contrasts(table: RawTable, options: TableOptions) -> RawTable:
    """The table with `good` and `contrast`, where the user says which rows they are."""
    if not options.good and not options.contrast:
        return table
    match = FILTER.fullmatch(options.good)
    if not match or match[2] != "=" or not options.contrast:
        raise BadInput("--good COLUMN=VALUE and --contrast COLUMN are given together")
    column = table.column_of(match[1], "--good")
    levels = [level or "" for level in levels_of(table.columns[column])]
    wanted = filter_values(match[3], levels)
    if missing := [value for value in wanted if value not in levels]:
        raise BadInput(
            f"{table.name}: --good {options.good}: no row has {missing[0]!r} in {column}"
        )
    names = [table.column_of(name, "--contrast") for name in options.contrast]
    keys = zip(*(table.columns[name] for name in names), strict=True)
    contrasts = ["-".join(map(str, key)) for key in keys]
    columns = {**table.columns, "good": [x in wanted for x in levels], "contrast": contrasts}
    n = len({*contrasts})
    note = f"contrasts: {n:,} by {', '.join(names)}; good rows have {options.good}"
    return replace(table, columns=columns).noting(note)


def _long(table: RawTable, wide: Sequence[str], text: str) -> RawTable:
    """A row for each of the wide columns in which a row has a text."""
    if not wide:
        return table
    names = [table.column_of(name, "--wide") for name in wide]
    has_texts = "context" in table.columns or ("sentence" in table.columns)
    if not text and not has_texts and "target" in table.columns.keys() - {*names}:
        text = "context"
    text = text or ("target" if has_texts and "sentence" not in names else "sentence")
    for made in (text, "condition"):
        if made in table.columns and made not in names:
            there = f"--wide makes a column {made}, which is there"
            raise BadInput(f"{table.name}: {there}: rename it in the file")
    table = _with_names(table)
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
    ids = [
        f"{x}-{name}" for x, (_, name) in zip(columns.get("id", long.row_names), cells, strict=True)
    ]
    if "id" in columns:
        columns["id"] = ids
    made = ""
    if "item" not in columns:
        columns["item"] = [*map(str, long.row_names)]
        made = "; item is the number of the row"
    n_empty = len(table) * len(names) - len(cells)
    empty = f", {n_empty:,} empty cells make none" if n_empty else ""
    note = f"wide: {len(table):,} rows make {len(cells):,}, one for each {text}{empty}{made}"
    return replace(long, columns=columns, row_names=ids).noting(note)


def _with_parts(table: RawTable, split: str) -> RawTable:
    """The table with the conditions that are the parts of a column, in its place."""
    match = re.fullmatch(r"(.+?)=(.*):([^:]+)", split, re.DOTALL)
    if not match:
        raise BadInput(f"--split {split!r}: write COLUMN=SEPARATOR:NAME,NAME")
    column = table.column_of(match[1], "--split")
    separator = match[2]
    names = [name.strip() for name in match[3].split(",")]
    if taken := [name for name in names if name in table.columns]:
        raise BadInput(f"{table.name}: --split {split}: there is a column {taken[0]}: rename one")
    parts = []
    for row, level in enumerate(levels_of(table.columns[column])):
        of_row = level_parts(level or "", separator)
        if len(of_row) != len(names):
            what = f"{level!r} has {len(of_row)} parts, not {len(names)} ({', '.join(names)})"
            remedy = "leave such rows out by --filter"
            raise table.error(row, f"--split {split}: the column {column}: {what}: {remedy}")
        parts.append(of_row)
    made = dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))
    note = f"split: {column} into {', '.join(names)}"
    columns = {name: x for name, x in table.columns.items() if name != column}
    return replace(table, columns=columns | made).noting(note)


def level_parts(level: str, separator: str) -> list[str]:
    """Returns the parts of a level; without a separator, its characters."""
    return [part.strip() for part in level.split(separator)] if separator else [*level]
