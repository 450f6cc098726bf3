"""Rows and predictions that are made up, for tests of what is measured on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.measures import Scores
from lmdiag.schema import Predictions


def rows_of(*rows: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Columns of rows; what a row leaves out is filled in with something that does no harm."""
    filler = {"item": "1", "condition": "c", "context": "A", "right_context": "", "expected": []}
    filled = [{**filler, "target": f"w{i}", **row} for i, row in enumerate(rows)]
    names = dict.fromkeys(name for row in filled for name in row)
    return {name: [row.get(name) for row in filled] for name in names}


def predictions_of(
    rows: Mapping[str, Sequence[Any]],
    log_prob: Sequence[float | None] | None = None,
    top_words: Sequence[list[str] | None] | None = None,
    **more: Any,
) -> Predictions:
    """Predictions for rows, with None for all that is not given."""
    nothing: list[None] = [None] * len(rows["id"])
    columns: dict[str, Any] = {
        "id": list(rows["id"]),
        "log_prob": list(log_prob or nothing),
        "top_words": list(top_words or nothing),
        "rank": nothing,
        "n_tokens": nothing,
        "top_log_probs": nothing,
    }
    return Predictions(**columns | more)


def perfect(rows: Mapping[str, Sequence[Any]]) -> Predictions:
    """An expected word on top, and all the mass on good completions."""
    tops = padded([words[:1] for words in rows["expected"]])
    return predictions_of(rows, [0.0 if good else -math.inf for good in rows["good"]], tops)


def padded(tops: Sequence[Sequence[str]], n: int = 10) -> list[list[str]]:
    """Lists of n top words that begin with the words given."""
    return [[*words, *["-"] * n][:n] for words in tops]


def uniform(rows: Mapping[str, Sequence[Any]], vocabulary: int = 30522) -> Predictions:
    """Every word as probable as any other; the top words are no words of the rows."""
    n = len(rows["id"])
    return predictions_of(rows, [-math.log(vocabulary)] * n, [["[PAD]", "[unused0]"] * 5] * n)


def by_name(found: Sequence[Scores]) -> dict[str, Scores]:
    """Scores by the name of their measure."""
    return {scores.name: scores for scores in found}
