"""What is asked of a server before its numbers are used.

Some engines leave the log-probabilities of the prompt out without an error, give those of another
position, of another temperature or of an earlier request, or a list that is not a distribution. The
figures of a run would then be wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from lmdiag.models.server.client import ATTEMPTS, REMEDY, ServerFault, ServerRefusal, WrongReply
from lmdiag.models.server.replies import DIALECTS, Ids, Reply
from lmdiag.models.server.served import ServedModel
from lmdiag.types import BadInput, Query, Question

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


def check_server(model: ServedModel) -> None:
    """Finds the first dialect that gives log-probabilities of a prompt, and checks them.

    Sets the model's `dialect`, `longest`, `check_prompts` and the log-probabilities of these.

    Raises:
        BadInput: no dialect gives log-probabilities, or they cannot be those of the model.
    """
    limit = model.encoder.limit
    encoder = replace(model.encoder, limit=None)  # a context that is too long is refused below
    encoded = [encoder.encode(Question(Query(text), ())) for text in CONTEXTS]
    prompts = [question.blank.left for question in encoded]
    longest = 1 + max(map(len, prompts))  # `_check_numbers` adds a token to each prompt
    if limit is not None and longest > limit:
        raise BadInput(
            f"server {model.client.address} reads at most {limit} tokens (max_model_len less 1), "
            f"and what lmdiag asks it first has {longest}: start it with a greater max_model_len"
        )
    failures = []
    # The first dialect in which the server answers one prompt is checked; others are not tried.
    for dialect in DIALECTS:
        model.dialect = dialect
        try:
            _ask_in_turn(model, prompts[:1], 1)
        except (ServerRefusal, ServerFault, WrongReply) as fault:
            # the key or the address is wrong, whatever the dialect
            if isinstance(fault, ServerRefusal) and fault.status in (401, 403, 404):
                raise
            failures.append(f"{dialect}: {fault}")
            continue  # with the next dialect
        try:
            _check_numbers(model, prompts)
        except WrongReply as wrong:
            head = f"server {model.client.address} ({dialect})"
            raise BadInput(f"{head} {wrong}; {REMEDY}") from wrong
        model.client.attempts = ATTEMPTS  # the address is right: now faults may be temporary
        return
    raise BadInput(
        f"server {model.client.address} gives no log-probabilities of a prompt of token ids "
        f"({'; '.join(failures)}); {REMEDY}"
    )


def _ask_in_turn(model: ServedModel, prompts: Sequence[Ids], top: int) -> list[Reply]:
    """Returns the replies to prompts that are asked one after the other, with `top` top tokens.

    Engines may round otherwise for several prompts at a time.
    """
    replies = []
    for prompt in prompts:
        [reply] = model.client.gather([model.ask(prompt, top)])
        replies.append(reply)
    return replies


def _check_numbers(model: ServedModel, prompts: Sequence[Ids]) -> None:
    """Raises `WrongReply` if a server's log-probabilities cannot be those of a model.

    Every prompt is asked twice, and the replies must agree. The most probable next token must have
    the same log-probability at the end of a longer prompt. Sets `longest` and the check of `model`.
    """
    model.longest = _longest_list(model, prompts[0])
    replies = _ask_in_turn(model, prompts, model.longest)
    _check_repeated(replies, _ask_in_turn(model, prompts, model.longest))
    differences = []
    for prompt, reply in zip(prompts, replies, strict=True):
        _check_texts(model, prompt, reply)
        tokens_with_ids = [(token, nats) for token, nats in reply.top if isinstance(token, int)]
        if tokens_with_ids:
            next_token, log_prob = tokens_with_ids[0]
            [longer_reply] = _ask_in_turn(model, [(*prompt, next_token)], 0)
            differences.append(abs(longer_reply.nats[-1] - log_prob))
    model.set_check(prompts, replies)
    if not differences:
        raise WrongReply("gives no next token that can be compared with a token of a prompt")
    typical = statistics.median(differences)
    if typical > CONSISTENT:
        raise WrongReply(
            "gives a next token another log-probability than the same token in a prompt (they "
            f"differ by {typical:.2f} nats, more than {CONSISTENT:g}): it does not give the "
            "log-probabilities of the model, or not at the right position"
        )


def _longest_list(model: ServedModel, prompt: Ids) -> int:
    """Returns how many top tokens the server gives after a prompt at most.

    The lengths in `_LISTS` are tried, the longest first; a server may give fewer than it is asked.
    """
    for length in _LISTS:
        with suppress(ServerRefusal, ServerFault):
            [reply] = _ask_in_turn(model, [prompt], length)
            if reply.top:
                return min(length, len(reply.top))
    raise WrongReply("gives no list of the most probable next tokens")


def _check_texts(model: ServedModel, prompt: Ids, reply: Reply) -> None:
    """Raises `WrongReply` if the server and the tokenizer have other texts for a prompt's tokens.

    Spaces at the edges do not count. Tokens with characters beyond ASCII are not compared, since a
    token may be a part of such a character.
    """
    space_marks = " ▁Ġ"
    for token, server_text in zip(prompt, reply.texts, strict=True):
        item = model.vocabulary.item(token)
        expected = item.text.strip(space_marks)
        text = (server_text or "").strip(space_marks)
        is_plain = item.surface is not None and expected.isascii() and text.isascii()
        if is_plain and expected and text and expected != text:
            raise WrongReply(
                f"has {server_text!r} for token {token}, and the tokenizer {item.text!r}: give "
                "--tokenizer the one of the model that is served"
            )


def _check_repeated(first_replies: Sequence[Reply], second_replies: Sequence[Reply]) -> None:
    """Raises `WrongReply` if two replies to the same prompts differ by more than `REPEATED`."""
    first_nats = _all_log_probs(first_replies)
    second_nats = _all_log_probs(second_replies)
    if len(first_nats) != len(second_nats):
        raise WrongReply("gives another number of log-probabilities when it is asked again")
    pairs = zip(first_nats, second_nats, strict=True)
    differences = [abs(a - b) for a, b in pairs if a != b]  # -inf less -inf is not defined
    largest = max(differences, default=0.0)
    if largest > REPEATED:
        raise WrongReply(
            "gives other log-probabilities when the same is asked again (they differ by up to "
            f"{largest:.4f} nats, more than {REPEATED:g})"
        )


def _all_log_probs(replies: Sequence[Reply]) -> list[float]:
    """Returns the log-probabilities of the prompts' tokens and of the lists of top tokens."""
    log_probs: list[float] = []
    for reply in replies:
        log_probs += reply.nats
        log_probs += dict(reply.top).values()
    return log_probs
