"""The items of runs as one tidy table: a row per scored word, sentence, region or word of one."""

from __future__ import annotations

import math
import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pandas import DataFrame, concat

from lmdiag.measures import part_bits
from lmdiag.perturb import NONE, is_shuffled, perturb
from lmdiag.table_files import TABLE_SUFFIXES, plain_frame, read_frame
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.protocol import Predictions
    from lmdiag.results import Run
    from lmdiag.stimuli import Stimuli

Per = Literal["row", "region", "word"]

SCORES = ("surprisal", "probability", "entropy", "rank", "n_tokens", "state", "top_word")
"""Columns of what the model predicted, of rows with a blank; rows of sentences have no rank and no
top word, and of entropies only those of words and regions."""

PARTS = ("number", "name", "text", "start")
"""Columns of a region or word."""

_RUN = ("model", "signature", "task", "perturbation", "shuffle")
_NOT_WRITTEN = ("regions", "formulas")
"""Columns of suites that are not single values; the regions are rows with `per="region"`."""


def items_of(source: Any, *, task: str = "", per: Per = "row") -> DataFrame:
    """Returns the items of runs, of a table or of its file as one table.

    Args:
        source: a run, a run directory, a table, or a file of one; or several of them.
        task: of the runs; "" for all.
        per: "row" for a row per row of the data; of sentences also "region" or "word".

    Returns:
        A table as it is; of a run, a row per scored thing and setting. Columns: model, signature,
        task; perturbation and shuffle in a run with perturbations; the columns of the data as the
        user wrote them, without those that are empty; of regions and words `number`, `name`,
        `text`, `start`; then surprisal (bits), probability, n_tokens and state (scored, censored,
        unscorable, or empty for a region without words), for blanks rank and top_word, and in a run
        with entropies, for blanks, words and regions, entropy (bits). A column of the data that has
        one of these names gets `_data` at its end.

    Raises:
        BadInput: no such task; rows with a blank, or sentences without regions, have no such parts;
            the file cannot be read.
    """
    from lmdiag.results import Run, load_run

    tables = []
    for part in source if isinstance(source, list | tuple) else [source]:
        if isinstance(part, DataFrame):
            tables.append(plain_frame(part))
        elif is_table_file(part):
            tables.append(read_frame(Path(part)).reset_index(drop=True))
        else:
            run = part if isinstance(part, Run) else load_run(part)
            tables.append(_of_run(run, task, per))
    return concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]


