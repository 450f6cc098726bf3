"""The headline figures of a page, ready to print: rows of few models, columns of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.report import numbers
from lmdiag.report.grid import CellText, cell_of, chance_legend
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.results import Figure, FigureKey
from lmdiag.results.published import REFERENCES, reference_figures


class HeadlineRow(NamedTuple):
    """A headline figure of some models.

    Attributes:
        label: its heading.
        key: its address.
        cells: the figure of each model.
        human: the human baseline; None where the data do not contain it.
        facts: n, chance, published, models of the paper and human -> text; "" where unknown, and of
            a model whose own run is shown, which has its published figure beside it.
    """

    label: str
    key: FigureKey
    cells: Sequence[CellText]
    human: Figure | None
    facts: dict[str, str]

    @property
    def is_percent(self) -> bool:
        """Whether it has a place on a scale from 0 to 100."""
        return next(cell.figure.is_percent for cell in self.cells if cell.figure)

    @property
    def values(self) -> list[float | None]:
        """The value of each model, None where it is not defined."""
        return [cell.figure.value if cell.figure else None for cell in self.cells]

    @property
    def shades(self) -> list[int]:
        """The shade of each cell, 0 to 8: of 100 percent, else between lowest and highest value."""
        known = [value for value in self.values if value is not None] or [0.0]
        low, high = (0.0, 1.0) if self.is_percent else (min(known), max(known))
        span = high - low or 1.0
        return [0 if value is None else round(8 * (value - low) / span) for value in self.values]


def headline_rows(task: str, figures: ReportFigures) -> list[HeadlineRow]:
    """Returns the headline figures of a task that any of the runs has."""
    rows = []
    references = reference_figures(figures.having(task)[0].results, task)
    for _, of_figure in headlines(task, figures).groupby("address", sort=False):
        first = of_figure.iloc[0]
        of_runs = of_figure.set_index("run")
        cells = {run: cell_of(row["figure"], row["reported"]) for run, row in of_runs.iterrows()}
        figure = first["figure"]
        human = first["human"]
        facts = {
            "n": "" if figure.n is None else f"{figure.n:,}",
            "chance": "" if figure.chance is None else numbers.number(figure.chance, "share"),
            "published": numbers.published(of_runs["reported"].get(0), figure),
            "human": numbers.value(human) if human else "",
        }
        key = FigureKey(*first[[*FigureKey._fields]])
        own = {reported.model for reported in of_runs["reported"] if reported}
        for model, name in REFERENCES.items():
            reported = None if model in own else references.get((model, key))
            facts[name] = numbers.reported_value(reported) if reported else ""
        of_models = [cells.get(run, CellText("")) for run in range(len(figures.sources))]
        rows.append(HeadlineRow(first["heading"], key, of_models, human, facts))
    return rows


def headline_facts(rows: Sequence[HeadlineRow], *, several: bool) -> list[str]:
    """Returns which facts the table of a few models has columns for."""
    shown = {"n"}.union(name for row in rows for name, text in row.facts.items() if text)
    shown -= {"published"} if several else {*REFERENCES.values()} if "published" in shown else set()
    names = ("n", "chance", "published", *REFERENCES.values(), "human")
    return [name for name in names if name in shown]


def headline_legend(rows: Sequence[HeadlineRow], asks: str, *, n: int, is_table: bool) -> str:
    """Returns what the figures of all diagnostics and the marks beside them mean.

    Args:
        rows: of all diagnostics.
        asks: what the models are asked, `contexts` or `sentences`.
        n: number of models that are shown.
        is_table: whether they are in the rows of a table of many models.
    """
    cells = [cell for row in rows for cell in row.cells]
    kinds = {cell.figure.is_percent for cell in cells if cell.figure}
    units = "surprisal in bits"
    units += "" if asks == "sentences" else ", and rank as the place among all words"
    parts = ["A cell is the darker, the higher its value."] * is_table
    if True not in kinds:
        parts.append(f"{units.capitalize()}, with 95% intervals.")
    elif False in kinds:
        parts.append(f"Percent with 95% intervals; {units}.")
    else:
        parts.append("Percent with 95% intervals.")
    if not is_table and any(cell.published for cell in cells):
        parts.append(f"◇ is the published figure of {'a' if n > 1 else 'this'} model.")
    if any(row.facts[name] for row in rows for name in REFERENCES.values()):
        parts.append("The figures of BERT are those of Ettinger (2020).")
    if not is_table and any(row.human for row in rows):
        parts.append("❘ is the human baseline.")
    if any(row.facts["chance"] for row in rows):
        chance = "Chance is" if is_table else "The dashed line is chance:"
        legend = chance_legend(cell.figure for cell in cells)
        sentence = f"{chance} the expected figure of a model that guesses."
        parts.append(f"{sentence} {legend}." if legend else sentence)
    return " ".join(parts)
