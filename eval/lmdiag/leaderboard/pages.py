"""What the templates show: views without logic, and the environment that makes them safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag import published
from lmdiag.hub.client import REPO_ID
from lmdiag.hub.headline import HEADLINES, OVERVIEW, SHORT_TITLES, Headline
from lmdiag.hub.text import file_name
from lmdiag.leaderboard.collect import Entry, Rejected
from lmdiag.leaderboard.pictures import pictures
from lmdiag.leaderboard.standing import Figure, Standing
from lmdiag.report import items, numbers, tables
from lmdiag.report.page import environment, frame

if TYPE_CHECKING:
    from lmdiag.hub.verify import Benchmark

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Column:
    """A column of figures.

    Attributes:
        headline: what stands in it.
        groups: names of the views that show it, separated by blanks.
        n: items that a figure without unscorable words is a share of.
    """

    headline: Headline
    groups: str
    n: int | None


@dataclass(frozen=True)
class CellView:
    """A figure as the table shows it: in percent, with its interval, and n where that is less."""

    sort: float
    value: str
    interval: str
    low: float | None
    high: float | None
    n: str


@dataclass(frozen=True)
class RowView:
    """A row of the table.

    Attributes:
        name: model or who it is.
        page: address of its page; "" for none.
        origin, kind: see `Standing`.
        size: parameters; None where unknown.
        size_text: the same in letters.
        detail: what tells it from other rows of the same name.
        cells: one a column.
    """

    name: str
    page: str
    origin: str
    kind: str
    size: int | None
    size_text: str
    detail: str
    cells: tuple[CellView | None, ...]


def page_name(entry: Entry) -> str:
    """The file name of a model's page."""
    return f"{file_name(entry.results['model']['id'], entry.identity)}.html"


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
        groups=[(task, SHORT_TITLES[task], _span(columns, task)) for task in groups],
        rows=[_row(row, columns) for row in rows],
        pictures=pictures(rows),
        rejected=rejected,
        data=_data_facts(benchmark, groups),
        facts=[fact for task in groups for fact in published.human(task)]
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
        model=results["model"],
        results=results,
        link=hub_link(results["model"]["id"], results["model"]["commit"]),
        size=numbers.count(results["model"]["n_parameters"]),
        sections=tables.sections([results]),
        tasks=tasks,
    )


def _render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**frame("leaderboard"), **values)


def hub_link(model_id: str, commit: str) -> str:
    """Returns the address of a model on the Hub; "" for what is no id of the Hub."""
    if not REPO_ID.fullmatch(model_id) or not commit.isalnum() or not commit.isascii():
        return ""
    return f"{HUB}/{model_id}/tree/{commit}"


def _items(run: Any, task: str) -> list[items.Item]:
    return items.sample(items.items(run, task))


def _columns(rows: Sequence[Standing]) -> Iterator[Column]:
    for headline in HEADLINES:
        figures = [row.figures[headline.id] for row in rows if headline.id in row.figures]
        if figures:
            groups = f"{headline.task} overview" if headline.id in OVERVIEW else headline.task
            yield Column(headline, groups, max(figure.n for figure in figures))


def _span(columns: Sequence[Column], task: str) -> tuple[int, int]:
    """Columns of a task, in all and in the overview."""
    own = [column for column in columns if column.headline.task == task]
    return len(own), sum("overview" in column.groups for column in own)


def _row(row: Standing, columns: Sequence[Column]) -> RowView:
    model: Mapping[str, Any] = row.model or {}
    size = model.get("n_parameters")
    return RowView(
        name=row.name,
        page=f"models/{page_name(row.entry)}" if row.entry else "",
        origin=row.origin,
        kind=model.get("kind", ""),
        size=size,
        size_text="" if size is None else numbers.count(size),
        detail=_detail(row),
        cells=tuple(_cell(row.figures.get(column.headline.id), column.n) for column in columns),
    )


def _detail(row: Standing) -> str:
    if row.origin == "people":
        return "cloze of the data set"
    if row.origin == "published":
        return "published, Ettinger 2020"
    model = row.model or {}
    parts = [
        model["commit"].removeprefix("sha256:")[:7],
        model["dtype"],
        model["quantization"] or "",
    ]
    return " · ".join(part for part in parts if part)


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
    )


def _data_facts(benchmark: Benchmark, tasks: Sequence[str]) -> dict[str, Any]:
    prints = {SHORT_TITLES[task]: benchmark.stimuli(task).fingerprint for task in tasks}
    link = f"{HUB}/datasets/{benchmark.data}" if benchmark.is_on_hub else ""
    return {"name": benchmark.name, "link": link, "fingerprints": prints}
