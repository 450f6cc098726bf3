"""Names of repositories on the Hub."""

from __future__ import annotations

from pathlib import Path

from lmdiag.files import exists
from lmdiag.types import BadInput


def is_repo_id(name: str) -> bool:
    """Returns whether a name is namespace/name by the Hub's own rule, in plain ASCII."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return "/" in name and name.isascii()


def is_on_hub(source: str) -> bool:
    """Returns whether a source is the id of a Hub repository, and not a path of this machine."""
    return is_repo_id(source) and not exists(Path(source))


def check_repo_id(repo_id: str, option: str) -> str:
    """Returns the id of a repository.

    Raises:
        BadInput: it is not namespace/name.
    """
    if not is_repo_id(repo_id):
        raise BadInput(f"{option} {repo_id!r} is not a repository id: write namespace/name")
    return repo_id
