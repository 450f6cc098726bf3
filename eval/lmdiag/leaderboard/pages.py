"""What the templates show: views without logic, and the environment that makes them safe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.results import published
from lmdiag.hub.headline import HEADLINES, OVERVIEW, SHORT_TITLES, Headline
from lmdiag.hub.names import is_commit, is_hub_id
from lmdiag.hub.text import file_name
from lmdiag.leaderboard.collect import Entry, Rejected
from lmdiag.leaderboard.outcome import level, sentence
from lmdiag.leaderboard.pictures import pictures
from lmdiag.leaderboard.standing import Figure, Standing
from lmdiag.report import items, numbers, sections
from lmdiag.report.page import environment, frame

if TYPE_CHECKING:
    from lmdiag.hub.benchmark import Benchmark

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Column:
    """A column of figures.

    Attributes:
        headline: what stands in it.
        groups: names of the views that show it, separated by blanks.
        n: items that a figure without unscorable words is a share of.
        chance: what guessing gives, in percent; "" where that is not known.
    """

    headline: Headline
    groups: str
    n: int | None
    chance: str


@dataclass(frozen=True)
class CellView:
    """A figure as the table shows it: in percent, with its interval, and n where that is less.

    Attributes:
        sort: the proportion.
        value, interval, n: texts.
        low, high, chance: percent, for the mark; None where there is none.
        is_at_chance: whether the interval contains the chance level.
    """

    sort: float
    value: str
    interval: str
    low: float | None
    high: float | None
    n: str
    chance: float | None
    is_at_chance: bool


@dataclass(frozen=True)
class RowView:
    """A row of the table.

    Attributes:
        rank: see `Standing`.
        group: see `Standing`.
        is_first: see `Standing`.
        name: model or who it is.
        page: address of its page; "" for none.
        origin, kind: see `Standing`.
        size: parameters; None where unknown.
        size_text: the same in letters.
        detail: what tells it from other rows of the same name.
        level: what is proved of it: reproduced, recomputed, differs; "" for what was not submitted.
        same_as, same_as_page: an earlier row of another model with the same predictions.
        cells: one a column.
    """

    rank: int | None
    group: str
    is_first: bool
    name: str
    page: str
    origin: str
    kind: str
    size: int | None
    size_text: str
    detail: str
    level: str
    same_as: str
    same_as_page: str
    cells: tuple[CellView | None, ...]


def page_name(entry: Entry) -> str:
    """The file name of a model's page."""
    return f"{file_name(entry.name, json.dumps(entry.identity))}.html"


def render_board(
    rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> str:
    """Returns the page of the whole board."""
    columns = list(_columns(rows))
    groups = list(dict.fromkeys(column.headline.task for column in columns))
    return _render(
        "leaderboard.html.j2",
        columns=columns,
        ordered_by=OVERVIEW[0],
        titles=SHORT_TITLES,
        groups=[(task, SHORT_TITLES[task], _span(columns, task)) for task in groups],
        rows=[_row(row, columns) for row in rows],
        pictures=pictures(rows),
        rejected=rejected,
        data=_data_facts(benchmark, groups),
        facts=[fact for task in groups for fact in published.human_facts(task)]
        if any(row.origin == "published" for row in rows)
        else [],
        n_models=sum(row.origin == "submitted" for row in rows),
    )


def render_model(entry: Entry) -> str:
    """Returns the page of one model: every table, and every item with what the model said."""
    run = entry.run()
    results = run.results
    tasks = [(task, SHORT_TITLES[task], _items(run, task)) for task in run.stimuli]
    return _render(
        "leaderboard-model.html.j2",
        name=entry.name,
        model=results["model"],
        level=level(entry.outcome),
        sentence=sentence(entry.outcome),
        outcome=entry.outcome,
        same_as=_same_as(entry),
        results=results,
        link=hub_link(results["model"]["id"], results["model"]["commit"]),
        size=numbers.count(results["model"]["n_parameters"]),
        sections=sections.sections([results]),
        tasks=tasks,
    )


def _render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**frame("leaderboard"), **values)


