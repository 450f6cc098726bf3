"""The pages: what their templates show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.hub.benchmark import columns
from lmdiag.hub.names import is_hub_commit, is_on_hub
from lmdiag.leaderboard.collect import Entry, Rejected
from lmdiag.leaderboard.pictures import pictures
from lmdiag.leaderboard.standing import Standing
from lmdiag.report import items, sections
from lmdiag.report.page import environment, frame
from lmdiag.results.published import human_facts

if TYPE_CHECKING:
    from lmdiag.hub.benchmark import Benchmark
    from lmdiag.types import ModelInfo

_HUB = "https://huggingface.co"


def render_board(
    rows: Sequence[Standing], rejected: Sequence[Rejected], benchmark: Benchmark
) -> str:
    """Returns the page of the whole board."""
    shown = list(_columns(rows))
    tasks = {column["task"]: column["title"] for column in shown}
    has_papers = any(row.origin == "published" for row in rows)
    return _render(
        "leaderboard.html.j2",
        columns=shown,
        ordered_by=next((column["id"] for column in shown if "overview" in column["groups"]), ""),
        groups=[(task, title, _spans(shown, task)) for task, title in tasks.items()],
        rows=rows,
        pictures=pictures(rows),
        rejected=rejected,
        benchmark=benchmark,
        data_link=f"{_HUB}/datasets/{benchmark.data}" if is_on_hub(benchmark.data) else "",
        fingerprints={tasks[task]: benchmark.stimuli(task).fingerprint for task in tasks},
        facts=[fact for task in tasks for fact in human_facts(task)] if has_papers else [],
        n_models=sum(row.origin == "submitted" for row in rows),
    )


def render_model(entry: Entry) -> str:
    """Returns the page of one model: every table, and every item with the model's answers."""
    run, results = entry.run, entry.results
    return _render(
        "leaderboard-model.html.j2",
        entry=entry,
        results=results,
        model=results.model,
        link=hub_link(results.model),
        sections=sections.sections([results]),
        tasks=[
            (task, diagnostics.get(task).short_title, items.representative(items.items(run, task)))
            for task in run.stimuli
        ],
    )


def _render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**frame("leaderboard"), **values)


def hub_link(model: ModelInfo) -> str:
    """Returns the address of a model on the Hub; "" for anything else."""
    return f"{_HUB}/{model.id}/tree/{model.commit}" if is_hub_commit(model) else ""


def _columns(rows: Sequence[Standing]) -> Iterator[dict[str, Any]]:
    """Yields what the table shows of each column that any row has; `groups` are its views."""
    for place, column in columns().items():
        figures = [row.figures[column.task_id] for row in rows if column.task_id in row.figures]
        chances = {figure.chance for figure in figures} - {None}
        if figures:
            yield {
                "id": column.task_id,
                "label": column.label,
                "task": place.task,
                "title": diagnostics.get(place.task).short_title,
                "groups": [place.task, *(["overview"] if column.is_overview else [])],
                "n": max(figure.n or 0 for figure in figures),
                "chance": chances.pop() if len(chances) == 1 else None,
            }


def _spans(shown: Sequence[dict[str, Any]], task: str) -> tuple[int, int]:
    """Returns the number of columns of a task, in all and in the overview."""
    own = [column["groups"] for column in shown if column["task"] == task]
    return len(own), sum("overview" in groups for groups in own)
