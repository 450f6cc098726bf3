"""The parts of the page that are text: everything of a user is escaped here."""

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

_MOST_PROBLEMS = 6

_OPTIONS = {"condition": "conditions", "region": "columns region"}
"""Use of a column -> the option for it, where that has another name."""

_ON_PAGE = {
    "the menu of regions": r"--region\b",
    "More options": r"--(unit|layers)\b",
}
"""Where something is chosen on the page -> the options that messages name for it."""


def step(number: int, name: str, text: str = "") -> str:
    """Returns the heading of a step, with a line below it."""
    line = f'<p class="about">{text}</p>' if text else ""
    return f'<h2><span class="number">{number}</span> {name}</h2>{line}'


def region_names(found: TableCheck) -> dict[str, str]:
    """Returns the numbers of regions, with their texts in the first row that has them."""
    return {
        number: f"region {number}: {_short(text)}" if text else f"region {number}"
        for number, text in found.regions.items()
    }


def general_problems(found: TableCheck) -> list[str]:
    """Returns the error and warnings that stand at no column."""
    of_columns = {line for column in found.columns for line in column.problems}
    lines = [line for line in (found.error, *found.warnings) if line and line not in of_columns]
    return lines[:_MOST_PROBLEMS]


def table(found: TableCheck) -> str:
    """Returns what is read of a table: its first rows, and its first text."""
    parts: list[str] = [_rows(found)]
    if found.reads:
        label = "The model reads" if found.command != "analyse" else "First row"
        lines = Markup("").join(Markup("<p>{}</p>").format(row) for row in found.reads)
        parts.append(Markup('<div class="reads"><h3>{}</h3>{}</div>').format(label, lines))
    parts.append(_facts(found))
    return Markup("").join(map(Markup, parts))


def _rows(found: TableCheck) -> Markup:
    """The first rows of a table."""
    if not found.first_rows:
        return Markup("")
    names = [*found.first_rows[0]]
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_short(name)) for name in names)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_short(row[name])) for name in names)
        )
        for row in found.first_rows[:3]
    )
    start = '<div class="scroll" tabindex="0" role="region" aria-label="first rows"><table>'
    return Markup(f"{start}<thead><tr>{{}}</tr></thead><tbody>{{}}</tbody></table></div>").format(
        head, rows
    )


def _facts(found: TableCheck) -> Markup:
    """One line on what a table has."""
    if found.error:
        return Markup("")
    parts = [f"{found.n_rows:,} rows"]
    parts += [f"{found.n_items:,} items"] if found.n_items else []
    parts += [f"design: {' × '.join(found.conditions)}"] if found.conditions else []
    parts += [found.other.partition(": for")[0]] if found.other and found.lacks else []
    if found.lacks and not found.other:
        parts.append(f"no {found.lacks}: choose below how to read it, or say what each column is")
    return Markup('<p class="facts">{}</p>').format(" · ".join(parts))


def column(columns: Sequence[CheckedColumn]) -> str:
    """Returns the name and the first values of a column, or of several regions."""
    first = columns[0]
    name = first.name if len(columns) == 1 else f"{first.name} to {columns[-1].name}"
    values = Markup("").join(Markup("<span>{}</span>").format(_short(x)) for x in first.values)
    return Markup('<p class="name">{}</p><p class="values">{}</p>').format(_short(name), values)


def column_note(columns: Sequence[CheckedColumn]) -> str:
    """Returns why a column is used so, its levels, and the problems that name it."""
    first = columns[0]
    parts: list[str] = [problem(line) for one in columns for line in one.problems]
    if first.levels:
        levels = " · ".join(f"{level} {n:,} rows" for level, n in first.levels.items())
        parts.append(Markup("<p>{}</p>").format(shortened(levels, 120)))
    elif first.why and first.why != first.use:
        parts.append(Markup("<p>{}</p>").format(first.why))
    return Markup("").join(map(Markup, parts))


def problem(text: str) -> str:
    """Returns a message on something that is wrong."""
    line = Markup('<p class="problem" role="alert">{}<span>{}</span></p>')
    return line.format(visible(shortened(text, 600)), _hint(text))


def _hint(text: str) -> str:
    """Says where the options that a message names are chosen on the page; "" without one."""
    places = [place for place, option in _ON_PAGE.items() if re.search(option, text)]
    uses = [f'"{menus.USES[use]}"' for use in menus.USES if re.search(_option_of(use), text)]
    if uses:
        places.insert(0, f"{listing(uses)} in the menus of the columns")
    elif "--columns" in text:
        places.insert(0, "the menus of the columns")
    return f" On this page, use {listing(places)}." if places else ""


def _option_of(use: str) -> str:
    """A pattern of the options that give a column a use."""
    return rf"--({_OPTIONS.get(use, use)}\b|columns (\S+=\S+ )*{use}=)"


def progress(text: str, share: float | None) -> str:
    """Returns a bar with a text; without a share one that only moves, or none after a stop."""
    value = "" if share is None else f' value="{share:.3f}"'
    bar = (
        ""
        if text.startswith("Stopped")
        else f'<progress max="1"{value} aria-label="progress"></progress>'
    )
    return Markup('<p role="status">{}</p>{}').format(visible(text), Markup(bar))


def framed(page: str) -> str:
    """Returns a page in a frame that cannot reach this one."""
    kept = 'sandbox="allow-scripts allow-downloads" title="result"'
    return f'<iframe {kept} srcdoc="{escape(page)}"></iframe>'


def _short(text: str) -> str:
    return visible(shortened(text, 60))
