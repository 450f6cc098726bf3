"""The parts of the page that are HTML; here all texts of a user are escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from lmdiag.app import menus
from lmdiag.text import listing, shortened, visible

if TYPE_CHECKING:
    from lmdiag.api.table_check import CheckedColumn, TableCheck

INTRODUCTION = (
    "<header><h1>lmdiag</h1><p>Test language models on your sentences, and compare them with "
    "responses and reading times of people.</p></header>"
)
ABOUT_TABLES = (
    "A row per sentence, word or response, with columns for items and conditions: csv, Excel, JSON "
    "lines or Parquet, up to 20 MB."
)
ABOUT_MODELS = (
    "The demo models answer in seconds and know nothing: they show what a result looks like. "
    "Others are downloaded on first use."
)

_MAX_PROBLEMS = 6
"""Errors and warnings that are shown above the columns, and not at one of them."""

_SHOWN_ROWS = 3

_LONGEST_CELL = 60
_LONGEST_LEVELS = 120
_LONGEST_PROBLEM = 600
"""Characters of a value or name, of the levels of a condition, and of a message."""

_OPTION_NAMES = {"condition": "conditions", "region": "columns region"}
"""Use of a column -> the option of the command line for it, if it has another name."""

_ON_PAGE = {
    "the menu of regions": r"--region\b",
    "More options": r"--(unit|layers)\b",
}
"""Where something is chosen on the page -> pattern of the options for it in messages."""


def step(number: int, name: str, text: str = "") -> str:
    """Returns the heading of a step with its number, and `text` in a line below it."""
    line = f'<p class="about">{text}</p>' if text else ""
    return f'<h2><span class="number">{number}</span> {name}</h2>{line}'


def region_names(table_check: TableCheck) -> dict[str, str]:
    """Returns number of a region -> its name in the menu, for example "region 3: is".

    The text is that of the first row that has this region.
    """
    names = {}
    for number, text in table_check.regions.items():
        name = f"region {number}"
        names[number] = f"{name}: {_short(text)}" if text else name
    return names


def general_problems(table_check: TableCheck) -> list[str]:
    """Returns the error and the warnings that are not shown at a column, six at most."""
    lines_at_columns = {line for column in table_check.columns for line in column.problems}
    lines = []
    for line in (table_check.error, *table_check.warnings):
        if line and line not in lines_at_columns:
            lines.append(line)
    return lines[:_MAX_PROBLEMS]


def table(table_check: TableCheck) -> str:
    """Returns what is read of a table: its first rows, its first text, and its size and design."""
    reads = Markup("")
    if table_check.reads:
        label = "The model reads" if table_check.command != "analyse" else "First row"
        lines = Markup("").join(Markup("<p>{}</p>").format(row) for row in table_check.reads)
        reads = Markup('<div class="reads"><h3>{}</h3>{}</div>').format(label, lines)
    return _rows(table_check) + reads + _facts(table_check)


def _rows(table_check: TableCheck) -> Markup:
    """Returns the first three rows of the file as an HTML table; "" if there are none."""
    if not table_check.first_rows:
        return Markup("")
    names = [*table_check.first_rows[0]]
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_short(name)) for name in names)
    rows = Markup("")
    for row in table_check.first_rows[:_SHOWN_ROWS]:
        cells = Markup("").join(Markup("<td>{}</td>").format(_short(row[name])) for name in names)
        rows += Markup("<tr>{}</tr>").format(cells)
    # a keyboard can scroll only what it can focus, hence the tabindex
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="first rows"><table>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(head, rows)


def _facts(table_check: TableCheck) -> Markup:
    """Returns one line on a table, for example "8 rows · 2 items · design: number".

    Of a table that is not stimuli, it also says what its rows are, or what is missing. The line is
    empty if the table cannot be read.
    """
    if table_check.error:
        return Markup("")
    parts = [f"{table_check.n_rows:,} rows"]
    if table_check.n_items:
        parts.append(f"{table_check.n_items:,} items")
    if table_check.conditions:
        parts.append(f"design: {' × '.join(table_check.conditions)}")
    missing = table_check.lacks
    if missing and table_check.other:
        kind_of_rows, _, _ = table_check.other.partition(": for")  # the command follows
        parts.append(kind_of_rows)
    elif missing:
        parts.append(f"no {missing}: choose below how to read it, or say what each column is")
    return Markup('<p class="facts">{}</p>').format(" · ".join(parts))


def column(columns: Sequence[CheckedColumn]) -> str:
    """Returns as HTML the name and the first values of a column, or of several regions.

    Several regions are named by the first and the last, "region_1 to region_4", and have the values
    of the first.
    """
    first = columns[0]
    name = first.name if len(columns) == 1 else f"{first.name} to {columns[-1].name}"
    values = Markup("").join(
        Markup("<span>{}</span>").format(_short(value)) for value in first.values
    )
    return Markup('<p class="name">{}</p><p class="values">{}</p>').format(_short(name), values)


def column_note(columns: Sequence[CheckedColumn]) -> str:
    """Returns as HTML the problems of a column, then its levels, or why it has its use.

    For example, "<p>pl 24 rows · sg 24 rows</p>" for a condition without problems.

    Args:
        columns: one column, or neighbouring regions, of which the problems of all are shown.
    """
    first = columns[0]
    note = Markup("")
    for column in columns:
        for line in column.problems:
            note += problem_html(line)
    # only regions share a note, and regions have no levels: the first column stands for all
    if first.levels:
        levels = " · ".join(f"{level} {n:,} rows" for level, n in first.levels.items())
        note += Markup("<p>{}</p>").format(shortened(levels, _LONGEST_LEVELS))
    elif first.why and first.why != first.use:
        note += Markup("<p>{}</p>").format(first.why)
    return note


def problem_html(text: str) -> Markup:
    """Returns an error or a warning as HTML, with a hint where its options are on the page.

    The text is escaped.
    """
    line = Markup('<p class="problem" role="alert">{}<span>{}</span></p>')
    return line.format(visible(shortened(text, _LONGEST_PROBLEM)), _hint(text))


def _hint(text: str) -> str:
    """Returns where the options that a message names are chosen on the page; "" if it names none.

    For example ' On this page, use "item" in the menus of the columns.' for "give --item NAME".
    """
    places = [place for place, pattern in _ON_PAGE.items() if re.search(pattern, text)]
    use_names = []
    for use, name in menus.USES.items():
        if re.search(_option_pattern(use), text):
            use_names.append(f'"{name}"')
    if use_names:
        places.insert(0, f"{listing(use_names)} in the menus of the columns")
    elif "--columns" in text:
        places.insert(0, "the menus of the columns")
    return f" On this page, use {listing(places)}." if places else ""


def _option_pattern(use: str) -> str:
    """Returns a pattern of the options that give a column a use: --item, --columns item=NAME."""
    return rf"--({_OPTION_NAMES.get(use, use)}\b|columns (\S+=\S+ )*{use}=)"


def progress(text: str, share: float | None) -> str:
    """Returns a progress bar below its text; a run that was stopped has the text alone.

    Args:
        text: what is being done, or that the run was stopped.
        share: how much is done, from 0 to 1; with None, the bar moves without showing a share.
    """
    value = "" if share is None else f' value="{share:.3f}"'
    bar = f'<progress max="1"{value} aria-label="progress"></progress>'
    if text.startswith("Stopped"):
        bar = ""
    return Markup('<p role="status">{}</p>{}').format(visible(text), Markup(bar))


def framed(page: str) -> str:
    """Returns the HTML of a page in a frame, whose scripts cannot reach the page around it."""
    attributes = 'sandbox="allow-scripts allow-downloads" title="result"'
    return f'<iframe {attributes} srcdoc="{escape(page)}"></iframe>'


def _short(text: str) -> str:
    """Returns a text of at most 60 characters, with hidden characters spelled out."""
    return visible(shortened(text, _LONGEST_CELL))
