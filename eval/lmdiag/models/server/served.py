"""A model behind a server, as a run asks it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.models.server.checks import CHECKED, LONGEST_LIST, REMEDY, Connection
from lmdiag.models.server.client import ServerRefusal
from lmdiag.models.server.dialects import (
    Prompt,
    Reply,
    WrongReply,
)
from lmdiag.models.server.prompts import (
    ServedQuestion,
    ServedSentence,
)
from lmdiag.models.server.scoring import is_complete, score_tokens
from lmdiag.models.tokens.controls import control_names
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Question, Sentence, SentenceAnswer, WordScore

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BATCH = 64
"""Questions in a batch: as many as are lost when a run is killed."""

ServedAsked = ServedQuestion | ServedSentence


class _Job(NamedTuple):
    """A prompt to ask, the text that it belongs to, and the lengths of lists; () for no list."""

    prompt: Prompt
    text: str
    lengths: tuple[int, ...] = ()


class ServedModel:
    """Implements `lmdiag.models.Model` by requests to a server.

    Attributes:
        info: what a run records about it.
        prompt: what stands around contexts; see `Model`.
        connection: to the server.
        tokenizer: of the model; None if the user named none.
    """

    def __init__(
        self,
        info: ModelInfo,
        prompt: str,
        connection: Connection,
        tokenizer: PreTrainedTokenizerFast | None,
    ) -> None:
        self.info, self.prompt = info, prompt
        self.connection, self.tokenizer = connection, tokenizer
        self._lists: dict[int, int] = {}

    @property
    def device(self) -> str:
        """See `Model.device`."""
        return f"server {self.connection.client.address}"

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """See `Model.set_verbs`; no verb counts, since the server's list does not have them all."""
        return 0

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Model.control_names`; without a tokenizer there are none."""
        return (
            [[] for _ in texts] if self.tokenizer is None else control_names(self.tokenizer, texts)
        )

    def encode(self, question: Question | Sentence) -> ServedAsked:
        """See `Model.encode`."""
        if isinstance(question, Question):
            return self.connection.prompts.question(question)
        if self.prompt:
            raise BadInput(
                "--prompt and --chat are for data with a blank: leave them out for whole sentences"
            )
        return self.connection.prompts.sentence(question)

    def plan(
        self, encoded: Sequence[ServedAsked], batch_size: int | None = None
    ) -> list[list[int]]:
        """See `Model.plan`: in the order of the questions, however many requests are in flight."""
        numbers, size = [*range(len(encoded))], batch_size or _BATCH
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]

    def answer(self, batch: Sequence[ServedAsked], top: int) -> list[Answer | SentenceAnswer]:
        """See `Model.answer`; all requests of a batch go side by side.

        Raises:
            BadInput: the server fails, refuses a request, or gives numbers that cannot be used.
        """
        lengths = self._lengths(top)
        jobs: dict[Prompt, _Job] = {}
        for asked in batch:
            for prompt in asked.prompts:
                jobs.setdefault(prompt, _Job(prompt, asked.text))
            if isinstance(asked, ServedQuestion):
                jobs[asked.context] = _Job(asked.context, asked.text, lengths)

        values = self.connection.client.side_by_side(self._ask, [*jobs.values()])
        replies = dict(zip(jobs, values, strict=True))
        answers: list[Answer | SentenceAnswer] = []
        for asked in batch:
            with self._one_line(asked.text):
                if isinstance(asked, ServedSentence):
                    parts = [replies[prompt] for prompt in asked.prompts]
                    words = self.connection.prompts.of_sentence(asked, parts)
                    answers.append(SentenceAnswer(tuple(words)))
                else:
                    answers.append(self._answer_blank(asked, replies, top))
        return answers

    def _lengths(self, top: int) -> tuple[int, ...]:
        """Lengths of lists to ask for, until one lacks no token.

        The first is more than the protocol needs, since a longer list gives ranks.
        """
        longest = self.connection.longest
        if top > longest >= LONGEST_LIST:
            if top not in self._lists:
                context = self.connection.prompts.question(CHECKED).context
                with suppress(ServerRefusal, WrongReply):
                    self._lists[top] = len(self.connection.ask(context, top).top)
            longest = max(longest, self._lists.setdefault(top, 0))
        return (longest, *range(min(top, longest - 1), 0, -1))

    def _ask(self, job: _Job, stop: threading.Event) -> Reply:
        """Returns the reply to a prompt, with a list of next tokens if one is wanted."""
        with self._one_line(job.text):
            if not job.lengths:
                return self.connection.ask(job.prompt, 0, stop=stop)
            for length in job.lengths:
                reply = self.connection.ask(job.prompt, length, stop=stop)
                extra = 0
                if not reply.top:
                    reply, extra = self._with_list(job.prompt, reply, length, stop), 1
                if is_complete(reply.top, length + extra):
                    return replace(reply, top=reply.top[:length])
            raise WrongReply("gives lists of top tokens that lack some")

    def _with_list(self, prompt: Prompt, reply: Reply, length: int, stop: threading.Event) -> Reply:
        """Returns a reply with the list that stands before the next token of a longer prompt.

        llama-cpp-python gives no next token where the model ends the text. The longer prompt's own
        token may be in the list in addition.
        """
        prompts, longer = self.connection.prompts, self.connection.prompts.followed(prompt)
        whole = self.connection.ask(longer, length, stop=stop)
        place = len(whole.prompt) - len(prompts.of_word(prompt, longer, reply, whole))
        if not (tokens := whole.top_before(place)):
            raise WrongReply("gives no list of the most probable next tokens")
        return replace(reply, top=tokens)

    @contextmanager
    def _one_line(self, text: str) -> Iterator[None]:
        """Turns what is wrong with an answer into one line that names the server and the text."""
        where = f"the text is {truncated(text)!r}"
        try:
            yield
        except ServerRefusal as refusal:
            raise BadInput(f"{refusal}; {where}") from refusal
        except WrongReply as wrong:
            address = self.connection.client.address
            raise BadInput(f"server {address} {wrong}; {where}; {REMEDY}") from wrong

    def _answer_blank(
        self, asked: ServedQuestion, replies: Mapping[Prompt, Reply], top: int
    ) -> Answer:
        before, prompts = replies[asked.context], self.connection.prompts
        tokens = before.top
        words = {}
        for word, whole in asked.words.items():
            words[word] = WordScore(None, None, 0)
            if whole is not None:
                own = prompts.of_word(asked.context, whole, before, replies[whole])
                words[word] = score_tokens(own, tokens)
        return Answer(
            words,
            tuple(prompts.show(token, bare=asked.bare) for token in tokens[:top]),
            tuple(token.nats for token in tokens[:top]),
        )
