"""Loads and checks stimuli: rows with a context, a blank and a word to be scored at it.

`data` is a directory written by `datasets/lmdiag/build.py` (or any directory whose README.md has
YAML `configs:`), the id of a Hub data set, or a csv, tsv, JSON-lines or Parquet file with the core
columns: a diagnostic of one's own, whose task name is the file's stem.
"""

from __future__ import annotations

from lmdiag.schema import BadInput
from lmdiag.stimuli.checks import check
from lmdiag.stimuli.places import find
from lmdiag.stimuli.records import Stimuli, fingerprint
from lmdiag.stimuli.tables import normalise
from lmdiag.stimuli.verbs import VERBS, load_verbs
from lmdiag.suggestions import suggest

__all__ = ["VERBS", "Stimuli", "load", "load_verbs", "tasks"]


def tasks(data: str, *, revision: str | None = None) -> list[str]:
    """Names of the tasks that a data set has: its configs but for the list of verbs.

    Args:
        data: directory, file or Hub data set.
        revision: branch, tag or commit of a Hub data set.

    Raises:
        BadInput: there is no such data set.
    """
    return [name for name in find(data, revision).configs if name != VERBS]


def load(
    data: str,
    task: str | None = None,
    *,
    revision: str | None = None,
    limit: int | None = None,
) -> Stimuli:
    """Reads the stimuli of one task and checks that they keep the contract of SPEC 1.

    Args:
        data: directory, file or Hub data set.
        task: name of a config, or the stem of the file; None for the only one there is.
        revision: branch, tag or commit of a Hub data set; local data have none and ignore it.
        limit: keep the first rows only.

    Raises:
        BadInput: unknown data set or task, a missing column, a row that breaks the contract; the
            message names file, row and column.
    """
    if limit is not None and limit < 1:
        raise BadInput(f"--limit must be at least 1, not {limit}")
    place = find(data, revision)
    known = [name for name in place.configs if name != VERBS]
    if task is None and len(known) == 1:
        (task,) = known
    if task is None or task not in known:
        there = "several tasks" if task is None else f"no task {task!r}{suggest(task, known)}"
        raise BadInput(f"{data} has {there}: choose from {', '.join(known) or 'none'}")
    table, where = normalise(place.read(task))
    columns = table.to_pydict()
    check(columns, where)
    if limit is not None and limit < table.num_rows:
        table = table.slice(0, limit)
        columns = {name: values[:limit] for name, values in columns.items()}
    return Stimuli(task, table, fingerprint(columns), data, place.revision(task))
