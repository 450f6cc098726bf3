"""A model that answers questions: what `models.load` returns."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.models.answers import answers, refuse_nan
from lmdiag.models.forward import Reader
from lmdiag.models.memory import is_out_of_memory, release
from lmdiag.models.plan import batches
from lmdiag.models.rows import Asker, Encoded, shorten
from lmdiag.models.search import WordSearch
from lmdiag.models.verbs import Verbs
from lmdiag.models.vocabulary import Vocabulary
from lmdiag.models.whole import WholeWords
from lmdiag.schema import Answer, BadInput, ModelInfo, Query, Question

BUDGET = 16_384
"""Tokens in a batch on accelerators, halved until they fit."""

PACKED_BUDGET, PADDED_BUDGET = 1536, 384
"""The same on processors, as many as their caches like; the fewer of them the less is padding."""

VERB_PLACE = Query("The old man", "it.")
"""Where a verb stands when it is seen whether it is a single token."""


class Model:
    """A language model, asked about blanks.

    Attributes:
        info: what a run says about it.
        asker: turns questions into rows.
        reader: turns rows into distributions.
        vocabulary: shows the items of the distributions.
        words: answers in unit `word`; None in unit `token`.
    """

    def __init__(
        self,
        info: ModelInfo,
        asker: Asker,
        reader: Reader,
        vocabulary: Vocabulary,
        words: WordSearch | None = None,
    ) -> None:
        self.info = info
        self.asker = asker
        self.reader = reader
        self.vocabulary = vocabulary
        self.words = words
        self._verbs: Verbs | None = None
        self._fits: int | None = None

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Has answers to questions with a `number` say EW and MW over these verbs.

        Args:
            pairs: (singular, plural) forms.

        Returns:
            number of verbs whose two forms are both single tokens: those that count.
        """
        ids = []
        for forms in pairs:
            question = Question(VERB_PLACE, forms)
            singular, plural = map(self.asker.encode(question).words.get, forms)
            if singular and plural and len(singular) == len(plural) == 1 and singular != plural:
                ids.append((singular[0].token, plural[0].token))
        self._verbs = Verbs.of(list(dict.fromkeys(ids)))
        return len(self._verbs)

    def encode(self, question: Question) -> Encoded:
        """Returns a question as rows of token ids; runs on the CPU, without the model.

        Raises:
            BadInput: the context is longer than the model reads, or empty where it must not be.
        """
        return (self.words or self.asker).encode(question)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Deals questions out to batches; see `plan.batches`.

        Args:
            encoded: all questions of a run.
            batch_size: questions in a batch; None for what suits the device.
        """
        return batches(
            encoded,
            budget=self._budget(),
            count=batch_size,
            packed=self.reader.layout == "packed",
            causal=self.reader.causal,
            short_limit=self.reader.short_limit,
        )

    def _budget(self) -> int:
        if self.reader.device.type != "cpu":
            return BUDGET
        return PACKED_BUDGET if self.reader.layout == "packed" else PADDED_BUDGET

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer]:
        """Returns the answers to a batch of questions, in their order.

        A batch that does not fit into memory is asked in halves, and so are later ones of its size.

        Args:
            batch: the questions.
            top: length of the list of the most probable items.

        Raises:
            BadInput: NaN or infinite logits (names model and context); one question alone does not
                fit into memory.
        """
        if not batch:
            return []
        size = sum(encoded.length for encoded in batch)
        if len(batch) == 1 or self._fits is None or size <= self._fits:
            found = self._try(batch, top)
            if found is not None:
                return found
            self._fits = size // 2
        middle = len(batch) // 2
        return self.answer(batch[:middle], top) + self.answer(batch[middle:], top)

    def _try(self, batch: Sequence[Encoded], top: int) -> list[Answer] | None:
        """Returns the answers, or None where memory runs out, of which nothing is held then."""
        try:
            return self._answer(batch, top)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                context = shorten(batch[0].question.query.context)
                raise BadInput(
                    f"model {self.info.id} runs out of memory on the one context {context!r}: "
                    "use a smaller --dtype, --device-map auto, or another device"
                ) from error
        release()
        return None

    def _answer(self, batch: Sequence[Encoded], top: int) -> list[Answer]:
        if self.words is not None:
            whole = [encoded for encoded in batch if isinstance(encoded, WholeWords)]
            return self.words.answer(whole, top, self._verbs)
        log_probs = self.reader.read([row for encoded in batch for row in encoded.rows])
        owners = [encoded.question.query for encoded in batch for _ in range(encoded.n_reads)]
        refuse_nan(owners, log_probs, self.info.id)
        return answers(batch, log_probs, self.vocabulary, top, self._verbs)
