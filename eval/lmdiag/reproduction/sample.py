"""Which contexts of a submission are asked again, and what the submission says of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.questions import QuestionKey, Setting, collect, row_keys
from lmdiag.schema import Question

if TYPE_CHECKING:
    from lmdiag.results import Run


@dataclass(frozen=True)
class Claim:
    """What a submission says of one row.

    Attributes:
        id: of the row.
        key: of the question that the row is asked by.
        word: the row's target.
        log_prob: of the word, in nats; None where it is unscorable.
        n_tokens: of the word.
        top_words, top_log_probs: the most probable words.
        agreement: EW and MW of the context; None outside agreement.
    """

    id: str
    key: QuestionKey
    word: str
    log_prob: float | None
    n_tokens: int | None
    top_words: Sequence[str]
    top_log_probs: Sequence[float]
    agreement: Sequence[float | None] | None


@dataclass(frozen=True)
class Sample:
    """What is asked again.

    Attributes:
        questions: distinct ones, in the order of the data.
        claims: of all rows that share these questions.
        of: number of questions of the whole submission.
    """

    questions: Sequence[Question]
    claims: Sequence[Claim]
    of: int


def draw(run: Run, n: int | None, seed: str) -> Sample:
    """Draws contexts of a run at random, as many of each task as far as it has them.

    Args:
        run: a verified run.
        n: number of contexts; None for all.
        seed: of the draw.
    """
    model = run.results["model"]
    form = {"kind": model["kind"], "cased": model["cased"]}
    settings = [Setting(rows) for rows in run.stimuli.values()]
    by_task = [collect([setting], **form) for setting in settings]
    chosen = {_key(question) for question in _chosen(by_task, n, random.Random(seed))}
    claims = [
        claim
        for setting in settings
        for claim in _claims(run, setting, form)
        if claim.key in chosen
    ]
    everything = collect(settings, **form)
    questions = [question for question in everything if _key(question) in chosen]
    return Sample(questions, claims, len(everything))


def _key(question: Question) -> QuestionKey:
    return question.query, question.number


def _chosen(
    by_task: Sequence[Sequence[Question]], n: int | None, generator: random.Random
) -> Iterator[Question]:
    """Yields n of the questions: one of each task in turn, each task's in random order."""
    shuffled = [generator.sample(questions, len(questions)) for questions in by_task]
    seen: set[QuestionKey] = set()
    for place in range(max(map(len, shuffled))):
        for questions in shuffled:
            if place < len(questions) and _key(questions[place]) not in seen:
                if n is not None and len(seen) >= n:
                    return
                seen.add(_key(questions[place]))
                yield questions[place]


def _claims(run: Run, setting: Setting, form: Mapping[str, Any]) -> Iterator[Claim]:
    part = run.predictions[setting.stimuli.task]["none", 0]
    words = setting.stimuli.columns()["target"]
    for i, key in enumerate(row_keys(setting, **form)):
        yield Claim(
            id=part.id[i],
            key=key,
            word=words[i],
            log_prob=part.log_prob[i],
            n_tokens=part.n_tokens[i],
            top_words=part.top_words[i] or (),
            top_log_probs=part.top_log_probs[i] or (),
            agreement=part.agreement[i] if part.agreement else None,
        )
