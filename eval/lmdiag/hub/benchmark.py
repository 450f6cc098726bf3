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
    """Returns the address of each figure of the leaderboard -> its selection, in order."""
    by_address = {}
    for task, diagnostic in diagnostics.built_in().items():
        for selection in diagnostic.leaderboard:
            for measure in selection.measures:
                labelled = replace(selection, label=selection.label or measure)
                for level in selection.levels or ("",):
                    key = FigureKey(task, "none", measure, selection.by, level)
                    by_address[key] = labelled
    return by_address


def task_id(key: FigureKey) -> str:
    """Returns the id of a figure in `eval-lmdiag.yaml`: config, measure (`_at_` for `@`), level.

    The Hub takes one value per task of a benchmark, so each column is a task of its own.
    """
    parts = (key.task, key.measure.replace("@", "_at_"), key.level)
    return re.sub(r"[./]", "_", "_".join(filter(None, parts)))


def leaderboard_figures(results: Results) -> dict[str, Figure]:
    """Returns the id of each task of the benchmark -> the run's figure, without undefined ones."""
    from pandas import DataFrame

    declared = DataFrame(columns().keys())
    declared["task_id"] = [*map(task_id, columns())]
    table = declared.merge(figure_records([results])).dropna(subset="value")
    return dict(zip(table["task_id"], table["figure"], strict=True))


def protocol_problem(protocol: Protocol) -> str | None:
    """Returns why a run has another protocol than the leaderboard's; None if it has the same.

    The leaderboard has the default protocol on all rows of the three diagnostics; other published
    diagnostics may be added.
    """
    same = {name: getattr(protocol, name) for name in ("tasks", "verbs", "entropy")}
    default = vars(Protocol(**same))
    changed = [name for name, value in vars(protocol).items() if value != default[name]]
    published = [x.name for x in diagnostics.built_in().values() if x.in_data_set]
    if missing := [task for task in DIAGNOSTICS if task not in protocol.tasks]:
        return f"it lacks {', '.join(missing)}, which the leaderboard shows"
    if foreign := [task for task in protocol.tasks if task not in published]:
        return f"the leaderboard does not have {first_few(foreign)}: submit a run without it"
    if changed:
        return f"it was not made with the default {', '.join(changed)}, as the leaderboard is"
    return None
