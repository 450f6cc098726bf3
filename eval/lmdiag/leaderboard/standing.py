"""The rows of the board: models, the human baseline, published figures; and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lmdiag import diagnostics, evaluation, measures, stats
from lmdiag.hub.benchmark import Benchmark, columns, leaderboard_figures
from lmdiag.leaderboard.collect import Entry
from lmdiag.protocol import Protocol
from lmdiag.results import Figure
from lmdiag.results.published import ROUNDING, PublishedFigure, published_for

HUMAN_ROW = "People"
"""Name of the row with the human baseline."""

_PAPER_SIZES = {"bert-base-uncased": 110_000_000, "bert-large-uncased": 340_000_000}
"""Models of which a paper has all figures of the leaderboard, with their numbers of parameters, as
Devlin et al. (2019) give them."""

_MODEL_FIELDS = (
    "id", "revision", "commit", "kind", "architecture", "dtype", "tokenizer", "cased",
    "vocab_size", "n_parameters", "quantization",
)  # fmt: skip
"""Facts on a model that the leaderboard gives."""


@dataclass(frozen=True)
class Standing:
    """One row of the board.

    Attributes:
        name: model id, or whose figures they are.
        origin: submitted (a run), people, or published (in a paper).
        figures: id of the leaderboard's column -> figure, for those it has.
        model: facts on the model; few of a published one, none of people.
        entry: the submission; None for the others.
        rank: among the submitted models, by the first column of the overview; equal figures share
            a rank. None for other rows, and for all but the best row of a model.
        is_first: whether it is the best row of its model.
    """

    name: str
    origin: Literal["submitted", "people", "published"]
    figures: Mapping[str, Figure]
    model: Mapping[str, Any] = field(default_factory=dict)
    entry: Entry | None = None
    rank: int | None = None
    is_first: bool = True

    @property
    def group(self) -> str:
        """What the rows of one model share: its revisions and precisions are listed together."""
        return f"{self.origin}/{self.name.lower()}"

    @property
    def page(self) -> str:
        """The address of its page, "" without one."""
        return f"models/{self.entry.page}" if self.entry else ""

    @property
    def detail(self) -> str:
        """What distinguishes it from other rows of the same name."""
        if self.origin == "people":
            return "cloze of the data set"
        if self.origin == "published":
            return "published, Ettinger 2020"
        commit, revision = self.model["commit"], self.model["revision"]
        short = commit.removeprefix("sha256:")[:7]
        asked = short if revision in (None, commit) else f"{revision[:40]} ({short})"
        return " · ".join(filter(None, [asked, self.model["dtype"], self.model["quantization"]]))


def standings(entries: Sequence[Entry], benchmark: Benchmark) -> list[Standing]:
    """Returns all rows in order: the submitted models, the human baseline, published figures."""
    return ranked([*map(_submitted, entries), *_human(benchmark), *_published(benchmark)])


def ranked(rows: Iterable[Standing]) -> list[Standing]:
    """Returns rows with their ranks: models by their best row, the rows of each model together.

    Rows are ordered by the first column of the overview, the next ones decide ties.
    """
    overview = [column.task_id for column in columns().values() if column.is_overview]

    def order(row: Standing) -> tuple[Any, ...]:
        return (*(-_value(row, key) for key in overview), row.name, row.origin)

    groups: dict[str, list[Standing]] = {}
    for row in sorted(rows, key=order):
        groups.setdefault(row.group, []).append(row)
    above: list[float] = []
    placed = []
    for first, *others in groups.values():
        if first.origin == "submitted" and overview[0] in first.figures:
            value = _value(first, overview[0])
            first = replace(first, rank=1 + sum(other > value for other in above))
            above.append(value)
        placed += [first, *(replace(other, is_first=False) for other in others)]
    return placed


def _value(row: Standing, key: str) -> float:
    figure = row.figures.get(key)
    return -1.0 if figure is None or figure.value is None else figure.value


def _submitted(entry: Entry) -> Standing:
    model = {name: getattr(entry.results.model, name) for name in _MODEL_FIELDS}
    return Standing(entry.name, "submitted", leaderboard_figures(entry.results), model, entry)


def _human(benchmark: Benchmark) -> Iterator[Standing]:
    """Yields the sensitivity of people's cloze values, by the code that measures models."""
    wanted = {
        (place.task, f"human_{place.measure}"): column.task_id
        for place, column in columns().items()
        if place.measure.startswith("sensitivity") and not place.by
    }
    figures = {}
    for task in dict.fromkeys(task for task, _ in wanted):
        trials = measures.Trials(benchmark.stimuli(task).columns(), {}, {})
        for scores in measures.human(trials, Protocol().threshold):
            if (task, scores.name) in wanted:
                figures[wanted[task, scores.name]] = evaluation.figure_of(scores)
    if figures:
        yield Standing(HUMAN_ROW, "people", figures)


def _published(benchmark: Benchmark) -> Iterator[Standing]:
    """Yields the figures of the papers, if the data have exactly the rows that these report on."""
    for diagnostic in diagnostics.built_in().values():
        rows = diagnostic.published_rows if diagnostic.in_data_set else None
        if rows is not None and len(benchmark.stimuli(diagnostic.name)) != rows:
            return
    for name in _PAPER_SIZES:
        said = published_for(name)
        figures = {
            column.task_id: _from_paper(said[place])
            for place, column in columns().items()
            if place in said
        }
        model = {"kind": "masked", "n_parameters": _PAPER_SIZES[name]}
        yield Standing(name, "published", figures, model)


def _from_paper(published: PublishedFigure) -> Figure:
    """A published percentage; its interval follows from n if it is a share of n items."""
    share, hits = published.value / 100, round(published.value / 100 * published.n)
    if abs(100 * hits / published.n - published.value) > ROUNDING + 1e-9:
        return Figure(share, published.n, statistic="proportion")
    return Figure(share, published.n, *stats.wilson(hits, published.n), statistic="proportion")
