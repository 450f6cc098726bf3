"""What every model has: texts become tokens, questions have keys, and runs record facts.

A subclass says how tokens are answered: `lmdiag.models.local` by weights in this process,
`lmdiag.models.server.served` by requests. Another kind of model is a subclass of its own.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmdiag.models.tokens.encoders import CausalEncoder, QuestionEncoder
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.sentences import Encoded
from lmdiag.models.tokens.spelling import folds_of
from lmdiag.models.tokens.vocabulary import Vocabulary, control_names
from lmdiag.rules import Case, refusal
from lmdiag.types import Answer, BadInput, ModelInfo, Question, Sentence, SentenceAnswer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.loading.options import LoadOptions


def facts_of_tokens(tokenizer: PreTrainedTokenizerFast, encoder: QuestionEncoder) -> dict[str, Any]:
    """Returns the fields of `ModelInfo` that say how texts become tokens."""
    folds = folds_of(tokenizer)
    facts = {
        "tokenizer": type(tokenizer).__name__,
        "cased": "case" not in folds,
        "folds": folds,
        "max_length": encoder.limit,
    }
    if not isinstance(encoder, CausalEncoder):
        return facts
    return facts | {
        "bos": encoder.reads_bos,
        "sentence_bos": bool(encoder.sentences().opening),
        "tokenizer_bos": bool(encoder.spelling.opening),
    }


@dataclass(eq=False)
class Model(ABC):
    """A language model that answers questions about blanks and about whole sentences.

    A run encodes all its questions, plans the batches, and asks for the answers batch by batch.

    Attributes:
        info: what a run records about the model.
        options: how it was loaded, and how it is asked.
        tokenizer: turns texts into tokens.
        encoder: turns questions and sentences into rows of tokens.
        warning: what looks wrong with its files; None for nothing.
        layers: after which it answers, ascending; None for the last one, whose answer is the
            ordinary one.
        prompt: text with `{context}` in it that stands around every context; "" for none.
        vocabulary: how tokens are shown.
        report: is called with the share of a long batch that is read so far; set by a run.
    """

    info: ModelInfo
    options: LoadOptions
    tokenizer: PreTrainedTokenizerFast
    encoder: QuestionEncoder
    warning: str | None
    layers: tuple[int | None, ...] = field(default=(None,), kw_only=True)

    def __post_init__(self) -> None:
        self.prompt = self.encoder.framing.shown
        self.vocabulary = Vocabulary(self.tokenizer)
        self.report: Callable[[float], None] = lambda share: None
        self._sentences = self.encoder.sentences()
        self._sentence_problem = refusal(Case(given=self.options.stored(), asks="sentence"))

    @property
    @abstractmethod
    def device(self) -> str:
        """Where the model computes, e.g. "cuda:0"."""

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of `layers`."""
        last = self.info.n_layers or 0
        return tuple(last if layer is None else layer for layer in self.layers)

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the names of control tokens in each text, which the model reads as tokens."""
        return control_names(self.tokenizer, texts)

    def encode(self, question: Question | Sentence) -> Encoded:
        """Returns a question as `answer` takes it, without running the model.

        Raises:
            BadInput: the context is longer than the model reads, or empty where it must not be; a
                sentence without words, or a model that cannot score sentences.
        """
        if isinstance(question, Question):
            return self.encoder.encode(question)
        if self._sentences is None:
            raise BadInput(
                f"model {self.info.id} is an encoder-decoder, which gives no probability of whole "
                "sentences: use a masked or a causal model"
            )
        if self._sentence_problem:
            raise BadInput(self._sentence_problem)
        return self._sentences.encode(question)

    def key(self, encoded: Encoded, top: int) -> str:
        """Returns what identifies an encoded question.

        Where two keys are equal, even of two models that share weights, so are the answers, but for
        rounding.
        """
        key = encoded.key
        if isinstance(encoded, EncodedQuestion):
            key = (*key, top)
        key = (*key, *self.answered_by(encoded))
        return hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def answered_by(self, encoded: Encoded) -> tuple[Any, ...]:
        """Returns what else the answer to an encoded question depends on, for its key."""
        return ()

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int | None:
        """Has answers to questions with a `number` include EW and MW over these verbs.

        Args:
            pairs: (singular, plural) forms.

        Returns:
            the number of verbs that count, whose two forms are both single tokens; None for a model
            that has no EW and MW, since it does not give whole distributions.
        """
        return None

    @abstractmethod
    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Returns the numbers of the questions of each batch, a function of the arguments alone.

        Args:
            encoded: all questions of a run.
            batch_size: questions in a batch; None for what suits the device.
        """

    @abstractmethod
    def answer(self, batch: Sequence[Encoded], top: int) -> Sequence[Answer | SentenceAnswer]:
        """Returns the answers to a batch of encoded questions, in their order.

        Args:
            batch: the questions; those of a run are all about blanks or all about sentences.
            top: length of the list of the most probable items at a blank.

        Raises:
            BadInput: NaN or infinite logits, a question that does not fit into memory, or whatever
                else a server does; names the model and the context.
        """

    @abstractmethod
    def at_layers(self, layers: Sequence[str | int]) -> Model:
        """Returns a model that shares the weights and answers after each of some layers.

        Its answer to a question is a tuple with an answer for each of its `layers`, all of them
        read in one pass.

        Args:
            layers: numbers, from 0 for the input of the first layer; or "all" alone.

        Raises:
            BadInput: it does not have them, or only its ordinary answer can be asked.
        """

    def with_options(self, options: LoadOptions) -> Model | None:
        """Returns a model that shares the weights and is asked with other options.

        None where the model must be loaded again. The options of loading are those of this model.
        """
        return None
