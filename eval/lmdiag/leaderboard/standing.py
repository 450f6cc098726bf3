"""The rows of the board: models, people, what papers say of BERT; and the order of them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from lmdiag import measures, stats, summary
from lmdiag.results import published
from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.headline import HEADLINES, OVERVIEW, Headline
from lmdiag.leaderboard.collect import Entry
from lmdiag import diagnostics
from lmdiag.schema import BadInput, Protocol

Origin = Literal["submitted", "people", "published"]

PEOPLE = "People"
PAPER_SIZES = {"bert-base-uncased": 110_000_000, "bert-large-uncased": 340_000_000}
"""Parameters of the published models, as Devlin et al. (2019) give them."""


@dataclass(frozen=True)
class Figure:
    """A headline figure.

    Attributes:
        value: proportion.
        n: items it is a share of.
        low, high: 95% interval; None where there is none.
        chance: what guessing gives; None where that is not defined or not known.
    """

    value: float
    n: int
    low: float | None
    high: float | None
    chance: float | None = None

    @property
    def is_at_chance(self) -> bool:
        """Whether the interval contains the chance level."""
        if self.chance is None or self.low is None or self.high is None:
            return False
        return self.low <= self.chance <= self.high


@dataclass(frozen=True)
class Standing:
    """One row of the board.

    Attributes:
        name: model id, or who it is.
        origin: submitted (verified here), people, or published (a paper's figures).
        figures: headline id -> figure, for those it has.
        model: of `results.json`; None for people, little for published rows.
        entry: the submission; None for the others.
        rank: among the submitted models, by the first figure of the overview, ties sharing one;
            None for other rows, and for all but the best row of a model.
        is_first: whether it is the best row of its model.
    """

    name: str
    origin: Origin
    figures: Mapping[str, Figure]
    model: Mapping[str, Any] | None = None
    entry: Entry | None = None
    rank: int | None = None
    is_first: bool = True

    @property
    def group(self) -> str:
        """What rows of one model share: its revisions and precisions stand together."""
        return f"{self.origin}/{self.name.lower()}"


def standings(entries: Sequence[Entry], benchmark: Benchmark) -> list[Standing]:
    """Returns all rows in order: the submitted models, people, and what papers published."""
    return in_order([*map(_submitted, entries), *_people(benchmark), *_published(benchmark)])


def in_order(rows: Iterable[Standing]) -> list[Standing]:
    """Returns rows with their ranks: models by their best row, the rows of each model together.

    Rows are ordered by the first figure of the overview, the next deciding ties.
    """
    groups: dict[str, list[Standing]] = {}
    for row in sorted(rows, key=_order):
        groups.setdefault(row.group, []).append(row)
    return list(_ranked(groups.values()))


def _ranked(groups: Iterable[Sequence[Standing]]) -> Iterator[Standing]:
    """Yields the rows of all groups, the first of each with its rank."""
    above: list[float] = []
    for first, *others in groups:
        figure = first.figures.get(OVERVIEW[0])
        rank = None
        if first.origin == "submitted" and figure is not None:
            rank = 1 + sum(value > figure.value for value in above)
            above.append(figure.value)
        yield replace(first, rank=rank)
        yield from (replace(other, is_first=False) for other in others)


def _order(row: Standing) -> tuple[Any, ...]:
    figures = (row.figures.get(key) for key in OVERVIEW)
    values = tuple(-1.0 if figure is None else figure.value for figure in figures)
    return (*(-value for value in values), row.name, row.origin)


def _submitted(entry: Entry) -> Standing:
    cells = {headline.id: headline.find(entry.results) for headline in HEADLINES}
    figures = {key: _figure(cell) for key, cell in cells.items() if cell is not None}
    model = entry.results["model"]
    return Standing(entry.name, "submitted", figures, model, entry)


def _figure(cell: Mapping[str, Any]) -> Figure:
    bounds = cell["ci_low"], cell["ci_high"]
    return Figure(cell["value"], cell["n"], *bounds, cell.get("chance"))


def _people(benchmark: Benchmark) -> Iterator[Standing]:
    """What the cloze values of the data say of people, by the code that measures models."""
    figures = {}
    for headline in HEADLINES:
        if headline.by is None and headline.measure.startswith("sensitivity"):
            cell = _human_measures(benchmark, headline.task).get(f"human_{headline.measure}")
            if cell is not None:
                figures[headline.id] = _figure(cell)
    if figures:
        yield Standing(PEOPLE, "people", figures)


def _human_measures(benchmark: Benchmark, task: str) -> Mapping[str, Any]:
    try:
        rows = benchmark.stimuli(task).columns()
    except BadInput:  # a data set without agreement has no row for it
        return {}
    diagnostic = diagnostics.get(task)
    trials = measures.Trials(rows, {}, {})
    scores = measures.human(trials, Protocol().threshold)
    return {one.name: summary.measure(one, diagnostic).to_json() for one in scores}


def _published(benchmark: Benchmark) -> Iterator[Standing]:
    """The papers' figures, on the rows that the papers report on and on no others."""
    for diagnostic in diagnostics.built_in().values():
        rows = diagnostic.published_rows
        if rows is not None and len(benchmark.stimuli(diagnostic.name)) != rows:
            return
    for name in dict.fromkeys(figure.model for figure in published.published_figures()):
        said = {_key(figure): figure for figure in published.published_for(name).values()}
        found = {headline.id: said.get(_place(headline)) for headline in HEADLINES}
        figures = {key: _from_paper(each) for key, each in found.items() if each is not None}
        model = {"kind": "masked", "n_parameters": PAPER_SIZES.get(name)}
        yield Standing(name, "published", figures, model)


def _key(figure: published.PublishedFigure) -> tuple[str, str, str, str] | None:
    task, setting, measure, by, level = figure.place
    return (task, measure, by, level) if setting == "none" else None


def _place(headline: Headline) -> tuple[str, str, str, str]:
    return (headline.task, headline.measure, headline.by or "", headline.level or "")


def _from_paper(figure: published.PublishedFigure) -> Figure:
    """A published percentage; its interval follows from n where the figure is a share of it."""
    share, hits = figure.value / 100, round(figure.value / 100 * figure.n)
    if abs(100 * hits / figure.n - figure.value) > published.ROUNDING + 1e-9:
        return Figure(share, figure.n, None, None)
    return Figure(share, figure.n, *stats.wilson(hits, figure.n))
