"""A model behind a server, as a run asks it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

from lmdiag.asking.possible import impossible_sum
from lmdiag.asking.protocol import text_digest
from lmdiag.asking.rules import Case, refusal
from lmdiag.models.model import batches_in_order
from lmdiag.models.sentences import sentence_answer
from lmdiag.models.server.client import REMEDY, Client, ServerRefusal, WrongReply
from lmdiag.models.server.replies import DIALECTS, LOWEST, Ids, Reply, read_reply
from lmdiag.models.token_model import TokenModel
from lmdiag.models.tokens.encoded_questions import EncodedQuestion
from lmdiag.models.tokens.encoded_sentences import Encoded, EncodedSentence
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, Question, Sentence, SentenceAnswer, WordScore

_BATCH = 64
"""Questions in a batch: as many as are lost when a run is killed."""

_LIST = 20
"""Top tokens that are asked for, if the protocol needs no more: a longer list gives more ranks."""

SAME_MODEL = 0.1
"""Largest difference, in nats, between the log-probabilities of one model at two times: the median
over the tokens of the check's contexts. An answer may differ by `checks.CONSISTENT` (0.05) by the
rounding of half precision and other requests at the same time, and here both of two answers may."""


@dataclass(eq=False)
class ServedModel(TokenModel):
    """A causal model that is asked by requests to a server.

    Attributes:
        client: sends the requests.
        dialect: how they are written, a name in `DIALECTS`.
        longest: top tokens that the server gives at most.
        check_prompts: what tells the model from another one of its name, see `set_check`.
    """

    client: Client
    dialect: str = ""
    longest: int = 0
    check_prompts: Sequence[Ids] = ()

    def set_check(self, prompts: Sequence[Ids], replies: Sequence[Reply]) -> None:
        """Records what the model says of some prompts, which are asked again with each batch."""
        self.check_prompts = prompts
        self.check_key = f"check-{text_digest(repr(prompts))}"
        self.info = replace(self.info, check_log_probs=_log_probs(replies))

    @property
    def device(self) -> str:
        """The address instead of a `Model.device`."""
        return f"server {self.client.address}"

    def encode(self, question: Question | Sentence) -> Encoded:
        if question.entropy:
            raise BadInput(refusal(Case(given={*self.options.stored(), "entropy"})))
        return super().encode(question)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Groups questions in their order, however many requests are in flight."""
        return batches_in_order(len(encoded), batch_size or _BATCH)

    def at_layers(self, layers: Sequence[str | int]) -> NoReturn:
        raise BadInput(refusal(Case(given={*self.options.stored(), "layers"})))

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer | SentenceAnswer]:
        """See `Model.answer`; the distinct prompts of a batch are asked side by side.

        Then the prompts of the check are asked again: if the server has another model by now, the
        batch is not answered, and therefore not saved.
        """
        longest = min(self.longest, max(top, _LIST))
        # A list that lacks a token is asked for again, shorter.
        lengths = [longest, *range(min(top, longest - 1), 0, -1)]
        texts: dict[Ids, str] = {}
        contexts = set()
        for encoded in batch:
            if isinstance(encoded, EncodedSentence):
                prompts = sentence_prompts(encoded)
            else:
                context = encoded.blank.left
                contexts.add(context)
                words = filter(None, encoded.words.values())
                prompts = [context, *(context + word for word in words)] if context else []
            texts |= dict.fromkeys(prompts, encoded.text)

        values = self.client.gather(
            self._ask(prompt, text, lengths if prompt in contexts else [0])
            for prompt, text in texts.items()
        )
        replies = dict(zip(texts, values, strict=True))
        self._check_again()
        return [
            self._sentence_answer(encoded, replies)
            if isinstance(encoded, EncodedSentence)
            else encoded.unasked or self._answer(encoded, replies, top)
            for encoded in batch
        ]

    def refuse_other_model(self, check_log_probs: Sequence[float]) -> None:
        expected = self.info.check_log_probs or ()
        if len(check_log_probs) != len(expected):
            what = f"are of {len(check_log_probs)} and of {len(expected)} tokens"
        else:
            pairs = zip(check_log_probs, expected, strict=True)
            difference = statistics.median(abs(a - b) for a, b in pairs)
            if difference <= SAME_MODEL:
                return
            what = f"differ by {difference:.2f} nats, the median, more than {SAME_MODEL:g}"
        raise BadInput(
            f"server {self.client.address} has another model under the name {self.info.id} than "
            f"the one that gave the earlier answers (log-probabilities of the check's tokens "
            f"{what}): serve that model again and repeat the command, which keeps saved answers, "
            "or choose another --output for the model that is served now"
        )

    def _check_again(self) -> None:
        """Asks the prompts of the check again."""
        try:
            replies = self.client.gather(self.ask(prompt, 0) for prompt in self.check_prompts)
        except WrongReply as wrong:
            raise BadInput(f"server {self.client.address} {wrong}; {REMEDY}") from wrong
        self.refuse_other_model(_log_probs(replies))

    async def ask(self, prompt: Ids, top: int) -> Reply:
        """Returns what the server says of a prompt; `WrongReply` if that cannot be used.

        Args:
            prompt: token ids, special ones included.
            top: length of the list of the most probable next tokens; 0 if it is not needed.
        """
        body = {
            "model": self.info.id,
            "prompt": list(prompt),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": max(1, top),
            "return_tokens_as_token_ids": True,
            **DIALECTS[self.dialect],
        }
        content = await self.client.send("completions", body)
        reply = read_reply(content, prompt, self.info.id)
        reply.top = [(self._ids.get(name, name), nats) for name, nats in reply.top]
        return reply

    @cached_property
    def _ids(self) -> dict[int | str, int]:
        """Text -> id of the only token that has it."""
        items = map(self.vocabulary.item, range(self.info.vocab_size))
        texts = [
            item.surface.decode(errors="replace") if item.surface else item.text for item in items
        ]
        numbers = Counter(texts)
        numbered = enumerate(texts)
        return {text: id for id, text in numbered if numbers[text] == 1 and "\ufffd" not in text}

    async def _ask(self, prompt: Ids, text: str, lengths: Sequence[int]) -> Reply:
        """Returns a reply with a list of the first length whose list lacks no token.

        In a list of texts, tokens that have a part of a character may share a text; then only one
        of them is there.
        """
        where = f"the text is {truncated(text)!r}"
        try:
            for length in lengths:
                reply = await self.ask(prompt, length)
                if len(reply.top) >= length or all(isinstance(name, int) for name, _ in reply.top):
                    break
            return reply
        except ServerRefusal as refused:
            raise BadInput(f"{refused}; {where}") from refused
        except WrongReply as wrong:
            raise BadInput(f"server {self.client.address} {wrong}; {where}; {REMEDY}") from wrong

    def _answer(self, encoded: EncodedQuestion, replies: Mapping[Ids, Reply], top: int) -> Answer:
        """Returns the answer to a question from replies to its context and words.

        Args:
            replies: prompt -> reply; that to the context has the list of top tokens.
            top: length of the list.
        """
        context = encoded.blank.left
        listed = replies[context].top
        scores = dict.fromkeys(encoded.words, WordScore(None, None, 0))
        for word, pieces in encoded.words.items():
            if pieces is not None:
                nats = replies[context + pieces].nats[len(context) - 1 :]
                scores[word] = score_word(pieces[0], nats, listed)
        names = tuple(
            self.vocabulary.show(name, bare=encoded.bare) if isinstance(name, int) else repr(name)
            for name, _ in listed
        )
        top_nats = tuple(nats for _, nats in listed)
        tokens = {
            word: score.log_prob
            for word, score in scores.items()
            if score.n_tokens == 1 and score.log_prob is not None
        }
        if (total := impossible_sum(tokens | dict(zip(names, top_nats, strict=True)))) is not None:
            raise BadInput(
                f"server {self.client.address} gives the words at one blank {total:.4f} of "
                f"probability together; the text is {truncated(encoded.text)!r}; {REMEDY}"
            )
        return Answer(scores, names[:top], top_nats[:top])

    def _sentence_answer(
        self, encoded: EncodedSentence, replies: Mapping[Ids, Reply]
    ) -> SentenceAnswer:
        """Returns the answer to a sentence from the replies to its prompts."""
        values = []
        for row, prompt in zip(encoded.rows, sentence_prompts(encoded), strict=True):
            values += [(replies[prompt].nats[position],) for position in row.reads]
        return sentence_answer(encoded, values, self.info.id)


