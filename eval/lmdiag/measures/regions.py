"""The surprisal of a part of a sentence: a word, or a region of a test suite or of own data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lmdiag.types import SentenceAnswer, WordSpan


class SentencePart(NamedTuple):
    """A word or a region of a sentence.

    Attributes:
        number, name: of the region; of a word its position, from 1, and "".
        start, end: in characters.
        bits: surprisal; NaN where it is undefined, see `part_bits`.
        n_tokens: of its words.
        entropy: bits, before its first token; None where it is not known.
        is_empty: whether it is a region without words.
    """

    number: int
    name: str
    start: int
    end: int
    bits: float
    n_tokens: int
    entropy: float | None
    is_empty: bool


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
        words: with their log-probabilities; None where they are not known.
        regions: number, name, start and end of each; None for words.
        entropies: before each of `words`, bits.
        empty_bits: surprisal of a region without words: 0 in test suites, whose formulas need one.
    """
    spans = words or ()
    before = dict(zip(spans, entropies or (), strict=False))
    if regions is None:
        found = enumerate(re.finditer(r"\S+", sentence), start=1)
        places = [(number, "", *match.span()) for number, match in found]
    else:
        places = [(x["number"], x["name"], x["start"], x["end"]) for x in regions]
    parts = []
    for number, name, start, end in places:
        inside = [span for span in spans if start <= span.start < end]
        is_empty = start == end
        bits = empty_bits if is_empty else part_bits(inside, start, end)
        n_tokens = sum(span.n_tokens for span in inside)
        entropy = next((before.get(span) for span in inside if span.n_tokens), None)
        parts.append(SentencePart(number, name, start, end, bits, n_tokens, entropy, is_empty))
    return parts


def part_bits(words: Iterable[WordSpan] | None, start: int, end: int) -> float:
    """Returns the surprisal of a part of a sentence in bits; NaN where it is undefined.

    It is the sum over the words that begin in the part. The first word of a sentence may have no
    probability (a causal model without a beginning-of-sequence token): it is left out of the sum,
    as of that of the sentence, and a part of this word alone is undefined. So is a part without
    words, and one with a word that the tokenizer cannot represent.
    """
    inside = (word for word in words or () if start <= word.start < end)
    log_prob = SentenceAnswer(tuple(inside)).log_prob
    return math.nan if log_prob is None else 0.0 - log_prob / math.log(2)
