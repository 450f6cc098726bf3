"""A test suite made for this project, and predictions by hand for its words."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.protocol import Predictions
from lmdiag.types import SentenceAnswer, WordSpan

CONDITIONS = ("match", "mismatch")

ITEMS: Mapping[int, Mapping[str, Sequence[str]]] = {
    1: {
        "match": ("The doors", "", " open", ", slowly"),
        "mismatch": ("The doors", " ", "opens", ", slowly"),
    },
    2: {"match": ("A key", "really", "fits", "."), "mismatch": ("A key", "really", "fit ", ".")},
    3: {"match": ("A lock", "really", "shuts", "!"), "mismatch": ("A lock", "really", "shut", "!")},
}
"""Item -> condition -> contents of its regions."""

BITS: Mapping[str, Sequence[float]] = {
    # The  doors  open(s)  ,  slowly
    "doors/1/match": (2, 5, 3, 1, 4),
    "doors/1/mismatch": (2, 5, 6.5, 1.5, 4),
    # A  key  really  fit(s)  .
    "doors/2/match": (3, 4, 8, 2, 1),
    "doors/2/mismatch": (3, 4.0011, 8, 2.5, 0.5),
    "doors/3/match": (3, 4, 8, 2, 1),
    "doors/3/mismatch": (3, 4, 9, 2.5, 2),
}
"""Row -> surprisal of each word, punctuation by itself."""

FORMULAS = (
    "(3;%match%) < (3;%mismatch%)",
    "[(3;%match%) < (3;%mismatch%)] & [(4;%match%) < (4;%mismatch%)]"
    " & [(2;%match%) = (2;%mismatch%)]",
    "(*;%match%) > (*;%mismatch%) | (4;%match%) > (4;%mismatch%)",
    "[(3;%mismatch%) + (4;%mismatch%)] - (3;%match%) - (4;%match%) > 3",
    "(2;%match%) = 0",
    "(1;%match%) = (1;%mismatch%)",
)


def suite(**changes: Any) -> dict[str, Any]:
    """The suite as SyntaxGym's JSON has it."""
    items = [
        {
            "item_number": number,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [
                        {"region_number": i, "content": content}
                        for i, content in enumerate(contents, start=1)
                    ],
                }
                for name, contents in conditions.items()
            ],
        }
        for number, conditions in ITEMS.items()
    ]
    names = {"1": "subject", "2": "adverb", "3": "verb", "4": "end"}
    whole = {
        "meta": {"name": "doors", "metric": "sum"},
        "region_meta": names,
        "predictions": [{"type": "formula", "formula": text} for text in FORMULAS],
        "items": items,
    }
    return copy.deepcopy(whole | changes)


def words_of(text: str, bits: Sequence[float | None]) -> tuple[WordSpan, ...]:
    """Words and punctuation with their surprisals; None for a word without a probability."""
    places = re.finditer(r"\w+|[^\w\s]", text)
    return tuple(
        WordSpan(
            place.start(), place.end(), None if each is None else -each * math.log(2), n_tokens=1
        )
        for place, each in zip(places, bits, strict=True)
    )


def sentence_predictions(
    rows: Mapping[str, Sequence[Any]], words: Sequence[tuple[WordSpan, ...]]
) -> Predictions:
    """The predictions for rows whose words are known."""
    answers = [SentenceAnswer(each) for each in words]
    nothing: list[Any] = [None] * len(answers)
    return Predictions(
        id=list(rows["id"]),
        log_prob=[each.log_prob for each in answers],
        rank=nothing,
        n_tokens=[each.n_tokens for each in answers],
        top_words=nothing,
        top_log_probs=nothing,
        words=[each.words for each in answers],
    )
