"""Requests and replies, and the HTTP server that carries them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import parse_qs

from .store import Refused, User


@dataclass
class Request:
    """What a client asks.

    Attributes:
        user: who asks; None without a token.
        groups: named parts of the path, unquoted.
        query: first value of every query parameter.
        body: bytes sent along.
        headers: names in lower case.
    """

    user: User | None
    groups: dict[str, str]
    query: dict[str, str]
    body: bytes
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """models, datasets or spaces."""
        return self.groups.get("kind") or "models"

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def member(self) -> User:
        """The user; refuses those without a token."""
        if self.user is None:
            raise Refused(401, "Invalid username or password.")
        return self.user


@dataclass
class Reply:
    """What the Hub answers: JSON for a dict or list, bytes as they are."""

    content: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """The bytes to send."""
        return (
            self.content if isinstance(self.content, bytes) else json.dumps(self.content).encode()
        )


Handler = Callable[[Any, Request], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def route(methods: str, pattern: str) -> Callable[[Handler], Handler]:
    """Registers a handler for a path pattern; `methods` are separated by blanks."""

    def register(handler: Handler) -> Handler:
        ROUTES.extend((method, re.compile(pattern), handler) for method in methods.split())
        return handler

    return register


class Hub(Protocol):
    """What the HTTP server needs of a Hub."""

    log: list[tuple[str, str, int]]

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        """The reply to a request."""


def paths_asked(request: Request) -> list[str]:
    """The paths of a `paths-info` request, which clients send as a form or as JSON."""
    if request.headers.get("content-type", "").startswith("application/json"):
        paths = request.json()["paths"]
        return [paths] if isinstance(paths, str) else list(paths)
    return parse_qs(request.body.decode())["paths"]


def ranged(content: bytes, asked: str | None, headers: dict[str, str]) -> Reply:
    """All of the content, or the range of bytes that was asked for."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "")
    if match is None:
        return Reply(content, headers=headers)
    start, end = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
    if start >= len(content):
        return Reply(b"", 416, headers | {"Content-Range": f"bytes */{len(content)}"})
    span = f"bytes {start}-{end}/{len(content)}"
    return Reply(content[start : end + 1], 206, headers | {"Content-Range": span})


def refused_reply(refusal: Refused) -> Reply:
    """How the Hub says no: a status, a code for programs and a message for people."""
    content = {"error": str(refusal), "errors": [{"message": text} for text in refusal.errors]}
    headers = {"X-Error-Message": str(refusal).replace("\n", " ")[:500]}
    if refusal.code:
        headers["X-Error-Code"] = refusal.code
    return Reply(content, refusal.status, headers)


def make_handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    """The request handler of `http.server` for one Hub."""

    class HttpHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            reply = hub.answer(self.command, self.path, headers, body)
            content = reply.body()
            hub.log.append((self.command, self.path, reply.status))
            self.send_response(reply.status)
            for name, value in ({"Content-Type": "application/json"} | reply.headers).items():
                self.send_header(name, value.encode("latin-1", "replace").decode("latin-1"))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Keeps the tests' output clean: `LoopbackHub.log` has every request."""

    return HttpHandler
