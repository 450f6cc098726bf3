"""Models that prefer the good word exactly where a test wants them to."""

from __future__ import annotations

from collections.abc import Callable

from invented_runs import FakeModel, model_info

from lmdiag.models import LoadOptions
from lmdiag.types import Answer, Question, WordScore


class Planted(FakeModel):
    """A masked model of contexts that end with the number of their contrast; `good` is good."""

    def __init__(self, model_id: str, options: LoadOptions) -> None:
        self.info, self._options = model_info(id=model_id), options

    def key(self, encoded: Question, top: int) -> str:
        """Another one for any other options: nothing is shared."""
        return repr((encoded, top, self._options))

    def with_options(self, options: LoadOptions) -> Planted:
        return Planted(self.info.id, options)

    def reply(self, question: Question, top: int) -> Answer:
        number = int(question.query.context.rsplit(maxsplit=1)[-1])
        prefers = PREFERENCES[self.info.id.partition(":")[2]]
        first = "good" if prefers(self._options, number) else "bad"
        nats = {word: -0.5 if word == first else -1.5 for word in question.words}
        scores = {word: WordScore(p, 1 if word == first else 2, 1) for word, p in nats.items()}
        return Answer(scores, (first,), (-0.5,))


PREFERENCES: dict[str, Callable[[LoadOptions, int], bool]] = {}
"""Model -> whether it prefers the good word, by options and number of the contrast."""
