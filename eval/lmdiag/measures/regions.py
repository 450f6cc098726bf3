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
from lmdiag.measures.scores import Scores, Statistic, Trials, build_scores, object_array
from lmdiag.types import SentenceAnswer, WordSpan

EMPTY_REGION_BITS = 0.0
"""Surprisal of a region of a test suite without words: the sum over no words. Formulas of suites
compare regions that a condition may leave empty."""


CRITICAL = "critical"
"""Name of the region of the critical word, which `--critical` makes."""


def critical_region(regions: Iterable[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Returns the region of the critical word among the regions of a sentence; {} without one.

    A region has number, name, start and end; that of the critical word has the name `CRITICAL`.
    """
    for region in regions or ():
        if region["name"] == CRITICAL:
            return region
    return {}


PartState = Literal["scored", "empty", "shared", "unscorable"]
"""Whether a part of a sentence has a surprisal, or why it has none; see `SentencePart`."""


class SentencePart(NamedTuple):
    """A word or a region of a sentence, with its surprisal.

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
    """Returns the parts of a sentence, which are its words or its regions, with their surprisals.

    Args:
        sentence: the text.
        words: start, end, log-probability and tokens of each word; None where they are not known.
        regions: number, name, start and end of each; None to return a part for each word.
        entropies: the entropy before each of `words` in bits; None where they are not known.
        empty_bits: surprisal of a region without words: 0 in test suites, whose formulas need one.

    For example, the parts of "A robin flies" are the words (1, "", 0, 1), (2, "", 2, 7) and (3, "",
    8, 13), as number, name, start and end, each with its surprisal.
    """
    words = words or ()
    entropy_before = dict(zip(words, entropies or (), strict=False))  # {} if not known
    if regions is None:
        matches = enumerate(re.finditer(r"\S+", sentence), start=1)
        spans = [(number, "", *match.span()) for number, match in matches]
    else:
        spans = [
            (region["number"], region["name"], region["start"], region["end"]) for region in regions
        ]
    parts = []
    for number, name, start, end in spans:
        words_inside = [word for word in words if start <= word.start < end]
        words_with_tokens = [word for word in words_inside if word.n_tokens]
        next_word = next((word for word in words if word.start >= end), None)  # after the part
        is_empty = start == end
        bits = empty_bits if is_empty else part_bits(words_inside, start, end)
        part = SentencePart(
            number, name, start, end, bits,
            n_tokens=sum(word.n_tokens for word in words_inside),
            entropy=entropy_before.get(words_with_tokens[0]) if words_with_tokens else None,
            state=_state(bits, words_inside, is_empty=is_empty),
            shares_token=_shares_token(words_inside, next_word),
        )  # fmt: skip
        parts.append(part)
    return parts


def _shares_token(words: Sequence[WordSpan], next_word: WordSpan | None) -> str:
    """Returns the neighbour with which a part shares a token: "previous", "next", "both" or "".

    A word with `shares_token` has no token of its own: it is in a token of the word before it.

    Args:
        words: that begin in the part.
        next_word: the first word after the part; None at the end of the sentence.
    """
    if not words:
        return ""
    shares_with_previous = words[0].shares_token
    has_own_token = not all(word.shares_token for word in words)
    shares_with_next = has_own_token and next_word is not None and next_word.shares_token
    if shares_with_previous and shares_with_next:
        return "both"
    if shares_with_previous:
        return "previous"
    return "next" if shares_with_next else ""


def _state(bits: float, words: Sequence[WordSpan], *, is_empty: bool) -> PartState:
    """Returns whether a part of a sentence has a surprisal, or why it has none.

    Args:
        bits: its surprisal; NaN for none.
        words: that begin in it.
        is_empty: whether it is a region without any text.
    """
    if not math.isnan(bits):
        return "scored"
    if is_empty:
        return "empty"
    # a word with `shares_token` is in a token of the word before it and has none of its own
    is_shared = bool(words) and all(word.shares_token for word in words)
    return "shared" if is_shared else "unscorable"


def part_bits(words: Iterable[WordSpan] | None, start: int, end: int) -> float:
    """Returns the surprisal of a part of a sentence in bits; NaN where it is undefined.

    It is the sum over the words that begin in the part: 3 bits for words with probabilities of 1/2
    and 1/4. The first word of a sentence may have no probability, and is then left out of the sum.
    The result is NaN for a part without words, for a first word alone without a probability, for
    words that share their only tokens with the word before them, and if the tokenizer cannot
    represent a word.

    Args:
        words: of the sentence; None where they are not known.
        start, end: of the part, in characters.
    """
    words_inside = tuple(word for word in words or () if start <= word.start < end)
    # the sum of the words' log-probabilities in nats, by the rules for whole sentences; None if
    # undefined
    log_prob = SentenceAnswer(words_inside).log_prob
    if log_prob is None or all(word.shares_token for word in words_inside):
        return math.nan
    return 0.0 - log_prob / math.log(2)  # 0.0 instead of -0.0 for a probability of 1


def words_sharing_tokens(sentence: str, words: Iterable[WordSpan]) -> list[str]:
    """Returns each word without a token of its own, after the word before it, which has the token.

    For example, where a tokenizer reads "is a" as one token:

    >>> is_a = (WordSpan(0, 2, -1.5, 1), WordSpan(3, 4, 0.0, 0), WordSpan(5, 9, -2.0, 1))
    >>> words_sharing_tokens("is a bird", is_a)
    ['is a']
    """
    texts = []
    token_start = 0
    for word in words:
        if word.shares_token:
            texts.append(sentence[token_start : word.end])
        else:
            token_start = word.start
    return texts


@register("suites", "suite_accuracy", "prediction_accuracy")
def suite_measures(trials: Trials) -> list[Scores]:
    """Returns suite_accuracy and prediction_accuracy of test suites.

    A suite has predictions about the surprisals of regions, as formulas, for example "(2;%bad%) >
    (2;%good%)"; each item of a suite has a row for each condition, here bad and good.

    prediction_accuracy: over items and predictions, whether the prediction holds for the item; it
    is broken down by `SUITE/NUMBER` of the prediction. suite_accuracy: over items, the share of the
    predictions of the item's suite that hold, broken down by suite. A prediction is left out of an
    item where a region that the formula names has no surprisal, since a word of it has no
    probability. No chance level is defined: it depends on the formula.

    Source: Hu et al. (2020), section 3.
    """
    if not (trials.has("log_prob") or trials.has("words")):
        return []
    columns = trials.rows
    rows_of_item: dict[str, dict[str, int]] = {}  # item -> condition -> row
    for row, (item, condition) in enumerate(
        zip(columns["item"], columns["condition"], strict=True)
    ):
        rows_of_item.setdefault(item, {})[condition] = row
    parse = cache(parse_formula)  # formulas are repeated on each row of a suite

    def verdict(text: str, row_of_condition: Mapping[str, int]) -> float:
        """Returns 1.0 if a formula holds for the rows of an item, 0.0 if not; NaN if undefined."""
        formula = parse(text)
        bits = {
            region: _region_bits(trials, row_of_condition[region.condition], region.number)
            for region in formula.regions
        }
        holds = formula.holds(bits)
        return math.nan if holds is None else float(holds)

    # the values of both measures, item by item
    first_rows = []  # of the items, in which the formulas and the suite stand
    shares = []  # of the predictions of each item that hold
    verdicts = list[float]()  # on each prediction for each item
    ids = list[str]()  # of the verdicts: "ITEM/NUMBER"
    predictions = list[str]()  # of the verdicts: "SUITE/NUMBER"
    for item, row_of_condition in rows_of_item.items():
        row = next(iter(row_of_condition.values()))
        first_rows.append(row)
        item_verdicts = [verdict(text, row_of_condition) for text in columns["formulas"][row]]
        defined = [value for value in item_verdicts if not math.isnan(value)]
        shares.append(sum(defined) / len(defined) if defined else math.nan)
        for number, item_verdict in enumerate(item_verdicts, start=1):
            verdicts.append(item_verdict)
            ids.append(f"{item}/{number}")
            predictions.append(f"{columns['suite'][row]}/{number}")
    levels = {by: [labels[row] for row in first_rows] for by, labels in trials.levels.items()}
    # suites with one prediction have items that are right or wrong
    statistic: Statistic = "proportion" if len(verdicts) == len(rows_of_item) else "share"
    items = object_array([*rows_of_item])
    return [
        build_scores("suite_accuracy", items, np.array(shares), statistic, levels, over="item"),
        build_scores(
            "prediction_accuracy", object_array(ids), np.array(verdicts), "proportion",
            labels={"prediction": predictions}, over="prediction",
        ),
    ]  # fmt: skip


def _region_bits(trials: Trials, row: int, number: int | None) -> float:
    """Returns the surprisal of a region of a sentence in bits.

    0 for a region without words, and NaN where the probabilities of its words are not known. For
    example, a region of two words with probabilities of 1/2 and 1/4 has 3 bits.

    Args:
        trials: rows and predictions; a row has a sentence, its regions and its words.
        row: position of the sentence, from 0.
        number: of the region; None for the whole sentence.
    """
    if number is None:
        return -float(trials.log_prob[row]) / math.log(2)
    region = next(region for region in trials.rows["regions"][row] if region["number"] == number)
    start, end = region["start"], region["end"]  # offsets in the sentence, in characters
    if start == end:
        return EMPTY_REGION_BITS
    # predictions may have the probability of the sentence only, without those of its words
    words = trials.predictions["words"][row] if trials.has("words") else None
    return part_bits(words, start, end)
