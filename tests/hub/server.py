"""The endpoints that huggingface_hub, datasets and evaluate call, in front of the store."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .store import Refused, Repository, Store, User, blob, describe

_API = r"/api/(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
_PLAIN = r"/(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)"
_CREATED = "2024-01-01T00:00:00.000Z"


@dataclass
class Request:
    """What a client asks: who, parts of the path, parameters, body, headers in lower case."""

    user: User | None
    groups: dict[str, str]
    query: dict[str, str]
    body: bytes
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        return self.groups.get("kind") or "models"

    def json(self) -> Any:
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


ROUTES: list[tuple[str, re.Pattern[str], Callable[[LoopbackHub, Request], Reply]]] = []


def route(methods: str, pattern: str) -> Callable[[Any], Any]:
    """Registers a handler for a path pattern; `methods` are separated by blanks."""

    def register(handler: Any) -> Any:
        ROUTES.extend((method, re.compile(pattern), handler) for method in methods.split())
        return handler

    return register


class LoopbackHub:
    """A Hub at `url` that lives as long as the `with` block.

    Attributes:
        store: its repositories.
        users: token -> user.
        log: (method, path, status) of every request so far.
    """

    def __init__(self) -> None:
        self.store = Store()
        self.users = {"hf_test": User("tester", ("org",)), "hf_other": User("stranger")}
        self.log: list[tuple[str, str, int]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LoopbackHub:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        """Runs the handler of a path; what is refused becomes a reply, too."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        try:
            user = self._identify(headers.get("authorization"))
            for wanted, pattern, handler in ROUTES:
                match = pattern.fullmatch(parts.path)
                if match and wanted == method:
                    groups = {k: unquote(v) for k, v in match.groupdict().items() if v is not None}
                    with self._lock:
                        return handler(self, Request(user, groups, query, body, headers))
            raise Refused(404, f"no endpoint {method} {parts.path}", "EntryNotFound")
        except Refused as refusal:
            said = {"X-Error-Message": str(refusal).replace("\n", " ")[:500]}
            code = {"X-Error-Code": refusal.code} if refusal.code else {}
            return Reply({"error": str(refusal)}, refusal.status, said | code)

    def _identify(self, authorization: str | None) -> User | None:
        token = (authorization or "").removeprefix("Bearer ")
        if token and token not in self.users:
            raise Refused(401, "Invalid credentials in Authorization header")
        return self.users.get(token)

    def _find(self, request: Request) -> Repository:
        return self.store.find(request.user, request.kind, request.groups["id"])

    def _address(self, kind: str, repo_id: str) -> str:
        return f"{self.url}/{'' if kind == 'models' else f'{kind}/'}{repo_id}"

    # ---- repositories ----

    @route("POST", r"/api/repos/create")
    def create(self, request: Request) -> Reply:
        user, wish = request.member(), request.json()
        kind, sdk = wish.get("type", "model") + "s", wish.get("sdk")
        repo_id = f"{wish.get('organization') or user.name}/{wish['name']}"
        made = {"url": self._address(kind, repo_id)}
        try:
            private = wish.get("visibility") == "private"
            self.store.create(user, kind, repo_id, private=private, sdk=sdk)
        except Refused as refusal:
            # Clients that accept an existing repository read its address from the refusal.
            return Reply({"error": str(refusal)} | made, refusal.status)
        return Reply(made)

    @route("GET", _API)
    @route("GET", _API + r"/revision/(?P<revision>[^/]+)")
    def info(self, request: Request) -> Reply:
        repository = self._find(request)
        sha = repository.resolve(request.groups.get("revision", "main"))
        record = {
            "id": repository.id, "author": repository.id.split("/")[0], "sha": sha,
            "private": repository.private, "gated": False, "disabled": False, "tags": [],
            "lastModified": _CREATED, "createdAt": _CREATED, "downloads": 0, "likes": 0,
            "siblings": [{"rfilename": path} for path in repository.files(sha)],
        }  # fmt: skip
        return Reply(record | ({"sdk": repository.sdk} if repository.sdk else {}))

    @route("GET", _API + r"/refs")
    def refs(self, request: Request) -> Reply:
        """The branches and tags, without pull requests."""
        listed: dict[str, list[dict[str, str]]] = {"branches": [], "tags": [], "converts": []}
        for name, commit in self._find(request).refs.items():
            kind = "tags" if name.startswith("refs/tags/") else "branches"
            ref = name if name.startswith("refs/") else f"refs/heads/{name}"
            if not name.startswith("refs/pr/"):
                short = ref.split("/", 2)[2]
                listed[kind].append({"name": short, "ref": ref, "targetCommit": commit})
        return Reply(listed)

    @route("GET", _API + r"/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?")
    def tree(self, request: Request) -> Reply:
        """Files and folders below a folder: all, or those directly below it."""
        repository, revision = self._find(request), request.groups["revision"]
        prefix = f"{request.groups.get('path', '').strip('/')}/".lstrip("/")
        files = {p: c for p, c in repository.files(revision).items() if p.startswith(prefix)}
        if prefix and not files:
            raise Refused(404, f"{prefix} does not exist", "EntryNotFound")
        ends = {
            p[: m.start()] for p in files for m in re.finditer("/", p) if m.start() >= len(prefix)
        }
        entries = [describe(path, content) for path, content in files.items()]
        entries += [{"type": "directory", "path": p, "size": 0, "oid": "0" * 40} for p in ends]
        yes = ("true", "1")
        if request.query.get("recursive", "").lower() not in yes:
            entries = [entry for entry in entries if "/" not in entry["path"][len(prefix) :]]
        return Reply(sorted(entries, key=lambda entry: entry["path"]))

    @route("POST", _API + r"/paths-info/(?P<revision>[^/]+)")
    def paths_info(self, request: Request) -> Reply:
        """The files among the paths asked for, which clients send as a form or as JSON."""
        if request.headers.get("content-type", "").startswith("application/json"):
            paths = request.json()["paths"]
        else:
            paths = parse_qs(request.body.decode())["paths"]
        files = self._find(request).files(request.groups["revision"])
        asked = [paths] if isinstance(paths, str) else paths
        return Reply([describe(path, files[path]) for path in asked if path in files])

    @route("HEAD GET", _PLAIN + r"/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
    def resolve(self, request: Request) -> Reply:
        """The bytes of a file."""
        repository, path = self._find(request), request.groups["path"]
        sha = repository.resolve(request.groups["revision"])
        headers = {"X-Repo-Commit": sha}
        content = repository.files(sha).get(path)
        if content is None:
            return Reply({}, 404, headers | {"X-Error-Code": "EntryNotFound"})
        headers |= {"ETag": f'"{blob(content)}"', "Content-Type": "application/octet-stream"}
        return Reply(content, 200, headers)

    # ---- commits ----

    @route("POST", r"/api/validate-yaml")
    def validate_yaml(self, request: Request) -> Reply:
        """Takes every card."""
        return Reply({"errors": [], "warnings": []})

    @route("POST", _API + r"/preupload/(?P<revision>[^/]+)")
    def preupload(self, request: Request) -> Reply:
        """Takes every file into the commit, none by LFS; says which ones are there already."""
        request.member()
        files = self._find(request).files(request.groups["revision"])
        plan = {"uploadMode": "regular", "shouldIgnore": False}
        paths = [wish["path"] for wish in request.json()["files"]]
        oids = {path: blob(files[path]) if path in files else None for path in paths}
        return Reply({"files": [plan | {"path": p, "oid": oid} for p, oid in oids.items()]})

    @route("POST", _API + r"/commit/(?P<revision>[^/]+)")
    def commit(self, request: Request) -> Reply:
        """Takes a commit, to a branch or as a pull request."""
        user, repository = request.member(), self._find(request)
        lines = [json.loads(line) for line in request.body.splitlines() if line.strip()]
        title = next(line["value"]["summary"] for line in lines if line["key"] == "header")
        given = [line["value"] for line in lines if line["key"] in ("file", "deletedFile")]
        changes = {
            each["path"]: base64.b64decode(each["content"]) if "content" in each else None
            for each in given
        }
        revision, new_pull = request.groups["revision"], "create_pr" in request.query
        oid, number = repository.push(user, revision, title, changes, new_pull=new_pull)
        address = self._address(repository.kind, repository.id)
        pull = f"{address}/discussions/{number}" if number else None
        made = {"commitOid": oid, "commitUrl": f"{address}/commit/{oid}", "pullRequestUrl": pull}
        return Reply({"success": True, "hookOutput": "", **made})

    @route("POST", _API + r"/discussions/(?P<number>\d+)/merge")
    def merge(self, request: Request) -> Reply:
        """Merges a pull request."""
        user, repository = request.member(), self._find(request)
        return Reply({"mergeCommitId": repository.merge(user, request.groups["number"])})


def _make_handler(hub: LoopbackHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            reply = hub.answer(self.command, self.path, headers, body)
            is_bytes = isinstance(reply.content, bytes)
            content = reply.content if is_bytes else json.dumps(reply.content).encode()
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
            """`LoopbackHub.log` has every request; nothing is printed."""

    return Handler
