"""The headline figures of a page, ready to print: rows of few models, columns of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from lmdiag.diagnostics.base import FigureSelection
from lmdiag.report import numbers
from lmdiag.report.grid import CellText
from lmdiag.report.selections import ReportFigures, headlines
from lmdiag.report.tables import cell_of
from lmdiag.results import CHANCE_LEGEND, Figure, FigureKey
from lmdiag.results.published import PublishedFigure


class HeadlineRow(NamedTuple):
    """A headline figure of some models.

    Attributes:
        label: its heading.
        key: its address.
        figures, published: one per model, None where it has none.
        human: the human baseline; None where the data do not contain it.
        cells: the figures as texts.
        facts: n, chance, published and human -> text; "" where it is not known.
    """

    label: str
    key: FigureKey
    figures: Sequence[Figure | None]
    published: Sequence[PublishedFigure | None]
    human: Figure | None
    cells: Sequence[CellText]
    facts: dict[str, str]

    @property
    def is_percent(self) -> bool:
        """Whether it has a place on a scale from 0 to 100."""
        return next(figure.is_percent for figure in self.figures if figure)

    @property
    def values(self) -> list[float | None]:
        """The value of each model, None where it is not defined."""
        return [figure.value if figure else None for figure in self.figures]

    @property
    def shades(self) -> list[int]:
        """The shade of each cell, 0 to 8: of 100 percent, else between lowest and highest value."""
        known = [value for value in self.values if value is not None] or [0.0]
        low, high = (0.0, 1.0) if self.is_percent else (min(known), max(known))
        span = high - low or 1.0
        return [0 if value is None else round(8 * (value - low) / span) for value in self.values]


def headline_rows(task: str, figures: ReportFigures) -> list[HeadlineRow]:
    """Returns the headline figures of a task that any of the runs has, with those of choices."""
    rows = []
    chosen = figures.selected(task, FigureSelection(("position_bias", "labels_mass")))
    shown = [headlines(task, figures), chosen.assign(human=None)]
    for _, table in pd.concat([x for x in shown if len(x)] or shown).groupby("address", sort=False):
        first = table.iloc[0]
        of_runs = table.set_index("run")
        key = FigureKey(*first[[*FigureKey._fields]])
        known, reported = (
            [of_runs[name].get(number) for number in range(len(figures.sources))]
            for name in ("figure", "reported")
        )
        figure = first["figure"]
        human = first["human"]
        facts = {
            "n": "" if figure.n is None else f"{figure.n:,}",
            "chance": "" if figure.chance is None else numbers.number(figure.chance, "share"),
            "published": numbers.published(reported[0], figure),
            "human": numbers.value(human) if human else "",
        }
        cells = [cell_of(figure) for figure in known]
        rows.append(HeadlineRow(first["heading"], key, known, reported, human, cells, facts))
    return rows


def headline_facts(rows: Sequence[HeadlineRow], *, several: bool) -> list[str]:
    """Returns which facts the table of a few models has columns for."""
    shown = {"n"}.union(name for row in rows for name, text in row.facts.items() if text)
    if several:
        shown.discard("published")
    return [name for name in ("n", "chance", "published", "human") if name in shown]


def headline_legend(rows: Sequence[HeadlineRow], asks: str, *, n: int, is_table: bool) -> str:
    """Returns what the figures and the marks beside them mean.

    Args:
        rows: of all diagnostics.
        asks: what the models are asked, `contexts` or `sentences`.
        n: number of models that are shown.
        is_table: whether they are in the rows of a table of many models.
    """
    kinds = {figure.is_percent for row in rows for figure in row.figures if figure}
    units = "surprisal in bits"
    units += "" if asks == "sentences" else ", and rank as the place among all words"
    parts = [f"Percent with 95% intervals{f'; {units}' if False in kinds else ''}."]
    if True not in kinds:
        parts = [f"{units[0].upper()}{units[1:]}, with 95% intervals."]
    of_model = "a" if n > 1 else "this"
    lines = {
        f"◇ is the published figure of {of_model} model.": any(any(x.published) for x in rows),
        "❘ is the human baseline.": any(row.human for row in rows),
    }
    if is_table:
        parts.insert(0, "A cell is the darker, the higher its value.")
    else:
        parts += [line for line, is_needed in lines.items() if is_needed]
    if any(row.facts["chance"] for row in rows):
        chance = "Chance is" if is_table else "The dashed line is chance:"
        parts.append(f"{chance} the expected figure of a model that guesses. {CHANCE_LEGEND}.")
    return " ".join(parts)
