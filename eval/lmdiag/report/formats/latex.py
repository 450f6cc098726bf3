r"""Tables as LaTeX `table` environments with booktabs rules, ready to \input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lmdiag.report.formats.grid import grid_of, single_line
from lmdiag.report.numbers import CHANCE
from lmdiag.report.qualitative import Chosen
from lmdiag.report.sections import Section, sections, signs
from lmdiag.report.table import Table
from lmdiag.results import Results


def render(runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    """Returns the tables of one or several runs, and the top words of chosen items."""
    lines = [r"% \usepackage{booktabs} in the preamble"]
    for section in sections(runs):
        lines += ["", *(f"% {single_line(signature)}" for signature in section.signatures)]
        for i, table in enumerate(section.all_tables, start=1):
            lines += ["", *_table(section, i, table, len(runs))]
    if chosen:
        lines += ["", *_chosen_items(chosen)]
    return "\n".join(lines) + "\n"


def _table(section: Section, number: int, table: Table, runs: int) -> Iterator[str]:
    grid = grid_of(table, runs)
    notes = "".join(f". {note}" for note in signs([table]))
    title = latex_text(f"{section.title}. {grid.caption}{notes}")
    label = f"tab:{re.sub(r'[^A-Za-z0-9]+', '-', section.task)}-{number}"
    columns = "l" * len(grid.label_headings) + "r" * len(grid.headings)
    rows = [row.texts(r"\quad ", latex_text, latex_text) for row in grid.rows]
    return _environment(title, label, columns, grid.heading_texts(latex_text), rows)


def _chosen_items(chosen: Sequence[Chosen]) -> Iterator[str]:
    headings = ["Context", *(latex_text(model) for model, _ in chosen[0].said)]
    columns = f"p{{{0.9 / len(headings):.2f}\\linewidth}}" * len(headings)
    rows = [
        [
            latex_text(item.sentence),
            *(latex_text(", ".join(entry.word for entry in top)) for _, top in item.said),
        ]
        for item in chosen
    ]
    return _environment("Predictions for chosen items.", "tab:items", columns, headings, rows)


def _environment(
    title: str, label: str, columns: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    yield r"\begin{table}[t]"
    yield r"\centering"
    yield f"\\caption{{{title}}}"
    yield f"\\label{{{label}}}"
    yield f"\\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield _row(headings)
    yield r"\midrule"
    yield from map(_row, rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(texts: Sequence[str]) -> str:
    line = " & ".join(texts) + r" \\"
    return "{}" + line if line.startswith("[") else line  # else the row above takes it for a length


def latex_text(text: str) -> str:
    """Returns text that LaTeX shows as it is."""
    return "".join(_ESCAPED.get(character, character) for character in single_line(text))


_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"$<$", ">": r"$>$", "≤": r"$\le$", "±": r"$\pm$", "−": r"$-$", "–": "--",
    "|": r"\textbar{}", CHANCE: r"$\dagger$",
}  # fmt: skip
