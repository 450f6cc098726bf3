"""Turns errors of the Hub's client into one line with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lmdiag.files.secrets import without_secrets
from lmdiag.types import BadInput

_NOT_FOUND = "not found, or not visible to you; check the name, or use `hf auth login`"
_REMEDIES = {
    401: "the Hub does not accept the token; log in again with `hf auth login`",
    403: "your token does not allow this; use one with access (to publish: write access)",
    404: _NOT_FOUND,
    412: "the repository has changed in the meantime; try again",
}
"""Status of the Hub's answer -> what to do."""


@contextmanager
def plain_errors(what_failed: str) -> Iterator[None]:
    """Turns errors of the Hub's client in the block into `BadInput` of one line with a remedy.

    Args:
        what_failed: beginning of the message, e.g. "cannot publish to me/data", which becomes
            "cannot publish to me/data: the Hub cannot be reached; check the network".
    """
    import httpx2
    from huggingface_hub import errors

    try:
        yield
        return  # no error: what follows is for the errors below, each with its reason
    except errors.OfflineModeIsEnabled:
        reason = "HF_HUB_OFFLINE is set; unset it to reach the Hub"
    except errors.LocalEntryNotFoundError as error:
        response = getattr(error.__cause__, "response", None)  # None: the Hub was not reached
        status = getattr(response, "status_code", None)
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
    except (OSError, ValueError) as error:  # of files in the cache; of a name that is not allowed
        reason = str(error)
    one_line = " ".join(reason.split())
    raise BadInput(without_secrets(f"{what_failed}: {one_line}"))
