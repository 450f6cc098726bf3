"""A model behind a server, and how it is found and checked."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from lmdiag.models.encoding import causal_encoder, causal_sentences, has_bos
from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.server.checks import CHECKED, LONGEST_LIST, Connection, connect
from lmdiag.models.server.client import Client, ServerRefusal
from lmdiag.models.server.dialects import (
    DIALECTS,
    Dialect,
    Echo,
    Prompt,
    Reply,
    ServedToken,
    WrongReply,
)
from lmdiag.models.server.prompts import (
    Prompts,
    ServedQuestion,
    ServedSentence,
    TextPrompts,
    TokenPrompts,
)
from lmdiag.models.tokens.controls import control_names
from lmdiag.models.tokens.framing import SLOT, Framing
from lmdiag.models.tokens.questions import shorten_text
from lmdiag.models.tokens.spelling import is_cased
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.schema import (
    Answer,
    BadInput,
    ModelInfo,
    Question,
    Sentence,
    SentenceAnswer,
    WordScore,
)
from lmdiag.suggestions import suggest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BATCH = 64
"""Questions in a batch: as many as are lost when a run is killed."""

UNKNOWN = "unknown"
"""Stands for a fact that a server does not tell."""

_OF_WEIGHTS = (
    "revision", "dtype", "device_map", "quantization", "attention", "allow_pickle", "packing", "tp",
)  # fmt: skip

ServedAsked = ServedQuestion | ServedSentence


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
        length = self._list_length(top)
        jobs: dict[Prompt, tuple[str, int]] = {}
        for asked in batch:
            jobs |= {prompt: (asked.text, 0) for prompt in asked.prompts if prompt not in jobs}
            if isinstance(asked, ServedQuestion):
                jobs[asked.context] = asked.text, length

        def ask(job: tuple[Prompt, tuple[str, int]], stop: threading.Event) -> Reply:
            return self._ask(job[0], *job[1], stop)

        values = self.connection.client.side_by_side(ask, [*jobs.items()])
        replies = dict(zip(jobs, values, strict=True))
        answers: list[Answer | SentenceAnswer] = []
        for asked in batch:
            with self._one_line(asked.text):
                if isinstance(asked, ServedSentence):
                    parts = [replies[prompt] for prompt in asked.prompts]
                    words = self.connection.prompts.of_sentence(asked, parts)
                    answers.append(SentenceAnswer(tuple(words)))
                else:
                    answers.append(self._answer_blank(asked, replies, top, length))
        return answers

    def _list_length(self, top: int) -> int:
        """The number of top tokens to ask for; a list longer than the protocol's gives ranks."""
        longest = self.connection.longest
        if top <= longest or longest < LONGEST_LIST:
            return longest
        if top not in self._lists:
            context = self.connection.prompts.question(CHECKED).context
            try:
                self._lists[top] = len(self.connection.ask(context, top).top)
            except (ServerRefusal, WrongReply):
                self._lists[top] = 0
        return max(self._lists[top], longest)

    def _ask(self, prompt: Prompt, text: str, top: int, stop: threading.Event) -> Reply:
        """Returns the reply to a prompt, with a list of next tokens if one is wanted."""
        with self._one_line(text):
            reply = self.connection.ask(prompt, top, stop=stop)
            if reply.top or not top:
                return reply
            # The model ends the text here, and llama-cpp-python then gives no next token: the list
            # stands before the next token of a longer prompt, too.
            prompts, longer = self.connection.prompts, self.connection.prompts.followed(prompt)
            whole = self.connection.ask(longer, top, stop=stop)
            place = len(whole.prompt) - len(prompts.of_word(prompt, longer, reply, whole))
            if not (tokens := whole.top_before(place)):
                raise WrongReply("gives no list of the most probable next tokens")
            return replace(reply, top=tokens)

    @contextmanager
    def _one_line(self, text: str) -> Iterator[None]:
        """Turns what is wrong with an answer into one line that names the server and the text."""
        where = f"the text is {shorten_text(text)!r}"
        try:
            yield
        except ServerRefusal as refusal:
            raise BadInput(f"{refusal}; {where}") from refusal
        except WrongReply as wrong:
            address = self.connection.client.address
            raise BadInput(f"server {address} {wrong}; {where}") from wrong

    def _answer_blank(
        self, asked: ServedQuestion, replies: Mapping[Prompt, Reply], top: int, length: int
    ) -> Answer:
        before, prompts = replies[asked.context], self.connection.prompts
        tokens = certain(before.top[:length], length)
        words = {}
        for word, whole in asked.words.items():
            words[word] = WordScore(None, None, 0)
            if whole is not None:
                own = prompts.of_word(asked.context, whole, before, replies[whole])
                words[word] = score(own, tokens)
        return Answer(
            words,
            tuple(prompts.show(token, bare=asked.bare) for token in tokens[:top]),
            tuple(token.log_prob or 0.0 for token in tokens[:top]),
        )


def score(own: Sequence[ServedToken], top: Sequence[ServedToken]) -> WordScore:
    """Returns the score of a word.

    Its rank is known where it is not less probable than the last of the top tokens. Its own first
    token does not count, and a word of one token has the place of its token in the list.

    Args:
        own: its tokens.
        top: the most probable tokens at the blank, best first.
    """
    total = math.fsum(token.log_prob or 0.0 for token in own)
    if total == -math.inf:
        return WordScore(None, None, len(own))
    first = own[0]
    others = [token for token in top if not _same(token, first)]
    listed = next((token.log_prob for token in top if _same(token, first)), None)
    value = total if listed is None or len(own) > 1 else listed
    above = sum((token.log_prob or 0.0) > value for token in others)
    is_known = bool(top) and value >= (top[-1].log_prob or 0.0)
    return WordScore(total, 1 + above if is_known else None, len(own))


