"""What a submission may call its model.

A model is either on the Hub, at a commit, or local. Paths are not accepted as names, nor are names
that only look like another one (homoglyphs, invisible characters).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.reading import exists

if TYPE_CHECKING:
    from lmdiag.types import ModelInfo

DTYPES = ("float64", "float32", "float16", "bfloat16")
"""Dtypes of the weights that a submission may name."""

QUANTIZATIONS = (None, "8bit", "4bit")
"""Quantizations that a submission may name."""

DEMO_MODELS = ("demo:masked", "demo:causal")
"""The two models that come with this package."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{16,64}")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,95}")


def is_hub_id(name: str) -> bool:
    """Returns whether a name is an id of a Hub repository: the Hub's own rule, and plain ASCII."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.isascii()


def is_repo_id(name: str) -> bool:
    """Returns whether a name is an id of a Hub repository with its namespace: namespace/name."""
    return "/" in name and is_hub_id(name)


def is_on_hub(source: str) -> bool:
    """Returns whether a source is the id of a Hub repository, and not a path of this machine."""
    return is_repo_id(source) and not exists(Path(source))


def is_commit(text: str | None) -> bool:
    """Returns whether a text is a full commit of a Hub repository: 40 hexadecimal digits."""
    return text is not None and bool(_COMMIT.fullmatch(text))


def is_hub_commit(model: ModelInfo) -> bool:
    """Returns whether a model is named as a commit of a repository of the Hub."""
    return is_hub_id(model.id) and is_commit(model.commit)


def is_local(model: ModelInfo) -> bool:
    """Returns whether a model is named by the digest of its files, not by a commit of the Hub."""
    return bool(_DIGEST.fullmatch(model.commit))


def name_reason(model: ModelInfo, *, allow_local: bool = False) -> str | None:
    """Returns why a model cannot be listed under its id and commit; None if it can.

    Args:
        model: facts of a verified run.
        allow_local: whether models of local folders are listed.
    """
    name, commit = model.id, model.commit
    if is_local(model):
        if name in DEMO_MODELS or (allow_local and _FOLDER.fullmatch(_folder(name))):
            return None
        return (
            f"model.id “{name}” is a local folder, which nobody else can check: push the model to "
            "the Hub and run it by its id (--allow-local lists local folders)"
        )
    if not is_hub_id(name):
        return f"model.id “{name}” is not an id of a model on the Hub"
    if not is_commit(commit):
        return f"model.commit “{commit}” is not a commit: expected 40 hexadecimal digits"
    return None


def display_name(model: ModelInfo) -> str:
    """Returns what to call a model: its Hub id, or `local:` and the name of its folder."""
    is_folder = is_local(model) and model.id not in DEMO_MODELS
    return f"local:{_folder(model.id)}" if is_folder else model.id


def _folder(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
