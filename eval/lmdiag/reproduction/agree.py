"""Compares what a model answers with what was submitted.

Two machines do not compute the same last bits, so numbers are compared within a tolerance that
depends on the dtype of the weights. Words whose probabilities are closer than that may change
places in a list of top words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.questions import QuestionKey
from lmdiag.reproduction.sample import Claim
from lmdiag.schema import Answer

TOLERANCE = {"float64": 0.001, "float32": 0.01, "float16": 0.1, "bfloat16": 0.5}
"""Dtype of the weights -> nats by which two log-probabilities of one word may differ."""

QUANTIZED = 1.0
"""The same for quantized weights, whose kernels differ between devices."""

SHARE = {"float64": 0.005, "float32": 0.01, "float16": 0.03, "bfloat16": 0.1}
"""Dtype -> by how much EW and MW of a context may differ; some of its verbs are near ties."""

WHOLE = tuple(AGREEMENT_LAYOUT.index(name) for name in ("ew", "mw"))
"""Places of EW and MW without cut-offs; where a cut-off falls depends on the last bits."""

FACTS = ("kind", "cased", "vocab_size", "n_parameters")
"""What a submission says of its model and the loaded model shows."""


def tolerance(model: Mapping[str, Any]) -> float:
    """Returns by how many nats the log-probabilities of a model may differ."""
    return QUANTIZED if model["quantization"] else TOLERANCE[model["dtype"]]


def first_difference(
    model: Mapping[str, Any],
    info: Mapping[str, Any],
    claims: Sequence[Claim],
    answers: Mapping[QuestionKey, Answer],
) -> str | None:
    """Returns the first thing in which submission and model differ, in words; None if they agree.

    Args:
        model: of the submission.
        info: of the model as it was loaded.
        claims: what the submission says.
        answers: what the model says to the questions of the claims.
    """
    for problem in _fact_problems(model, info):
        return problem
    allowed = tolerance(model)
    share = max(SHARE.values()) if model["quantization"] else SHARE[model["dtype"]]
    for claim in claims:
        for problem in _problems(claim, answers[claim.key], allowed, share):
            return f"{claim.id}: {problem}"
    return None


def _fact_problems(model: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    for name in FACTS:
        if name == "n_parameters" and model["quantization"]:
            continue  # packed weights are counted in different ways
        if model[name] != info[name]:
            yield f"{name} is {info[name]}, the submission says {model[name]}"


def _problems(claim: Claim, answer: Answer, allowed: float, share: float) -> Iterator[str]:
    score = answer.words[claim.word]
    if not _within(score.log_prob, claim.log_prob, allowed):
        yield _said(f"the log-probability of “{claim.word}”", score.log_prob, claim.log_prob)
    if score.n_tokens != claim.n_tokens:
        yield (f"“{claim.word}” has {score.n_tokens} tokens, the submission says {claim.n_tokens}")
    yield from _list_problems(claim, answer, allowed)
    for place in WHOLE:
        ours = None if answer.agreement is None else answer.agreement[place]
        theirs = None if claim.agreement is None else claim.agreement[place]
        if not _within(ours, theirs, share):
            yield _said(AGREEMENT_LAYOUT[place].upper(), ours, theirs)


def _list_problems(claim: Claim, answer: Answer, allowed: float) -> Iterator[str]:
    """The list of top words: each at its probability, and none left out.

    `answer` has a longer list than the submission, so that what stands near the end of one stands
    in the other.
    """
    ours = list(zip(answer.top_words, answer.top_log_probs, strict=True))
    theirs = list(zip(claim.top_words, claim.top_log_probs, strict=True))
    for word, value in theirs:
        same = [other for name, other in ours if name == word]
        nearest = min(same, key=lambda other: abs(other - value), default=None)
        if nearest is None or abs(nearest - value) > allowed:
            yield _said(f"the log-probability of the top word “{word}”", nearest, value)
    last = min(value for _, value in theirs)
    given = set(claim.top_words)
    for word, value in ours[: len(theirs)]:
        if word not in given and value > last + allowed:
            yield f"“{word}” ({value:.3f}) is not among the submission's top words"


def _within(ours: float | None, theirs: float | None, allowed: float) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= allowed


def _said(what: str, ours: float | None, theirs: float | None) -> str:
    mine, other = ("not known" if value is None else f"{value:.3f}" for value in (ours, theirs))
    return f"{what} is {mine}, the submission says {other}"