def _same(one: ServedToken, other: ServedToken) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return one.text is not None and one.text == other.text


def certain(top: Sequence[ServedToken], length: int) -> Sequence[ServedToken]:
    """Returns the beginning of a list of top tokens that is certain to be complete.

    Servers send the list as texts with a log-probability each. Tokens that have a part of a
    character only may share a text, and all but one of them are lost. Such a token may have any
    place, but not more than the probability that the list leaves.

    Args:
        top: best first.
        length: of the list that was asked for.
    """
    is_whole = all(each.id is not None or _is_solid(each.text) for each in top)
    if is_whole or len(top) == length:
        return top
    rest = 1 - math.fsum(math.exp(token.log_prob or 0.0) for token in top)
    return [*takewhile(lambda token: math.exp(token.log_prob or 0.0) > rest, top)]


def _is_solid(text: str | None) -> bool:
    return bool(text) and "\ufffd" not in (text or "")


# ---- how it is found ----------------------------------------------------------------------------


def load_served(model_id: str, options: LoadOptions) -> ServedModel:
    """Connects to a server's model and checks the server.

    Args:
        model_id: the server's name for it.
        options: how it is queried; `server` is its address.

    Raises:
        BadInput: the server cannot be reached or used, or an option cannot be meant for it.
    """
    _refuse_options(options)
    client = Client(options.server or "", options.in_flight)
    limit = _longest_input(client, model_id)
    tokenizer = encoder = sentences = None
    ways: list[tuple[Prompts, Dialect]] = []
    if options.tokenizer is not None:
        from lmdiag.models.loading.load import load_tokenizer

        tokenizer = load_tokenizer(options.tokenizer, trust_remote_code=options.trust_remote_code)
        encoder = causal_encoder(model_id, tokenizer, options, limit)
        sentences = causal_sentences(encoder, tokenizer, options)
        ids = TokenPrompts(encoder, sentences, Vocabulary(tokenizer))
        ways += [(ids, dialect) for dialect in DIALECTS]
    if not (options.chat or options.bos != "auto"):
        framing = Framing(options.prompt or SLOT, options.first_letter)
        ways.append((TextPrompts(framing, tokenizer, encoder), Echo()))
    elif tokenizer is None:
        given = "--chat" if options.chat else "--bos"
        raise BadInput(
            f"{given} needs the tokenizer of the server's model: add --tokenizer, or leave "
            f"{given} out"
        )
    connection = connect(client, model_id, ways)
    info, prompt = _facts(model_id, connection, limit), options.prompt
    if isinstance(connection.prompts, TokenPrompts) and encoder and sentences and tokenizer:
        prompt = "" if encoder.framing.prompt == SLOT else encoder.framing.prompt
        bos, sentence_bos = has_bos(encoder, tokenizer), bool(sentences.opening)
        info = replace(info, bos=bos, sentence_bos=sentence_bos)
    if tokenizer is not None:
        info = replace(
            info,
            tokenizer=type(tokenizer).__name__,
            cased=is_cased(tokenizer),
            vocab_size=len(tokenizer),
        )
    return ServedModel(info, prompt, connection, tokenizer)


def _facts(model_id: str, connection: Connection, limit: int | None) -> ModelInfo:
    """What is known of a model of which only a server's name is known."""
    return ModelInfo(
        id=model_id,
        revision=None,
        commit=UNKNOWN,
        kind="causal",
        architecture=UNKNOWN,
        dtype=UNKNOWN,
        tokenizer=UNKNOWN,
        cased=True,  # the texts of its tokens join to the text that was sent, capitals included
        vocab_size=0,
        n_parameters=0,
        max_length=limit,
        server=connection.client.address,
    )


def _longest_input(client: Client, model_id: str) -> int | None:
    """Returns the longest prompt in tokens, if the server tells; one more is generated.

    Raises:
        BadInput: the server cannot be reached, or has no model of this name.
    """
    try:
        document = client.get("models", attempts=4)
    except ServerRefusal as refusal:
        if refusal.status in (401, 403):
            raise
        return None
    models = document.get("data") if isinstance(document, dict) else None
    models = [each for each in models or [] if isinstance(each, dict)]
    names = [str(each.get("id")) for each in models]
    if names and model_id not in names:
        raise BadInput(
            f"server {client.address} has no model {model_id}{suggest(model_id, names)}: give "
            f"--model one of {', '.join(names[:5])}"
        )
    limits = [each.get("max_model_len") for each in models if each.get("id") == model_id]
    return limits[0] - 1 if limits and isinstance(limits[0], int) else None


def _refuse_options(options: LoadOptions) -> None:
    """Refuses options that only weights in this process can follow."""
    default = LoadOptions()
    if options.unit == "word":
        raise BadInput(
            "--unit word needs the whole distribution, and a server tells its most probable tokens "
            "only: leave it out"
        )
    if options.kind not in ("auto", "causal"):
        raise BadInput(f"--kind {options.kind} is not for a server: it continues a text (causal)")
    for name in _OF_WEIGHTS:
        if getattr(options, name) != getattr(default, name):
            raise BadInput(
                f"--{name.replace('_', '-')} is for weights in this process, and the model is "
                "behind a server: leave it out, or --server"
            )
