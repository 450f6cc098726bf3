"""A connection to a server's model, and what is tried before its numbers are used.

Some engines leave the log-probabilities of the prompt out without an error, give those of another
position, of another temperature or of an earlier request, or a list that is not a distribution. The
figures of a run would then be wrong.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from lmdiag.models.server.client import ATTEMPTS, Client, ServerFault, ServerRefusal, WrongReply
from lmdiag.models.server.replies import DIALECTS, Ids, Reply, read_reply
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.types import BadInput

REPEATED = 1e-3
"""Largest difference, in nats, between two answers to the same request."""

CONSISTENT = 0.05
"""Largest difference, in nats, between a token's log-probability as the next one and in a prompt:
the median over the contexts. Engines that compute in half precision round otherwise where a prompt
is longer by a token."""

_LISTS = (1000, 500, 200, 100, 50, 20, 10, 5, 3, 2, 1)
"""Lengths of lists of top tokens that are tried at the start; vLLM's default limit is 20."""

CONTEXTS = (
    "The old man said that it was a",
    "Every morning she goes to the",
    "In the garden there is a small",
    "He opened the door and saw the",
)
"""What the server is asked at the start."""

REMEDY = "see docs/servers.md for engines and their options"
"""Ends the messages on engines whose answers cannot be used."""


@dataclass
class Connection:
    """A model of a server, and a way to ask it.

    Attributes:
        client: sends requests.
        model: the server's name for it.
        vocabulary: of its tokenizer.
        n_items: of the vocabulary.
        dialect: a name in `DIALECTS`; `connect` sets it.
        longest: top tokens that the server gives, one of `_LISTS`; `connect` sets it.
    """

    client: Client
    model: str
    vocabulary: Vocabulary
    n_items: int
    dialect: str = ""
    longest: int = 0

    async def ask(self, prompt: Ids, top: int) -> Reply:
        """Returns what the server says of a prompt; `WrongReply` if that cannot be used.

        Args:
            prompt: token ids, special ones included.
            top: length of the list of the most probable next tokens; 0 if it is not needed.
        """
        body = {
            "model": self.model,
            "prompt": list(prompt),
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": max(1, top),
            "return_tokens_as_token_ids": True,
            **DIALECTS[self.dialect],
        }
        reply = read_reply(await self.client.send("completions", body), prompt)
        reply.top = [(self._ids.get(name, name), nats) for name, nats in reply.top]
        return reply

    def ask_in_turn(self, prompts: Sequence[Ids], top: int) -> list[Reply]:
        """Asks prompts one after the other: engines may round otherwise for several at a time."""
        return [self.client.gather([self.ask(prompt, top)])[0] for prompt in prompts]

    @cached_property
    def _ids(self) -> dict[int | str, int]:
        """Text -> id of the only token that has it."""
        items = map(self.vocabulary.item, range(self.n_items))
        texts = [
            item.surface.decode(errors="replace") if item.surface else item.text for item in items
        ]
        numbers = Counter(texts)
        numbered = enumerate(texts)
        return {text: id for id, text in numbered if numbers[text] == 1 and "\ufffd" not in text}

    def connect(self, prompts: Sequence[Ids]) -> None:
        """Finds the first dialect that gives log-probabilities of a prompt, and checks them.

        `prompts` are the tokens of `CONTEXTS`.
        """
        failures = []
        for dialect in DIALECTS:
            self.dialect = dialect
            try:
                self.ask_in_turn(prompts[:1], 1)
            except (ServerRefusal, ServerFault, WrongReply) as fault:
                if isinstance(fault, ServerRefusal) and fault.status in (401, 403, 404):
                    raise
                failures.append(f"{dialect}: {fault}")
                continue
            try:
                self._check(prompts)
            except WrongReply as wrong:
                head = f"server {self.client.address} ({dialect})"
                raise BadInput(f"{head} {wrong}; {REMEDY}") from wrong
            self.client.attempts = ATTEMPTS
            return
        raise BadInput(
            f"server {self.client.address} gives no log-probabilities of a prompt of token ids "
            f"({'; '.join(failures)}); {REMEDY}"
        )

    def _check(self, prompts: Sequence[Ids]) -> None:
        """Asks the contexts twice and compares; the sum of a list is checked in every answer.

        A next token's log-probability is compared with the same token's at the end of a prompt.
        """
        for length in _LISTS:
            with suppress(ServerRefusal, ServerFault):
                if top := self.ask_in_turn(prompts[:1], length)[0].top:
                    self.longest = min(length, len(top))
                    break
        else:
            raise WrongReply("gives no list of the most probable next tokens")
        replies = self.ask_in_turn(prompts, self.longest)
        _check_repeated(replies, self.ask_in_turn(prompts, self.longest))
        differences = []
        for prompt, reply in zip(prompts, replies, strict=True):
            self._check_texts(prompt, reply)
            if listed := [(id, nats) for id, nats in reply.top if isinstance(id, int)]:
                (longer,) = self.ask_in_turn([(*prompt, listed[0][0])], 0)
                differences.append(abs((longer.nats[-1] or 0.0) - listed[0][1]))
        if not differences:
            raise WrongReply("gives no next token that can be compared with a token of a prompt")
        if (typical := statistics.median(differences)) > CONSISTENT:
            raise WrongReply(
                "gives a next token another log-probability than the same token in a prompt (they "
                f"differ by {typical:.2f} nats, more than {CONSISTENT:g}): it does not give the "
                "log-probabilities of the model, or not at the right position"
            )

    def _check_texts(self, prompt: Ids, reply: Reply) -> None:
        """Checks that the server has the texts of the tokenizer for the tokens of a prompt."""
        for id, given in zip(prompt, reply.texts, strict=True):
            item = self.vocabulary.item(id)
            # A space at the edge does not count, nor do characters beyond ASCII, of which
            # tokens have parts.
            expected, text = (spelling.strip(" ▁Ġ") for spelling in (item.text, given or ""))
            is_plain = item.surface is not None and expected.isascii() and text.isascii()
            if is_plain and expected and text and expected != text:
                raise WrongReply(
                    f"has {given!r} for token {id}, and the tokenizer {item.text!r}: give "
                    "--tokenizer the one of the model that is served"
                )


def _check_repeated(replies: Sequence[Reply], again: Sequence[Reply]) -> None:
    """Checks that two replies to the same prompts have equal log-probabilities."""
    values, repeated = (
        [nats or 0.0 for reply in some for nats in (*reply.nats, *dict(reply.top).values())]
        for some in (replies, again)
    )
    if len(values) != len(repeated):
        raise WrongReply("gives another number of log-probabilities when it is asked again")
    largest = max(
        (abs(a - b) for a, b in zip(values, repeated, strict=True) if a != b), default=0.0
    )
    if largest > REPEATED:
        raise WrongReply(
            "gives other log-probabilities when the same is asked again (they differ by up to "
            f"{largest:.4f} nats, more than {REPEATED:g})"
        )
