"""What each measure is, for programs and readers that do not know lmdiag."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from lmdiag.evaluation import HUMAN_MEASURES
from lmdiag.measures.scores import Statistic
from lmdiag.types import BadInput

Over = Literal["row", "contrast", "item", "prediction"]
"""What the ids of a measure's items name; "prediction" is one of an item of a test suite."""


@dataclass(frozen=True)
class Metric:
    """A measure in words and numbers; see `docs/specification.md` for the definitions.

    Attributes:
        about: what it says.
        over: what its items are; None for measures whose items are not exported one by one, since
            they are no verdicts on answers: correlations, and figures of whole distributions.
        unit: of its values.
        low, high: bounds of its values.
        lower_is_better: whether a lower value is a better one.
        parameter: what the number after `@` is; "" for measures without one.
    """

    about: str
    over: Over | None = None
    unit: str = "proportion"
    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False
    parameter: str = ""


_surprisal = partial(Metric, over="row", unit="bits", high=math.inf, lower_is_better=True)
_VERBS = "over the verbs of the list whose forms are single tokens"

_METRICS: Mapping[str, Metric] = {
    "accuracy": Metric(
        "share of rows with an expected word among the k most probable words at the blank",
        "row", parameter="k",
    ),
    "sensitivity": Metric(
        "share of contrasts whose good row is more probable than every bad row; with a threshold, "
        "by more than this difference of probabilities", "contrast", parameter="threshold",
    ),
    "sensitivity_mean": Metric(
        "share of contrasts whose good sentence has a higher mean log-probability per token than "
        "every bad sentence", "contrast",
    ),
    "tse": Metric(
        "share of minimal pairs whose right verb form is more probable than the wrong one, where "
        "both are single tokens", "contrast",
    ),
    "within_category_boost": Metric(
        "share of contrasts whose wrong target of the expected category is more probable than the "
        "one of another category, by more than 0.01"
    ),
    "probability_difference": Metric(
        "mean of the probability of the good row minus that of the most probable bad row",
        "contrast", "probability", -1.0,
    ),
    "determiner_match": Metric(
        "mean share of the k most probable words that fit the determiner (a or an) before them",
        "row", parameter="k",
    ),
    "spearman": Metric(
        "rank correlation of log-probability and human cloze probability", None, "correlation", -1.0
    ),
    "pearson": Metric(
        "correlation of log-probability and human cloze probability", None, "correlation", -1.0
    ),
    "surprisal": _surprisal("mean surprisal of the target"),
    "surprisal_per_word": _surprisal("mean surprisal per word"),
    "rank": Metric(
        "median rank of the target among all words", "row", "rank", 1.0, math.inf, True
    ),
    "suite_accuracy": Metric(
        "mean share of the predictions of a test suite that hold for an item", "item"
    ),
    "prediction_accuracy": Metric(
        "share of items and predictions of a test suite for which the prediction holds",
        "prediction",
    ),
    "ew": Metric(
        f"equally weighted: share of right forms that are more probable than wrong ones {_VERBS}",
        parameter="cutoff",
    ),
    "mw": Metric(
        f"model-weighted: probability of right forms divided by that of all forms {_VERBS}",
        parameter="cutoff",
    ),
    "mass": Metric("mean probability of the verb forms that count", parameter="cutoff"),
    "left_out": Metric(
        "share of contexts without a verb that counts", lower_is_better=True, parameter="cutoff"
    ),
}  # fmt: skip
"""Measure without `@...` -> what it is. Measures of the human baseline are not the model's."""

INTERVALS: Mapping[Statistic, str] = {
    "proportion": "Wilson score",
    "share": "Student t, within [0, 1]; Wilson score where all values are equal",
    "mean": "Student t",
    "median": "order statistics",
    "spearman": "Fisher z",
    "pearson": "Fisher z",
}
"""How the values of the items become a value -> how its interval is computed."""


def is_of_model(measure: str) -> bool:
    """Returns whether a measure says something of the model, and not of the human baseline."""
    return not measure.startswith(HUMAN_MEASURES)


def metric_of(measure: str) -> Metric:
    """Returns what a measure is.

    Raises:
        BadInput: it is not a measure of this version of lmdiag.
    """
    name = measure.partition("@")[0]
    if name not in _METRICS:
        raise BadInput(f"{measure} is not a measure of this version of lmdiag: run again with it")
    return _METRICS[name]


_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?(e-[0-9]{1,2})?")
"""A parameter, as measures have it in their names, e.g. 5, 0.01 or 1e-05."""


def parameters_of(measure: str) -> dict[str, float | str]:
    """Returns the parameter of a measure, if it has one.

    Raises:
        BadInput: it is not a number.

    >>> parameters_of("accuracy@5"), parameters_of("ew@top=0.1"), parameters_of("tse")
    ({'k': 5}, {'cutoff': 'top=0.1'}, {})
    """
    _, _, text = measure.partition("@")
    if not text:
        return {}
    if "=" not in text and not _NUMBER.fullmatch(text):
        raise BadInput(f"{measure} is not a measure of this version of lmdiag: run again with it")
    value = text if "=" in text else int(text) if text.isdecimal() else float(text)
    return {metric_of(measure).parameter: value}
