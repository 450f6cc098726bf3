"""How a model behind a server is found: the options, the server's own list, a way to ask it."""

from __future__ import annotations

from dataclasses import fields

from lmdiag.models.encoding import causal_encoder, causal_sentences, reads_bos
from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.server.checks import CONTEXTS, Connection, connect
from lmdiag.models.server.client import Client, ServerRefusal, WrongReply
from lmdiag.models.server.replies import ModelList, parsed
from lmdiag.models.server.served import ServedModel, question_prompts
from lmdiag.models.tokens.spelling import is_cased
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.text import shortened, suggest
from lmdiag.types import BadInput, ModelInfo, Query, Question

UNKNOWN = "unknown"
"""Stands for a fact that a server does not tell."""

_OF_WEIGHTS = (
    "revision", "dtype", "device_map", "quantization", "attention", "allow_pickle", "packing", "tp",
)  # fmt: skip
"""Options that only weights in this process can follow."""


def load_served(model_id: str, options: LoadOptions) -> ServedModel:
    """Connects to a server's model and checks the server.

    Args:
        model_id: the server's name for it.
        options: how it is queried; `server` is its address, `tokenizer` is required.

    Raises:
        BadInput: the server cannot be reached or used, or an option cannot be meant for it.
    """
    _refuse_options(options)
    from lmdiag.models.loading.load import load_tokenizer

    client = Client(options.server or "", options.in_flight)
    limit = _longest_input(client, model_id)
    tokenizer = load_tokenizer(options.tokenizer or "", trust_remote_code=options.trust_remote_code)
    encoder = causal_encoder(model_id, tokenizer, options, limit)
    sentences = causal_sentences(encoder, tokenizer, options)
    contexts = [question_prompts(encoder.encode(Question(Query(text), ())))[0] for text in CONTEXTS]
    connection = Connection(client, model_id, Vocabulary(tokenizer), len(tokenizer))
    info = ModelInfo(
        id=model_id,
        revision=None,
        commit=UNKNOWN,
        kind="causal",
        architecture=UNKNOWN,
        dtype=UNKNOWN,
        tokenizer=type(tokenizer).__name__,
        cased=is_cased(tokenizer),
        vocab_size=len(tokenizer),
        n_parameters=0,
        max_length=limit,
        bos=reads_bos(encoder, tokenizer),
        sentence_bos=bool(sentences.opening),
        server=client.address,
    )
    connection = connect(connection, contexts)
    return ServedModel(info, encoder.framing.shown, connection, tokenizer, encoder, sentences)


def _longest_input(client: Client, model_id: str) -> int | None:
    """Returns the longest prompt in tokens, if the server tells; one more is generated.

    Raises:
        BadInput: the server cannot be reached, or has no model of this name.
    """
    try:
        models = parsed(ModelList, client.gather([client.send("models")])[0]).data
    except ServerRefusal as refusal:
        if refusal.status in (401, 403):
            raise
        return None
    except WrongReply as wrong:
        raise BadInput(f"server {client.address} {wrong}, asked for its models") from wrong
    names = [model.id for model in models]
    if names and model_id not in names:
        known = shortened(", ".join(names[:5]), 300)
        raise BadInput(
            f"server {client.address} has no model {model_id}{suggest(model_id, names)}: give "
            f"--model one of {known}"
        )
    lengths = [model.max_model_len for model in models if model.id == model_id]
    return lengths[0] - 1 if lengths and lengths[0] else None


def _refuse_options(options: LoadOptions) -> None:
    """Refuses options that only weights in this process can follow."""
    if options.tokenizer is None:
        raise BadInput(
            "--server needs the tokenizer of the server's model: add --tokenizer with a Hub id or "
            "a folder"
        )
    if options.unit == "word":
        raise BadInput(
            "--unit word needs the whole distribution, and a server tells its most probable tokens "
            "only: leave it out"
        )
    if options.kind not in ("auto", "causal"):
        raise BadInput(f"--kind {options.kind} is not for a server: it continues a text (causal)")
    defaults = {field.name: field.default for field in fields(LoadOptions)}
    for name in _OF_WEIGHTS:
        if getattr(options, name) != defaults[name]:
            raise BadInput(
                f"--{name.replace('_', '-')} is for weights in this process, and the model is "
                "behind a server: leave it out, or --server"
            )
