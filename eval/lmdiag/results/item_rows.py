"""The items of predictions as a tidy table: a row per scored word, sentence, or part of one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
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

_PART_COLUMNS = [
    "row", *PARTS, "surprisal", "probability", "entropy", "n_tokens", "state", "shares_token",
]  # fmt: skip
"""Columns of `part_rows`, in their order."""

ITEM_FACTS = ("model", "signature", "weights", "task", "perturbation", "shuffle")
"""Columns of what a row was asked for: the run, and the setting."""

_NOT_WRITTEN = ("regions", "formulas")
"""Columns of test suites whose values are lists of records, which a cell cannot hold. Regions are
the rows of a table of their own, with `per="region"`."""


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
        # predictions do not say k and threshold: they are the default ones
        scores = item_scores(stimuli, unperturbed, Protocol(), folds, kind)
    facts = {"model": model_label(model)}
    if model:
        facts["weights"] = weights_text(model)
    rows = item_rows(stimuli, predictions, scores, per)
    return with_facts(rows, facts | {"task": stimuli.task})


def with_facts(rows: DataFrame, facts: Mapping[str, Any]) -> DataFrame:
    """Returns a table with a column for each fact before its own columns.

    The fact {"model": "gpt2"} becomes a column `model` with "gpt2" in every row.
    """
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
    """Returns a table of items: columns of the data, of the predictions, and of the measures.

    Measures have a value for a whole row of the data: tables of regions or words lack them.

    Args:
        stimuli, predictions: see `items_of_predictions`.
        scores: measure -> its per-item scores; {} for none.
        per: what a row of the table is, see `Per`.
    """
    is_whole = per in ("row", "sentence")
    measures = dict(measure_columns(stimuli, scores)) if is_whole else {}
    regions = stimuli.regions or [[]]
    # the regions of all sentences have the same names
    has_critical = per == "row" and any(predictions.words or ()) and critical_region(regions[0])
    if has_critical:
        measures.pop("critical_surprisal", None)  # it is the column surprisal
    further_columns = [*ITEM_FACTS, *PREDICTED, *measures]
    if has_critical or not is_whole:
        further_columns += PARTS
    data = _data_columns(stimuli, further_columns)
    if has_critical:  # a row per sentence, with the prediction of its critical word
        parts = part_rows(stimuli, predictions, "region")
        parts = parts[parts["name"] == CRITICAL].reset_index(drop=True).drop(columns="row")
        return data.join(parts).assign(**measures)
    if not is_whole:  # a row per region or word, each with the data of its sentence
        parts = part_rows(stimuli, predictions, per)
        return data.loc[parts.pop("row")].reset_index(drop=True).join(parts)
    has_blank = stimuli.diagnostic.asks != "sentence"
    nats = np.array(predictions.log_prob, dtype=float)  # None becomes NaN
    data["surprisal"] = 0.0 - nats / math.log(2)  # `-nats` would give -0.0 for a certain word
    data["probability"] = np.exp(nats)
    if has_blank:
        if predictions.entropies:
            # a row with a blank has a list of one entropy, or None
            data["entropy"] = [bits and bits[0] for bits in predictions.entropies]
        data["rank"] = predictions.rank
    data["n_tokens"] = predictions.n_tokens
    data["state"] = [predictions.state(row) for row in range(len(nats))]
    if has_blank:
        data["top_word"] = [words[0] if words else None for words in predictions.top_words]
    return data.assign(**measures)


def _data_columns(stimuli: Stimuli, further_columns: Collection[str]) -> DataFrame:
    """Returns the columns of the data that have values, as cells of a table.

    A list becomes a text with bars between its values: ["bird", "robin"] -> "bird|robin". In data
    whose numbers of items are unique only within another column, items get the value of this column
    in front: item 7 of the subset "simp" is "simp-7".

    Args:
        stimuli: the rows of the data.
        further_columns: names of the columns that the caller puts beside these. A column of the
            data with such a name gets `DATA_SUFFIX`: "rank" becomes "rank_data".
    """
    data = DataFrame()
    for name, values in stimuli.columns().items():
        has_values = any(value not in ("", None, []) for value in values)
        if name in _NOT_WRITTEN or not has_values:
            continue
        cells = values
        if isinstance(values[0], list | tuple):
            cells = ["|".join(map(str, value)) for value in values]
        column = f"{name}{DATA_SUFFIX}" if name in further_columns else name
        data[column] = cells
    within = stimuli.diagnostic.item_within
    if within:
        # neither column has got the suffix: no further column is called "item", "subset" or
        # "template" (the columns that built-in diagnostics declare as `item_within`)
        data["item"] = data[within] + "-" + data["item"].map(str)
    return data


def measure_columns(
    stimuli: Stimuli, scores: Mapping[str, Scores]
) -> Iterator[tuple[str, list[float]]]:
    """Yields each measure with its value for every row, NaN where it is undefined.

    A measure of contrasts has its value in the good row. These measures are left out: those of
    human data; correlations, which have no value for an item; the points of curves over cut-offs;
    and predictions of suites, of which an item may have several.
    """
    rows = stimuli.columns()
    for name, measure in scores.items():
        if name in PREDICTED or measure.over not in rows or MeasureName.of(name).is_curve_point:
            continue
        if measure.statistic in CORRELATIONS or is_human(name):
            continue
        value_of_item = dict(zip(measure.items, measure.values.tolist(), strict=True))
        values = [value_of_item.get(item, math.nan) for item in rows[measure.over]]
        if measure.over == "contrast":
            pairs = zip(values, rows["good"], strict=True)
            values = [value if is_good else math.nan for value, is_good in pairs]
        yield name, values


def part_rows(
    stimuli: Stimuli, predictions: Predictions, per: Per, rows: Iterable[int] | None = None
) -> DataFrame:
    """Returns a table with a row per region or word, and the number of its sentence in `row`.

    Args:
        stimuli, predictions: see `items_of_predictions`.
        per: "region" or "word".
        rows: numbers of the sentences, from 0; None for all.
    """
    if stimuli.diagnostic.asks != "sentence":
        raise BadInput(f"{stimuli.task} has words at blanks: --per {per} needs whole sentences")
    if per == "region" and stimuli.regions is None:
        raise BadInput(
            f"{stimuli.task} has no regions: give columns region_1, region_2, ..., or put | "
            "between the regions in the column sentence"
        )
    records = []
    # a region without words has the surprisal that formulas of test suites take, or none
    empty_bits = EMPTY_REGION_BITS if stimuli.form == "suites" else math.nan
    sentences = stimuli.columns()["sentence"]
    for row in range(len(sentences)) if rows is None else rows:
        sentence = sentences[row]
        words = predictions.words[row] if predictions.words else None
        regions = stimuli.regions[row] if per == "region" and stimuli.regions else None
        entropies = predictions.entropies[row] if predictions.entropies else None
        parts = sentence_parts(sentence, words, regions, entropies, empty_bits=empty_bits)
        for part in parts:
            text = sentence[part.start : part.end]
            # in the order of `_PART_COLUMNS`; 2 to the minus bits is the probability
            records.append((
                row, part.number, part.name, text, part.start,
                part.bits, 2.0**-part.bits, part.entropy, part.n_tokens, part.state,
                part.shares_token,
            ))  # fmt: skip
    table = DataFrame(records, columns=_PART_COLUMNS)
    if not table["shares_token"].any():
        table = table.drop(columns="shares_token")
    return table if predictions.entropies else table.drop(columns="entropy")
