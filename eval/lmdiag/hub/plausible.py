"""What the predictions of a run say of each other: numbers that no model gives at one blank.

Figures that agree with the predictions prove little when the predictions themselves were touched
up. These checks find the plain ways to do that: a word put into a top-k list, a probability raised.
They do not prove that a model was asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmdiag.schema import Predictions

TOLERANCE = 1e-4
"""Nats by which two log-probabilities of one word may differ, as those of two passes do."""


@dataclass(frozen=True)
class Row:
    """One row as the predictions have it.

    Attributes:
        id, query, target: of the stimulus.
        log_prob, rank, n_tokens: of the target.
        words, log_probs: the top list.
    """

    id: str
    query: tuple[str, str]
    target: str
    log_prob: float | None
    rank: int | None
    n_tokens: int | None
    words: Sequence[str]
    log_probs: Sequence[float]


def implausible(
    columns: Mapping[str, Sequence[Any]], predictions: Predictions, *, cased: bool, top: int
) -> list[str]:
    """Returns one reason for each kind of contradiction, naming the first rows that have it.

    Args:
        columns: of the stimuli, aligned with the predictions.
        predictions: of one task and setting.
        cased: whether the run says that its tokenizer is.
        top: length that every top list must have.
    """
    rows = list(_rows(columns, predictions))
    found: dict[str, list[str]] = {}
    for row in rows:
        for problem in _row_problems(row, cased=cased, top=top):
            found.setdefault(problem, []).append(row.id)
    for problem, row_id in _query_problems(rows):
        found.setdefault(problem, []).append(row_id)
    return [f"{problem} ({first_few(ids)})" for problem, ids in found.items()]


def first_few(names: Sequence[str], shown: int = 3) -> str:
    """Names the first ones and counts the rest."""
    text = ", ".join(names[:shown])
    return text if len(names) <= shown else f"{text} and {len(names) - shown} more"


def _rows(columns: Mapping[str, Sequence[Any]], predictions: Predictions) -> Iterator[Row]:
    for index, row_id in enumerate(predictions.id):
        yield Row(
            id=row_id,
            query=(columns["context"][index], columns["right_context"][index]),
            target=columns["target"][index],
            log_prob=predictions.log_prob[index],
            rank=predictions.rank[index],
            n_tokens=predictions.n_tokens[index],
            words=predictions.top_words[index] or (),
            log_probs=predictions.top_log_probs[index] or (),
        )


def _row_problems(row: Row, *, cased: bool, top: int) -> Iterator[str]:
    if len(row.words) != top or len(row.log_probs) != top or None in (*row.words, *row.log_probs):
        yield f"a top list has not {top} words and log-probabilities"
        return
    numbers = [*row.log_probs, 0.0 if row.log_prob is None else row.log_prob]
    if not all(math.isfinite(number) for number in numbers):
        yield "a log-probability is not finite"
    elif max(numbers) > 0:
        yield "a log-probability is above 0"
    elif any(a < b for a, b in zip(row.log_probs, row.log_probs[1:], strict=False)):
        yield "a top list is not sorted"
    elif sum(map(math.exp, row.log_probs)) > 1 + TOLERANCE:
        yield "the probabilities of a top list sum to more than 1"
    elif row.log_prob is not None:
        yield from _target_problems(row, row.log_prob)
    if not cased and any(word.isalpha() and word != word.lower() for word in row.words):
        yield "the tokenizer is said to be uncased, but a top word has a capital"


def _target_problems(row: Row, log_prob: float) -> Iterator[str]:
    """The target's own number against the top list beside it."""
    if not (row.rank and row.rank > 0 and row.n_tokens and row.n_tokens > 0):
        yield "a scored target has no rank or no number of pieces"
        return
    # What is above the target comes before it in rank, but for its own first piece.
    own_piece = 1 if row.n_tokens > 1 else 0
    above = sum(other > log_prob + TOLERANCE for other in row.log_probs)
    not_below = sum(other >= log_prob - TOLERANCE for other in row.log_probs)
    if above - own_piece > row.rank - 1:
        yield "a target's rank is better than its log-probability allows"
    elif not_below < min(row.rank - 1, len(row.log_probs)):
        yield "a target's rank is worse than its log-probability allows"
    same = [
        other for word, other in zip(row.words, row.log_probs, strict=True) if word == row.target
    ]
    if row.n_tokens == 1 and same and all(abs(other - log_prob) > TOLERANCE for other in same):
        yield "a target stands in the top list with another log-probability than its own"


def _query_problems(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """(problem, row) for rows that share a blank and do not agree on what stands there."""
    first: dict[tuple[str, str], Row] = {}
    targets: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        other = first.setdefault(row.query, row)
        if list(other.words) != list(row.words) or list(other.log_probs) != list(row.log_probs):
            yield "two rows of one context have different top lists", row.id
        if row.n_tokens == 1 and row.log_prob is not None and row.log_prob <= 0:
            targets.setdefault(row.query, {})[row.target] = row.log_prob
    for query, log_probs in targets.items():
        if sum(map(math.exp, log_probs.values())) > 1 + TOLERANCE:
            yield (
                "targets of one context have probabilities that sum to more than 1",
                first[query].id,
            )
