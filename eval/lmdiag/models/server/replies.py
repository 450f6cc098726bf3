"""How engines are asked for log-probabilities, and what is taken from their answers.

Both dialects extend OpenAI's completions endpoint. `prompt_logprobs` is vLLM's: the answer has null
or `{id: {logprob, decoded_token}}` for each token of the prompt. `echo` repeats the prompt in the
list of tokens (SGLang, vLLM). One token is generated in either case, and the server's most probable
tokens there are the list of top tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from lmdiag.models.server.client import WrongReply
from lmdiag.text import first_problem, shortened

DIALECTS: Mapping[str, Mapping[str, Any]] = {
    "prompt_logprobs": {"prompt_logprobs": 0},
    "echo": {"echo": True},
}
"""What is asked beyond OpenAI's parameters, in the order in which a server is tried."""

LOWEST = -9999.0
"""vLLM gives this for everything below, since JSON has no infinity."""

MAX_VALUES = 1_000_000
"""Values in an answer at most: each takes up to 250 bytes when it is parsed, and a prompt of a
hundred thousand tokens has five per token."""

LONGEST_LIST = 10_000
"""Top tokens in an answer at most."""

LARGEST_SUM = 1 + 1e-3
"""Of the probabilities of a list of top tokens; what is above 1 is rounding."""

_OTHER_TOKENS = "gives log-probabilities of other tokens than were sent"

_ID = re.compile(r"token_id:(\d+)", re.ASCII)
"""How vLLM names a token that is asked for by its id."""

_FINISH_REASONS = ("length", "stop", "eos_token", "stop_sequence")
"""Why an answer of one token ends, in the words of several engines: it is as long as was asked, or
the token ends the text."""

Ids = tuple[int, ...]
Schema = TypeVar("Schema")
Document = TypeVar("Document", bound=BaseModel)

# A list is refused at its first wrong item: the errors of a long answer would take gigabytes.
# Records are validated when they are read, since few of them are.
_List = Field(fail_fast=True)
Nats = Annotated[float, Field(strict=True, gt=-1e5, le=0, allow_inf_nan=False)]
_Records = Annotated[list[dict[str, Any] | None], _List]


class _PromptToken(BaseModel):
    logprob: Nats | None
    decoded_token: str | None = None


class _Logprobs(BaseModel):
    tokens: Annotated[list[str], _List] | None = None
    token_logprobs: Annotated[list[Nats | None], _List] | None = None
    top_logprobs: _Records | None = None


class _Choice(BaseModel):
    logprobs: _Logprobs | None = None
    prompt_logprobs: _Records | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None


class Completion(BaseModel):
    """An answer to a request for a completion; other fields are ignored.

    `truncated` is llama.cpp's.
    """

    choices: Annotated[list[_Choice], Field(min_length=1, fail_fast=True)]
    model: str | None = None
    error: Any = None
    truncated: bool | None = None
    usage: _Usage | None = None


class ListedModel(BaseModel):
    """A model of a server; `max_model_len` is vLLM's: tokens of a prompt and its completion."""

    id: str
    max_model_len: Annotated[int, Field(strict=True, gt=1)] | None = None


class ModelList(BaseModel):
    """An answer of `/models`."""

    data: Annotated[list[ListedModel], _List] = []


_PROMPT = TypeAdapter(Annotated[list[_PromptToken | None], _List])
_TOP = TypeAdapter(dict[str, Nats])


@dataclass
class Reply:
    """What a server says of a prompt.

    Attributes:
        nats: log-probability of each token of the prompt after the first one; -inf if it is below
            what the server tells.
        texts: the tokens of the prompt, in the server's spelling; None where it gives none.
        top: most probable next tokens, best first, with their log-probabilities; the name is a
            token id, or a text if the server gives no ids.
    """

    nats: Sequence[float]
    texts: Sequence[str | None]
    top: Sequence[tuple[int | str, float]]


def read_reply(content: bytes, prompt: Ids, model: str) -> Reply:
    """Returns what an answer says of a prompt, in either dialect.

    Args:
        content: the answer, JSON.
        prompt: the token ids that were sent.
        model: the name of the model that was asked.

    Raises:
        WrongReply: the numbers of the answer cannot be used.
    """
    completion = parsed(Completion, content)
    _check_complete(completion, prompt, model)
    choice = completion.choices[0]
    # Values of the prompt's tokens, and records of top tokens after the prompt.
    logprobs = choice.logprobs or _Logprobs()
    top_records = logprobs.top_logprobs or []
    if choice.prompt_logprobs:
        nats, texts = _read_prompt_logprobs(choice.prompt_logprobs, prompt)
    else:
        nats, texts = _read_echo(logprobs, prompt)
        top_records = top_records[len(prompt) :]  # the first ones are of the prompt's tokens
    # All tokens but the first must have a value.
    nats_after_first = nats[1:]  # nothing precedes the first token
    known_nats = [value for value in nats_after_first if value is not None]
    n_missing = len(nats_after_first) - len(known_nats)
    if n_missing:
        raise WrongReply(
            f"gives no log-probability for {n_missing} of {len(nats)} tokens of a prompt"
        )
    log_probs = [-math.inf if value <= LOWEST else value for value in known_nats]
    top_record = top_records[0] if top_records else None
    return Reply(log_probs, texts, _top_tokens(top_record or {}))


