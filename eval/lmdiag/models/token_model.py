"""What models with a tokenizer share: texts become tokens, and questions get keys of these."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.asking.rules import Case, refusal
from lmdiag.models.model import Model
from lmdiag.models.tokens.encoded_questions import EncodedQuestion
from lmdiag.models.tokens.encoded_sentences import Encoded
from lmdiag.models.tokens.encoders import CausalEncoder, QuestionEncoder
from lmdiag.models.tokens.spelling import folds_of
from lmdiag.models.tokens.vocabulary import Vocabulary, control_names
from lmdiag.types import BadInput, Question, Sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerFast


def tokenizer_facts(tokenizer: PreTrainedTokenizerFast, encoder: QuestionEncoder) -> dict[str, Any]:
    """Returns the fields of `ModelInfo` that say how texts become tokens.

    For example, "cased" and "max_length", and for a causal model which special tokens stand before
    contexts ("bos"), before sentences, and before any text that the tokenizer reads.
    """
    folds = folds_of(tokenizer)
    facts: dict[str, Any] = {
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
class TokenModel(Model):
    """A model that reads tokens.

    Attributes:
        tokenizer: turns texts into tokens.
        encoder: turns questions and sentences into rows of tokens.
        vocabulary: how tokens are shown.
    """

    tokenizer: PreTrainedTokenizerFast
    encoder: QuestionEncoder

    def __post_init__(self) -> None:
        self.prompt = self.encoder.framing.shown
        self.vocabulary = Vocabulary(self.tokenizer)
        self._sentences = self.encoder.sentences()  # None for an encoder-decoder
        # why sentences cannot be asked with these options; "" if they can
        self._sentence_problem = refusal(Case(given=self.options.stored(), asks="sentence"))

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the names of control tokens in each text, for example [["[MASK]"], []]."""
        return control_names(self.tokenizer, texts)

    def encode(self, question: Question | Sentence) -> Encoded:
        """Returns a question about a blank, or a sentence, as rows of token ids.

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
        """Returns a digest of all that the answer depends on, with `top` words in its list."""
        key_parts = encoded.key
        if isinstance(encoded, EncodedQuestion):
            key_parts = (*key_parts, top)
        key_parts = (*key_parts, *self.further_key_parts(encoded))
        return hashlib.sha256(repr(key_parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def further_key_parts(self, encoded: Encoded) -> tuple[Any, ...]:
        """Returns what else the answer to an encoded question depends on, for its key.

        For example, the layers after which the model answers. A subclass that has such settings
        overrides it.
        """
        return ()
