"""The formats of results: `FORMATS` has one line for each, and each has a module with its function.

A function takes an `Output` and a width in centimetres and returns the content of a file. To add a
format, add a module and a line; see `lmdiag.report.output`. The help of commands and messages list
the formats from here, so a module is imported when its format is first used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from lmdiag.files.reading import real_path
from lmdiag.files.writing import clear_drafts, write_user_file
from lmdiag.text import suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.report.grid import CellText, Grid
    from lmdiag.report.output import Output

Content: TypeAlias = str | bytes | Mapping[str, bytes]
"""The content of a file; of several, by what is put in place of the ending of the file's name."""


class Format(NamedTuple):
    """A format of results.

    Attributes:
        suffix: ending of its files.
        has: what of a result it shows, which says how much of a run is read for it.
        render: returns the content of a file.
        printed: returns what is printed, where that is not the content of a file.
    """

    suffix: str
    has: Literal["frame", "document", "tables", "page", "charts"]
    render: Callable[[Output, float], Content]
    printed: Callable[[Output, float], str] | None = None


def _function(module: str, name: str = "render", **options: str) -> Callable[..., Any]:
    """Returns a function of a module in this folder, which is imported when it is called."""

    def render(output: Output, width: float) -> Any:
        function = getattr(import_module(f"{__name__}.{module}"), name)
        return function(output, width, **options)

    return render


FORMATS = {
    "text": Format(".txt", "tables", _function("terminal")),
    "html": Format(".html", "page", _function("html")),
    "markdown": Format(".md", "tables", _function("markdown")),
    "latex": Format(".tex", "tables", _function("latex")),
    "word": Format(".docx", "page", _function("word")),
    "csv": Format(
        ".csv",
        "frame",
        _function("records", "render_table", suffix=".csv"),
        _function("records", "render_csv"),
    ),
    "tsv": Format(".tsv", "frame", _function("records", "render_table", suffix=".tsv")),
    "parquet": Format(".parquet", "frame", _function("records", "render_table", suffix=".parquet")),
    "json": Format(".json", "document", _function("records", "render_json")),
    "svg": Format(".svg", "charts", _function("images", kind="svg")),
    "pdf": Format(".pdf", "charts", _function("images", kind="pdf")),
    "png": Format(".png", "charts", _function("images", kind="png")),
}
"""Name of a format -> how results are written in it."""

FORMAT_OF_SUFFIX = {format.suffix: name for name, format in FORMATS.items()}
"""Ending of a file -> name of its format."""

ENDINGS = ", ".join(FORMAT_OF_SUFFIX)
"""The endings, as the help of commands and messages list them."""

Printed = Literal["text", "html", "markdown", "latex", "csv", "json"]
"""The formats that are text, which commands print."""


def format_of(file: Path) -> str:
    """Returns the name of the format of a file; "" for a folder, which gets all charts.

    Raises:
        BadInput: no format has such an ending.
    """
    if "\0" in str(file):
        raise BadInput(f"{str(file)!r} is not a file name: it has a NUL character")
    if not file.suffix or file.is_dir():
        return ""
    if file.suffix.lower() not in FORMAT_OF_SUFFIX:
        hint = suggest(file.suffix, FORMAT_OF_SUFFIX)
        problem = f"{file}: the ending is the format"
        raise BadInput(f"{problem}: choose from {ENDINGS}, or name a folder{hint}")
    return FORMAT_OF_SUFFIX[file.suffix.lower()]


def printed(output: Output, name: str, width: float) -> str:
    """Returns a result in a format that is text."""
    format = FORMATS[name]
    return str((format.printed or format.render)(output, width))


def write_files(output: Output, files: Sequence[Path], width: float) -> list[Path]:
    """Writes a result into files, and returns their paths; earlier files are replaced.

    A folder gets every chart as svg, with its caption in a text file beside it.
    """
    contents = [(file, _content(output, file, width)) for file in files]
    written = []
    for file, content in contents:
        file.parent.mkdir(parents=True, exist_ok=True)
        clear_drafts(real_path(file).parent)
        for path, part in content.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_user_file(path, part)
            written.append(path)
    return written


def _content(output: Output, file: Path, width: float) -> dict[Path, bytes]:
    """The files that are written for a name."""
    name = format_of(file)
    if not name:
        charts = import_module(f"{__name__}.images").folder(output, width)
        return {file / part: content for part, content in charts.items()}
    if name == "html":
        output = _with_links_from(output, real_path(file).parent)
    content = FORMATS[name].render(output, width)
    if isinstance(content, str):
        return {file: content.encode()}
    if isinstance(content, bytes):
        return {file: content}
    return {file.with_name(f"{file.stem}{end}"): part for end, part in content.items()}


def _with_links_from(output: Output, folder: Path) -> Output:
    """The output with links of tables that are relative to the folder of the page."""
    sections = [
        section._replace(tables=[_with_links_of_table(table, folder) for table in section.tables])
        for section in output.sections
    ]
    return replace(output, sections=sections)


def _with_links_of_table(table: Grid, folder: Path) -> Grid:
    """Returns the table with links of cells that are relative to the folder of the page."""

    def linked(cell: CellText) -> CellText:
        path = os.path.relpath(real_path(Path(cell.link)), folder)
        return cell._replace(link=Path(path).as_posix()) if cell.link else cell

    rows = [row._replace(cells=tuple(map(linked, row.cells))) for row in table.rows]
    return table._replace(rows=tuple(rows))