def _read_prompt_logprobs(
    records: Sequence[dict[str, Any] | None], prompt: Ids
) -> tuple[list[Nats | None], list[str | None]]:
    """Returns log-probability and text of each token of a prompt in vLLM's dialect.

    Args:
        records: for each token null (the first one) or a record by token id, for example
            {"464": {"logprob": -2.5, "decoded_token": "The"}}.
        prompt: the token ids that were sent.
    """
    if len(records) != len(prompt):
        raise WrongReply(_OTHER_TOKENS)
    token_records = []
    for token, record in zip(prompt, records, strict=True):
        token_record = record  # None, or {}, which is refused below
        if record:
            if str(token) not in record:
                raise WrongReply(_OTHER_TOKENS)
            token_record = record[str(token)]
        token_records.append(token_record)
    tokens = _valid(_PROMPT.validate_python, token_records)
    nats = [token.logprob if token else None for token in tokens]
    texts = [token.decoded_token if token else None for token in tokens]
    return nats, texts


def _read_echo(logprobs: _Logprobs, prompt: Ids) -> tuple[list[Nats | None], list[str | None]]:
    """Returns log-probability and text of each token of a prompt that an answer repeats.

    A token that the server names by its id must be the one that was sent; its text is None.

    Args:
        logprobs: names ("tokens") and log-probabilities ("token_logprobs") of the tokens of the
            prompt, and of generated ones after them.
        prompt: the token ids that were sent.
    """
    nats = logprobs.token_logprobs or []
    names = logprobs.tokens or []
    if len(names) != len(nats):
        raise WrongReply(f"gives {len(nats)} log-probabilities for {len(names)} tokens")
    if len(names) < len(prompt):
        raise WrongReply("gives no log-probabilities of the prompt")
    texts: list[str | None] = []
    for token, name in zip(prompt, names, strict=False):  # generated tokens follow the prompt
        id_or_text = _token_id(name)
        if isinstance(id_or_text, str):
            texts.append(id_or_text)
        elif id_or_text == token:
            texts.append(None)
        else:
            raise WrongReply(_OTHER_TOKENS)
    return nats[: len(prompt)], texts


def _check_complete(completion: Completion, prompt: Ids, model: str) -> None:
    """Refuses the answer of another model, one with an error, and one to a part of the prompt.

    `prompt` are the token ids that were sent, and `model` is the name of the model that was asked.
    """
    if completion.error:
        raise WrongReply(f"reports an error beside its answer ({shortened(completion.error, 200)})")
    if completion.model not in (None, "", model):
        raise WrongReply(f"answers as model {completion.model[:100]}, and {model} was asked")
    reason = completion.choices[0].finish_reason
    if reason not in (None, "", *_FINISH_REASONS):
        raise WrongReply(f"ended its answer by {reason[:100]!r}, not after one token")
    # tokens of the prompt that the engine has read; None or 0 where it does not tell
    n_read = completion.usage.prompt_tokens if completion.usage else None
    if completion.truncated or (n_read is not None and 0 < n_read < len(prompt)):
        raise WrongReply(f"read a part of a prompt of {len(prompt)} tokens only")


def parsed(schema: type[Document], content: bytes) -> Document:
    """Returns a JSON document as a schema has it. Raises `WrongReply` naming what is wrong."""
    # an upper bound, counted before anything is parsed: one of these signs stands before each value
    most_values = content.count(b"{") + content.count(b"[") + content.count(b",")
    if most_values > MAX_VALUES:
        raise WrongReply(f"gives an answer of more than {MAX_VALUES:,} values")
    return _valid(schema.model_validate_json, content)


def _valid(validate: Callable[[Any], Schema], value: Any) -> Schema:
    """Returns what a schema's method `validate` makes of a value, or raises `WrongReply`."""
    try:
        return validate(value)
    except ValidationError as error:
        problem = first_problem(error)
        message = f"{problem.path()[:60]} {problem.message[:100]}, not {problem.given}".strip()
        raise WrongReply(f"gives an answer of another form ({message})") from None


def _token_id(name: str) -> int | str:
    """Returns the id in vLLM's name of a token, e.g. 464 of "token_id:464"; other names as such."""
    match = _ID.fullmatch(name)
    if not match:
        return name
    if len(match[1]) > 9:  # no vocabulary has so many tokens
        raise WrongReply(f"names a token {name[:40]!r}")
    return int(match[1])


def _top_tokens(record: dict[str, Any]) -> list[tuple[int | str, float]]:
    """Returns (id or text, log-probability) of the top tokens, best first, equal ones by name.

    `record` is a server's: name of a token, see `_token_id`, -> log-probability.
    """
    if len(record) > LONGEST_LIST:
        raise WrongReply(f"gives a list of {len(record)} top tokens")
    values = _valid(_TOP.validate_python, record)
    total = math.fsum(map(math.exp, values.values()))
    if total > LARGEST_SUM:
        raise WrongReply(f"gives {len(values)} top tokens with {total:.4f} of probability together")
    tokens = [(_token_id(name), nats) for name, nats in values.items() if nats > LOWEST]
    # ids have at most nine digits: filled up on the left, their texts are in the order of numbers
    return sorted(tokens, key=lambda item: (-item[1], str(item[0]).rjust(10)))
