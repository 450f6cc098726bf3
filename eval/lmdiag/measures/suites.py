"""Measures of test suites: the share of predictions that hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lmdiag.formulas import parse_formula
from lmdiag.measures.scores import Scores, Statistic, Trials, build, objects
from lmdiag.types import SentenceAnswer


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
    first = [next(iter(conditions.values())) for conditions in items.values()]
    for (item, conditions), row in zip(items.items(), first, strict=True):
        known = []
        for number, text in enumerate(rows["formulas"][row], start=1):
            formula = parse(text)
            bits = {r: _bits(trials, conditions[r.condition], r.number) for r in formula.regions}
            holds = formula.holds(bits)
            known += [] if holds is None else [float(holds)]
            verdicts.append(math.nan if holds is None else float(holds))
            ids.append(f"{item}/{number}")
            predictions.append(f"{rows['suite'][row]}/{number}")
        shares.append(sum(known) / len(known) if known else math.nan)
    levels = {name: [labels[row] for row in first] for name, labels in trials.levels.items()}
    kind: Statistic = "proportion" if len(verdicts) == len(items) else "share"
    by = {"prediction": predictions}
    return [
        build("suite_accuracy", objects([*items]), np.array(shares), kind, levels),
        build("prediction_accuracy", objects(ids), np.array(verdicts), "proportion", by),
    ]


def _bits(trials: Trials, row: int, number: int | None) -> float:
    """The surprisal of a region of a row in bits, or of the whole sentence; see `part_bits`."""
    if number is None:
        return -float(trials.log_prob[row]) / math.log(2)
    words = trials.predictions["words"][row] if trials.has("words") else None
    place = next(r for r in trials.rows["regions"][row] if r["number"] == number)
    return part_bits(words, place["start"], place["end"])


def part_bits(words: Sequence[Any] | None, start: int, end: int) -> float:
    """Returns the surprisal of a part of a sentence in bits; NaN where it is undefined.

    It is the sum over the words that begin in the part, 0 for an empty one. The first word of a
    sentence may have no probability (a causal model without a beginning-of-sequence token): it is
    left out of the sum, as of that of the sentence, and a part of this word alone is undefined. So
    is a part with a word that the tokenizer cannot represent.

    Args:
        words: of the sentence, `lmdiag.types.WordSpan`; None where they are not known.
        start, end: of the part, in characters.
    """
    if start == end:
        return 0.0
    inside = (word for word in words or () if start <= word.start < end)
    log_prob = SentenceAnswer(tuple(inside)).log_prob
    return math.nan if log_prob is None else 0.0 - log_prob / math.log(2)
