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

_ID = re.compile(r"token_id:(\d+)", re.ASCII)
"""How vLLM names a token that is asked for by its id."""

_ENDS = ("length", "stop", "eos_token", "stop_sequence")
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
    """Returns what an answer says of a prompt; `WrongReply` if its numbers cannot be used.

    Args:
        content: the answer.
        prompt: what was sent.
        model: the name of the model that was asked.
    """
    completion = parsed(Completion, content)
    _check_complete(completion, prompt, model)
    choice = completion.choices[0]
    logprobs = choice.logprobs or _Logprobs()
    nats, texts = logprobs.token_logprobs or [], list[str | None]()
    names, lists = logprobs.tokens or [], logprobs.top_logprobs or []
    others = WrongReply("gives log-probabilities of other tokens than were sent")
    if records := choice.prompt_logprobs:
        pairs = [*zip(map(str, prompt), records, strict=False)]
        if len(records) != len(prompt) or any(record and id not in record for id, record in pairs):
            raise others
        tokens = _valid(_PROMPT.validate_python, [record and record[id] for id, record in pairs])
        nats = [token.logprob if token else None for token in tokens]
        texts = [token.decoded_token if token else None for token in tokens]
    else:
        if len(names) != len(nats):
            raise WrongReply(f"gives {len(nats)} log-probabilities for {len(names)} tokens")
        if len(names) < len(prompt):
            raise WrongReply("gives no log-probabilities of the prompt")
        nats, lists = nats[: len(prompt)], lists[len(prompt) :]
        for id, name in zip(prompt, map(_token_id, names), strict=False):
            if name not in (id, str(name)):
                raise others
            texts.append(name if isinstance(name, str) else None)
    given = [value for value in nats[1:] if value is not None]
    if lacking := len(nats[1:]) - len(given):
        raise WrongReply(
            f"gives no log-probability for {lacking} of {len(nats)} tokens of a prompt"
        )
    log_probs = [-math.inf if value <= LOWEST else value for value in given]
    return Reply(log_probs, texts, _top_tokens((lists[0] if lists else None) or {}))


def _check_complete(completion: Completion, prompt: Ids, model: str) -> None:
    """Refuses the answer of another model, one with an error, and one to a part of the prompt."""
    if completion.error:
        raise WrongReply(f"reports an error beside its answer ({shortened(completion.error, 200)})")
    if completion.model not in (None, "", model):
        raise WrongReply(f"answers as model {completion.model[:100]}, and {model} was asked")
    reason = completion.choices[0].finish_reason
    if reason not in (None, "", *_ENDS):
        raise WrongReply(f"ended its answer by {reason[:100]!r}, not after one token")
    n_read = completion.usage.prompt_tokens if completion.usage else None
    if completion.truncated or (n_read is not None and 0 < n_read < len(prompt)):
        raise WrongReply(f"read a part of a prompt of {len(prompt)} tokens only")


def parsed(schema: type[Document], content: bytes) -> Document:
    """Returns a JSON document as a schema has it. Raises `WrongReply` naming what is wrong."""
    if sum(map(content.count, (b"{", b"[", b","))) > MAX_VALUES:
        raise WrongReply(f"gives an answer of more than {MAX_VALUES:,} values")
    return _valid(schema.model_validate_json, content)


def _valid(validate: Callable[[Any], Schema], value: Any) -> Schema:
    """Returns a value that a schema takes; `WrongReply` says what is wrong with another one."""
    try:
        return validate(value)
    except ValidationError as error:
        problem = first_problem(error)
        message = f"{problem.path()[:60]} {problem.message[:100]}, not {problem.given}".strip()
        raise WrongReply(f"gives an answer of another form ({message})") from None


def _token_id(name: str) -> int | str:
    """Returns the id in vLLM's name of a token; the name itself if it has none."""
    match = _ID.fullmatch(name)
    if match and len(match[1]) > 9:
        raise WrongReply(f"names a token {name[:40]!r}")
    return int(match[1]) if match else name


def _top_tokens(record: dict[str, Any]) -> list[tuple[int | str, float]]:
    """A list of top tokens, best first, equal ones by id or text."""
    if len(record) > LONGEST_LIST:
        raise WrongReply(f"gives a list of {len(record)} top tokens")
    values = _valid(_TOP.validate_python, record)
    total = math.fsum(map(math.exp, values.values()))
    if total > LARGEST_SUM:
        raise WrongReply(f"gives {len(values)} top tokens with {total:.4f} of probability together")
    tokens = [(_token_id(name), nats) for name, nats in values.items() if nats > LOWEST]
    return sorted(tokens, key=lambda item: (-item[1], str(item[0]).rjust(10)))
