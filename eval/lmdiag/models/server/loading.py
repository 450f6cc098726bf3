"""How a model behind a server is found: the options, the server's own list, a way to ask it."""

from __future__ import annotations

from dataclasses import replace

from lmdiag.models.encoding import causal_encoder, causal_sentences, has_bos
from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.server.checks import Connection, connect
from lmdiag.models.server.client import Client, ServerRefusal
from lmdiag.models.server.dialects import DIALECTS, Dialect, Echo
from lmdiag.models.server.prompts import Prompts, TextPrompts, TokenPrompts
from lmdiag.models.server.served import ServedModel
from lmdiag.models.tokens.framing import SLOT, Framing
from lmdiag.models.tokens.spelling import is_cased
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.suggestions import suggest
from lmdiag.types import BadInput, ModelInfo

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
