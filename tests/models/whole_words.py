"""The reference of unit `word`: float64 scores of whole words (docs/specification.md, 2)."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from reference import Reference, Scored
from spelling import read_bytes

from lmdiag.models.whole_words.search import LENGTHS
from lmdiag.schema import Query


def score(reference: Reference, query: Query, word: str) -> Scored | None:
    """Returns what the reference says of a whole word, by the formulas of the specification."""
    scored = reference.score(*query, word)
    if scored is None:
        return None
    if reference.kind == "masked":
        return replace(scored, log_prob=scored.log_prob - math.log(LENGTHS))
    before, after = (
        reference._distribution(*query, word, scored.pieces, n) for n in (0, len(scored.pieces))
    )
    return replace(
        scored, log_prob=scored.log_prob + end(after, reference) - end(before, reference)
    )


def ends_a_word(name: str | None, convention: str) -> bool:
    """Whether an item of one of the families' vocabularies ends a word, by its name."""
    if name is None or (convention == "wordpiece" and not name.startswith("##")):
        return True
    text: str | None = name.removeprefix("##")
    if name.startswith("<0x"):
        text = chr(int(name[3:5], 16)) if int(name[3:5], 16) < 128 else None
    elif convention == "byte-level":
        text = read_bytes(name) if name[0] not in "<[" else name
    if not text:  # a part of a character
        return False
    if text[0] in "'-’":
        return len(text) > 1 and not is_letter(text[1])
    return not is_letter(text[0])


def is_letter(character: str) -> bool:
    """Letters, marks and digits."""
    return unicodedata.category(character)[0] in "LMN"


def end(distribution: Any, reference: Reference) -> float:
    """Log-probability that no item follows that continues a word."""
    return float(distribution[ends(reference, len(distribution))].logsumexp(0))


@lru_cache(maxsize=2)
def ends(reference: Reference, size: int) -> Any:
    """Which items of a vocabulary of a size end a word, bool."""
    speller = reference.speller
    names = [speller.specials.get(n, speller.names.get(n)) for n in range(size)]
    return torch.tensor([ends_a_word(name, speller.convention) for name in names])
