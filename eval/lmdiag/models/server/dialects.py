"""How engines are asked for log-probabilities, and how they answer.

Both dialects are extensions of OpenAI's completions endpoint. `prompt_logprobs` is vLLM's: the
answer has a list with a record for each token of the prompt, under the token's id. `echo` repeats
the prompt in the list of tokens (vLLM, SGLang, llama-cpp-python). One token is generated in
either case, and the server's most probable tokens at its place are the list of top tokens.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

Prompt = str | tuple[int, ...]
"""What a server continues: a text, or token ids, special ones included."""

LOWEST = -9999.0
"""vLLM gives this for everything below, since JSON has no infinity."""

_ABOVE_ZERO = 1e-3
"""A log-probability may exceed 0 by this much: rounding."""

_ID = re.compile(r"token_id:(\d+)")
"""How vLLM names a token that is asked for by its id."""


class WrongReply(Exception):
    """An answer that cannot be used; the text continues "server URL ..."."""


class ServedToken(NamedTuple):
    """A token with its log-probability.

    Attributes:
        id: None if the server gives only the text.
        text: None if the server gives only the id; characters that the token has only a part of
            are missing or stand as U+FFFD.
        log_prob: nats; -inf if it is less probable than what the server tells; None if the server
            gives none, as for the first token of a prompt.
    """

    id: int | None
    text: str | None
    log_prob: float | None

    @property
    def nats(self) -> float:
        """The log-probability of a token that must have one.

        Raises:
            WrongReply: the server gives none.
        """
        if self.log_prob is None:
            raise WrongReply(f"gives no log-probability for {self.text or self.id!r}")
        return self.log_prob


@dataclass(frozen=True)
class Reply:
    """What a server says of a prompt.

    Attributes:
        prompt: its tokens; special ones before the text may be missing.
        top: the most probable next tokens, best first; () if the server gives none.
        tops: the same before each token of the prompt, as the server sent it; () if it did not.
    """

    prompt: tuple[ServedToken, ...]
    top: tuple[ServedToken, ...]
    tops: Sequence[Any] = ()

    def top_before(self, position: int) -> tuple[ServedToken, ...]:
        """Returns the most probable tokens at the place of a token of the prompt; () if unknown."""
        return top_tokens(self.tops[position]) if position < len(self.tops) else ()


class Dialect(ABC):
    """How a server is asked; one object per way of asking.

    Attributes:
        name: in messages.
    """

    name: ClassVar[str]

    def request(self, model: str, prompt: Prompt, top: int) -> dict[str, Any]:
        """Returns the body of a request.

        Args:
            model: the server's name for it.
            prompt: to be continued by one token.
            top: length of the list of the most probable tokens.
        """
        by_id = isinstance(prompt, tuple)
        return {
            "model": model,
            "prompt": list(prompt) if by_id else prompt,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": top,
            **({"return_tokens_as_token_ids": True} if by_id else {}),
            **self.extension,
        }

    extension: ClassVar[Mapping[str, Any]]
    """What is asked beyond OpenAI's parameters."""

    def read(self, document: Any) -> Reply:
        """Returns what an answer says.

        Raises:
            WrongReply: it has not the form of an answer, or wrong numbers.
        """
        try:
            return self._read(document["choices"][0], document)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            reason = f"{type(error).__name__} {error}"[:80]
            raise WrongReply(f"gives an answer of another form ({reason})") from error

    @abstractmethod
    def _read(self, choice: Mapping[str, Any], document: Mapping[str, Any]) -> Reply: ...


class PromptLogprobs(Dialect):
    """vLLM: `prompt_logprobs`, a record for each token of the prompt."""

    name = "prompt_logprobs"
    extension: ClassVar[Mapping[str, Any]] = {"prompt_logprobs": 0}

    def _read(self, choice: Mapping[str, Any], document: Mapping[str, Any]) -> Reply:
        records = choice.get("prompt_logprobs") or document.get("prompt_logprobs") or []
        tops = (choice.get("logprobs") or {}).get("top_logprobs") or [None]
        return Reply(tuple(map(_recorded, records)), top_tokens(tops[-1]))


class Echo(Dialect):
    """OpenAI's `echo`: the tokens of the prompt stand before the generated one."""

    name = "echo"
    extension: ClassVar[Mapping[str, Any]] = {"echo": True}

    def _read(self, choice: Mapping[str, Any], document: Mapping[str, Any]) -> Reply:
        logprobs = choice.get("logprobs") or {}
        names, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
        tops = logprobs.get("top_logprobs") or [None] * len(names)
        tokens = [_named(name, value) for name, value in zip(names, values, strict=True)]
        # llama-cpp-python gives no token where the text ends, and several for one character
        generated = (document.get("usage") or {}).get("completion_tokens", 1)
        n_prompt = max(0, len(tokens) - generated)
        top = top_tokens(tops[n_prompt]) if n_prompt < len(tokens) else ()
        return Reply(tuple(tokens[:n_prompt]), top, tops[:n_prompt])


def _recorded(record: Any) -> ServedToken:
    """A token of `prompt_logprobs`: `{id: {logprob, decoded_token}}`, the token itself first."""
    if not record:
        return ServedToken(None, None, None)
    name, facts = next(iter(record.items()))
    return ServedToken(int(name), facts.get("decoded_token"), _checked(facts["logprob"]))


def _named(name: str, value: Any) -> ServedToken:
    if match := _ID.fullmatch(name):
        return ServedToken(int(match[1]), None, _checked(value))
    return ServedToken(None, name, _checked(value))


def _checked(value: Any) -> float | None:
    """A log-probability as it is used.

    Raises:
        WrongReply: not a number, NaN, or above 0.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise WrongReply(f"gives {str(value)[:20]} for a log-probability")
    if value > _ABOVE_ZERO:
        raise WrongReply(f"gives a log-probability above 0 ({value:.6g})")
    return -math.inf if value <= LOWEST else min(float(value), 0.0)


def top_tokens(record: Mapping[str, Any] | None) -> tuple[ServedToken, ...]:
    """Returns a list of most probable tokens, best first, equal ones by id or text.

    Args:
        record: name of a token -> log-probability, as servers send it.
    """
    tokens = [_named(name, value) for name, value in (record or {}).items()]
    if any(token.log_prob is None for token in tokens):
        raise WrongReply("gives null for a log-probability in a list of top tokens")
    total = sum(math.exp(token.nats) for token in tokens)
    if total > 1 + _ABOVE_ZERO:
        raise WrongReply(f"gives {len(tokens)} top tokens with {total:.4f} of probability together")
    return tuple(sorted(tokens, key=lambda x: (-x.nats, x.id or 0, x.text or "")))


DIALECTS: tuple[Dialect, ...] = (PromptLogprobs(), Echo())
"""In the order in which a server is tried with token ids; texts are echoed, see `prompts`."""
