"""The site: its page, `leaderboard.json` and the reports of the runs.

All texts reach the page through a template that escapes them, and its Content-Security-Policy runs
nothing but its own script. The files are made in a directory beside the target, which then
replaces it.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.files.reading import real_path, resource_path
from lmdiag.hub.benchmark import columns, task_id
from lmdiag.hub.publish import SITE_INDEX, is_on_hub
from lmdiag.leaderboard.board import Board
from lmdiag.leaderboard.entries import Entry, RankedEntry
from lmdiag.report.charts.output import svg
from lmdiag.report.formats.page import environment, frame
from lmdiag.results import REPORT
from lmdiag.results.published_figures import human_facts
from lmdiag.studies.comparison import compare_all
from lmdiag.text import change_texts, shortened, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_FACTS = "id", "commit", "kind", "architecture", "dtype", "quantization", "n_parameters", "cased"
"""On a model, in `leaderboard.json`."""
_KINDS = {"masked": "var(--c1)", "causal": "var(--c2)", "seq2seq": "var(--c3)", "mntp": "var(--c4)"}
"""Kind of model -> colour of its points."""
_NAME = 24
"""Characters of the name beside a point."""
_SIDES: tuple[dict[str, Any], ...] = ({"dx": 7, "align": "left"}, {"dx": -7, "align": "right"})
"""Where the names of the smaller and of the larger models stand beside their points."""
_HALO: dict[str, Any] = {"stroke": "var(--paper)", "strokeWidth": 3}
"""Below each name, so that no line strikes it through."""
_MOST_TICKS = 6
_PIXELS, _LETTER, _LINE = 300, 6, 0.06
"""Width of a chart and of a letter in pixels, and height of a name as a share of its axis."""


def check_target(out: Path) -> None:
    """Refuses a file, and a directory with other content than a site."""
    try:
        names = {path.name for path in out.iterdir()}
    except FileNotFoundError:  # also for a moment while another command replaces the site
        return
    except NotADirectoryError:
        raise BadInput(f"--out {out} is a file: name a directory") from None
    if names and SITE_INDEX not in names:
        raise BadInput(f"--out {out} is not a leaderboard directory: choose an empty one")


def write_site(
    out: Path, rows: Sequence[RankedEntry], others: Sequence[Entry], board: Board
) -> None:
    """Writes the site of rows, in order of rank, and other entries, completely or not at all."""
    work, before = (out.with_name(f".{out.name}.{name}") for name in ("building", "before"))
    for folder in (work, before):  # of an interrupted command
        shutil.rmtree(folder, ignore_errors=True)
    (work / "models").mkdir(parents=True)
    for row in rows:
        shutil.copyfile(row.run.path / REPORT, work / row.page)
    shutil.copyfile(resource_path("cards", "leaderboard.card.md"), work / "README.md")
    # The page does not tell where on this machine the data are.
    data = board.data if is_on_hub(board.data) else real_path(Path(board.data)).name
    (work / "index.html").write_text(_page(rows, others, board, data), "utf-8")
    record = {
        "schema_version": 1,
        "data": data,
        "signature": board.signature,
        "rows": [
            {
                "rank": row.rank,
                "corrected_sensitivity": row.corrected_sensitivity,
                "model": {name: getattr(row.model, name) for name in _FACTS},
                "figures": {key: figure.to_json() for key, figure in row.figures.items()},
                "claimed_otherwise": row.differing,
                "also": row.also,
                "page": row.page,
            }
            for row in rows
        ],
        "not_run": [
            {"name": x.name, "reason": x.reason, "detail": x.detail, "claimed": x.claimed}
            for x in others
        ],
    }
    text = json.dumps(change_texts(record, visible), indent=1, allow_nan=False)
    (work / SITE_INDEX).write_text(text, "utf-8")
    if out.exists():
        out.replace(before)
    work.replace(out)
    shutil.rmtree(before, ignore_errors=True)


def _page(rows: Sequence[RankedEntry], others: Sequence[Entry], board: Board, data: str) -> str:
    """Returns the page of the site; `data` is the name of the data."""
    titles = {key.task: diagnostics.get(key.task).short_title for key in columns()}
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, column in columns().items():
        figures = [*filter(None, (row.figures.get(task_id(key)) for row in rows))]
        if figures:
            chances = {figure.chance for figure in figures} - {None}
            chance = chances.pop() if len(chances) == 1 else None
            facts = {"task": key.task, "n": max(x.n or 0 for x in figures), "chance": chance}
            facts |= {"task_id": task_id(key), "label": column.label}
            groups.setdefault(key.task, []).append(asdict(column) | facts)
    overview = [x for columns in groups.values() for x in columns if x["is_overview"]]
    names = {task_id(key): f"{titles[key.task]}, {x.label}" for key, x in columns().items()}
    comparisons = _comparison_results(rows)
    return environment().get_template("leaderboard.html.j2").render(
        **frame("leaderboard"),
        groups=groups,
        titles=titles,
        names=names,
        rows=rows,
        comparisons=json.dumps(comparisons, separators=(",", ":")),
        pictures=[(names[column["task_id"]], _chart(column, rows)) for column in overview],
        others=others,
        data=data,
        is_on_hub=is_on_hub(board.data),
        fingerprints={task: rows.fingerprint for task, rows in board.stimuli.items()},
        facts=[fact for task in board.tasks for fact in human_facts(task)],
    )  # fmt: skip


def _comparison_results(rows: Sequence[RankedEntry]) -> dict[str, Any]:
    """Returns the distinct results of comparing every two rows, and where each of them belongs.

    A result is difference, ends of the interval and p, six digits each, None where undefined.
    `columns` has for each base row, for each new one, the index of their result.
    """
    index: dict[tuple[float | None, ...], int] = {}
    tables = {}
    for key, results in compare_all([row.run for row in rows], columns()).items():
        table: list[list[int | None]] = [[None] * len(rows) for _ in rows]
        for (i, j), result in results.items():
            rounded = tuple(None if math.isnan(x) else round(x, 6) + 0.0 for x in result)
            table[i][j] = index.setdefault(rounded, len(index))
        tables[task_id(key)] = table
    return {"results": [*index], "columns": tables}


def _chart(column: Mapping[str, Any], rows: Sequence[RankedEntry]) -> str:
    """Returns the chart of a figure that some row has; points have the names of their models.

    Of names that would overlap, that of the higher point stands; the table has them all.
    """
    import numpy as np
    import pandas as pd

    from lmdiag.report.charts.drawing import INK, distinct, line_plot
    from lmdiag.report.charts.vega import field, mark, where

    data = pd.DataFrame(
        {"series": row.model.kind, "at": max(1, row.model.n_parameters), "value": figure.value,
         "low": figure.ci_low, "high": figure.ci_high, "chance": column["chance"],
         "name": shortened(row.name.rpartition("/")[2], _NAME)}
        for row in rows
        if (figure := row.figures.get(column["task_id"])) is not None
    ).sort_values("series", kind="stable")  # fmt: skip
    label = "replace(format(datum.value, '~s'), 'G', 'B')"
    ticks = _ticks(*data["at"].agg(["min", "max"]))
    axis = {"labelExpr": label, "values": ticks, "grid": False}
    scale = {"type": "log", "nice": False, "padding": 20}
    x = field("at", "numbers", title="parameters", axis=axis, scale=scale)
    # names of the larger models stand left of their points, inside of the chart
    sizes = np.log10(data["at"])
    data["is_large"] = sizes > (sizes.min() + sizes.max()) / 2
    data["name"] = _names_without_overlap(data, sizes)
    encoding = {"x": x, "y": field("value", "numbers"), "text": field("name", "names")}
    names = []
    for halo in _HALO, {}:
        for is_large, side in enumerate(_SIDES):
            name = mark("text", encoding, fontSize=10, color=INK, **side, **halo)
            names.append(where(name, {"field": "is_large", "equal": bool(is_large)}))
    colors = [_KINDS[kind] for kind in distinct(data, "series")]
    plot = line_plot(data, x, *names, form="%", joined=(), colors=colors, heights=(200, 200))
    return svg(plot, 380)


def _ticks(smallest: int, largest: int) -> list[int]:
    """Up to six round numbers of parameters between two, or these two where there are none.

    >>> _ticks(70_000_000, 1_500_000_000)
    [100000000, 200000000, 500000000, 1000000000]
    """
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10**i for i in range(16) for step in steps]
        ticks = [tick for tick in ticks if smallest <= tick <= largest]
        if len(ticks) <= _MOST_TICKS:
            break
    return ticks or [int(smallest), int(largest)]


def _names_without_overlap(data: DataFrame, sizes: Series) -> list[str]:
    """The names of points from the highest on.

    Those that would overlap another name, or another point, are left out.
    """
    at = sizes - sizes.min()
    width = _PIXELS / ((sizes.max() - sizes.min()) or 1.0)
    placed: list[tuple[float, float, float]] = []
    names = dict.fromkeys(data.index, "")
    for row in data.sort_values("value", ascending=False, kind="stable").itertuples():
        length = _LETTER * len(row.name)
        left = width * at[row.Index] - length * row.is_large
        others = at.index != row.Index
        points = zip(width * at[others], width * at[others], data["value"][others], strict=True)
        is_free = all(
            left > end or left + length < start or abs(row.value - value) > _LINE
            for start, end, value in (*placed, *points)
        )
        if is_free:
            placed.append((left, left + length, row.value))
            names[row.Index] = row.name
    return [names[index] for index in data.index]
