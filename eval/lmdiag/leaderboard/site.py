"""The site: its page, `leaderboard.json` and the reports of the runs.

All texts reach the page through a template that escapes them, and its Content-Security-Policy runs
nothing but its own script. The files are made in a directory beside the target, which then
replaces it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmdiag import diagnostics
from lmdiag.hub.benchmark import columns
from lmdiag.hub.client import is_commit, is_on_hub
from lmdiag.hub.publish import SITE_INDEX
from lmdiag.hub.requests import Unranked
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.charts import pictures
from lmdiag.leaderboard.rows import Row, comparisons, outcomes
from lmdiag.reading import real_path
from lmdiag.report.page import environment, frame
from lmdiag.results import REPORT
from lmdiag.results.published import human_facts
from lmdiag.text import all_visible
from lmdiag.types import BadInput

_SCHEMA_VERSION = 1
_HUB = "https://huggingface.co"
_MODEL = ("id", "commit", "kind", "architecture", "dtype", "quantization", "n_parameters", "cased")
"""Facts on a model in `leaderboard.json`."""


def check_target(out: Path) -> None:
    """Checks that a site may be written to a directory.

    Raises:
        BadInput: it is a file, or has other content.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file: name a directory")
    if out.is_dir() and any(out.iterdir()) and not (out / SITE_INDEX).is_file():
        raise BadInput(f"--out {out} is not a leaderboard directory: choose an empty one")


def write_site(out: Path, rows: Sequence[Row], unranked: Sequence[Unranked], board: Board) -> None:
    """Writes the site into a directory of its own, completely or not at all.

    Raises:
        BadInput: see `check_target`.
    """
    check_target(out)
    work, before = (out.with_name(f".{out.name}.{name}") for name in ("building", "before"))
    if before.exists() and not out.exists():  # interrupted between the two renames below
        before.replace(out)
    for folder in (work, before):
        shutil.rmtree(folder, ignore_errors=True)
    (work / "models").mkdir(parents=True)
    for row in rows:
        shutil.copyfile(row.run.path / REPORT, work / row.page)
    (work / "index.html").write_text(_page(rows, unranked, board), "utf-8")
    (work / "README.md").write_text(_CARD, "utf-8")
    record = {
        "schema_version": _SCHEMA_VERSION,
        "data": _data_name(board),
        "signature": board.signature,
        "rows": [_record(row) for row in rows],
        "not_run": [request._asdict() | {"claimed": dict(request.claimed)} for request in unranked],
    }
    text = json.dumps(all_visible(record), indent=1, allow_nan=False)
    (work / SITE_INDEX).write_text(text, "utf-8")
    if out.exists():
        out.replace(before)
    work.replace(out)
    shutil.rmtree(before, ignore_errors=True)


def _record(row: Row) -> dict[str, Any]:
    """Returns a row of `leaderboard.json`, figures as proportions."""
    model = asdict(row.results.model)
    return {
        "rank": row.rank,
        "model": {name: model[name] for name in _MODEL},
        "figures": {key: figure.to_json() for key, figure in row.figures.items()},
        "claimed_otherwise": dict(row.differing),
        "page": row.page,
    }


def _page(rows: Sequence[Row], unranked: Sequence[Unranked], board: Board) -> str:
    shown = [*_columns(rows)]
    titles = {column["task"]: column["title"] for column in shown}
    by_row = outcomes(rows)
    return environment().get_template("leaderboard.html.j2").render(
        **frame("leaderboard"),
        columns=shown,
        ordered_by=next((x["id"] for x in shown if "overview" in x["groups"]), ""),
        names={x.task_id: f"{diagnostics.get(p.task).short_title}, {x.label}"
               for p, x in columns().items()},
        groups=[(task, title, _spans(shown, task)) for task, title in titles.items()],
        rows=[(row, json.dumps(items), _hub_link(row))
              for row, items in zip(rows, by_row, strict=True)],
        tests=json.dumps(comparisons(by_row)),
        pictures=pictures(rows),
        unranked=unranked,
        data=_data_name(board),
        data_link=f"{_HUB}/datasets/{board.data}" if is_on_hub(board.data) else "",
        fingerprints={task: x.fingerprint for task, x in board.stimuli.items()},
        facts=[fact for task in board.tasks for fact in human_facts(task)],
    )  # fmt: skip


def _data_name(board: Board) -> str:
    """Returns what to call the data: the page does not tell where on this machine they are."""
    return board.data if is_on_hub(board.data) else real_path(Path(board.data)).name


def _hub_link(row: Row) -> str:
    """Returns the address of a model on the Hub; "" for one of this machine."""
    request = row.request
    is_public = is_commit(request.commit)
    return f"{_HUB}/{request.model}/tree/{request.commit}" if is_public else ""


def _columns(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
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
    groups = [column["groups"] for column in shown if column["task"] == task]
    return len(groups), sum("overview" in views for views in groups)


_CARD = """---
title: lmdiag leaderboard
emoji: 🐦
colorFrom: blue
colorTo: green
sdk: static
app_file: index.html
pinned: false
license: mit
short_description: Psycholinguistic diagnostics for language models
tags:
- leaderboard
- psycholinguistics
---

# lmdiag leaderboard

Made by `lmdiag leaderboard`, which ran every model that is shown. `leaderboard.json` has the same
figures for programs.
"""
"""The card of the static Space."""
