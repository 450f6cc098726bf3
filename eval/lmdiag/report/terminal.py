"""The tables of a run on a terminal, in the shape of the papers' tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmdiag.report import numbers
from lmdiag.report.tables import Cell, Results, Section, Table, Unscorable, sections

if TYPE_CHECKING:
    import rich.table
    from rich.console import Console
    from rich.text import Text

NAMED = 5
"""Unscorable words that are named before the rest is only counted."""

LABEL = 28
"""Characters that the label of a row keeps, however narrow the terminal."""


def print_results(results: Results, console: Console | None = None) -> None:
    """Prints what was asked, then a table per diagnostic, from the content of a `results.json`."""
    console = console or _standard_output()
    _print_heading(results, console)
    for section in sections([results]):
        _print_section(section, console)


def print_measures(
    task: str,
    measures: Mapping[str, Any],
    console: Console | None = None,
    *,
    signature: str = "",
    unscorable: Sequence[Mapping[str, str]] = (),
) -> None:
    """Prints the tables of one task from predictions made elsewhere.

    Args:
        task: name of the config.
        measures: as `measures` of one setting in `results.json`.
        console: where to print; standard output by default.
        signature: printed under the tables.
        unscorable: entries with `id` and `word`.
    """
    content = {"signature": signature, "measures": measures, "unscorable": unscorable}
    results = {"model": {"id": "", "revision": None}, "tasks": {task: {"none": content}}}
    for section in sections([results]):
        _print_section(section, console or _standard_output())


def _standard_output() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_heading(results: Results, console: Console) -> None:
    """Model, data and cost in two or three lines."""
    from rich.text import Text

    model, data = results["model"], results["data"]
    facts = [
        model["kind"],
        f"{numbers.count(model['n_parameters'])} parameters",
        model["dtype"],
        *([model["quantization"]] if model.get("quantization") else []),
        "cased" if model["cased"] else "uncased",
        f"commit {model['commit'][:12]}",
    ]
    console.print()
    console.print(Text(str(model["id"]), style="bold"))
    console.print(Text(" · ".join(facts), style="dim"))
    asked = f"{results['n_contexts']} contexts" if "n_contexts" in results else ""
    source = f"data {data['source']}"
    console.print(Text(" · ".join(filter(None, [source, asked])), style="dim"))


def _print_section(section: Section, console: Console) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(section.title, style="bold"))
    for table in section.tables:
        console.print()
        caption = Text(f"{table.title}, percent" if table.percent else table.title)
        console.print(caption.append(f"  {table.source}", style="dim"))
        console.print(_drawn(table, console.width))
    console.print()
    for line in _remarks(section):
        console.print(Text(line, style="dim"))


def _drawn(table: Table, width: int) -> rich.table.Table:
    """A table as rich draws it: figures with intervals beside or below, n, published rows."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    longest = max(len(row.label) + 2 * row.depth for row in table.rows)
    drawn.add_column("", overflow="fold", min_width=min(longest, LABEL))
    if table.n_by == "row":
        drawn.add_column("n", justify="right", style="dim", vertical="top")
    for i, heading in enumerate(table.columns):
        below = f"\nn = {table.column_n(i)}" if table.n_by == "column" else ""
        drawn.add_column(Text(heading + below, justify="right"), justify="right", no_wrap=True)
    gap = " " if _fits_beside(table, longest, width) else "\n"
    spaces = [_interval_width(table, i) for i in range(len(table.columns))]
    for row in table.rows:
        n = [str(row.n)] if table.n_by == "row" else []
        cells = [
            _cell(cell, gap, space, with_n=table.n_by == "cell")
            for cell, space in zip(row.cells, spaces, strict=True)
        ]
        drawn.add_row(Text("  " * row.depth + row.label), *n, *cells)
        if row.published:
            paper = [numbers.published(cell) if cell else "" for cell in row.cells]
            texts = ["  " * (row.depth + 1) + "published", *([""] if n else []), *paper]
            drawn.add_row(*(Text(text, style="dim") for text in texts))
    return drawn


def _cell(cell: Cell | None, gap: str, space: int, with_n: bool) -> Text:
    """A figure, its interval, and its n where neither row nor column says it."""
    from rich.text import Text

    if cell is None:
        return Text("")
    small = numbers.interval(cell).rjust(space if gap == " " else 0)
    if with_n and cell.n is not None:
        small += f" n={cell.n}"
    text = Text(numbers.value(cell), style="bold")
    return text.append(gap + small, style="not bold dim") if small else text


def _interval_width(table: Table, column: int) -> int:
    cells = [row.cells[column] for row in table.rows]
    return max((len(numbers.interval(cell)) for cell in cells if cell), default=0)


def _fits_beside(table: Table, longest: int, width: int) -> bool:
    """Whether figures and intervals fit beside each other on the terminal."""
    figure = len("100.0 ") + (len(" n=1234") if table.n_by == "cell" else 0)
    columns = [
        max(len(heading), figure + _interval_width(table, i)) + len("   ")
        for i, heading in enumerate(table.columns)
    ]
    n = len("1234   ") if table.n_by == "row" else 0
    return min(longest, LABEL) + n + sum(columns) <= width


def _remarks(section: Section) -> list[str]:
    """What stands under the tables: stars, words left out, the signature."""
    lines = []
    cells = [cell for table in section.tables for row in table.rows for cell in row.cells if cell]
    if any(cell.agrees is False for cell in cells):
        lines.append("* the published figure lies outside our 95% interval")
    lines += unscorable_lines(section.unscorable)
    return lines + [signature for signature in section.signatures if signature]


def unscorable_lines(words: Iterable[Unscorable]) -> list[str]:
    """Returns one line per setting that counts and names the words left out."""
    by_setting: dict[str, list[Unscorable]] = {}
    for word in words:
        by_setting.setdefault(word.setting, []).append(word)
    lines = []
    for setting, left_out in by_setting.items():
        distinct = list(dict.fromkeys(word.word for word in left_out))
        named = ", ".join(distinct[:NAMED]) + (", …" if len(distinct) > NAMED else "")
        where = "" if setting == "none" else f" in {setting}"
        lines.append(f"unscorable{where}: {len(left_out)} rows ({named})")
    return lines
