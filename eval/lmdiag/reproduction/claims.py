"""What a submission says of contexts that are queried again, and whether the model agrees.

Two machines do not compute the same last bits, so numbers are compared within a tolerance that
depends on the dtype of the weights. Top words whose probabilities are closer than that may change
places.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.hub.verify import is_close
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.questions import QuestionKey, Setting, collect, key_of, row_keys
from lmdiag.types import Answer, ModelInfo, Question, WordScore

if TYPE_CHECKING:
    from lmdiag.results import Run

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


class Claim(NamedTuple):
    """What a submission says of one row.

    Attributes:
        id: of the row.
        key: of the question that the row asks.
        word: the row's target.
        answer: to the question, as far as the submission has it: for this word alone.
    """

    id: str
    key: QuestionKey
    word: str
    answer: Answer


@dataclass(frozen=True)
class Sample:
    """Contexts that are queried again.

    Attributes:
        questions: distinct ones, in the order of the data.
        claims: of all rows that share these questions.
        of: number of questions of the whole submission.
    """

    questions: Sequence[Question]
    claims: Sequence[Claim]
    of: int


def draw_contexts(run: Run, n: int | None, seed: str) -> Sample:
    """Draws contexts of a run at random, the same number from each task as far as it has them.

    Args:
        run: a verified run.
        n: number of contexts; None for all.
        seed: of the draw.
    """
    model = run.results.model
    form: dict[str, Any] = {"kind": model.kind, "cased": model.cased}
    settings = [Setting(rows) for rows in run.stimuli.values()]
    questions = collect(settings, **form)
    generator = random.Random(seed)
    shuffled = []
    for setting in settings:
        keys = [*map(key_of, collect([setting], **form))]
        shuffled.append(generator.sample(keys, len(keys)))
    # One key of each task in turn; tasks can share a key.
    turns = chain.from_iterable(zip_longest(*shuffled))
    chosen = set(islice(dict.fromkeys(key for key in turns if key is not None), n))
    return Sample(
        [q for q in questions if isinstance(q, Question) and key_of(q) in chosen],
        [c for setting in settings for c in _claims(run, setting, form) if c.key in chosen],
        len(questions),
    )


def _claims(run: Run, setting: Setting, form: Mapping[str, Any]) -> Iterator[Claim]:
    part = run.predictions[setting.stimuli.task]["none", 0]
    words = setting.stimuli.columns()["target"]
    for i, key in enumerate(row_keys(setting, **form)):
        score = WordScore(part.log_prob[i], part.rank[i], part.n_tokens[i] or 0)
        top = tuple(part.top_words[i] or ()), tuple(part.top_log_probs[i] or ())
        shares = part.agreement[i] if part.agreement else None
        yield Claim(part.id[i], key, words[i], Answer({words[i]: score}, *top, shares))


def tolerance(model: ModelInfo) -> float:
    """Returns by how many nats the log-probabilities of a model may differ."""
    return _NATS_QUANTIZED if model.quantization else _NATS[model.dtype]


def contradictions(
    model: ModelInfo,
    info: Mapping[str, Any],
    claims: Sequence[Claim],
    answers: Mapping[QuestionKey, Answer],
) -> Iterator[str]:
    """Yields the differences between submission and model in words.

    Args:
        model: facts on the model, of the submission.
        info: the same facts, of the model that was loaded.
        claims: what the submission says.
        answers: the model's answers to the questions of the claims.
    """
    quantized = model.quantization
    for name in _FACTS:
        # The parameters of packed weights are counted in different ways.
        if getattr(model, name) != info[name] and not (quantized and name == "n_parameters"):
            yield f"{name} is {info[name]}, the submission says {getattr(model, name)}"
    nats, share = tolerance(model), _SHARE_QUANTIZED if quantized else _SHARE[model.dtype]
    for claim in claims:
        answer = answers[claim.key]
        for problem in (
            *_target_problems(claim.word, claim.answer, answer, nats),
            *_list_problems(claim.answer, answer, nats),
            *_agreement_problems(claim.answer, answer, share),
        ):
            yield f"{claim.id}: {problem}"


def _target_problems(word: str, said: Answer, answer: Answer, nats: float) -> Iterator[str]:
    theirs, ours = said.words[word], answer.words[word]
    yield from _differs(f"the log-probability of “{word}”", ours.log_prob, theirs.log_prob, nats)
    if ours.n_tokens != theirs.n_tokens:
        yield f"“{word}” has {ours.n_tokens} tokens, the submission says {theirs.n_tokens}"


def _list_problems(said: Answer, answer: Answer, nats: float) -> Iterator[str]:
    """Yields top words with another probability, and words that the submission leaves out.

    `answer` has a longer list than the submission, so that it has the words near the end, too.
    """
    ours = list(zip(answer.top_words, answer.top_log_probs, strict=True))
    for word, value in zip(said.top_words, said.top_log_probs, strict=True):
        same = [other for name, other in ours if name == word]
        nearest = min(same, key=lambda other: abs(other - value), default=None)
        yield from _differs(f"the log-probability of the top word “{word}”", nearest, value, nats)
    for word, value in ours[: len(said.top_words)]:
        if word not in said.top_words and value > min(said.top_log_probs) + nats:
            yield f"“{word}” ({value:.3f}) is not among the submission's top words"


def _agreement_problems(said: Answer, answer: Answer, share: float) -> Iterator[str]:
    nothing = (None,) * len(AGREEMENT_LAYOUT)
    theirs, ours = said.agreement or nothing, answer.agreement or nothing
    for name, index in _WITHOUT_CUTOFF.items():
        yield from _differs(name.upper(), ours[index], theirs[index], share)


def _differs(what: str, ours: float | None, theirs: float | None, most: float) -> Iterator[str]:
    """Yields a sentence if two numbers differ by more than a tolerance, or one is not known."""
    if not is_close(ours, theirs, most):
        mine, other = ("not known" if value is None else f"{value:.3f}" for value in (ours, theirs))
        yield f"{what} is {mine}, the submission says {other}"
