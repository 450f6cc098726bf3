"""Measures of test suites: the share of predictions that hold."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from lmdiag.formulas import parse_formula
from lmdiag.measures.regions import part_bits
from lmdiag.measures.scores import Scores, Statistic, Trials, build, objects

EMPTY_REGION_BITS = 0.0
"""Surprisal of a region of a test suite that has no words."""


def suite_measures(trials: Trials) -> list[Scores]:
    """Returns suite_accuracy and prediction_accuracy.

    prediction_accuracy: over items and predictions, whether the prediction holds for the item, by
    `SUITE/NUMBER` of the prediction. suite_accuracy: over items, the share of the predictions of
    its suite that hold, by suite. A prediction is left out of an item where a region that it reads
    has no surprisal; see `part_bits`. No chance level is defined: it depends on the formula.

    Source: Hu et al. (2020), section 3.
    """
    if not (trials.has("log_prob") or trials.has("words")):
        return []
    parse = cache(parse_formula)  # formulas are repeated on each row of a suite
    rows = trials.rows
    items: dict[str, dict[str, int]] = {}  # -> condition -> row
    for row, (item, condition) in enumerate(zip(rows["item"], rows["condition"], strict=True)):
        items.setdefault(item, {})[condition] = row
    shares = []
    verdicts = list[float]()
    ids = list[str]()
    predictions = list[str]()
    first_rows = [next(iter(conditions.values())) for conditions in items.values()]
    for (item, conditions), row in zip(items.items(), first_rows, strict=True):
        defined = []
        for number, text in enumerate(rows["formulas"][row], start=1):
            formula = parse(text)
            bits = {r: _bits(trials, conditions[r.condition], r.number) for r in formula.regions}
            holds = formula.holds(bits)
            defined += [] if holds is None else [float(holds)]
            verdicts.append(math.nan if holds is None else float(holds))
            ids.append(f"{item}/{number}")
            predictions.append(f"{rows['suite'][row]}/{number}")
        shares.append(sum(defined) / len(defined) if defined else math.nan)
    levels = {name: [labels[row] for row in first_rows] for name, labels in trials.levels.items()}
    kind: Statistic = "proportion" if len(verdicts) == len(items) else "share"
    by = {"prediction": predictions}
    return [
        build("suite_accuracy", objects([*items]), np.array(shares), kind, levels, over="item"),
        build(
            "prediction_accuracy", objects(ids), np.array(verdicts), "proportion", by,
            over="prediction",
        ),
    ]  # fmt: skip


def _bits(trials: Trials, row: int, number: int | None) -> float:
    """The surprisal of a region of a row in bits, 0 for an empty one, or of the whole sentence."""
    if number is None:
        return -float(trials.log_prob[row]) / math.log(2)
    region = next(r for r in trials.rows["regions"][row] if r["number"] == number)
    if region["start"] == region["end"]:
        return EMPTY_REGION_BITS
    words = trials.predictions["words"][row] if trials.has("words") else None
    return part_bits(words, region["start"], region["end"])
