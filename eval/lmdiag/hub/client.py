"""The connection to the Hub, and its errors as one line without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmdiag.hub.names import is_repo_id
from lmdiag.redact import without_secrets
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


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
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled:
        raise BadInput(f"{doing}: HF_HUB_OFFLINE is set; unset it to reach the Hub") from None
    except HfHubHTTPError as error:
        raise BadInput(without_secrets(f"{doing}: {_explain(error)}")) from None
    except (httpx2.TransportError, ConnectionError):
        raise BadInput(f"{doing}: the Hub cannot be reached; check the network") from None
    except (HFValidationError, ValueError) as error:
        raise BadInput(without_secrets(f"{doing}: {' '.join(str(error).split())}")) from None


def _explain(error: HfHubHTTPError) -> str:
    """Says what to do where the HTTP status tells, else repeats the server's message."""
    status = error.response.status_code
    if status == 401 and "authorization" not in error.response.request.headers:
        return "no token; log in with `hf auth login`, or set HF_TOKEN"
    if status in (401, 404):
        return "not found, or not visible to you; check the name and `hf auth whoami`"
    if status == 403:
        return "your token may not write there; use one with write access to that namespace"
    if status == 412:
        return "the repository has changed in the meantime; try again"
    return " ".join((error.server_message or f"HTTP status {status}").split())
