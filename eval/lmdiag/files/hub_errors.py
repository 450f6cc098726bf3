"""Turns errors of the Hub's client into one line with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmdiag.types import BadInput

if TYPE_CHECKING:
    pass
from lmdiag.files.secrets import without_secrets

_NOT_FOUND = "not found, or not visible to you; check the name, or use `hf auth login`"
_REMEDIES = {
    401: "the Hub does not accept the token; log in again with `hf auth login`",
    403: "your token does not allow this; use one with access (to publish: write access)",
    404: _NOT_FOUND,
    412: "the repository has changed in the meantime; try again",
}
"""Status of the Hub's answer -> what to do."""


@contextmanager
def plain_errors(doing: str) -> Iterator[None]:
    """Turns what the Hub refuses, or its absence, into `BadInput`; `doing` begins the message."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
        return
    except errors.OfflineModeIsEnabled:
        reason = "HF_HUB_OFFLINE is set; unset it to reach the Hub"
    except errors.LocalEntryNotFoundError as error:
        status = getattr(getattr(error.__cause__, "response", None), "status_code", None)
        why = f"answers {status}; try again" if status else "cannot be reached; check the network"
        reason = f"it is not in the cache, and the Hub {why}"
    except errors.GatedRepoError:
        reason = "it is gated; ask for access on its Hub page, then log in with `hf auth login`"
    except errors.RevisionNotFoundError:
        reason = "it has no such revision; see its Hub page"
    except errors.RepositoryNotFoundError:
        reason = _NOT_FOUND
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        reason = _REMEDIES.get(status) or error.server_message or f"HTTP status {status}"
        if status == 401 and "authorization" not in error.response.request.headers:
            reason = "no token; log in with `hf auth login`, or set HF_TOKEN"
    except (httpx2.TransportError, ConnectionError):
        reason = "the Hub cannot be reached; check the network"
    except (OSError, ValueError) as error:  # of the cache; as which the client refuses a name
        reason = str(error)
    raise BadInput(without_secrets(f"{doing}: {' '.join(reason.split())}"))
