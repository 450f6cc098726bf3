"""The surprisal of a word or a region of a sentence, and what test suites predict of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from lmdiag.measures.formulas import parse_formula
from lmdiag.measures.registry import register
from lmdiag.measures.scores import Scores, Statistic, Trials, build, objects
from lmdiag.types import SentenceAnswer, WordSpan

EMPTY_REGION_BITS = 0.0
"""Surprisal of a region of a test suite that has no words."""


CRITICAL = "critical"
"""Name of the region of the critical word, which `--critical` makes."""


def critical_region(regions: Iterable[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Returns the region of the critical word among those of a sentence; {} without one."""
    return next((x for x in regions or () if x["name"] == CRITICAL), {})


PartState = Literal["scored", "empty", "shared", "unscorable"]
"""Whether a part of a sentence has a surprisal, or why it has none; see `SentencePart`."""


class SentencePart(NamedTuple):
    """A word or a region of a sentence.

    Attributes:
        number, name: of the region; of a word its position, from 1, and "".
        start, end: in characters.
        bits: surprisal; NaN where it is undefined, see `part_bits`.
        n_tokens: of its words.
        entropy: bits, before its first token; None where it is not known.
        state: scored; empty, for a region without words; shared, for words without a token of
            their own; unscorable.
        shares_token: the neighbour with which it shares a token: "previous", "next", "both" or "".
    """

    number: int
    name: str
    start: int
    end: int
    bits: float
    n_tokens: int
    entropy: float | None
    state: PartState
    shares_token: str


def sentence_parts(
    sentence: str,
    words: Sequence[WordSpan] | None,
    regions: Iterable[Mapping[str, Any]] | None = None,
    entropies: Sequence[float | None] | None = None,
    *,
    empty_bits: float = math.nan,
) -> list[SentencePart]:
    """Returns the words of a sentence, or its regions.

    Args:
        sentence: the text.
        words, entropies: see `SentenceAnswer`; None where they are not known.
        regions: number, name, start and end of each; None for words.
        empty_bits: surprisal of a region without words: 0 in test suites, whose formulas need one.
    """
    spans = words or ()
    entropy_before = dict(zip(spans, entropies or (), strict=False))
    if regions is None:
        matches = enumerate(re.finditer(r"\S+", sentence), start=1)
        spans_of_parts = [(number, "", *match.span()) for number, match in matches]
    else:
        spans_of_parts = [(x["number"], x["name"], x["start"], x["end"]) for x in regions]
    parts = []
    for number, name, start, end in spans_of_parts:
        words_inside = [span for span in spans if start <= span.start < end]
        is_empty = start == end
        bits = empty_bits if is_empty else part_bits(words_inside, start, end)
        state = _state(bits, words_inside, is_empty=is_empty)
        n_tokens = sum(span.n_tokens for span in words_inside)
        entropy = next((entropy_before.get(span) for span in words_inside if span.n_tokens), None)
        following = next((span for span in spans if span.start >= end), None)
        shares = _shares_token(words_inside, following)
        parts.append(SentencePart(number, name, start, end, bits, n_tokens, entropy, state, shares))
    return parts


def _shares_token(words: Sequence[WordSpan], following: WordSpan | None) -> str:
    """Returns the neighbour with which the words of a part share a token."""
    if not words:
        return ""
    begins_before = words[0].shares_token
    has_own = not all(word.shares_token for word in words)
    ends_behind = has_own and following is not None and following.shares_token
    if begins_before and ends_behind:
        return "both"
    return "previous" if begins_before else "next" if ends_behind else ""


def _state(bits: float, words: Sequence[WordSpan], *, is_empty: bool) -> PartState:
    """Returns the state of a part, see `PartState`.

    Args:
        bits: its surprisal; NaN for none.
        words: that begin in it.
    """
    if not math.isnan(bits):
        return "scored"
    if is_empty:
        return "empty"
    is_shared = bool(words) and all(word.shares_token for word in words)
    return "shared" if is_shared else "unscorable"


def part_bits(words: Iterable[WordSpan] | None, start: int, end: int) -> float:
    """Returns the surprisal of a part of a sentence in bits; NaN where it is undefined.

    It is the sum over the words that begin in the part. A first word without a probability is left
    out of the sum, as of that of the sentence, and a part of this word alone is undefined. So is a
    part without words, one without a token of its own, and one with a word that the tokenizer
    cannot represent.
    """
    words_inside = tuple(word for word in words or () if start <= word.start < end)
    log_prob = SentenceAnswer(words_inside).log_prob
    if log_prob is None or all(word.shares_token for word in words_inside):
        return math.nan
    return 0.0 - log_prob / math.log(2)


def words_sharing_tokens(sentence: str, words: Iterable[WordSpan]) -> list[str]:
    """Returns each word without a token of its own, with the word before it, which has the token.

    >>> is_a = (WordSpan(0, 2, -1.5, 1), WordSpan(3, 4, 0.0, 0), WordSpan(5, 9, -2.0, 1))
    >>> words_sharing_tokens("is a bird", is_a)
    ['is a']
    """
    names = []
    start = 0
    for word in words:
        if word.shares_token:
            names.append(sentence[start : word.end])
        else:
            start = word.start
    return names


@register("suites", "suite_accuracy", "prediction_accuracy")
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
    rows = trials.rows
    items: dict[str, dict[str, int]] = {}  # -> condition -> row
    for row, (item, condition) in enumerate(zip(rows["item"], rows["condition"], strict=True)):
        items.setdefault(item, {})[condition] = row
    first_rows = [next(iter(conditions.values())) for conditions in items.values()]
    parse = cache(parse_formula)  # formulas are repeated on each row of a suite

    def verdict(text: str, conditions: Mapping[str, int]) -> float:
        formula = parse(text)
        bits = {r: _bits(trials, conditions[r.condition], r.number) for r in formula.regions}
        holds = formula.holds(bits)
        return math.nan if holds is None else float(holds)

    shares = []
    verdicts = list[float]()
    ids = list[str]()
    predictions = list[str]()
    for (item, conditions), row in zip(items.items(), first_rows, strict=True):
        item_verdicts = [verdict(text, conditions) for text in rows["formulas"][row]]
        defined = [value for value in item_verdicts if not math.isnan(value)]
        shares.append(sum(defined) / len(defined) if defined else math.nan)
        verdicts += item_verdicts
        numbers = range(1, len(item_verdicts) + 1)
        ids += [f"{item}/{number}" for number in numbers]
        predictions += [f"{rows['suite'][row]}/{number}" for number in numbers]
    levels = {name: [labels[row] for row in first_rows] for name, labels in trials.levels.items()}
    # suites with one prediction have items that are right or wrong
    kind: Statistic = "proportion" if len(verdicts) == len(items) else "share"
    by_prediction = {"prediction": predictions}
    return [
        build("suite_accuracy", objects([*items]), np.array(shares), kind, levels, over="item"),
        build(
            "prediction_accuracy", objects(ids), np.array(verdicts), "proportion", by_prediction,
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
