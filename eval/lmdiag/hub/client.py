"""Names of repositories, and the Hub's errors as one line without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.files import exists, without_secrets
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

_COMMIT = re.compile(r"[0-9a-f]{40}")


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


def is_commit(text: str | None) -> bool:
    """Returns whether a text is a full commit of a Hub repository: 40 hexadecimal digits."""
    return text is not None and bool(_COMMIT.fullmatch(text))


def check_repo_id(repo_id: str, option: str) -> str:
    """Returns the id of a repository.

    Raises:
        BadInput: it is not namespace/name.
    """
    if not is_repo_id(repo_id):
        raise BadInput(f"{option} {repo_id!r} is not a repository id: write namespace/name")
    return repo_id


def revision_names(model_id: str) -> list[str]:
    """Returns the names of the branches and tags of a model.

    Raises:
        BadInput: no such model, no access, no network.
    """
    from huggingface_hub import HfApi

    with plain_errors(f"cannot list the revisions of model {model_id}"):
        refs = HfApi().list_repo_refs(model_id)
    return list(dict.fromkeys(ref.name for ref in (*refs.branches, *refs.tags)))


@contextmanager
def plain_errors(doing: str) -> Iterator[None]:
    """Turns a refusal of the Hub, and a Hub that cannot be reached, into `BadInput`.

    Args:
        doing: start of the message, e.g. "cannot publish to org/lmdiag".
    """
    import httpx2
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
    )

    try:
        yield
    except OfflineModeIsEnabled:
        raise BadInput(f"{doing}: HF_HUB_OFFLINE is set; unset it to reach the Hub") from None
    except LocalEntryNotFoundError:
        raise BadInput(f"{doing}: the Hub cannot be reached, and it is not in the cache") from None
    except HfHubHTTPError as error:
        raise BadInput(without_secrets(f"{doing}: {_explain(error)}")) from None
    except (httpx2.TransportError, ConnectionError):
        raise BadInput(f"{doing}: the Hub cannot be reached; check the network") from None
    except (HFValidationError, ValueError) as error:
        raise BadInput(without_secrets(f"{doing}: {' '.join(str(error).split())}")) from None


def _explain(error: HfHubHTTPError) -> str:
    """Says what to do where the HTTP status tells, else repeats the server's message."""
    from huggingface_hub.errors import GatedRepoError

    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return "it is gated; ask for access on its page on the Hub"
    if status == 401 and "authorization" not in error.response.request.headers:
        return "no token; log in with `hf auth login`, or set HF_TOKEN"
    if status in (401, 404):
        return "not found, or not visible to you; check the name and `hf auth whoami`"
    if status == 403:
        return "your token may not write there; use one with write access to that namespace"
    if status == 412:
        return "the repository has changed in the meantime; try again"
    return " ".join((error.server_message or f"HTTP status {status}").split())
