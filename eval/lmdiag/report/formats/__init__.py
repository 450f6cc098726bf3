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
        render: returns the content of a file of a result; charts have this width in centimetres.
        printed: returns what is printed; None where it is the content of a file.
    """

    suffix: str
    has: Literal["frame", "document", "tables", "page", "charts"]
    render: Callable[[Output, float], Content]
    printed: Callable[[Output, float], str] | None = None


def _function(module: str, name: str = "render", **options: str) -> Callable[..., Any]:
    """Returns a function that imports a module of this folder, and calls its function `name`.

    It takes an output and a width; `options` are further arguments.
    """

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
    """Returns what is printed of a result in a format that is text; `name` is one of `Printed`."""
    format = FORMATS[name]
    render = format.printed or format.render
    return str(render(output, width))


def write_files(output: Output, files: Sequence[Path], width: float) -> list[Path]:
    """Writes a result into files, and returns their paths; earlier files are replaced.

    All are rendered before the first is written. A folder gets every chart as svg, with its caption
    in a text file beside it; a format that has a file per chart writes several.

    Args:
        files: names with the endings of formats, or folders.
        width: of charts in centimetres.
    """
    contents = [(file, _contents(output, file, width)) for file in files]
    paths = []
    for file, content_of_path in contents:
        file.parent.mkdir(parents=True, exist_ok=True)
        clear_drafts(real_path(file).parent)  # of a command that was interrupted
        for path, content in content_of_path.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_user_file(path, content)
            paths.append(path)
    return paths


def _contents(output: Output, file: Path, width: float) -> dict[Path, bytes]:
    """Path -> content of the files that a name stands for.

    For example, "out.csv" stands for one file, "out.svg" of two charts for "out-accuracy.svg" and
    "out-cloze.svg", and the folder "out" for the image and the caption of each chart.
    """
    format_name = format_of(file)
    if not format_name:
        charts = import_module(f"{__name__}.images").folder(output, width)
        return {file / name: content for name, content in charts.items()}
    if format_name == "html":
        output = _with_relative_links(output, real_path(file).parent)
    content = FORMATS[format_name].render(output, width)
    if isinstance(content, str):
        return {file: content.encode()}
    if isinstance(content, bytes):
        return {file: content}
    return {file.with_name(f"{file.stem}{end}"): image for end, image in content.items()}


def _with_relative_links(output: Output, folder: Path) -> Output:
    """A result in whose tables links to other pages are relative to `folder`, that of its page."""
    sections = []
    for section in output.sections:
        tables = [_table_with_relative_links(table, folder) for table in section.tables]
        sections.append(section._replace(tables=tables))
    return replace(output, sections=sections)


def _table_with_relative_links(table: Grid, folder: Path) -> Grid:
    """A table in whose cells links to other pages are relative to `folder`."""

    def with_relative_link(cell: CellText) -> CellText:
        if not cell.link:
            return cell
        path = os.path.relpath(real_path(Path(cell.link)), folder)
        return cell._replace(link=Path(path).as_posix())

    rows = [row._replace(cells=tuple(map(with_relative_link, row.cells))) for row in table.rows]
    return table._replace(rows=tuple(rows))