def hub_link(model_id: str, commit: str) -> str:
    """Returns the address of a model on the Hub; "" for what is no id of the Hub."""
    if not is_hub_id(model_id) or not is_commit(commit):
        return ""
    return f"{HUB}/{model_id}/tree/{commit}"


def _items(run: Any, task: str) -> list[items.Item]:
    return items.sample(items.items(run, task))


def _columns(rows: Sequence[Standing]) -> Iterator[Column]:
    for headline in HEADLINES:
        figures = [row.figures[headline.id] for row in rows if headline.id in row.figures]
        if figures:
            groups = f"{headline.task} overview" if headline.id in OVERVIEW else headline.task
            most = max(figure.n for figure in figures)
            yield Column(headline, groups, most, _chance_level(figures))


def _chance_level(figures: Sequence[Figure]) -> str:
    """The chance level of a column in percent, where all of its figures have the same."""
    chances = {figure.chance for figure in figures} - {None}
    chance = chances.pop() if len(chances) == 1 else None
    return "" if chance is None else f"{100 * chance:.0f}"


def _span(columns: Sequence[Column], task: str) -> tuple[int, int]:
    """Columns of a task, in all and in the overview."""
    own = [column for column in columns if column.headline.task == task]
    return len(own), sum("overview" in column.groups for column in own)


def _row(row: Standing, columns: Sequence[Column]) -> RowView:
    model: Mapping[str, Any] = row.model or {}
    size = model.get("n_parameters")
    same = row.entry.same_as if row.entry else None
    return RowView(
        rank=row.rank,
        group=row.group,
        is_first=row.is_first,
        name=row.name,
        page=f"models/{page_name(row.entry)}" if row.entry else "",
        origin=row.origin,
        kind=model.get("kind", ""),
        size=size,
        size_text="" if size is None else numbers.count(size),
        detail=_detail(row),
        level=level(row.entry.outcome) if row.entry else "",
        same_as=same.name if same else "",
        same_as_page=f"models/{page_name(same)}" if same else "",
        cells=tuple(_cell(row.figures.get(column.headline.id), column.n) for column in columns),
    )


def _detail(row: Standing) -> str:
    if row.origin == "people":
        return "cloze of the data set"
    if row.origin == "published":
        return "published, Ettinger 2020"
    model = row.model or {}
    parts = [short_commit(model), model["dtype"], model["quantization"] or ""]
    return " · ".join(part for part in parts if part)


def short_commit(model: Mapping[str, Any]) -> str:
    """Returns the revision that was asked for, if any, and the start of the commit."""
    commit: str = model["commit"].removeprefix("sha256:")[:7]
    revision = model["revision"]
    return commit if revision in (None, model["commit"]) else f"{revision[:40]} ({commit})"


def _same_as(entry: Entry) -> tuple[str, str] | None:
    """Name and page of the earlier entry with the same predictions."""
    other = entry.same_as
    return None if other is None else (other.name, page_name(other))


def _cell(figure: Figure | None, n: int | None) -> CellView | None:
    if figure is None:
        return None
    low, high = figure.low, figure.high
    return CellView(
        sort=figure.value,
        value=f"{100 * figure.value:.1f}",
        interval="" if low is None or high is None else f"{100 * low:.0f}–{100 * high:.0f}",
        low=None if low is None else round(100 * low, 1),
        high=None if high is None else round(100 * high, 1),
        n="" if figure.n == n else f"n {figure.n}",
        chance=None if figure.chance is None else round(100 * figure.chance, 1),
        is_at_chance=figure.is_at_chance,
    )


def _data_facts(benchmark: Benchmark, tasks: Sequence[str]) -> dict[str, Any]:
    prints = {SHORT_TITLES[task]: benchmark.stimuli(task).fingerprint for task in tasks}
    link = f"{HUB}/datasets/{benchmark.data}" if benchmark.is_on_hub else ""
    return {"name": benchmark.name, "link": link, "fingerprints": prints}
