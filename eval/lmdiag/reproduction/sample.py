"""Which contexts of a submission are queried again, and what the submission says of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.questions import QuestionKey, Setting, collect, row_keys
from lmdiag.schema import Question

if TYPE_CHECKING:
    from lmdiag.results import Run


class Claim(NamedTuple):
    """What a submission says of one row.

    Attributes:
        id: of the row.
        key: of the question that the row asks.
        word: the row's target.
        log_prob: of the word, in nats; None if it is unscorable.
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
    shuffled = [
        generator.sample(keys, len(keys))
        for keys in ([_key(question) for question in collect([each], **form)] for each in settings)
    ]
    # One key of each task in turn; tasks can share a key.
    turns = chain.from_iterable(zip_longest(*shuffled))
    chosen = set(islice(dict.fromkeys(key for key in turns if key is not None), n))
    return Sample(
        [question for question in questions if _key(question) in chosen],
        [c for each in settings for c in _claims(run, each, form) if c.key in chosen],
        len(questions),
    )


def _key(question: Question) -> QuestionKey:
    return question.query, question.number


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
