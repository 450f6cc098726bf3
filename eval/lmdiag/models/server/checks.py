"""What is tried before a server's numbers are used.

Some engines leave the log-probabilities of the prompt out without a word, give those of another
position, of another temperature or of an earlier request, or a list that is not a distribution. The
figures of a run would then be wrong without any error.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lmdiag.models.server.alignment import placed
from lmdiag.models.server.client import ATTEMPTS, Client, ServerFault, ServerRefusal
from lmdiag.models.server.dialects import Dialect, Prompt, Reply, ServedToken, WrongReply
from lmdiag.models.server.prompts import Prompts, TextPrompts, TokenPrompts
from lmdiag.models.server.scoring import same_token
from lmdiag.types import BadInput, Query, Question

REPEATED = 1e-3
"""Largest difference, in nats, between two answers to the same request."""

CONSISTENT = 0.05
"""Largest difference, in nats, between a token's log-probability as the next one and in a prompt:
the median over the contexts. Engines that compute in half precision round otherwise where a prompt
is longer by a token."""

LONGEST_LIST = 20
"""Top tokens that are asked for, if the protocol needs no more: vLLM's limit by default."""

_LISTS = (LONGEST_LIST, 10, 5, 2, 1)
_ATTEMPTS = 4
_CONTEXTS = (
    "The old man said that it was a",
    "Every morning she goes to the",
    "In the garden there is a small",
    "He opened the door and saw the",
)
CHECKED = Question(Query(_CONTEXTS[0]), ())
"""A question that every model can be asked."""

REMEDY = "see docs/servers.md for engines and their options"
"""Ends the messages on engines whose answers cannot be used."""


@dataclass(frozen=True)
class Connection:
    """A model of a server, and a way to ask it.

    Attributes:
        client: sends requests.
        model: the server's name for it.
        prompts: turns questions into prompts.
        dialect: how log-probabilities are asked for.
        longest: top tokens that the server gives at most, as far as they were asked for.
    """

    client: Client
    model: str
    prompts: Prompts
    dialect: Dialect
    longest: int = 0

    @property
    def name(self) -> str:
        """The way of asking, for messages."""
        what = "token ids" if isinstance(self.prompts, TokenPrompts) else "text"
        return f"{self.dialect.name} with {what}"

    def ask(
        self,
        prompt: Prompt,
        top: int,
        *,
        stop: threading.Event | None = None,
        attempts: int = ATTEMPTS,
    ) -> Reply:
        """Returns what the server says of a prompt, every token of which is there.

        Args:
            prompt: a text or token ids.
            top: length of the list of the most probable next tokens; 0 if it is not needed.
            stop, attempts: see `Client.post`.

        Raises:
            WrongReply: the answer cannot be used.
            BadInput: see `Client.post`.
        """
        body = self.dialect.request(self.model, prompt, max(1, top))
        reply = self.dialect.read(
            self.client.post("completions", body, attempts=attempts, stop=stop)
        )
        self.prompts.check(prompt, reply)
        return reply


def connect(client: Client, model: str, ways: Sequence[tuple[Prompts, Dialect]]) -> Connection:
    """Returns the first way of asking that gives log-probabilities of a prompt, checked.

    Args:
        client: sends requests.
        model: the server's name for it.
        ways: of asking, the best first.

    Raises:
        BadInput: no way gives all that is needed, or the numbers of the first that does are wrong.
    """
    failures = []
    for prompts, dialect in ways:
        connection = Connection(client, model, prompts, dialect)
        try:
            connection.ask(next(_prompts(prompts)), 1, attempts=_ATTEMPTS)
            return _checked(connection)
        except ServerRefusal as refusal:
            if refusal.status in (401, 403, 404):
                raise
            failures.append(f"{connection.name}: {refusal}")
        except ServerFault as fault:
            failures.append(f"{connection.name}: {fault}")
        except WrongReply as wrong:
            failures.append(f"{connection.name}: it {wrong}")
    raise BadInput(
        f"server {client.address} gives no log-probabilities of a prompt that could be used "
        f"({'; '.join(failures)}): {REMEDY}"
    )


def _checked(connection: Connection) -> Connection:
    """Returns a connection whose numbers agree with each other, with the length of its lists.

    Raises:
        BadInput: they do not; says what the server did.
    """
    head = f"server {connection.client.address} cannot be used: it"
    try:
        connection = replace(connection, longest=_longest_list(connection))
        prompts = [*_prompts(connection.prompts)]
        replies = [connection.ask(each, connection.longest) for each in prompts]
        again = [connection.ask(each, connection.longest) for each in prompts]
        _check_repeated(replies, again)
        _check_tokens(connection.prompts, prompts, replies)
        _check_next(connection, prompts, replies)
    except WrongReply as wrong:
        raise BadInput(f"{head} {wrong}; {REMEDY}") from wrong
    return connection


