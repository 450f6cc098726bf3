"""The pages: what their templates show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.hub.benchmark import columns
from lmdiag.hub.names import is_commit, is_hub_id
from lmdiag.leaderboard.collect import Entry, Rejected
from lmdiag.leaderboard.outcome import level, sentence
from lmdiag.leaderboard.pictures import pictures
from lmdiag.leaderboard.standing import Standing, page_name
from lmdiag.report import items, sections
from lmdiag.report.page import environment, frame
from lmdiag.results.published import human_facts

if TYPE_CHECKING:
    from lmdiag.hub.benchmark import Benchmark

_HUB = "https://huggingface.co"


@dataclass(frozen=True)
class BoardColumn:
    """A column of figures.

    Attributes:
        id, label: see `LeaderboardColumn`.
        task, title: of its diagnostic.
        groups: names of the views that show it.
        n: items that a figure without unscorable words is a share of.
        chance: chance level; None if it is not the same in all rows, or not defined.
    """

    id: str
    label: str
    task: str
    title: str
    groups: tuple[str, ...]
    n: int
    chance: float | None


def render_board(
    rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> str:
    """Returns the page of the whole board."""
    shown = list(_columns(rows))
    tasks = {column.task: column.title for column in shown}
    has_papers = any(row.origin == "published" for row in rows)
    return _render(
        "leaderboard.html.j2",
        columns=shown,
        ordered_by=next((column.id for column in shown if "overview" in column.groups), ""),
        groups=[(task, title, _spans(shown, task)) for task, title in tasks.items()],
        rows=rows,
        page_name=page_name,
        level=level,
        pictures=pictures(rows),
        rejected=rejected,
        benchmark=benchmark,
        data_link=f"{_HUB}/datasets/{benchmark.data}" if benchmark.is_on_hub else "",
        fingerprints={tasks[task]: benchmark.stimuli(task).fingerprint for task in tasks},
        facts=[fact for task in tasks for fact in human_facts(task)] if has_papers else [],
        n_models=sum(row.origin == "submitted" for row in rows),
    )


def render_model(entry: Entry) -> str:
    """Returns the page of one model: every table, and every item with the model's answers."""
    run, results = entry.run(), entry.results
    return _render(
        "leaderboard-model.html.j2",
        name=entry.name,
        results=results,
        model=results.model,
        level=level(entry.outcome),
        sentence=sentence(entry.outcome),
        outcome=entry.outcome,
        same_as=(entry.same_as.name, page_name(entry.same_as)) if entry.same_as else None,
        link=hub_link(results.model.id, results.model.commit),
        sections=sections.sections([results]),
        tasks=[
            (task, diagnostics.get(task).short_title, items.sample(items.items(run, task)))
            for task in run.stimuli
        ],
    )


def _render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**frame("leaderboard"), **values)


def hub_link(model_id: str, commit: str) -> str:
    """Returns the address of a model on the Hub; "" for anything else."""
    if not is_hub_id(model_id) or not is_commit(commit):
        return ""
    return f"{_HUB}/{model_id}/tree/{commit}"


def _columns(rows: Sequence[Standing]) -> Iterator[BoardColumn]:
    for place, column in columns().items():
        figures = [row.figures[column.task_id] for row in rows if column.task_id in row.figures]
        if not figures:
            continue
        chances = {figure.chance for figure in figures} - {None}
        yield BoardColumn(
            id=column.task_id,
            label=column.label,
            task=place.task,
            title=diagnostics.get(place.task).short_title,
            groups=(place.task, "overview") if column.is_overview else (place.task,),
            n=max(figure.n or 0 for figure in figures),
            chance=chances.pop() if len(chances) == 1 else None,
        )


def _spans(shown: Sequence[BoardColumn], task: str) -> tuple[int, int]:
    """Returns the number of columns of a task, in all and in the overview."""
    own = [column for column in shown if column.task == task]
    return len(own), sum("overview" in column.groups for column in own)
