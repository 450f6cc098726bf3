"""Connects to a model by its name at a server, and checks the server."""

from __future__ import annotations

from lmdiag.models.loading.load import load_tokenizer
from lmdiag.models.loading.load_options import LoadOptions
from lmdiag.models.server.checks import check_server
from lmdiag.models.server.client import Client, ServerRefusal, WrongReply
from lmdiag.models.server.replies import ModelList, parsed
from lmdiag.models.server.served import ServedModel
from lmdiag.models.token_model import tokenizer_facts
from lmdiag.models.tokens.encoders import causal_encoder
from lmdiag.text import shortened, suggest
from lmdiag.types import BadInput, ModelInfo


def load_served(model_id: str, options: LoadOptions) -> ServedModel:
    """Connects to the model with this name at the server of the options; see `models.load`.

    What the server does not tell, such as the dtype, is "unknown" in the model's `info`.
    """
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
        **tokenizer_facts(tokenizer, encoder),
    )
    model = ServedModel(info, options, warning, tokenizer, encoder, client)
    check_server(model)
    return model


def _longest_input(client: Client, model_id: str) -> int | None:
    """Returns the longest prompt in tokens; None if the server does not tell.

    Raises:
        BadInput: the server lists its models, and this one is not among them, or it refuses the
            key.
    """
    try:
        [content] = client.gather([client.send("models")])
        models = parsed(ModelList, content).data
    except (ServerRefusal, WrongReply) as fault:
        if isinstance(fault, ServerRefusal) and fault.status in (401, 403):
            raise
        return None  # not all engines list their models
    length_of_model = {model.id: model.max_model_len for model in models}
    if length_of_model and model_id not in length_of_model:
        served_models = shortened(", ".join(list(length_of_model)[:5]), 300)
        suggestion = suggest(model_id, length_of_model)
        raise BadInput(
            f"server {client.address} has no model {model_id}{suggestion}: give "
            f"--model one of {served_models}"
        )
    length = length_of_model.get(model_id)
    return length - 1 if length else None  # one token is generated after a prompt
