"""The items of predictions as a tidy table: a row per scored word, sentence, or part of one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pandas import DataFrame

from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.measures import (
    CRITICAL,
    EMPTY_REGION_BITS,
    MeasureName,
    Scores,
    critical_region,
    folds_for,
    is_human,
    sentence_parts,
)
from lmdiag.results.item_scores import item_scores
from lmdiag.results.model_labels import model_label, weights_text
from lmdiag.stats import CORRELATIONS
from lmdiag.stimuli.perturbations import NONE
from lmdiag.text import DATA_SUFFIX
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

Per = Literal["row", "sentence", "region", "word"]
"""What a row is of: a row of the data, with the surprisal of its critical word where it has one; a
whole sentence; a region or a word of it."""

PREDICTED = (
    "surprisal", "probability", "entropy", "rank", "n_tokens", "state", "shares_token", "top_word",
)  # fmt: skip
"""Columns of what the model predicted, of rows with a blank; rows of sentences have no rank and no
top word, and of entropies only those of words and regions."""

PARTS = ("number", "name", "text", "start")
"""Columns of a region or word."""

ITEM_FACTS = ("model", "signature", "weights", "task", "perturbation", "shuffle")
"""Columns of what a row was asked for: the run, and the setting."""

_NOT_WRITTEN = ("regions", "formulas")
"""Columns of suites that are not single values; the regions are rows with `per="region"`."""


def items_of_predictions(
    predictions: Predictions, stimuli: Stimuli, per: Per = "row", *, scored: bool = True
) -> DataFrame:
    """Returns the items of predictions as a table; see `lmdiag.analysis.items.items_of`.

    Args:
        predictions: in the order of the rows.
        stimuli: the rows that were asked, perturbed where the predictions are.
        per: see `Per`.
        scored: whether rows have the value of each measure.
    """
    if list(stimuli.columns()["id"]) != list(predictions.id):
        raise BadInput("the predictions are not of these rows: their ids differ")
    model = predictions.model
    scores: Mapping[str, Scores] = {}
    if scored:
        unperturbed = replace(predictions, perturbation=NONE)  # the rows are perturbed already
        folds = folds_for(model)
        kind = model.kind if model else "masked"
        scores = item_scores(stimuli, unperturbed, Protocol(), folds, kind)
    facts = {"model": model_label(model)}
    if model:
        facts["weights"] = weights_text(model)
    rows = item_rows(stimuli, predictions, scores, per)
    return with_facts(rows, facts | {"task": stimuli.task})


def with_facts(rows: DataFrame, facts: Mapping[str, Any]) -> DataFrame:
    """Returns the rows after columns of one value each."""
    return DataFrame(facts, rows.index).join(rows)


@dataclass(frozen=True, repr=False, kw_only=True)
class TaskPredictions(Predictions):
    """Predictions with the rows that they are of.

    Attributes:
        stimuli: the rows, perturbed where the predictions are.
    """

    stimuli: Stimuli

    def items(self, per: Per = "row") -> DataFrame:
        """Returns the items as a pandas table; see `lmdiag.results.Run.items`."""
        return items_of_predictions(self, self.stimuli, per)


def item_rows(
    stimuli: Stimuli, predictions: Predictions, scores: Mapping[str, Scores], per: Per
) -> DataFrame:
    """Returns the columns of the data, the predictions and, of whole rows, the measures."""
    is_whole = per in ("row", "sentence")
    measures = dict(measure_columns(stimuli, scores)) if is_whole else {}
    regions = stimuli.regions or [[]]
    # the regions of all sentences have the same names
    has_critical = per == "row" and any(predictions.words or ()) and critical_region(regions[0])
    if has_critical:
        measures.pop("critical_surprisal", None)  # it is the column surprisal
    has_parts = not is_whole or has_critical
    other_columns = (*ITEM_FACTS, *PREDICTED, *measures, *(PARTS if has_parts else ()))
    data = DataFrame()
    for name, values in stimuli.columns().items():
        if name not in _NOT_WRITTEN and any(value not in ("", None, []) for value in values):
            has_lists = isinstance(values[0], list | tuple)  # as a csv file has them, with bars
            cells = ["|".join(map(str, value)) for value in values] if has_lists else values
            data[f"{name}{DATA_SUFFIX}" if name in other_columns else name] = cells
    if within := stimuli.diagnostic.item_within:
        data["item"] = data[within] + "-" + data["item"].map(str)
    if has_critical:
        parts = part_rows(stimuli, predictions, "region")
        parts = parts[parts["name"] == CRITICAL].reset_index(drop=True).drop(columns="row")
        return data.join(parts).assign(**measures)
    if not is_whole:
        parts = part_rows(stimuli, predictions, per)
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
    return data.assign(**measures)


def measure_columns(
    stimuli: Stimuli, scores: Mapping[str, Scores]
) -> Iterator[tuple[str, list[float]]]:
    """Yields each measure with its value for every row, NaN where it is undefined.

    A measure of contrasts has its value in the good row. Left out are measures of human data,
    correlations, which have no value for an item, the points of curves over cut-offs, and
    predictions of suites, of which an item may have several.
    """
    rows = stimuli.columns()
    good = rows.get("good", ())
    for name, measure in scores.items():
        is_shown = name not in PREDICTED and measure.over in rows
        is_shown &= not MeasureName.of(name).is_curve_point
        if not is_shown or measure.statistic in CORRELATIONS or is_human(name):
            continue
        value_of = dict(zip(measure.items, measure.values.tolist(), strict=True))
        values = [value_of.get(item, math.nan) for item in rows[measure.over]]
        if measure.over == "contrast":
            values = [value if g else math.nan for value, g in zip(values, good, strict=True)]
        yield name, values


def part_rows(
    stimuli: Stimuli, predictions: Predictions, per: Per, rows: Iterable[int] | None = None
) -> DataFrame:
    """Returns the columns of regions or words, and the number of their row, of all rows or some."""
    if stimuli.diagnostic.asks != "sentence":
        raise BadInput(f"{stimuli.task} has words at blanks: --per {per} needs whole sentences")
    if per == "region" and stimuli.regions is None:
        raise BadInput(
            f"{stimuli.task} has no regions: give columns region_1, region_2, ..., or put | "
            "between the regions in the column sentence"
        )
    records = []
    empty_bits = EMPTY_REGION_BITS if stimuli.form == "suites" else math.nan
    sentences = stimuli.columns()["sentence"]
    for row in range(len(sentences)) if rows is None else rows:
        sentence = sentences[row]
        parts = sentence_parts(
            sentence,
            predictions.words[row] if predictions.words else None,
            (stimuli.regions or [])[row] if per == "region" else None,
            predictions.entropies[row] if predictions.entropies else None,
            empty_bits=empty_bits,
        )
        for part in parts:
            text = sentence[part.start : part.end]
            predicted = part.bits, 2.0**-part.bits, part.entropy, part.n_tokens, part.state
            place = part.number, part.name, text, part.start
            records.append((row, *place, *predicted, part.shares_token))
    names = ["row", *PARTS, "surprisal", "probability", "entropy", "n_tokens", "state"]
    table = DataFrame(records, columns=[*names, "shares_token"])
    if not table["shares_token"].any():
        table = table.drop(columns="shares_token")
    return table if predictions.entropies else table.drop(columns="entropy")
