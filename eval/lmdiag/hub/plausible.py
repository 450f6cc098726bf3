"""Contradictions between the predictions of a run: numbers that no model gives at one blank.

Figures that follow from the predictions prove little if the predictions were edited. These checks
find simple edits: a word put into a list of top words, a probability raised. They do not prove that
a model was asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmdiag.protocol import Predictions
from lmdiag.text import first_few
from lmdiag.types import Query

_TOLERANCE = 1e-4
"""Nats by which two log-probabilities of one word may differ, as those of two passes do."""


class _Row(NamedTuple):
    """One row with the predictions for it."""

    id: str
    query: Query
    target: str
    log_prob: float | None
    rank: int | None
    n_tokens: int | None
    words: Sequence[str]
    log_probs: Sequence[float]


def implausible(
    columns: Mapping[str, Sequence[Any]], predictions: Predictions, *, cased: bool, top: int
) -> list[str]:
    """Returns one reason for each kind of contradiction, with the first rows that have it.

    Args:
        columns: of the stimuli, aligned with the predictions.
        predictions: of one task and setting.
        cased: whether the run says that its tokenizer is.
        top: number of top words that every row must have.
    """
    queries = map(Query, columns["context"], columns["right_context"])
    words = [top or () for top in predictions.top_words]
    log_probs = [top or () for top in predictions.top_log_probs]
    said = predictions.log_prob, predictions.rank, predictions.n_tokens
    rows = [*map(_Row, predictions.id, queries, columns["target"], *said, words, log_probs)]
    rows_with: dict[str, list[str]] = {}
    for row in rows:
        for problem in _row_problems(row, cased=cased, top=top):
            rows_with.setdefault(problem, []).append(row.id)
    for problem, row_id in _query_problems(rows):
        rows_with.setdefault(problem, []).append(row_id)
    return [f"{problem} ({first_few(ids)})" for problem, ids in rows_with.items()]


def _row_problems(row: _Row, *, cased: bool, top: int) -> Iterator[str]:
    if len(row.words) != top or len(row.log_probs) != top or None in (*row.words, *row.log_probs):
        yield f"a list of top words does not have {top} words and log-probabilities"
        return
    numbers = [*row.log_probs, 0.0 if row.log_prob is None else row.log_prob]
    if not all(map(math.isfinite, numbers)):
        yield "a log-probability is not finite"
    elif max(numbers) > 0:
        yield "a log-probability is above 0"
    elif list(row.log_probs) != sorted(row.log_probs, reverse=True):
        yield "a list of top words is not sorted"
    elif sum(map(math.exp, row.log_probs)) > 1 + _TOLERANCE:
        yield "the probabilities of a list of top words sum to more than 1"
    elif row.log_prob is not None:
        yield from _target_problems(row, row.log_prob)
    elif row.n_tokens:
        yield "a word that the tokenizer can represent has no log-probability"
    if not cased and any(word.isalpha() and word != word.lower() for word in row.words):
        yield "the tokenizer is said to be uncased, but a top word has a capital letter"


def _target_problems(row: _Row, log_prob: float) -> Iterator[str]:
    """Compares the target's rank and log-probability with the list of top words."""
    if not (row.rank and row.rank > 0 and row.n_tokens and row.n_tokens > 0):
        yield "a scored target has no rank or no number of pieces"
        return
    # Words above the target come before it in rank, except the target's own first piece.
    own_piece = 1 if row.n_tokens > 1 else 0
    above = sum(other > log_prob + _TOLERANCE for other in row.log_probs)
    not_below = sum(other >= log_prob - _TOLERANCE for other in row.log_probs)
    if above - own_piece > row.rank - 1:
        yield "a target's rank is better than its log-probability allows"
    elif not_below < min(row.rank - 1, len(row.log_probs)):
        yield "a target's rank is worse than its log-probability allows"
    same = [p for word, p in zip(row.words, row.log_probs, strict=True) if word == row.target]
    if row.n_tokens == 1 and same and all(abs(p - log_prob) > _TOLERANCE for p in same):
        yield "a target is among the top words with a log-probability that is not its own"


def _query_problems(rows: Sequence[_Row]) -> Iterator[tuple[str, str]]:
    """Yields (problem, row id) for rows with the same query whose predictions contradict."""
    first: dict[Query, _Row] = {}
    targets: dict[Query, dict[str, float]] = {}
    for row in rows:
        other = first.setdefault(row.query, row)
        if (list(other.words), list(other.log_probs)) != (list(row.words), list(row.log_probs)):
            yield "two rows of one context have different top words", row.id
        if row.n_tokens == 1 and row.log_prob is not None and row.log_prob <= 0:
            targets.setdefault(row.query, {})[row.target] = row.log_prob
    for query, log_probs in targets.items():
        if sum(map(math.exp, log_probs.values())) > 1 + _TOLERANCE:
            problem = "targets of one context have probabilities that sum to more than 1"
            yield problem, first[query].id
