"""Compares a model's answers with a submission.

Two machines do not compute the same last bits, so numbers are compared within a tolerance that
depends on the dtype of the weights. Top words whose probabilities are closer than that may change
places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.questions import QuestionKey
from lmdiag.reproduction.sample import Claim
from lmdiag.schema import Answer, ModelInfo

_NATS = {"float64": 0.001, "float32": 0.01, "float16": 0.1, "bfloat16": 0.5}
"""Dtype of the weights -> nats by which two log-probabilities of one word may differ."""
_NATS_QUANTIZED = 1.0
"""The same for quantized weights, whose kernels differ between devices."""
_SHARE = {"float64": 0.005, "float32": 0.01, "float16": 0.03, "bfloat16": 0.1}
"""Dtype -> by how much EW and MW of a context may differ: some of its verbs are near ties."""
_SHARE_QUANTIZED = 0.1

_WITHOUT_CUTOFF = {name: AGREEMENT_LAYOUT.index(name) for name in ("ew", "mw")}
"""Positions of EW and MW without cut-offs; where a cut-off falls depends on the last bits."""

_FACTS = ("kind", "cased", "vocab_size", "n_parameters")
"""What a submission says of its model and the loaded model shows."""


def tolerance(model: ModelInfo) -> float:
    """Returns by how many nats the log-probabilities of a model may differ."""
    return _NATS_QUANTIZED if model.quantization else _NATS[model.dtype]


def first_difference(
    model: ModelInfo,
    info: Mapping[str, Any],
    claims: Sequence[Claim],
    answers: Mapping[QuestionKey, Answer],
) -> str | None:
    """Returns the first difference between submission and model in words; None if they agree.

    Args:
        model: facts on the model, of the submission.
        info: the same facts, of the model that was loaded.
        claims: what the submission says.
        answers: the model's answers to the questions of the claims.
    """
    return next(_differences(model, info, claims, answers), None)


def _differences(
    model: ModelInfo,
    info: Mapping[str, Any],
    claims: Sequence[Claim],
    answers: Mapping[QuestionKey, Answer],
) -> Iterator[str]:
    quantized = model.quantization
    for name in _FACTS:
        # The parameters of packed weights are counted in different ways.
        if getattr(model, name) != info[name] and not (quantized and name == "n_parameters"):
            yield f"{name} is {info[name]}, the submission says {getattr(model, name)}"
    nats, share = tolerance(model), _SHARE_QUANTIZED if quantized else _SHARE[model.dtype]
    for claim in claims:
        answer = answers[claim.key]
        for problem in (
            *_target_problems(claim, answer, nats),
            *_list_problems(claim, answer, nats),
            *_agreement_problems(claim, answer, share),
        ):
            yield f"{claim.id}: {problem}"


def _target_problems(claim: Claim, answer: Answer, nats: float) -> Iterator[str]:
    score = answer.words[claim.word]
    if not _within(score.log_prob, claim.log_prob, nats):
        yield _both(f"the log-probability of “{claim.word}”", score.log_prob, claim.log_prob)
    if score.n_tokens != claim.n_tokens:
        yield f"“{claim.word}” has {score.n_tokens} tokens, the submission says {claim.n_tokens}"


def _list_problems(claim: Claim, answer: Answer, nats: float) -> Iterator[str]:
    """Yields top words with another probability, and words that the submission leaves out.

    `answer` has a longer list than the submission, so that it has the words near the end, too.
    """
    ours = list(zip(answer.top_words, answer.top_log_probs, strict=True))
    theirs = list(zip(claim.top_words, claim.top_log_probs, strict=True))
    for word, value in theirs:
        same = [other for name, other in ours if name == word]
        nearest = min(same, key=lambda other: abs(other - value), default=None)
        if not _within(nearest, value, nats):
            yield _both(f"the log-probability of the top word “{word}”", nearest, value)
    last = min(value for _, value in theirs)
    for word, value in ours[: len(theirs)]:
        if word not in claim.top_words and value > last + nats:
            yield f"“{word}” ({value:.3f}) is not among the submission's top words"


def _agreement_problems(claim: Claim, answer: Answer, share: float) -> Iterator[str]:
    for name, index in _WITHOUT_CUTOFF.items():
        ours = None if answer.agreement is None else answer.agreement[index]
        theirs = None if claim.agreement is None else claim.agreement[index]
        if not _within(ours, theirs, share):
            yield _both(name.upper(), ours, theirs)


def _within(ours: float | None, theirs: float | None, tolerance: float) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= tolerance


def _both(what: str, ours: float | None, theirs: float | None) -> str:
    mine, other = ("not known" if value is None else f"{value:.3f}" for value in (ours, theirs))
    return f"{what} is {mine}, the submission says {other}"
