"""Finds the model that a server calls so, and checks the server."""

from __future__ import annotations

from lmdiag.models.loading.load import load_tokenizer
from lmdiag.models.loading.load_options import LoadOptions
from lmdiag.models.server.checks import check_server
from lmdiag.models.server.client import Client, ServerRefusal, WrongReply
from lmdiag.models.server.replies import ModelList, parsed
from lmdiag.models.server.served import ServedModel
from lmdiag.models.token_model import facts_of_tokens
from lmdiag.models.tokens.encoders import causal_encoder
from lmdiag.text import shortened, suggest
from lmdiag.types import BadInput, ModelInfo


def load_served(model_id: str, options: LoadOptions) -> ServedModel:
    """Connects to the model that a server calls so, and checks the server; see `models.load`."""
    client = Client(str(options.server))
    limit = _longest_input(client, model_id)
    tokenizer, warning = load_tokenizer(str(options.tokenizer), options)
    encoder = causal_encoder(model_id, tokenizer, options, limit)
    info = ModelInfo(
        id=model_id,
        revision=None,
        commit="unknown",
        kind="causal",
        architecture="unknown",
        dtype="unknown",
        vocab_size=len(tokenizer),
        n_parameters=0,
        server=client.address,
        **facts_of_tokens(tokenizer, encoder),
    )
    model = ServedModel(info, options, warning, tokenizer, encoder, client)
    check_server(model)
    return model


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
