"""HTTP requests to a server: several at a time, bounded in size and time, repeated after faults."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from base64 import b64encode
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import cache
from http.client import responses
from typing import Any, TypeVar

import httpx2
from pydantic_core import from_json

from lmdiag.files.secrets import without_secrets
from lmdiag.text import shortened
from lmdiag.types import BadInput

KEY_VARIABLES = ("LMDIAG_SERVER_KEY", "OPENAI_API_KEY")
"""Environment variables that may have the server's key; the first one that is set counts."""

FIRST_ATTEMPTS, ATTEMPTS = 4, 8
"""Times that a request is sent: at first few, so that a wrong address is reported in seconds."""

MAX_ANSWER = 64 * 2**20
"""Bytes of an answer at most, after decompression."""

IN_FLIGHT = 8
"""Requests to a server at the same time."""

MAX_SECONDS = 600.0
"""Time that a request may take, with all its attempts and pauses."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts: doubled each time, up to the longest one."""

_MAX_ERROR_PAGE = 2**16
"""Bytes that are read of an answer that reports an error."""

_MAX_REASON = 200
"""Characters of a server's message that are repeated in an error."""

REMEDY = "see docs/servers.md for engines and their options"
"""Ends the messages on engines whose answers cannot be used."""

Value = TypeVar("Value")


class WrongReply(Exception):
    """An answer that cannot be used; the text continues "server URL ..."."""


class ServerFault(BadInput):
    """The server could not be reached, or failed as often as the request was sent."""


class ServerRefusal(BadInput):
    """The server answered with a `status` from 300 to 499: it will not do what is asked."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Sends requests to one server.

    Attributes:
        address: of the API, without a user name and a password.
        attempts: times that a request is sent; see `ATTEMPTS`.

    Args:
        address: as the user gave it; `/v1` is added where it has no path.

    Raises:
        BadInput: not an address, or the key in the environment is not plain text.
    """

    def __init__(self, address: str) -> None:
        url = None
        with suppress(httpx2.InvalidURL, ValueError):
            url = httpx2.URL(address.strip())
        if url is None or url.scheme not in ("http", "https") or not url.host or url.port == 0:
            public_address = address.rpartition("@")[2]  # what stands before may be a password
            raise BadInput(
                f"--server {public_address} is not an address: give one such as http://localhost:8000/v1"
            )
        # The address for requests and messages.
        path = url.path.rstrip("/") or "/v1"
        self.address = str(url.copy_with(username=None, password=None, path=path, query=None))
        self.attempts = FIRST_ATTEMPTS
        # The key goes before a user name and a password in the address.
        key = ""
        for name in KEY_VARIABLES:
            key = key or os.environ.get(name, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise BadInput(f"the server's key ({' or '.join(KEY_VARIABLES)}) is not plain text")
        # as HTTP sends user name and password: messages of the server may repeat it
        basic_credentials = b64encode(f"{url.username}:{url.password}".encode()).decode()
        self._secrets = key, url.password, basic_credentials
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(MAX_SECONDS / 2, connect=10.0),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            auth=(url.username, url.password) if url.username and not key else None,
            limits=httpx2.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT),
        )

    def gather(self, requests: Iterable[Coroutine[Any, Any, Value]]) -> list[Value]:
        """Runs coroutines side by side and returns their values, in their order.

        The first exception ends all others at once, and so does Ctrl-C. The requests are sent from
        an event loop in a daemon thread: they work in a notebook, which has a loop of its own, and
        none of them keeps the process from ending.
        """

        async def all_values() -> list[Value]:
            """Returns the values of all coroutines; raises the first of their exceptions."""
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(request) for request in requests]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
            return [task.result() for task in tasks]

        future = asyncio.run_coroutine_threadsafe(all_values(), _loop())
        try:
            return future.result()
        finally:
            future.cancel()  # after Ctrl-C; does nothing if the requests have ended

    async def send(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """Returns the content of the answer to a request, which is repeated after faults.

        Args:
            path: appended to `address`, for example "completions".
            body: sent as JSON by POST; None for a GET request.

        Raises:
            ServerRefusal: the server answers with a status from 300 to 499, but for 429.
            ServerFault: no attempt had an answer, or it took too long.
            WrongReply: the answer is too long, or compressed and damaged.
        """
        problem = f"within {MAX_SECONDS:g} seconds"  # unless all attempts fail before
        with suppress(TimeoutError):
            async with self._slots, asyncio.timeout(MAX_SECONDS):
                for attempt in range(self.attempts):
                    if attempt:
                        pause = min(FIRST_PAUSE * 2.0 ** (attempt - 1), LONGEST_PAUSE)
                        # at random, so that requests that failed together are not repeated together
                        await asyncio.sleep(pause * random.uniform(0.75, 1.0))
                    content, fault = await self._send_once(path, body)
                    if not fault:
                        return content
                problem = f"in {self.attempts} attempts ({fault})"
        raise ServerFault(
            f"server {self.address} gave no answer {problem}: check that it runs; the same command "
            "continues a run"
        )

    async def _send_once(self, path: str, body: Mapping[str, Any] | None) -> tuple[bytes, str]:
        """Sends a request once; see `send` for the arguments.

        Returns:
            the content of the answer and "", or b"" and why the attempt failed.

        Raises:
            ServerRefusal, WrongReply: another attempt would fail in the same way.
        """
        method = "GET" if body is None else "POST"
        content = bytearray()
        max_bytes = MAX_ANSWER
        try:
            async with self._http.stream(method, f"{self.address}/{path}", json=body) as response:
                status = response.status_code
                if status != 200:
                    max_bytes = _MAX_ERROR_PAGE
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > max_bytes:
                        break
        except httpx2.DecodingError as error:
            raise WrongReply(f"gives a damaged answer ({self._plain(error)})") from error
        except httpx2.RequestError as error:  # for example, no connection
            return b"", self._plain(str(error) or type(error).__name__)
        if status == 200:
            if len(content) > max_bytes:
                raise WrongReply(f"gives an answer of more than {MAX_ANSWER >> 20} MiB")
            return bytes(content), ""
        # a server that refuses a key may repeat it in a form that nobody can foresee
        reason = "" if status in (401, 403) else _reason(content)
        fault = f"status {status}: {self._plain(reason or responses.get(status, ''))}"
        if status < 500 and status != 429:  # 429 is "too many requests": later ones may succeed
            advice = ""
            if status in (401, 403):
                advice = f": set {KEY_VARIABLES[0]} to a key that it accepts"
            elif status in (301, 302, 307, 308, 404, 405):
                advice = ": give --server the address that ends before /completions, often in /v1"
            message = f"server {self.address} refuses the request ({fault}){advice}"
            raise ServerRefusal(message, status)
        return b"", fault

    def _plain(self, message: object) -> str:
        """Returns a message of the server or of a library in one line, with the key removed."""
        # the first cut bounds the work; a key that it cuts in two is beyond the second one
        text = without_secrets(str(message)[: 10 * _MAX_REASON], *self._secrets)
        return shortened(text, _MAX_REASON)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Returns the event loop of all requests of this process, which runs in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lmdiag-requests", daemon=True).start()
    return loop


def _reason(content: bytearray) -> str:
    """Returns the message in an answer that reports an error; engines put it in different places.

    For example, {"error": {"message": "no such model"}}, {"detail": "no such model"}, plain text.
    """
    with suppress(ValueError):  # not JSON, or a number of too many digits
        document = from_json(content)
        error = document.get("error", document) if isinstance(document, dict) else document
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or error
        return str(error)
    return content[: _MAX_REASON * 4].decode(errors="replace")
