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
        """Records the model's log-probabilities of some prompts, which each batch asks again.

        If they differ later, the server has another model.
        """
        self.check_prompts = prompts
        self.check_key = f"check-{text_digest(repr(prompts))}"
        self.info = replace(self.info, check_log_probs=_log_probs(replies))

    @property
    def device(self) -> str:
        """The address instead of a `Model.device`."""
        return f"server {self.client.address}"

    def encode(self, question: Question | Sentence) -> Encoded:
        """Returns a question as token ids; `BadInput` if it asks for an entropy."""
        if question.entropy:
            # the stored options have `server`, beside which a rule refuses `entropy`
            raise BadInput(refusal(Case(given={*self.options.stored(), "entropy"})))
        return super().encode(question)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Groups questions in their order, however many requests are in flight."""
        return batches_in_order(len(encoded), batch_size or _BATCH)

    def at_layers(self, layers: Sequence[str | int]) -> NoReturn:
        """Raises `BadInput`: a server answers after its last layer only."""
        raise BadInput(refusal(Case(given={*self.options.stored(), "layers"})))

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer | SentenceAnswer]:
        """Returns the answers to a batch, whose distinct prompts are asked side by side.

        Then the prompts of the check are asked again: if the server has another model by now, the
        batch is not answered, and therefore not saved.
        """
        longest = min(self.longest, max(top, _LIST))
        # A list that lacks a token is asked for again, shorter, first as long as the answer needs:
        # for a list of 5, of a server that gives 20, the lengths are 20, 5, 4, 3, 2, 1.
        lengths = [longest, *range(min(top, longest - 1), 0, -1)]
        # distinct prompts, each with the text that messages on it show
        text_of_prompt: dict[Ids, str] = {}
        contexts = set()  # prompts after which the list of top tokens is needed
        for encoded in batch:
            prompts: list[Ids] = []
            if isinstance(encoded, EncodedSentence):
                prompts = sentence_prompts(encoded)
            else:
                context = encoded.blank.left
                contexts.add(context)
                if context:  # else all words are unscorable
                    words = filter(None, encoded.words.values())
                    prompts = [context, *(context + word for word in words)]
            text_of_prompt |= dict.fromkeys(prompts, encoded.text)

        values = self.client.gather(
            self._ask(prompt, text, lengths if prompt in contexts else [0])
            for prompt, text in text_of_prompt.items()
        )
        replies = dict(zip(text_of_prompt, values, strict=True))
        self._check_again()
        answers: list[Answer | SentenceAnswer] = []
        for encoded in batch:
            if isinstance(encoded, EncodedSentence):
                answers.append(self._sentence_answer(encoded, replies))
            else:
                answers.append(encoded.unasked or self._answer(encoded, replies, top))
        return answers

    def refuse_other_model(self, check_log_probs: Sequence[float]) -> None:
        """Raises `BadInput` if the server has or had another model at another time.

        Args:
            check_log_probs: log-probabilities of the check's tokens at that time. Their median
                difference from those of `info` must not exceed `SAME_MODEL`.
        """
        expected = self.info.check_log_probs or ()
        if len(check_log_probs) != len(expected):
            problem = f"are of {len(check_log_probs)} and of {len(expected)} tokens"
        else:
            pairs = zip(check_log_probs, expected, strict=True)
            difference = statistics.median(abs(a - b) for a, b in pairs)
            if difference <= SAME_MODEL:
                return
            problem = f"differ by {difference:.2f} nats, the median, more than {SAME_MODEL:g}"
        raise BadInput(
            f"server {self.client.address} has another model under the name {self.info.id} than "
            f"the one that gave the earlier answers (log-probabilities of the check's tokens "
            f"{problem}): serve that model again and repeat the command, which keeps saved "
            "answers, or choose another --output for the model that is served now"
        )

    def _check_again(self) -> None:
        """Raises `BadInput` if the server has another model now, by the prompts of the check."""
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
            "max_tokens": 1,  # the top tokens are those at the generated one
            "temperature": 0,
            "logprobs": max(1, top),  # an engine may take 0 for no log-probabilities at all
            "return_tokens_as_token_ids": True,  # of vLLM: names tokens by their ids
            **DIALECTS[self.dialect],
        }
        content = await self.client.send("completions", body)
        reply = read_reply(content, prompt, self.info.id)
        # a server may name tokens by their texts
        reply.top = [(self._id_of_text.get(name, name), nats) for name, nats in reply.top]
        return reply

    @cached_property
    def _id_of_text(self) -> dict[int | str, int]:
        """Text of a token -> its id; without texts that several tokens have.

        Tokens with a part of a character are left out, too: their texts have replacement
        characters.
        """
        texts = []
        for token in range(self.info.vocab_size):
            item = self.vocabulary.item(token)
            texts.append(item.surface.decode(errors="replace") if item.surface else item.text)
        count_of_text = Counter(texts)
        return {
            text: token
            for token, text in enumerate(texts)
            if count_of_text[text] == 1 and "\ufffd" not in text
        }

    async def _ask(self, prompt: Ids, text: str, lengths: Sequence[int]) -> Reply:
        """Returns a reply whose list of top tokens lacks no token, the longest such list.

        In a list of texts, tokens that have a part of a character may share a text; then only one
        of them is there, and the list is shorter than what was asked for.

        Args:
            prompt: token ids, special ones included.
            text: sentence or context that the prompt is of, for messages.
            lengths: lengths of lists that are asked for, one after the other until none is missing.
        """
        where = f"the text is {truncated(text)!r}"
        try:
            for length in lengths:
                reply = await self.ask(prompt, length)
                has_ids = all(isinstance(name, int) for name, _ in reply.top)
                if has_ids or len(reply.top) >= length:
                    break
            return reply
        except ServerRefusal as refused:
            raise BadInput(f"{refused}; {where}") from refused
        except WrongReply as wrong:
            raise BadInput(f"server {self.client.address} {wrong}; {where}; {REMEDY}") from wrong

    def _answer(self, encoded: EncodedQuestion, replies: Mapping[Ids, Reply], top: int) -> Answer:
        """Returns the answer to a question from replies to its context and words.

        Args:
            encoded: the question.
            replies: prompt -> reply; that to the context has the list of top tokens.
            top: length of the answer's list, which may be shorter than the server's.

        Raises:
            BadInput: words and top tokens have more than all of the probability.
        """
        context = encoded.blank.left
        top_tokens = replies[context].top
        scores = dict.fromkeys(encoded.words, WordScore(None, None, 0))  # for unscorable words
        for word, pieces in encoded.words.items():
            if pieces is not None:
                # a prompt has no log-probability of its first token
                nats = replies[context + pieces].nats[len(context) - 1 :]
                scores[word] = score_word(pieces[0], nats, top_tokens)
        # a server names a token by its id, or by its text if it shows no ids
        names = tuple(
            self.vocabulary.show(name, bare=encoded.bare) if isinstance(name, int) else repr(name)
            for name, _ in top_tokens
        )
        top_nats = tuple(nats for _, nats in top_tokens)
        # words of one token and top tokens, each counted once: both have the name that is shown
        nats_of_token = {
            word: score.log_prob
            for word, score in scores.items()
            if score.n_tokens == 1 and score.log_prob is not None
        }
        nats_of_token |= dict(zip(names, top_nats, strict=True))
        total = impossible_sum(nats_of_token)
        if total is not None:  # it is above 1
            raise BadInput(
                f"server {self.client.address} gives the words at one blank {total:.4f} of "
                f"probability together; the text is {truncated(encoded.text)!r}; {REMEDY}"
            )
        return Answer(scores, names[:top], top_nats[:top])

    def _sentence_answer(
        self, encoded: EncodedSentence, replies: Mapping[Ids, Reply]
    ) -> SentenceAnswer:
        """Returns the answer to a sentence from the replies to its prompts.

        Entry n of `Reply.nats` is of the token after position n, as a read at position n is.
        """
        values = []
        for row, prompt in zip(encoded.rows, sentence_prompts(encoded), strict=True):
            values += [(replies[prompt].nats[position],) for position in row.reads]
        return sentence_answer(encoded, values, self.info.id)


def _log_probs(replies: Sequence[Reply]) -> tuple[float, ...]:
    """Returns the log-probabilities of the tokens of all prompts, at least `LOWEST`.

    They are stored as JSON, which has no infinity.
    """
    return tuple(max(nats, LOWEST) for reply in replies for nats in reply.nats)


def score_word(
    first_token: int, nats: Sequence[float], top_tokens: Sequence[tuple[int | str, float]]
) -> WordScore:
    """Returns the score of a word.

    Its rank is 1 + the number of top tokens that are more probable, its own first token left out.
    The rank is None where the word is less probable than the last of the top tokens.

    Args:
        first_token: id of the word's first token.
        nats: log-probabilities of its tokens.
        top_tokens: id or text, and log-probability, of the most probable tokens at the blank, best
            first.
    """
    total = math.fsum(nats)
    if total == -math.inf:  # less probable than the server tells
        return WordScore(None, None, len(nats))
    compared_nats = total
    if len(nats) == 1:  # as the list has it: another request may round it otherwise
        compared_nats = dict(top_tokens).get(first_token, total)
    n_above = 0
    for name, token_nats in top_tokens:
        if name != first_token and token_nats > compared_nats:
            n_above += 1
    is_in_list = bool(top_tokens) and compared_nats >= top_tokens[-1][1]
    return WordScore(total, 1 + n_above if is_in_list else None, len(nats))


def sentence_prompts(encoded: EncodedSentence) -> list[Ids]:
    """Returns the prompt of each row of a sentence, as token ids.

    It has the row up to its last read and the token that is wanted there, since a server gives the
    log-probabilities of the tokens of a prompt.
    """
    return [(*row.ids[: row.reads[-1] + 1], row.wanted[-1]) for row in encoded.rows]