def _log_probs(replies: Sequence[Reply]) -> tuple[float, ...]:
    """The log-probabilities of the tokens of all prompts, finite as JSON has them."""
    return tuple(max(nats, LOWEST) for reply in replies for nats in reply.nats)


def score_word(
    first_token: int, nats: Sequence[float], listed: Sequence[tuple[int | str, float]]
) -> WordScore:
    """Returns the score of a word.

    Its rank is known where it is not less probable than the last of the top tokens. Its first token
    does not count, and a word of one token has the rank of its token in the list.

    Args:
        first_token: its id.
        nats: log-probabilities of its tokens.
        listed: the most probable tokens at the blank with theirs, best first.
    """
    total = math.fsum(nats)
    if total == -math.inf:
        return WordScore(None, None, len(nats))
    value = dict(listed).get(first_token, total) if len(nats) == 1 else total
    above = sum(other > value for name, other in listed if name != first_token)
    is_known = bool(listed) and value >= listed[-1][1]
    return WordScore(total, 1 + above if is_known else None, len(nats))


def sentence_prompts(encoded: EncodedSentence) -> list[Ids]:
    """Returns what is asked for a sentence: for each of its rows, the row and its last token."""
    return [(*row.ids[: row.reads[-1] + 1], row.wanted[-1]) for row in encoded.rows]
