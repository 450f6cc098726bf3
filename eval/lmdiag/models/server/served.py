"""A model behind a server, as a run asks it, and how it is found."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.server.checks import CONTEXTS, REMEDY, Connection
from lmdiag.models.server.client import Client, ServerRefusal, WrongReply
from lmdiag.models.server.replies import Ids, ModelList, Reply, parsed
from lmdiag.models.tokens.encoders import CausalEncoder, causal_encoder
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.sentences import Encoded, EncodedSentence
from lmdiag.models.tokens.spelling import folds_of
from lmdiag.models.tokens.vocabulary import Vocabulary, control_names
from lmdiag.protocol import refuse_for_sentences
from lmdiag.text import shortened, suggest, truncated
from lmdiag.types import (
    Answer,
    BadInput,
    ModelInfo,
    Query,
    Question,
    Sentence,
    SentenceAnswer,
    WordScore,
    WordSpan,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BATCH = 64
"""Questions in a batch: as many as are lost when a run is killed."""

_LIST = 20
"""Top tokens that are asked for, if the protocol needs no more: a longer list gives more ranks."""


@dataclass
class ServedModel:
    """Implements `lmdiag.models.Model` by requests to a server.

    Attributes:
        info: what a run records about it.
        connection: to the server.
        tokenizer: of the model.
        encoder: turns questions and sentences into token ids.
        warning: of how the tokenizer reads texts; None for no warning.
    """

    info: ModelInfo
    connection: Connection
    tokenizer: PreTrainedTokenizerFast
    encoder: CausalEncoder
    warning: str | None

    def __post_init__(self) -> None:
        self.prompt = self.encoder.framing.shown
        self.report: Callable[[float], None] = lambda share: None
        self._sentences = self.encoder.sentences()

    @property
    def device(self) -> str:
        """The address instead of a `Model.device`."""
        return f"server {self.connection.client.address}"

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Does nothing: EW and MW need the whole distribution, and the server gives a list."""

    def control_names(self, texts: Sequence[str]) -> list[list[str]]:
        return control_names(self.tokenizer, texts)

    def encode(self, question: Question | Sentence) -> Encoded:
        if question.entropy:
            raise BadInput(
                "an entropy needs the whole distribution, and a server tells its most probable "
                "tokens only: leave entropy out"
            )
        if isinstance(question, Question):
            return self.encoder.encode(question)
        refuse_for_sentences(self.encoder.framing.options)
        return self._sentences.encode(question)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Groups questions in their order, however many requests are in flight."""
        numbers, size = [*range(len(encoded))], batch_size or _BATCH
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]

    def key(self, encoded: Encoded, top: int) -> str:
        return hashlib.sha256(repr((encoded.key, top)).encode()).hexdigest()[:32]

    def with_options(self, options: LoadOptions) -> None:
        """Returns None: the checks of a server are made with its options."""

    def at_layers(self, layers: Sequence[str | int]) -> NoReturn:
        raise BadInput(
            f"model {self.info.id}: a server tells the answer of the last layer only: leave layers "
            "out"
        )

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer | SentenceAnswer]:
        """See `Model.answer`; the distinct prompts of a batch are asked side by side."""
        longest = min(self.connection.longest, max(top, _LIST))
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

        values = self.connection.client.gather(
            self._ask(prompt, text, lengths if prompt in contexts else [0])
            for prompt, text in texts.items()
        )
        replies = dict(zip(texts, values, strict=True))
        return [
            _sentence_answer(encoded, replies)
            if isinstance(encoded, EncodedSentence)
            else encoded.unasked or self._answer(encoded, replies, top)
            for encoded in batch
        ]

    async def _ask(self, prompt: Ids, text: str, lengths: Sequence[int]) -> Reply:
        """Returns a reply with a list of the first length whose list lacks no token.

        In a list of texts, tokens that have a part of a character may share a text; then only one
        of them is there.
        """
        where = f"the text is {truncated(text)!r}"
        try:
            for length in lengths:
                reply = await self.connection.ask(prompt, length)
                if len(reply.top) >= length or all(isinstance(name, int) for name, _ in reply.top):
                    break
            return reply
        except ServerRefusal as refusal:
            raise BadInput(f"{refusal}; {where}") from refusal
        except WrongReply as wrong:
            address = self.connection.client.address
            raise BadInput(f"server {address} {wrong}; {where}; {REMEDY}") from wrong

    def _answer(self, encoded: EncodedQuestion, replies: Mapping[Ids, Reply], top: int) -> Answer:
        context, show = encoded.blank.left, self.connection.vocabulary.show
        listed = replies[context].top
        scores = dict.fromkeys(encoded.words, WordScore(None, None, 0))
        for word, pieces in encoded.words.items():
            if pieces is not None:
                nats = replies[context + pieces].nats[len(context) :]
                scores[word] = score_word(pieces[0], nats, listed)
        names = (
            show(name, bare=encoded.bare) if isinstance(name, int) else repr(name)
            for name, _ in listed[:top]
        )
        return Answer(scores, tuple(names), tuple(nats for _, nats in listed[:top]))


def score_word(
    first_token: int, nats: Sequence[float | None], listed: Sequence[tuple[int | str, float]]
) -> WordScore:
    """Returns the score of a word.

    Its rank is known where it is not less probable than the last of the top tokens. Its first token
    does not count, and a word of one token has the rank of its token in the list.

    Args:
        first_token: its id.
        nats: log-probabilities of its tokens.
        listed: the most probable tokens at the blank with theirs, best first.
    """
    total = math.fsum(value for value in nats if value is not None)
    if total == -math.inf:
        return WordScore(None, None, len(nats))
    value = dict(listed).get(first_token, total) if len(nats) == 1 else total
    above = sum(other > value for name, other in listed if name != first_token)
    is_known = bool(listed) and value >= listed[-1][1]
    return WordScore(total, 1 + above if is_known else None, len(nats))


def sentence_prompts(encoded: EncodedSentence) -> list[Ids]:
    """Returns what is asked for a sentence: for each of its rows, the row and its last token."""
    return [(*row.ids[: row.reads[-1] + 1], row.wanted[-1]) for row in encoded.rows]


def _sentence_answer(encoded: EncodedSentence, replies: Mapping[Ids, Reply]) -> SentenceAnswer:
    """The words of a sentence from its tokens.

    A word that is less probable than the server tells counts as one that cannot be represented:
    without it the sentence would be too probable.
    """
    values: list[float | None] = [None] * encoded.scored.start
    for row, prompt in zip(encoded.rows, sentence_prompts(encoded), strict=True):
        values += [replies[prompt].nats[position + 1] for position in row.reads]
    words = []
    for span in encoded.spans:
        nats = values[span.first : span.last]
        log_probs = [value for value in nats if value is not None]
        if not span.spelled or -math.inf in log_probs:
            words.append(WordSpan(span.start, span.end, None, 0))
        else:
            total = math.fsum(log_probs) if len(log_probs) == len(nats) else None
            words.append(WordSpan(span.start, span.end, total, len(nats)))
    return SentenceAnswer(tuple(words))


def load_served(model_id: str, options: LoadOptions) -> ServedModel:
    """Connects to the model that a server calls so, and checks the server; see `models.load`."""
    if options.kind not in ("auto", "causal"):
        raise BadInput(f"--kind {options.kind} is not for a server: it continues a text (causal)")
    from lmdiag.models.loading.load import load_tokenizer

    client = Client(str(options.server))
    limit = _longest_input(client, model_id)
    tokenizer, warning = load_tokenizer(str(options.tokenizer), options)
    encoder = causal_encoder(model_id, tokenizer, options, limit)
    connection = Connection(client, model_id, Vocabulary(tokenizer), len(tokenizer))
    folds = folds_of(tokenizer)
    info = ModelInfo(
        id=model_id,
        revision=None,
        commit="unknown",
        kind="causal",
        architecture="unknown",
        dtype="unknown",
        tokenizer=type(tokenizer).__name__,
        cased="case" not in folds,
        vocab_size=len(tokenizer),
        n_parameters=0,
        max_length=limit,
        bos=encoder.reads_bos,
        sentence_bos=bool(encoder.sentences().opening),
        tokenizer_bos=bool(encoder.spelling.opening),
        server=client.address,
        folds=folds,
    )
    questions = [Question(Query(text), ()) for text in CONTEXTS]
    connection.connect([encoder.encode(question).blank.left for question in questions])
    return ServedModel(info, connection, tokenizer, encoder, warning)


def _longest_input(client: Client, model_id: str) -> int | None:
    """Returns the longest prompt in tokens, if the server tells; one more is generated."""
    try:
        models = parsed(ModelList, client.gather([client.send("models")])[0]).data
    except (ServerRefusal, WrongReply) as fault:
        if isinstance(fault, ServerRefusal) and fault.status in (401, 403):
            raise
        return None
    lengths = {model.id: model.max_model_len for model in models}
    if lengths and model_id not in lengths:
        served_models = shortened(", ".join([*lengths][:5]), 300)
        raise BadInput(
            f"server {client.address} has no model {model_id}{suggest(model_id, lengths)}: give "
            f"--model one of {served_models}"
        )
    longest = lengths.get(model_id)
    return longest - 1 if longest else None
