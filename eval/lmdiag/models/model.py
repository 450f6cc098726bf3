"""What a run asks of a model: questions in, answers out, facts, and a key for each question.

How a model comes to its answers is up to its class: `lmdiag.models.token_model` has what models
with a tokenizer share, whose weights are in this process (`lmdiag.models.local`) or behind a server
(`lmdiag.models.server.served`). Another kind of model is a subclass of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmdiag.types import Answer, ModelInfo, Question, Sentence, SentenceAnswer

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions


@dataclass(eq=False)
class Model(ABC):
    """A language model that answers questions about blanks and about whole sentences.

    A run encodes all its questions, plans the batches, and asks for the answers batch by batch.

    Attributes:
        info: what a run records about the model.
        options: how it was loaded, and how it is asked.
        warning: what looks wrong with its files; None for nothing.
        layers: after which it answers, ascending; None for the last one, whose answer is the
            ordinary one.
        check_key: of `info.check_log_probs` among saved answers; "" where there are none.
        prompt: text with `{context}` in it that stands around every context; "" for none.
        report: is called with the share of a long batch that is read so far; set by a run.
    """

    info: ModelInfo
    options: LoadOptions
    warning: str | None
    layers: tuple[int | None, ...] = field(default=(None,), kw_only=True)
    check_key: str = field(default="", init=False)
    prompt: str = field(default="", init=False)
    report: Callable[[float], None] = field(default_factory=lambda: _ignore_share, init=False)

    @property
    @abstractmethod
    def device(self) -> str:
        """Where the model computes, e.g. "cuda:0"."""

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of `layers`, in their order; None in `layers` is the number of the last one.

        For example, layers (0, None) of a model with 12 layers have the numbers (0, 12).
        """
        last_layer = self.info.n_layers or 0
        return tuple(last_layer if layer is None else layer for layer in self.layers)

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the names of control tokens in each text, for example [["[MASK]"], []].

        A model reads such a name as the token itself. A model without a tokenizer has no control
        tokens.
        """
        return [[] for _ in texts]

    @abstractmethod
    def encode(self, question: Question | Sentence) -> Any:
        """Returns a question as `key`, `plan` and `answer` take it, without running the model.

        For a model with a tokenizer, these are rows of token ids.

        Raises:
            BadInput: the model cannot be asked this; says why.
        """

    @abstractmethod
    def key(self, encoded: Any, top: int) -> str:
        """Returns what identifies an encoded question.

        Questions with equal keys have equal answers up to rounding, also if they are asked of two
        models that share weights.

        Args:
            encoded: what `encode` returned for it.
            top: number of most probable words in the answer; ignored for a sentence, whose answer
                has none.
        """

    def refuse_other_model(self, check_log_probs: Sequence[float]) -> None:
        """Raises `BadInput` if the model is not the one that had these `check_log_probs` before.

        A server may have another model after a while, so that `ServedModel` compares them. Other
        models do nothing here, since weights in this process do not change.
        """
        return

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int | None:
        """Has answers to questions with a `number` include EW and MW over these verbs.

        Args:
            pairs: (singular, plural) forms.

        Returns:
            the number of verbs that count, whose two forms are both single tokens; None for a model
            that has no EW and MW, since it does not give whole distributions (behind a server).
        """
        return None

    @abstractmethod
    def plan(self, encoded: Sequence[Any], batch_size: int | None = None) -> list[list[int]]:
        """Returns the numbers of the questions of each batch, a function of the arguments alone.

        Args:
            encoded: all questions of a run.
            batch_size: questions in a batch; None for what suits the device.
        """

    @abstractmethod
    def answer(self, batch: Sequence[Any], top: int) -> Sequence[Answer | SentenceAnswer]:
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

        None where the model must be loaded again, which is the default. The new options differ from
        those of this model only in how it is asked, not in how it is loaded.
        """
        return None


def _ignore_share(share: float) -> None:
    """Does nothing with the share of a batch that is read: the default of `Model.report`."""


def batches_in_order(count: int, size: int) -> list[list[int]]:
    """Divides the numbers of `count` questions into batches of `size`; the last may be smaller.

    >>> batches_in_order(5, 2)
    [[0, 1], [2, 3], [4]]
    """
    numbers = list(range(count))
    return [numbers[start : start + size] for start in range(0, count, size)]
