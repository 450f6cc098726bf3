"""A model that answers questions: what `models.load` returns."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.models.answers import answers, refuse_nan
from lmdiag.models.forward import Reader
from lmdiag.models.rows import Asker, Encoded
from lmdiag.models.vocabulary import Vocabulary
from lmdiag.schema import Answer, ModelInfo, Question


class Model:
    """A language model, asked about blanks.

    Attributes:
        info: what a run says about it.
        asker: turns questions into rows.
        reader: turns rows into distributions.
        vocabulary: shows the items of the distributions.
    """

    def __init__(
        self, info: ModelInfo, asker: Asker, reader: Reader, vocabulary: Vocabulary
    ) -> None:
        self.info = info
        self.asker = asker
        self.reader = reader
        self.vocabulary = vocabulary

    def encode(self, question: Question) -> Encoded:
        """Returns a question as rows of token ids; runs on the CPU, without the model.

        Raises:
            BadInput: the context is longer than the model reads, or empty where it must not be.
        """
        return self.asker.encode(question)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Deals questions out to batches, longest first.

        A function of its arguments alone, so that every process comes to the same batches.

        Args:
            encoded: all questions of a run.
            batch_size: questions in a batch; None for what suits the device.

        Returns:
            for each batch, the numbers of its questions; every number is in one batch.
        """
        order = sorted(range(len(encoded)), key=lambda number: -encoded[number].length)
        size = batch_size or 32
        return [order[start : start + size] for start in range(0, len(order), size)]

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer]:
        """Returns the answers to a batch of questions, in their order.

        Args:
            batch: the questions.
            top: length of the list of the most probable items.

        Raises:
            BadInput: NaN or infinite logits; names model and context.
        """
        log_probs = self.reader.read([row for encoded in batch for row in encoded.rows])
        refuse_nan(batch, log_probs, self.info.id)
        return answers(batch, log_probs, self.vocabulary, top, [None] * len(batch))
