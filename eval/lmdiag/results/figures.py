"""One tidy table of figures, of which csv, tables, charts and DataFrames are selections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from lmdiag.results.model_labels import model_labels
from lmdiag.results.published_figures import published_figures_of
from lmdiag.results.results import FigureKey, Results
from lmdiag.types import ModelInfo

if TYPE_CHECKING:
    from pandas import DataFrame

VALUES = ("value", "n", "n_tied", "ci_low", "ci_high", "chance", "versus_chance", "p_chance", "sd")
"""Columns that are attributes of a figure."""

_RECORDS = ("run", "figure", "reported")
"""Columns of `figure_records` alone."""


def figures(runs: Iterable[Results]) -> DataFrame:
    """Returns the figures of runs as one table with a row per figure.

    The columns are `model` (its `--name`, else the whole id), `revision`, `commit`, `step` (that of
    a training checkpoint whose revision or folder names one), `layer` (after which the model
    answered, where one of the runs is of an inner layer) and `precision` (the quantization, or else
    the data type of the weights); the address of the figure: `task`, `setting`, `measure`,
    `by` and `level` ("" for a measure over all items); `value` with `n`, `n_tied` (tied contrasts
    among them), `ci_low` and `ci_high` (95% interval), `chance`, `versus_chance` and `p_chance`;
    `sd` and `n_shuffles` of a shuffled setting; `published`, the figure of the paper, in percent;
    and `signature`. Proportions are in [0, 1]. What is not defined is missing (NaN or None).
    """
    return figure_records(runs).drop(columns=[*_RECORDS])


def figure_records(runs: Iterable[Results]) -> DataFrame:
    """Returns the table of `figures` with the records that its rows were made of.

    Further columns: `run`, position of the run, from 0; `figure`, the `Figure`; and `reported`, the
    `PublishedFigure` of the same address or None.
    """
    from pandas import DataFrame

    results = list(runs)
    names = _names([run.model for run in results])
    has_layers = any(run.protocol.layer is not None for run in results)
    rows = []
    for number, (name, run) in enumerate(zip(names, results, strict=True)):
        published_figures = published_figures_of(run)
        for key, figure in run.figures():
            published = published_figures.get(key)
            rows.append({
                "model": name, "revision": run.model.revision, "commit": run.model.commit,
                "step": run.model.training_step, "layer": run.layer if has_layers else None,
                "precision": run.model.quantization or run.model.dtype,
                **key._asdict(),
                **{column: getattr(figure, column) for column in VALUES},
                "n_shuffles": figure.runs, "published": published.value if published else None,
                "signature": run.tasks[key.task][key.setting].signature,
                "run": number, "figure": figure, "reported": published,
            })  # fmt: skip
    columns = [
        "model", "revision", "commit", "step", "layer", "precision", *FigureKey._fields, *VALUES,
        "n_shuffles", "published", "signature", *_RECORDS,
    ]  # fmt: skip
    # objects: texts in Arrow's arrays make each of the many selections slow
    table = DataFrame(rows, columns=columns, dtype=object)
    numbers = ("value", "ci_low", "ci_high", "chance", "p_chance", "sd", "published")
    counts = ("step", "n", "n_tied", "n_shuffles")
    # Int64, pandas' integers that may be missing
    return table.astype(dict.fromkeys(numbers, "float64") | dict.fromkeys(counts, "Int64"))


def _names(models: Sequence[ModelInfo]) -> list[str]:
    """Returns the name or id of each model, as the column `model` has it.

    Two different models may have the same name and revision. They have their labels instead, which
    tell them apart, for example by their dtype: "gpt2 (float16)" and "gpt2 (float32)".
    """
    names = [model.name or model.id for model in models]
    # with a name, a label begins with the name, and not with the last part of the id
    labels = model_labels(
        [replace(model, name=name) for model, name in zip(models, names, strict=True)]
    )
    keys = [(name, model.revision) for name, model in zip(names, models, strict=True)]
    distinct_models = set(zip(keys, labels, strict=True))
    n_models = Counter(key for key, _ in distinct_models)
    return [
        label if n_models[key] > 1 else name
        for name, key, label in zip(names, keys, labels, strict=True)
    ]


def matching_names(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match a pattern, in the order of the patterns, each once.

    >>> matching_names(["ew", "accuracy@1", "accuracy@5"], ["accuracy@*", "ew"])
    ['accuracy@1', 'accuracy@5', 'ew']
    """
    all_names = list(names)
    matches: list[str] = []
    for pattern in patterns:
        matches += [name for name in all_names if fnmatchcase(name, pattern)]
    return list(dict.fromkeys(matches))
