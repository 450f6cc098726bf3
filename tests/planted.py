"""Models that prefer the good word exactly where a test wants them to."""

from __future__ import annotations

from collections.abc import Callable

from runs import FakeModel

from lmdiag.models import LoadOptions
from lmdiag.types import Answer, ModelInfo, Question, WordScore

Prefers = Callable[[LoadOptions, int], bool]
"""(options, number of the contrast) -> whether the model prefers the good word there."""


class Planted(FakeModel):
    """A masked model of contexts that end with the number of their contrast; `good` is good."""

    def __init__(self, model_id: str, options: LoadOptions, prefers: Prefers) -> None:
        self.info = ModelInfo(
            model_id, None, "v1", "masked", "Planted", "float32", "none", True, 9, 0, None
        )
        self._options, self._prefers = options, prefers

    def key(self, encoded: Question, top: int) -> str:
        """Another one for any other options: nothing is shared."""
        return repr((encoded, top, self._options))

    def with_options(self, options: LoadOptions) -> Planted:
        return Planted(self.info.id, options, self._prefers)

    def reply(self, question: Question, top: int) -> Answer:
        number = int(question.query.context.rsplit(maxsplit=1)[-1])
        first = "good" if self._prefers(self._options, number) else "bad"
        nats = {word: -0.5 if word == first else -1.5 for word in question.words}
        scores = {word: WordScore(p, 1 if word == first else 2, 1) for word, p in nats.items()}
        return Answer(scores, (first,), (-0.5,))


class Plan(dict[str, Prefers]):
    """Name of a planted model -> what it prefers, and their loader."""

    def load(self, model_id: str, options: LoadOptions) -> Planted:
        return Planted(model_id, options, self[model_id.partition(":")[2]])


PLAN = Plan()
