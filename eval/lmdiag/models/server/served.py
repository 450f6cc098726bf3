"""A model behind a server, as a run asks it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmdiag.models.server.checks import REMEDY, Connection
from lmdiag.models.server.client import ServerRefusal, WrongReply
from lmdiag.models.server.replies import Ids, Reply
from lmdiag.models.tokens.controls import control_names
from lmdiag.models.tokens.encoders import CausalEncoder
from lmdiag.models.tokens.framing import Framing
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.sentences import EncodedSentence, SentenceEncoder, TokenSpan
from lmdiag.text import truncated
from lmdiag.types import (
    Answer,
    BadInput,
    ModelInfo,
    Question,
    Sentence,
    SentenceAnswer,
    WordScore,
    WordSpan,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.loading.options import LoadOptions

_BATCH = 64
"""Questions in a batch: as many as are lost when a run is killed."""

_LIST = 20
"""Top tokens that are asked for, if the protocol needs no more: a longer list gives more ranks."""

ServedInput = EncodedQuestion | EncodedSentence


@dataclass
class ServedModel:
    """Implements `lmdiag.models.Model` by requests to a server.

    Attributes:
        info: what a run records about it.
        prompt: what stands around contexts; see `Model`.
        connection: to the server.
        tokenizer: of the model.
        encoder, sentences: turn questions and sentences into token ids.
    """

    info: ModelInfo
    prompt: str
    connection: Connection
    tokenizer: PreTrainedTokenizerFast
    encoder: CausalEncoder
    sentences: SentenceEncoder

    @property
    def device(self) -> str:
        """The address, in place of `Model.device`."""
        return f"server {self.connection.client.address}"

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Returns 0: EW and MW need the whole distribution, and the server gives a list."""
        return 0

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the names of control tokens in each text, which the model reads as tokens."""
        return control_names(self.tokenizer, texts)

    def encode(self, question: Question | Sentence) -> ServedInput:
        """Returns a question as token ids; see `Model.encode` for the errors."""
        if isinstance(question, Question):
            return self.encoder.encode(question)
        if self.encoder.framing != Framing():
            raise BadInput(
                "--prompt, --chat and --first-letter are for data with a blank: leave them out for "
                "whole sentences"
            )
        return self.sentences.encode(question)

    def plan(
        self, encoded: Sequence[ServedInput], batch_size: int | None = None
    ) -> list[list[int]]:
        """Groups questions in their order, however many requests are in flight."""
        numbers, size = [*range(len(encoded))], batch_size or _BATCH
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]

    def key(self, encoded: ServedInput, top: int) -> str:
        """Returns what identifies a question: its tokens and those of its words."""
        return hashlib.sha256(repr((encoded.key, top)).encode()).hexdigest()[:32]

    def with_options(self, options: LoadOptions) -> None:
        """Returns None: the checks of a server are made with its options."""

    def answer(self, batch: Sequence[ServedInput], top: int) -> list[Answer | SentenceAnswer]:
        """Returns the answers to a batch; its distinct prompts are asked side by side.

        Raises:
            BadInput: the server fails, refuses a request, or gives numbers that cannot be used.
        """
        longest = min(self.connection.longest, max(top, _LIST))
        # A list that lacks a token is asked for again, shorter.
        lengths = [longest, *range(min(top, longest - 1), 0, -1)]
        texts: dict[Ids, str] = {}
        contexts = set()
        for encoded in batch:
            if isinstance(encoded, EncodedSentence):
                prompts = sentence_prompts(encoded)
            else:
                context, words = question_prompts(encoded)
                contexts.add(context)
                prompts = [context, *filter(None, words.values())]
            texts |= dict.fromkeys(prompts, encoded.text)

        values = self.connection.client.gather(
            self._ask(prompt, text, lengths if prompt in contexts else [0])
            for prompt, text in texts.items()
        )
        replies = dict(zip(texts, values, strict=True))
        return [
            _sentence_answer(encoded, replies)
            if isinstance(encoded, EncodedSentence)
            else self._answer(encoded, replies, top)
            for encoded in batch
        ]

    async def _ask(self, prompt: Ids, text: str, lengths: Sequence[int]) -> Reply:
        """Returns a reply with a list of the first length whose list lacks no token."""
        where = f"the text is {truncated(text)!r}"
        try:
            for length in lengths:
                reply = await self.connection.ask(prompt, length)
                if _is_complete(reply.top, length):
                    break
            return reply
        except ServerRefusal as refusal:
            raise BadInput(f"{refusal}; {where}") from refusal
        except WrongReply as wrong:
            address = self.connection.client.address
            raise BadInput(f"server {address} {wrong}; {where}; {REMEDY}") from wrong

    def _answer(self, encoded: EncodedQuestion, replies: Mapping[Ids, Reply], top: int) -> Answer:
        context, words = question_prompts(encoded)
        listed = replies[context].top
        scores = {word: WordScore(None, None, 0) for word in words}
        for word, prompt in words.items():
            if prompt is not None:
                nats = replies[prompt].nats[len(context) :]
                scores[word] = score_word(prompt[len(context)], nats, listed)
        show = self.connection.vocabulary.show
        names = (
            show(name, bare=encoded.bare) if isinstance(name, int) else repr(name)
            for name, _ in listed[:top]
        )
        return Answer(scores, tuple(names), tuple(nats for _, nats in listed[:top]))


def question_prompts(encoded: EncodedQuestion) -> tuple[Ids, dict[str, Ids | None]]:
    """Returns the context's tokens, and those of context and word; None for an unscorable word."""
    context = encoded.blank.left
    return context, {word: pieces and context + pieces for word, pieces in encoded.words.items()}


