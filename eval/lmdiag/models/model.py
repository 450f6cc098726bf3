"""The interface between a run and a model.

`lmdiag.models.local` implements it with weights in this process. Another kind of model, for example
a server that returns only its 20 most probable tokens, implements it in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lmdiag.types import Answer, ModelInfo, Question, Sentence, SentenceAnswer

if TYPE_CHECKING:
    from lmdiag.models.loading.options import LoadOptions


class Model(Protocol):
    """A language model that answers questions about blanks and about whole sentences.

    A run encodes all its questions, plans the batches, and asks for the answers batch by batch. An
    encoded question is any object that the model understands; a run only hands it back.

    Attributes:
        info: what a run records about the model.
        prompt: text with `{context}` in it that stands around every context; "" for none.
        warning: what looks wrong with its files; None for nothing.
        report: is called with the share of a long batch that is read so far; set by a run.
    """

    info: ModelInfo
    prompt: str
    warning: str | None
    report: Callable[[float], None]

    @property
    def device(self) -> str:
        """Where the model computes, e.g. "cuda:0"."""
        ...

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int | None:
        """Has answers to questions with a `number` include EW and MW over these verbs.

        Args:
            pairs: (singular, plural) forms.

        Returns:
            the number of verbs that count, whose two forms are both single tokens; None for a model
            that has no EW and MW.
        """
        ...

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the names of control tokens in each text, which the model reads as tokens."""
        ...

    def encode(self, question: Question | Sentence) -> Any:
        """Returns a question as `answer` takes it, without running the model.

        Raises:
            BadInput: the context is longer than the model reads, or empty where it must not be; a
                sentence without words, or a model that cannot score sentences.
        """
        ...

    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        """Returns the numbers of the questions of each batch, a function of the arguments alone.

        Args:
            encoded: all questions of a run.
            batch_size: questions in a batch; None for what suits the device.
        """
        ...

    def answer(self, batch: Sequence[Any], top: int) -> Sequence[Answer | SentenceAnswer]:
        """Returns the answers to a batch of encoded questions, in their order.

        Args:
            batch: the questions; those of a run are all about blanks or all about sentences.
            top: length of the list of the most probable items at a blank.

        Raises:
            BadInput: NaN or infinite logits, a question that does not fit into memory, or whatever
                else a server does; names the model and the context.
        """
        ...

    def at_layers(self, layers: Sequence[str | int]) -> LayeredModel:
        """Returns a model that shares the weights and answers after each of some layers.

        Args:
            layers: numbers, from 0 for the input of the first layer; or "all" alone.

        Raises:
            BadInput: it does not have them, or only its ordinary answer can be asked.
        """
        ...

    def key(self, encoded: Any, top: int) -> str:
        """Returns what identifies an encoded question.

        Where two keys are equal, even of two models that share weights, so are the answers, but for
        rounding.
        """
        ...

    def with_options(self, options: LoadOptions) -> Model | None:
        """Returns a model that shares the weights and is asked with other options.

        None where the weights must be loaded again. The options of loading are those of this model.
        """
        ...


class LayeredModel(Model, Protocol):
    """A model whose answer to a question is a tuple of its answers after each of some layers.

    All are read in one pass, as far as the last of them.

    Attributes:
        numbers: of the layers, ascending.
        after: the same, None for the last layer of the network, which gives the ordinary answer.
    """

    @property
    def numbers(self) -> tuple[int, ...]: ...

    @property
    def after(self) -> tuple[int | None, ...]: ...
