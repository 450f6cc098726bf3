"""Reads rows: tables, test suites in JSON, text files of extended sets, and objects in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmdiag.files import MAX_TABLE, read_json, read_text
from lmdiag.stimuli.extended import TEXT
from lmdiag.stimuli.suites import suite_rows
from lmdiag.table_files import MEMORY, TABLE_SUFFIXES, RawTable, read_memory, read_table
from lmdiag.types import BadInput

READERS: dict[str, Callable[[Path], RawTable]] = {
    **dict.fromkeys(TABLE_SUFFIXES, read_table),
    ".json": lambda path: suite_rows(read_json(path), str(path), path.stem),
    # the lines of a text file as one column, as `datasets` reads them
    ".txt": lambda path: RawTable(
        str(path),
        {TEXT: read_text(path, MAX_TABLE).removesuffix("\n").split("\n")},
        lambda row: f"{path}:{row + 1}",
    ),
}
"""File suffix -> reader."""


def read_file(path: Path) -> RawTable:
    """Reads a file of rows or a test suite; an error names the line if there is one."""
    if path.suffix.lower() not in READERS:
        remedy = f"give a directory or a file ending in {', '.join(READERS)}"
        raise BadInput(f"{path} cannot be read as data: {remedy}")
    return READERS[path.suffix.lower()](path)


def rows_in_memory(data: Any, task: str) -> RawTable:
    """Returns the rows of an object in memory; a suite without a name gets that of the task."""
    is_suite = isinstance(data, Mapping) and {"items", "predictions"} <= data.keys()
    return suite_rows(data, MEMORY, task) if is_suite else read_memory(data)
