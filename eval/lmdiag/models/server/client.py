"""Requests to a server: side by side, repeated after faults that may pass, with a key that stays
secret."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from lmdiag.text import truncated
from lmdiag.types import BadInput

KEY_VARIABLES = ("LMDIAG_SERVER_KEY", "OPENAI_API_KEY")
"""Environment variables that may have the server's key; the first one that is set counts."""

ATTEMPTS = 8
"""Times that a request is sent before the run ends."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts: doubled each time, up to the longest one."""

_LONGEST_WAIT = 300.0
"""Seconds that a server may ask for with Retry-After."""

_TIMEOUT = httpx2.Timeout(300.0, connect=10.0)
_MAX_REASON = 200
"""Characters of a server's message that are repeated in an error."""

Sent = TypeVar("Sent")
Value = TypeVar("Value")


class ServerRefusal(BadInput):
    """The server answered that it will not do what a request asks (a status from 400 to 499)."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ServerFault(BadInput):
    """The server failed as often as the request was sent, or could not be reached."""


class Client:
    """Sends requests to one server.

    Attributes:
        address: of the API, without a user name and a password.
        in_flight: requests at the same time.

    Args:
        address: as the user gave it; `/v1` is added where it has no path.
        in_flight: see above.

    Raises:
        BadInput: not an address.
    """

    def __init__(self, address: str, in_flight: int) -> None:
        url = _checked(address)
        host = url.netloc.rpartition("@")[2]
        self.address = f"{url.scheme}://{host}{url.path.rstrip('/') or '/v1'}"
        self.in_flight = in_flight
        self._key = next(filter(None, (os.environ.get(x, "").strip() for x in KEY_VARIABLES)), "")
        self._http = httpx2.Client(
            timeout=_TIMEOUT,
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            auth=None if self._key or not url.username else (url.username, url.password or ""),
            limits=httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight),
        )

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        attempts: int = ATTEMPTS,
        stop: threading.Event | None = None,
    ) -> Any:
        """Returns the JSON document that answers a request.

        Args:
            path: below the address.
            body: of the request.
            attempts: times that it is sent while the server is busy or fails.
            stop: when it is set, no further attempt is made.

        Raises:
            ServerRefusal: the server answers with a status from 400 to 499, but for 429.
            ServerFault: no attempt had an answer.
        """
        return self._send("POST", path, body, attempts, stop or threading.Event())

    def get(self, path: str, *, attempts: int = ATTEMPTS) -> Any:
        """Returns the JSON document at a path; see `post`."""
        return self._send("GET", path, None, attempts, threading.Event())

    def side_by_side(
        self, function: Callable[[Sent, threading.Event], Value], items: Sequence[Sent]
    ) -> list[Value]:
        """Returns the value of a function for each item, `in_flight` of them at a time.

        Args:
            function: takes an item, and the event that ends its attempts when another item fails.
            items: in any order; the values are in theirs.
        """
        stop = threading.Event()
        pool = ThreadPoolExecutor(self.in_flight)
        try:
            futures = [pool.submit(function, item, stop) for item in items]
            return [future.result() for future in futures]
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        attempts: int,
        stop: threading.Event,
    ) -> Any:
        fault, asked_to_wait = "", None
        for attempt in range(attempts):
            if attempt and stop.wait(asked_to_wait or _pause(attempt)):
                break
            try:
                response = self._http.request(method, f"{self.address}/{path}", json=body)
            except httpx2.TransportError as error:
                fault, asked_to_wait = self._plain(str(error) or type(error).__name__), None
                continue
            status, asked_to_wait = response.status_code, _retry_after(response.headers)
            fault = f"status {status}: {self._plain(_reason(response))}"
            if status == 200:
                with suppress(ValueError):
                    return response.json()
                fault = "its answer is not JSON"
            elif status < 500 and status != 429:
                raise self._refusal(status, fault)
        times = f"{attempts} attempts" if attempts > 1 else "1 attempt"
        raise ServerFault(
            f"server {self.address} gave no answer in {times} ({fault}): check that it runs; the "
            "same command continues a run"
        )

    def _refusal(self, status: int, fault: str) -> ServerRefusal:
        """What a status from 300 to 499 means, in one line."""
        advice = ""
        if status in (401, 403):
            advice = f": set {KEY_VARIABLES[0]} to a key that it accepts"
        elif status in (301, 302, 307, 308, 404, 405):
            advice = ": give --server the address that ends before /completions, often in /v1"
        return ServerRefusal(f"server {self.address} refuses the request ({fault}){advice}", status)

    def _plain(self, text: str) -> str:
        """A message of the server or of a library in one line, without the key."""
        if self._key:
            text = text.replace(self._key, "***")
        return truncated(" ".join(text.split()), _MAX_REASON)


def _checked(address: str) -> Any:
    """Returns the parts of an address, or refuses it."""
    with suppress(ValueError):
        url = urlsplit(address)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return url
    shown = address.rpartition("@")[2]  # what stands before may be a password
    raise BadInput(f"--server {shown} is not an address: give one such as http://localhost:8000/v1")


def _pause(attempt: int) -> float:
    """Seconds before an attempt, from 1: growing, and not the same for all that wait."""
    pause = min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE)
    return pause * random.uniform(0.75, 1.0)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that the server asks to wait; None if it does not say."""
    given = headers.get("retry-after", "")
    with suppress(ValueError):
        seconds = float(given)
        return min(max(seconds, 0.001), _LONGEST_WAIT) if seconds == seconds else None
    with suppress(ValueError, TypeError):
        seconds = (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds()
        return min(max(seconds, 0.001), _LONGEST_WAIT)
    return None


def _reason(response: httpx2.Response) -> str:
    """The message of an error: engines put it in different places."""
    with suppress(ValueError, AttributeError):
        document = response.json()
        error = document.get("error", document)
        message = error.get("message") if isinstance(error, dict) else error
        return str(message or error.get("detail") or error)
    return response.text or response.reason_phrase
