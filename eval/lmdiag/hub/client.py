"""Names of repositories, and the Hub's errors as one line without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmdiag.files import exists, without_secrets
from lmdiag.types import BadInput

_NOT_FOUND = "not found, or not visible to you; check the name and `hf auth whoami`"
_REMEDIES = {
    401: _NOT_FOUND,
    403: "your token may not write there; use one with write access to that namespace",
    404: _NOT_FOUND,
    412: "the repository has changed in the meantime; try again",
}
"""HTTP status -> what to do."""


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


@contextmanager
def plain_errors(doing: str) -> Iterator[None]:
    """Turns a refusal of the Hub, and a Hub that cannot be reached, into `BadInput`.

    Args:
        doing: start of the message, e.g. "cannot publish to org/lmdiag".
    """
    import httpx2
    from huggingface_hub import errors

    try:
        yield
        return
    except errors.OfflineModeIsEnabled:
        reason = "HF_HUB_OFFLINE is set; unset it to reach the Hub"
    except errors.LocalEntryNotFoundError:
        reason = "the Hub cannot be reached, and it is not in the cache"
    except errors.GatedRepoError:
        reason = "it is gated; ask for access on its page on the Hub"
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        reason = _REMEDIES.get(status) or error.server_message or f"HTTP status {status}"
        if status == 401 and "authorization" not in error.response.request.headers:
            reason = "no token; log in with `hf auth login`, or set HF_TOKEN"
            if isinstance(error, errors.RepositoryNotFoundError):
                reason = f"not found, or not visible to you: {reason}"
    except (httpx2.TransportError, ConnectionError):
        reason = "the Hub cannot be reached; check the network"
    except ValueError as error:  # as which the client refuses what it is given
        reason = str(error)
    raise BadInput(without_secrets(f"{doing}: {' '.join(reason.split())}"))
