"""A process that loads one submitted model and queries it: `python -m lmdiag.reproduction.worker`.

It reads one request, a JSON document, from standard input and writes one reply to standard output.
The model is loaded at its commit, from safetensors only and without code from its repository.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.hub.names import DEMO_MODELS
from lmdiag.types import BadInput, Query, Question

if TYPE_CHECKING:
    from lmdiag.models import Model
    from lmdiag.types import Answer

_PACKAGES = ("lmdiag", "torch", "transformers", "tokenizers")

_BYTES_PER_PARAMETER = 4
"""Of weights in float32."""


def main() -> None:
    """Answers one request."""
    reply = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the output of a library is not the reply
    json.dump(respond(json.load(sys.stdin)), reply)
    reply.close()


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Loads and queries the model of a request.

    Args:
        request: `model` (of the submission), `questions`, `verbs`, `top`, `device`,
            `max_parameters`, and `journal`, the folder where answered batches are kept.

    Returns:
        `info`, `answers`, `versions` and `device`; or `problem`, why it was not possible.
    """
    try:
        model = _load(request)
        answers = _ask(model, request)
    except BadInput as error:
        return {"problem": str(error)}
    return {
        "info": asdict(model.info),
        "answers": [answer.to_json() for answer in answers],
        "versions": {name: version(name) for name in _PACKAGES},
        "device": model.device,
    }


def _load(request: dict[str, Any]) -> Model:
    from lmdiag import models

    said, most = request["model"], request["max_parameters"]
    is_demo = said["id"] in DEMO_MODELS
    if not is_demo:
        _check_size(said["id"], said["commit"], most)
    options = models.LoadOptions(
        revision=None if is_demo else said["commit"],
        kind=said["kind"],
        dtype=said["dtype"],
        quantization=said["quantization"],
        device=request["device"],
    )
    model = models.load(said["id"], options)
    if model.info.commit != said["commit"]:
        raise BadInput(f"{said['id']} is at {model.info.commit} here, not at {said['commit']}")
    if model.info.n_parameters > most:
        raise BadInput(f"it has {model.info.n_parameters:,} parameters, more than {most:,}")
    return model


def _check_size(model_id: str, commit: str, most: int) -> None:
    """Refuses weights that are too large before they are downloaded."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    from lmdiag.hub.client import plain_errors

    with plain_errors(f"{model_id} at {commit[:12]}"):
        files = list(HfApi().list_repo_tree(model_id, revision=commit))
    size = sum(
        file.size
        for file in files
        if isinstance(file, RepoFile) and file.path.endswith(".safetensors")
    )
    if size > _BYTES_PER_PARAMETER * most:
        raise BadInput(f"{model_id} has {size:,} bytes of weights, more than {most:,} parameters")


def _ask(model: Model, request: dict[str, Any]) -> list[Answer]:
    from lmdiag.runs.asking import ask
    from lmdiag.runs.journal import Journal

    if request["verbs"]:
        model.set_verbs([(singular, plural) for singular, plural in request["verbs"]])
    questions = [
        Question(Query(context, right), tuple(words), number)
        for context, right, words, number in request["questions"]
    ]
    with Journal(Path(request["journal"])) as journal:
        return ask(model, questions, top=request["top"], journal=journal)


if __name__ == "__main__":
    main()