def is_table_file(source: object) -> bool:
    """Returns whether a source is the name of a file with a table."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in (
        *TABLE_SUFFIXES,
        ".txt",
    )


def model_column(run: Run) -> str:
    """Returns the name of the model of a run in the column `model`."""
    model = run.results.model
    return model.name or (f"{model.id}@{model.revision}" if model.revision else model.id)


def _of_run(run: Run, task: str, per: Per) -> DataFrame:
    """The items of a run, all settings below each other."""
    if task and task not in run.stimuli:
        raise BadInput(f"{run.path} has no task {task!r}: choose from {', '.join(run.stimuli)}")
    frames = []
    for name in [task] if task else run.stimuli:
        for (setting, shuffle), predictions in run.predictions[name].items():
            stimuli = run.stimuli[name]
            if setting != NONE:
                stimuli = perturb(stimuli, setting, shuffle, run.results.protocol.seed)
            rows = _rows(stimuli, predictions, per).assign(
                model=model_column(run),
                signature=run.results.signature,
                task=name,
                perturbation=setting,
                shuffle=shuffle if is_shuffled(name, setting) else math.nan,
            )
            frames.append(rows)
    table = concat(frames, ignore_index=True)
    has_settings = any(len(settings) > 1 for settings in run.results.tasks.values())
    first = _RUN if has_settings else _RUN[:3]
    table = table[[*first, *table.columns.drop([*_RUN])]]
    whole = table.columns.intersection(["rank", "n_tokens", "shuffle"])
    return table.astype(dict.fromkeys(whole, "Int64"))


def items_of_predictions(predictions: Predictions, stimuli: Stimuli, per: Per = "row") -> DataFrame:
    """Returns the items of predictions as a table; see `items_of`.

    Args:
        predictions: in the order of the rows.
        stimuli: the rows that were asked, perturbed where the predictions are.
        per: "row", "region" or "word".

    Raises:
        BadInput: the predictions are not of these rows, or rows have no such parts.
    """
    if list(stimuli.columns()["id"]) != list(predictions.id):
        raise BadInput("the predictions are not of these rows: their ids differ")
    table = _rows(stimuli, predictions, per)
    model = predictions.model
    table.insert(0, "model", (model.name or model.id) if model else "unknown model")
    table.insert(1, "task", stimuli.task)
    return table


def _rows(stimuli: Stimuli, predictions: Predictions, per: Per) -> DataFrame:
    """The columns of the data and of the predictions."""
    taken = (*_RUN, *SCORES, *(PARTS if per != "row" else ()))
    data = DataFrame()
    for name, values in stimuli.columns().items():
        if name not in _NOT_WRITTEN and any(value not in ("", None, []) for value in values):
            lists = isinstance(values[0], list | tuple)  # as a csv file has them, with bars
            cells = ["|".join(map(str, value)) for value in values] if lists else values
            data[f"{name}_data" if name in taken else name] = cells
    if within := stimuli.diagnostic.item_within:
        data["item"] = data[within] + "-" + data["item"].map(str)
    if per != "row":
        parts = _parts(stimuli, predictions, per)
        return data.loc[parts.pop("row")].reset_index(drop=True).join(parts)
    nats = np.array(predictions.log_prob, dtype=float)  # None becomes NaN
    data["surprisal"] = 0.0 - nats / math.log(2)
    data["probability"] = np.exp(nats)
    if is_blank := stimuli.diagnostic.asks != "sentence":
        if predictions.entropies:
            data["entropy"] = [bits and bits[0] for bits in predictions.entropies]
        data["rank"] = predictions.rank
    data["n_tokens"] = predictions.n_tokens
    data["state"] = [predictions.state(row) for row in range(len(nats))]
    if is_blank:
        data["top_word"] = [words[0] if words else None for words in predictions.top_words]
    return data


def _parts(stimuli: Stimuli, predictions: Predictions, per: Per) -> DataFrame:
    """The columns of regions or words, and the number of their row."""
    if stimuli.diagnostic.asks != "sentence":
        raise BadInput(f"{stimuli.task} has words at blanks: --per {per} needs whole sentences")
    if per == "region" and stimuli.regions is None:
        raise BadInput(
            f"{stimuli.task} has no regions: give columns region_1, region_2, ..., or put | "
            "between the regions in the column sentence"
        )
    records = []
    for row, sentence in enumerate(stimuli.columns()["sentence"]):
        spans = (predictions.words[row] if predictions.words else None) or ()
        entropies = (predictions.entropies[row] if predictions.entropies else None) or ()
        known = [*zip_longest(spans, entropies)]
        words = enumerate(re.finditer(r"\S+", sentence), start=1)
        parts = [(number, "", *match.span()) for number, match in words]
        if per == "region":
            regions = (stimuli.regions or [])[row]
            parts = [(r["number"], r["name"], r["start"], r["end"]) for r in regions]
        for number, name, start, end in parts:
            inside = [(span, x) for span, x in known if start <= span.start < end]
            n_tokens = sum(span.n_tokens for span, _ in inside)
            entropy = next((x for span, x in inside if span.n_tokens), None)
            bits = part_bits(spans, start, end)
            state = "unscorable" if math.isnan(bits) else "scored"
            if start == end and stimuli.form != "suites":  # in formulas of suites, it is 0
                bits = math.nan
                state = "empty"
            scores = bits, 2.0**-bits, entropy, n_tokens, state
            records.append((row, number, name, sentence[start:end], start, *scores))
    names = ["row", *PARTS, "surprisal", "probability", "entropy", "n_tokens", "state"]
    table = DataFrame(records, columns=names)
    return table if predictions.entropies else table.drop(columns="entropy")
