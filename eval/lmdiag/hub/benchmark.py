"""The figures of the leaderboard: the tasks of `eval-lmdiag.yaml`, as diagnostics declare them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from lmdiag import diagnostics
from lmdiag.asking.protocol import Protocol
from lmdiag.results import Figure, FigureKey, Results
from lmdiag.results.figures import figure_records
from lmdiag.text import first_few
from lmdiag.types import DIAGNOSTICS

if TYPE_CHECKING:
    from lmdiag.diagnostics import FigureSelection


def columns() -> dict[FigureKey, FigureSelection]:
    """Returns the figure of each column of the leaderboard -> how a diagnostic declares it.

    The columns are in order, and all of them have a label, by default the name of the measure.
    """
    selection_of = {}
    for task, diagnostic in diagnostics.built_in().items():
        for selection in diagnostic.leaderboard:
            for measure in selection.measures:
                labelled = replace(selection, label=selection.label or measure)
                for level in selection.levels or ("",):
                    key = FigureKey(task, "none", measure, selection.by, level)
                    selection_of[key] = labelled
    return selection_of


def task_id(key: FigureKey) -> str:
    """Returns the id of a figure in `eval-lmdiag.yaml`, which has its task, measure and level.

    The Hub takes one value per task of a benchmark, so each column is a task of its own there.

    >>> task_id(FigureKey("cprag102", "none", "accuracy@5"))
    'cprag102_accuracy_at_5'
    """
    parts = (key.task, key.measure.replace("@", "_at_"), key.level)
    return re.sub(r"[./]", "_", "_".join(filter(None, parts)))


def leaderboard_figures(results: Results) -> dict[str, Figure]:
    """Returns id of a column of the leaderboard -> the figure of a run.

    The ids are those of `task_id`. Columns whose figure is not defined are left out.
    """
    from pandas import DataFrame

    table = DataFrame(columns().keys())  # a row per column: task, setting, measure, by, level
    table["task_id"] = [task_id(key) for key in columns()]
    # `merge` joins the figures on the columns that both tables have: the parts of the address
    table = table.merge(figure_records([results])).dropna(subset="value")
    return dict(zip(table["task_id"], table["figure"], strict=True))


def protocol_problem(protocol: Protocol) -> str | None:
    """Returns why a run has another protocol than the leaderboard's; None if it has the same.

    The leaderboard has the default protocol on all rows of the three diagnostics; other published
    diagnostics may be added.
    """
    missing_tasks = [task for task in DIAGNOSTICS if task not in protocol.tasks]
    if missing_tasks:
        return f"it lacks {', '.join(missing_tasks)}, which the leaderboard shows"
    built_in = diagnostics.built_in().values()
    published = [diagnostic.name for diagnostic in built_in if diagnostic.in_data_set]
    other_tasks = [task for task in protocol.tasks if task not in published]
    if other_tasks:
        return f"the leaderboard does not have {first_few(other_tasks)}: submit a run without it"
    # may differ: the tasks, the number of verbs of agreement, and whether entropy is recorded
    free_fields = {name: getattr(protocol, name) for name in ("tasks", "verbs", "entropy")}
    default = vars(Protocol(**free_fields))
    changed = [name for name, value in vars(protocol).items() if value != default[name]]
    if changed:
        return f"it was not made with the default {', '.join(changed)}, as the leaderboard is"
    return None