def _prompts(prompts: Prompts) -> Iterator[Prompt]:
    """The contexts of the check."""
    for context in _CONTEXTS:
        yield prompts.question(Question(Query(context), ())).context


def _longest_list(connection: Connection) -> int:
    """The length of the longest list of top tokens that the server gives."""
    for length in _LISTS:
        try:
            replies = [connection.ask(each, length) for each in _prompts(connection.prompts)]
        except ServerRefusal:
            continue
        if longest := max(len(reply.top) for reply in replies):
            return min(longest, length)
    raise WrongReply("gives no list of the most probable next tokens")


def _check_repeated(replies: Sequence[Reply], again: Sequence[Reply]) -> None:
    largest = 0.0
    for one, other in zip(replies, again, strict=True):
        values = [[*_values(reply)] for reply in (one, other)]
        if len(values[0]) != len(values[1]):
            raise WrongReply("gives another number of log-probabilities when it is asked again")
        pairs = zip(*values, strict=True)
        largest = max([largest, *(abs(a - b) for a, b in pairs if a != b)])
    if largest > REPEATED:
        raise WrongReply(
            "gives other log-probabilities when the same is asked again (they differ by up to "
            f"{largest:.4f} nats, more than {REPEATED:g})"
        )


def _values(reply: Reply) -> Iterator[float]:
    """All log-probabilities of a reply."""
    for token in (*reply.prompt, *reply.top):
        if token.log_prob is not None:
            yield token.log_prob


def _check_tokens(prompts: Prompts, sent: Sequence[Prompt], replies: Sequence[Reply]) -> None:
    """Compares the server's tokens with those of the tokenizer that the user named."""
    for context, prompt, reply in zip(_CONTEXTS, sent, replies, strict=True):
        if isinstance(prompts, TokenPrompts) and isinstance(prompt, tuple):
            for id, token in zip(prompt, reply.prompt, strict=True):
                item = prompts.vocabulary.item(id)
                if item.surface is not None and _differ(item.text, token.text or ""):
                    raise WrongReply(
                        f"has {token.text!r} for token {id}, and the tokenizer {item.text!r}: "
                        "give --tokenizer the one of the model that is served"
                    )
            by_name = any(token.id is None for token in reply.top)
            if by_name and placed(context, reply.prompt) is None:
                raise WrongReply(
                    "gives top tokens without ids and without the space before a word, so that "
                    "words and pieces of words cannot be told apart"
                )
        elif isinstance(prompts, TextPrompts) and prompts.encoder is not None:
            ours, theirs = len(prompts.encoder.spelling.text(context)), len(reply.prompt)
            if not ours <= theirs <= ours + 1:
                raise WrongReply(
                    f"splits {context!r} into {theirs} tokens and the tokenizer into {ours}: give "
                    "--tokenizer the one of the model that is served, or leave it out"
                )


def _differ(ours: str, theirs: str) -> bool:
    """Whether two texts of a token differ; spaces, marks and parts of characters do not count."""
    a, b = (text.strip().strip("▁Ġ") for text in (ours, theirs))
    return a != b and a.isascii() and b.isascii() and bool(a and b)


def _check_next(
    connection: Connection, prompts: Sequence[Prompt], replies: Sequence[Reply]
) -> None:
    """Compares next tokens' log-probabilities with those of the same tokens in a prompt."""
    differences = [
        abs(in_prompt.nats - token.nats)
        for prompt, reply in zip(prompts, replies, strict=True)
        for token, in_prompt in _in_prompt(connection, prompt, reply)
    ]
    if not differences:
        raise WrongReply("gives no next token that can be compared with a token of a prompt")
    if (typical := statistics.median(differences)) > CONSISTENT:
        raise WrongReply(
            "gives a next token another log-probability than the same token in a prompt (they "
            f"differ by {typical:.2f} nats, more than {CONSISTENT:g}): it does not give the "
            "log-probabilities of the model, or not at the right position"
        )


def _in_prompt(
    connection: Connection, prompt: Prompt, reply: Reply
) -> Iterator[tuple[ServedToken, ServedToken]]:
    """Yields the first next token that can be asked for, and the same at the end of a prompt."""
    for token in reply.top:
        if (longer := connection.prompts.extended(prompt, token)) is not None:
            last = connection.ask(longer, 1).prompt[-1]
            if same_token(token, last):
                yield token, last
            return
