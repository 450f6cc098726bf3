"""What the models of tests share that need no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmdiag.types import Answer, ModelInfo, SentenceAnswer


class FakeModel:
    """A model without torch; see `lmdiag.models.model`. A subclass has `info` and `reply`."""

    info: ModelInfo
    device = "cpu"
    prompt = ""

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        return 0

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        return [[] for _ in texts]

    def encode(self, question: Any) -> Any:
        return question

    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        return [[number] for number in range(len(encoded))]

    def answer(self, batch: Sequence[Any], top: int) -> list[Any]:
        return [self.reply(question, top) for question in batch]

    def key(self, encoded: Any, top: int) -> str:
        return repr((encoded, top))

    def with_options(self, options: Any) -> FakeModel | None:
        return None

    def reply(self, question: Any, top: int) -> Answer | SentenceAnswer:
        """Returns the answer to one question."""
        raise NotImplementedError
