"""The items of runs and of tables of users as one tidy table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat

from lmdiag.results import Run, load_run
from lmdiag.results.item_rows import Per
from lmdiag.results.model_labels import model_labels
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.tables.table_files import TABLE_SUFFIXES, has_json_rows
from lmdiag.types import AS_IT_IS


def items_of(
    source: Any, *, task: str = "", per: Per = "row", labels: Sequence[str] = ()
) -> DataFrame:
    """Returns the items of runs, of a table or of its file as one table.

    Args:
        source: a run, a run directory, a table, or a file of one; or several of them.
        task: of the runs; "" for all.
        per: "row" for a row per row of the data, of which sentences with a critical word have the
            surprisal of this word; of sentences also "sentence", "region" or "word".
        labels: of the runs; by default those of `labels_of`.

    Returns:
        A table as it is; of a run, a row per scored thing and setting. Columns: model, signature,
        weights (precision and commit), task; perturbation and shuffle in a run with perturbations;
        the columns of the data as the user wrote them, without those that are empty; of regions and
        words `number`, `name`, `text`, `start`; then surprisal (bits), probability, n_tokens and
        state (scored, censored, unscorable, shared for a word without a token of its own, or
        empty for a region without words); `shares_token` of regions and words, where a token covers
        two of them ("next", "previous" or "both"); for blanks rank and top_word; and in a run with
        entropies, for blanks, words and regions, entropy (bits).
        Rows also have the value of each measure, see
        `lmdiag.results.item_rows.measure_columns`. A column of the data that
        has one of these names gets `_data` at its end.
    """
    sources = source if isinstance(source, list | tuple) else [source]
    parts = []  # tables, files of tables, and runs
    for part in sources:
        is_run_directory = not isinstance(part, DataFrame | Run) and not is_table_file(part)
        parts.append(load_run(part) if is_run_directory else part)
    runs = [part for part in parts if isinstance(part, Run)]
    remaining_labels = iter(labels or labels_of(runs))
    tables = []
    for part in parts:
        if isinstance(part, Run):
            table = part.items(per, task=task, label=next(remaining_labels))
        else:
            table, _ = read_frame_rows(part, AS_IT_IS, known=frozenset())  # with its own names
            if not isinstance(part, DataFrame):  # the index of a file has its lines
                table = table.reset_index(drop=True)
        tables.append(table)
    return concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Returns the label of each run in the column `model`, which tells runs of one model apart."""
    models = [run.results.model for run in runs]
    protocols = [run.results.protocol for run in runs]
    return model_labels(models, protocols)


def is_table_file(source: object) -> bool:
    """Returns whether a source is the name of a file with a table, e.g. "items.csv".

    False for a table itself, a run, and the directory of a run.
    """
    if not isinstance(source, str | Path):
        return False
    suffix = Path(source).suffix.lower()
    return suffix in (*TABLE_SUFFIXES, ".txt") or has_json_rows(source)
