"""The site of a leaderboard: its page, `leaderboard.json` and the reports of the runs.

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
_NAME_LENGTH = 24
"""Characters of the name beside a point."""
_RIGHT_OF_POINT: dict[str, Any] = {"dx": 7, "align": "left"}
_LEFT_OF_POINT: dict[str, Any] = {"dx": -7, "align": "right"}
"""Where the names of the smaller and of the larger models stand."""
_HALO: dict[str, Any] = {"stroke": "var(--paper)", "strokeWidth": 3}
"""Below each name, so that no line strikes it through."""
_MOST_TICKS = 6
_CHART_WIDTH, _LETTER_WIDTH, _NAME_HEIGHT = 300, 6, 0.06
"""Width of a chart and of a letter in pixels, and height of a name as a share of its axis."""


def check_target(out: Path) -> None:
    """Raises `BadInput` if the target of a site is a file, or a directory with other content."""
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
    """Writes the site of a leaderboard, completely or not at all.

    Args:
        out: directory of the site; an earlier one is replaced.
        rows: in order of rank.
        others: entries without a run.
    """
    # the new site is written beside the old one, and takes its place when it is complete
    work = out.with_name(f".{out.name}.building")
    before = out.with_name(f".{out.name}.before")
    for folder in (work, before):  # of an interrupted command
        shutil.rmtree(folder, ignore_errors=True)
    (work / "models").mkdir(parents=True)
    for row in rows:
        shutil.copyfile(row.run.path / REPORT, work / row.page)
    shutil.copyfile(resource_path("cards", "leaderboard.card.md"), work / "README.md")
    # The page does not tell where on this machine the data are.
    data = board.data if is_on_hub(board.data) else real_path(Path(board.data)).name
    (work / "index.html").write_text(_page(rows, others, board, data), "utf-8")
    text = json.dumps(_json_record(rows, others, board, data), indent=1, allow_nan=False)
    (work / SITE_INDEX).write_text(text, "utf-8")
    if out.exists():
        out.replace(before)
    work.replace(out)
    shutil.rmtree(before, ignore_errors=True)


def _json_record(
    rows: Sequence[RankedEntry], others: Sequence[Entry], board: Board, data: str
) -> Any:
    """The content of `leaderboard.json`: rows with figures, and requests without a run.

    Invisible characters are spelled out in its texts.

    Args:
        rows: in order of rank.
        others: entries without a run, with the reason.
        board: with which the requests were run.
        data: name of the data.
    """
    row_records = [
        {
            "rank": row.rank,
            "corrected_sensitivity": row.corrected_sensitivity,
            "model": {name: getattr(row.model, name) for name in _FACTS},
            "figures": {key: figure.to_json() for key, figure in row.figures.items()},
            "claimed_otherwise": row.differing_claims,
            "also": row.also,
            "page": row.page,
        }
        for row in rows
    ]
    other_records = [
        {
            "name": entry.name,
            "reason": entry.reason,
            "detail": entry.detail,
            "claimed": entry.claimed,
        }
        for entry in others
    ]
    record = {
        "schema_version": 1,
        "data": data,
        "signature": board.signature,
        "rows": row_records,
        "not_run": other_records,
    }
    return change_texts(record, visible)


def _page(rows: Sequence[RankedEntry], others: Sequence[Entry], board: Board, data: str) -> str:
    """The HTML text of the page of the site.

    Args:
        rows: in order of rank.
        others: entries without a run, with the reason.
        board: with which the requests were run.
        data: name of the data.
    """
    titles = {key.task: diagnostics.get(key.task).short_title for key in columns()}
    groups = _column_groups(rows)
    overview = [column for group in groups.values() for column in group if column["is_overview"]]
    # id of a column -> its name, e.g. "NEG-136, sensitivity"
    names = {
        task_id(key): f"{titles[key.task]}, {column.label}" for key, column in columns().items()
    }
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


def _column_groups(rows: Sequence[RankedEntry]) -> dict[str, list[dict[str, Any]]]:
    """Task -> facts on the columns of the leaderboard in which any row has a figure.

    The facts on a column are the fields of its declaration, its `task`, `task_id` and `label`, the
    largest `n` of all rows, and `chance`, None unless it is the same in all rows.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, column in columns().items():
        figures = [*filter(None, (row.figures.get(task_id(key)) for row in rows))]
        if figures:
            chances = {figure.chance for figure in figures} - {None}
            facts = {
                "task": key.task,
                "n": max(figure.n or 0 for figure in figures),
                "chance": chances.pop() if len(chances) == 1 else None,
                "task_id": task_id(key),
                "label": column.label,
            }
            groups.setdefault(key.task, []).append(asdict(column) | facts)
    return groups


