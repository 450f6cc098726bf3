"""Batches that several runs of one model ask: their answers are kept until all runs have them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes


class Memory:
    """Answers to batches that occur more than once, by `Reconfigurable.key`; as safe as a run's.

    Args:
        batches: key and number of questions of every batch of all runs, in order.
        journal: keeps the answers across interrupted commands; their numbers follow the order of
            the batches.
    """

    def __init__(self, batches: Iterable[tuple[bytes, int]], journal: Journal) -> None:
        batches = list(batches)
        counts = Counter(key for key, _ in batches)
        sizes = {key: size for key, size in batches if counts[key] > 1}
        self._journal = journal
        self._numbers: dict[bytes, range] = {}
        for key, size in sizes.items():
            start = max((numbers.stop for numbers in self._numbers.values()), default=0)
            self._numbers[key] = range(start, start + size)
        self._answers = journal.read() if sizes else {}
        self._new: dict[int, Any] = {}

    def known(self, key: bytes) -> list[Any] | None:
        """Returns the answers to a batch; None if they are not known."""
        numbers = self._numbers.get(key, ())
        answers = [self._answers[number] for number in numbers if number in self._answers]
        return answers if answers and len(answers) == len(numbers) else None

    def keep(self, key: bytes, answers: Sequence[Any]) -> None:
        """Keeps the answers to a batch if another run asks it, too."""
        if numbers := self._numbers.get(key):
            new = dict(zip(numbers, answers, strict=True))
            self._journal.append(new)
            self._answers |= new
            self._new |= new

    def share(self, processes: Processes) -> None:
        """Gives every process what each has learnt since the last time."""
        if self._numbers:
            for part in processes.gather(self._new):
                self._answers |= part
        self._new = {}

    def forget(self) -> None:
        """Removes what is on disk: all runs are finished."""
        shutil.rmtree(self._journal.folder, ignore_errors=True)


class Remembering:
    """A model that takes the answers to a batch from a memory where they are known.

    It implements `lmdiag.models.Model`; all but `answer` is the model's own.

    Args:
        model: the model, which is `Reconfigurable`.
        memory: of all its runs.
    """

    def __init__(self, model: Any, memory: Memory) -> None:
        self._model = model
        self._memory = memory
        self.info = model.info
        self.prompt: str = model.prompt

    @property
    def device(self) -> str:
        """See `Model.device`."""
        return str(self._model.device)

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """See `Model.set_verbs`."""
        return int(self._model.set_verbs(pairs))

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Model.control_names`."""
        return [*self._model.control_names(texts)]

    def encode(self, question: Any) -> Any:
        """See `Model.encode`."""
        return self._model.encode(question)

    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        """See `Model.plan`."""
        return [*self._model.plan(encoded, batch_size)]

    def answer(self, batch: Sequence[Any], top: int) -> Sequence[Any]:
        """See `Model.answer`."""
        key = self._model.key(batch, top)
        if (known := self._memory.known(key)) is not None:
            return known
        answers: Sequence[Any] = self._model.answer(batch, top)
        self._memory.keep(key, answers)
        return answers