def sentence_prompts(encoded: EncodedSentence) -> list[Ids]:
    """Returns what is asked for a sentence: for each of its rows, the row and its last token."""
    prompts, n_read = [], 0
    for row in encoded.rows:
        n_read += len(row.reads)
        last = encoded.ids[encoded.scored[n_read - 1]]
        prompts.append((*row.ids[: row.reads[-1] + 1], last))
    return prompts


def score_word(
    first: int, nats: Sequence[float | None], listed: Sequence[tuple[int | str, float]]
) -> WordScore:
    """Returns the score of a word.

    Its rank is known where it is not less probable than the last of the top tokens. Its first token
    does not count, and a word of one token has the place of its token in the list.

    Args:
        first: id of its first token.
        nats: log-probabilities of its tokens.
        listed: the most probable tokens at the blank with theirs, best first.
    """
    total = math.fsum(value for value in nats if value is not None)
    if total == -math.inf:
        return WordScore(None, None, len(nats))
    value = dict(listed).get(first, total) if len(nats) == 1 else total
    above = sum(other > value for name, other in listed if name != first)
    is_known = bool(listed) and value >= listed[-1][1]
    return WordScore(total, 1 + above if is_known else None, len(nats))


def _is_complete(listed: Sequence[tuple[int | str, float]], length: int) -> bool:
    """Returns whether a list of top tokens lacks none.

    In a list of texts, tokens that have a part of a character may share a text; then only one of
    them is there.
    """
    return len(listed) >= length or all(isinstance(name, int) for name, _ in listed)


def _sentence_answer(encoded: EncodedSentence, replies: Mapping[Ids, Reply]) -> SentenceAnswer:
    values: list[float | None] = [None] * encoded.scored.start
    for row, prompt in zip(encoded.rows, sentence_prompts(encoded), strict=True):
        values += [replies[prompt].nats[position + 1] for position in row.reads]
    return SentenceAnswer(
        tuple(_word(span, values[span.first : span.last]) for span in encoded.spans)
    )


def _word(span: TokenSpan, nats: Sequence[float | None]) -> WordSpan:
    """A word of a sentence from its tokens.

    A word that is less probable than the server tells counts as one that cannot be represented:
    without it the sentence would be too probable.
    """
    if not span.spelled or -math.inf in nats:
        return WordSpan(span.start, span.end, None, 0)
    known = [value for value in nats if value is not None]
    total = math.fsum(known) if len(known) == len(nats) else None
    return WordSpan(span.start, span.end, total, len(nats))
