"""Models that prefer the good word exactly where a test wants them to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmdiag.models import LoadOptions
from lmdiag.schema import Answer, ModelInfo, Question, WordScore

Prefers = Callable[[LoadOptions, int], bool]
"""(options, number of the contrast) -> whether the model prefers the good word there."""


class Planted:
    """A masked model of contexts that end with the number of their contrast; `good` is good."""

    device = "cpu"
    prompt = ""

    def __init__(self, model_id: str, options: LoadOptions, prefers: Prefers) -> None:
        self.info = ModelInfo(
            model_id, None, "v1", "masked", "Planted", "float32", "none", True, 9, 0, None
        )
        self._options, self._prefers = options, prefers

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        return 0

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        return [[] for _ in texts]

    def encode(self, question: Question) -> Question:
        return question

    def plan(self, encoded: Sequence[Question], batch_size: int | None = None) -> list[list[int]]:
        return [[number] for number in range(len(encoded))]

    def answer(self, batch: Sequence[Question], top: int) -> list[Answer]:
        return [self._answer(question) for question in batch]

    def _answer(self, question: Question) -> Answer:
        number = int(question.query.context.rsplit(maxsplit=1)[-1])
        first = "good" if self._prefers(self._options, number) else "bad"
        nats = {word: -0.5 if word == first else -1.5 for word in question.words}
        scores = {word: WordScore(p, 1 if word == first else 2, 1) for word, p in nats.items()}
        return Answer(scores, (first,), (-0.5,))


class Plan(NamedTuple):
    """What the loader of planted models knows: name of a model -> what it prefers."""

    models: dict[str, Prefers]

    def load(self, model_id: str, options: LoadOptions) -> Planted:
        return Planted(model_id, options, self.models[model_id.partition(":")[2]])


PLAN = Plan({})
load = PLAN.load