def _comparison_results(rows: Sequence[RankedEntry]) -> dict[str, Any]:
    """The results of comparing every two rows, for the script of the page.

    The returned object has two entries. `results` lists distinct results: difference, ends of the
    interval and p, six digits each, None where undefined. `columns` has, for each column of the
    leaderboard, a table whose cell [base row][new row] is the index of their result in `results`,
    None where the rows are not compared. Equal results are listed once, which keeps the page small.

    For example, {"results": [[0.1, 0.02, 0.18, 0.01], ...], "columns": {"neg136": [[None, 0], [1,
    None]]}}.
    """
    index_of: dict[tuple[float | None, ...], int] = {}
    tables = {}
    for key, outcomes in compare_all([row.run for row in rows], columns()).items():
        table: list[list[int | None]] = [[None] * len(rows) for _ in rows]
        for (base_row, new_row), outcome in outcomes.items():
            # + 0.0: no negative zero
            result = tuple(None if math.isnan(x) else round(x, 6) + 0.0 for x in outcome)
            table[base_row][new_row] = index_of.setdefault(result, len(index_of))
        tables[task_id(key)] = table
    return {"results": [*index_of], "columns": tables}


def _chart(column: Mapping[str, Any], rows: Sequence[RankedEntry]) -> str:
    """The chart of a figure against the number of parameters, as an `<svg>` element.

    Points have the names of their models. Of names that would overlap, that of the higher point
    stands; the table has them all.

    Args:
        column: facts on the figure, see `_column_groups`.
        rows: of the leaderboard, one of which has the figure, at least.
    """
    import numpy as np
    import pandas as pd

    from lmdiag.report.charts.drawing import INK, distinct, line_plot
    from lmdiag.report.charts.vega import field, mark, where

    records = []
    for row in rows:
        figure = row.figures.get(column["task_id"])
        if figure is not None:
            records.append({
                "series": row.model.kind, "at": max(1, row.model.n_parameters),
                "value": figure.value, "low": figure.ci_low, "high": figure.ci_high,
                "chance": column["chance"],
                "name": shortened(row.name.rpartition("/")[2], _NAME_LENGTH),
            })  # fmt: skip
    data = pd.DataFrame(records).sort_values("series", kind="stable")
    label = "replace(format(datum.value, '~s'), 'G', 'B')"  # 2B parameters, not 2G
    ticks = _ticks(data["at"].min(), data["at"].max())
    axis = {"labelExpr": label, "values": ticks, "grid": False}
    scale = {"type": "log", "nice": False, "padding": 20}
    x = field("at", "numbers", title="parameters", axis=axis, scale=scale)
    # names of the larger models stand left of their points, inside of the chart
    sizes = np.log10(data["at"])
    data["is_large"] = sizes > (sizes.min() + sizes.max()) / 2
    data["name"] = _names_without_overlap(data, sizes)
    encoding = {"x": x, "y": field("value", "numbers"), "text": field("name", "names")}
    name_layers = []
    for halo in _HALO, {}:  # all names are drawn above all halos
        for is_large, side in ((False, _RIGHT_OF_POINT), (True, _LEFT_OF_POINT)):
            names = mark("text", encoding, fontSize=10, color=INK, **side, **halo)
            name_layers.append(where(names, {"field": "is_large", "equal": is_large}))
    colors = [_KINDS[kind] for kind in distinct(data, "series")]
    plot = line_plot(data, x, *name_layers, form="%", joined=(), colors=colors, heights=(200, 200))
    return svg(plot, 380)


def _ticks(smallest: int, largest: int) -> list[int]:
    """The ticks of an axis: up to six round numbers of parameters between the ends of the data.

    If there is no round number between them, the ends.

    >>> _ticks(70_000_000, 1_500_000_000)
    [100000000, 200000000, 500000000, 1000000000]
    """
    for digits in ((1, 2, 5), (1, 3), (1,)):  # that a number may begin with
        round_numbers = [digit * 10**i for i in range(16) for digit in digits]
        ticks = [number for number in round_numbers if smallest <= number <= largest]
        if len(ticks) <= _MOST_TICKS:
            break
    return ticks or [int(smallest), int(largest)]


def _names_without_overlap(data: DataFrame, sizes: Series) -> list[str]:
    """The names of points in the order of the rows; "" where one would overlap a name or a point.

    Names of higher points have precedence. For example, of "gpt2" at a value of 0.90 and "opt" at
    0.88 beside it, the names are ["gpt2", ""].

    Args:
        data: a row per point: `value` (from 0 to 1), `name`, and `is_large` if the name stands to
            the left of its point.
        sizes: logarithm of the number of parameters of each row, which places it from left to
            right.
    """
    pixels_per_unit = _CHART_WIDTH / ((sizes.max() - sizes.min()) or 1.0)
    x = pixels_per_unit * (sizes - sizes.min())
    placed: list[tuple[float, float, float]] = []  # left and right end and height of a name
    names = dict.fromkeys(data.index, "")
    for row in data.sort_values("value", ascending=False, kind="stable").itertuples():
        width = _LETTER_WIDTH * len(row.name)
        # the name ends at the point of a large model, and begins at that of a small one
        left = x[row.Index] - width * row.is_large
        right = left + width
        is_other = data.index != row.Index
        # other points, each like a name without letters
        points = zip(x[is_other], x[is_other], data["value"][is_other], strict=True)
        is_free = all(
            left > other_right or right < other_left or abs(row.value - value) > _NAME_HEIGHT
            for other_left, other_right, value in (*placed, *points)
        )
        if is_free:
            placed.append((left, right, row.value))
            names[row.Index] = row.name
    return [names[index] for index in data.index]
