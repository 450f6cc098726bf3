"""The endpoints that huggingface_hub, datasets and evaluate call, in front of the store.

What each refuses is in `store` and `rules`; how requests and replies travel is in `wire`.
"""

from __future__ import annotations

import base64
import json
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from . import records, rules
from .store import Entry, Refused, Repository, Store, User, is_lfs
from .wire import ROUTES, Reply, Request, make_handler, paths_asked, ranged, refused_reply, route

_API = r"/api/(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
_PLAIN = r"/(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)"


class LoopbackHub:
    """A Hub at `url` that lives as long as the `with` block.

    Attributes:
        store: its repositories.
        users: token -> user.
        log: (method, path, status) of every request so far.
    """

    def __init__(self, root: Path, users: dict[str, User] | None = None):
        self.store = Store(root)
        self.users = users or {"hf_test": User("tester", ("org",)), "hf_other": User("stranger")}
        self.log: list[tuple[str, str, int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LoopbackHub:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        """Finds the handler of a path and runs it; what is refused becomes a reply of its own."""
        parts = urlsplit(target)
        try:
            user = self._identify(headers.get("authorization"))
            for wanted, pattern, handler in ROUTES:
                match = pattern.fullmatch(parts.path)
                if match and wanted == method:
                    groups = {k: unquote(v) for k, v in match.groupdict().items() if v is not None}
                    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                    return handler(self, Request(user, groups, query, body, headers))
            raise Refused(404, f"no endpoint {method} {parts.path}", "EntryNotFound")
        except Refused as refusal:
            return refused_reply(refusal)

    def _identify(self, authorization: str | None) -> User | None:
        if authorization is None:
            return None
        try:
            return self.users[authorization.removeprefix("Bearer ")]
        except KeyError:
            raise Refused(401, "Invalid credentials in Authorization header") from None

    @route("GET", r"/api/whoami-v2")
    def whoami(self, request: Request) -> Reply:
        """Name and organisations of the token."""
        user = request.member()
        orgs = [{"name": name, "roleInOrg": "write"} for name in user.orgs]
        return Reply({"type": "user", "name": user.name, "orgs": orgs, "auth": {}})

    @route("POST", r"/api/repos/create")
    def create(self, request: Request) -> Reply:
        """Makes a repository."""
        user, wish = request.member(), request.json()
        kind = wish.get("type", "model") + "s"
        if kind == "spaces" and wish.get("sdk") not in rules.SPACE_SDKS:
            raise Refused(400, "Invalid sdk")
        namespace = wish.get("organization") or user.name
        private = wish.get("visibility") == "private"
        prefix = "" if kind == "models" else f"{kind}/"
        made = {"url": f"{self.url}/{prefix}{namespace}/{wish['name']}"}
        try:
            self.store.create(
                user, kind, namespace, wish["name"], private=private, sdk=wish.get("sdk")
            )
        except Refused as refusal:
            # Clients that do not mind an existing repository read its address from the refusal.
            return Reply({"error": str(refusal)} | made, refusal.status)
        return Reply(made)

    @route("POST", r"/api/validate-yaml")
    def validate_yaml(self, request: Request) -> Reply:
        """Checks a card before it is sent."""
        wish = request.json()
        errors, warnings = rules.check_card(wish["repoType"] + "s", wish["content"])
        lists = {
            "errors": [{"message": text} for text in errors],
            "warnings": [{"message": text} for text in warnings],
        }
        return Reply(lists, status=400 if errors else 200)

    @route("GET", _API)
    @route("GET", _API + r"/revision/(?P<revision>[^/]+)")
    def info(self, request: Request) -> Reply:
        """What a repository is and which files it has."""
        repository = self._find(request)
        revision = request.groups.get("revision", "main")
        sha = repository.resolve(revision)
        return Reply(records.repository(repository, sha))

    @route("GET", _API + r"/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?")
    def tree(self, request: Request) -> Reply:
        """Files and folders below a folder."""
        repository = self._find(request)
        files = repository.files(request.groups["revision"])
        folder = request.groups.get("path", "").strip("/")
        prefix = folder + "/" if folder else ""
        below = {path: entry for path, entry in files.items() if path.startswith(prefix)}
        if folder and not below:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        recursive = request.query.get("recursive", "").lower() in ("true", "1")
        entries = records.listing(below, prefix, recursive, self.store.blobs)
        if request.query.get("expand", "").lower() in ("true", "1"):
            last = repository.last_commits(request.groups["revision"])
            entries = [each | {"lastCommit": last.get(each["path"])} for each in entries]
        return Reply(entries)

    @route("POST", _API + r"/paths-info/(?P<revision>[^/]+)")
    def paths_info(self, request: Request) -> Reply:
        """The files among the paths asked for."""
        files = self._find(request).files(request.groups["revision"])
        paths = paths_asked(request)
        return Reply(
            [records.file(path, files[path], self.store.blobs) for path in paths if path in files]
        )

    @route("POST", _API + r"/preupload/(?P<revision>[^/]+)")
    def preupload(self, request: Request) -> Reply:
        """Says of each file whether it goes into the commit or by LFS."""
        request.member()
        files = self._find(request).files(request.groups["revision"])
        replies = []
        for wish in request.json()["files"]:
            path, lfs = wish["path"], is_lfs(wish["path"], wish["size"])
            old = files.get(path)
            oid = old and (old.sha256 if old.lfs else old.oid(self.store.blobs))
            mode = "lfs" if lfs else "regular"
            replies.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return Reply({"files": replies})

    @route("POST", _PLAIN + r"\.git/info/lfs/objects/batch")
    def lfs_batch(self, request: Request) -> Reply:
        """Where to send the large files that are not there yet."""
        request.member()
        self._find(request)
        objects = []
        for wish in request.json()["objects"]:
            reply: dict[str, Any] = {"oid": wish["oid"], "size": wish["size"]}
            if not (self.store.blobs / wish["oid"]).is_file():
                upload, verify = (
                    f"{self.url}/lfs/{verb}/{wish['oid']}" for verb in ("put", "verify")
                )
                reply["actions"] = {"upload": {"href": upload}, "verify": {"href": verify}}
            objects.append(reply)
        return Reply({"transfer": "basic", "objects": objects})

    @route("PUT", r"/lfs/put/(?P<oid>[0-9a-f]{64})")
    def lfs_put(self, request: Request) -> Reply:
        """Takes the bytes of a large file."""
        if self.store.add_blob(request.body) != request.groups["oid"]:
            raise Refused(400, "the bytes do not have the promised SHA-256")
        return Reply()

    @route("POST", r"/lfs/verify/(?P<oid>[0-9a-f]{64})")
    def lfs_verify(self, request: Request) -> Reply:
        """Confirms that a large file is there in full."""
        request.member()
        path = self.store.blobs / request.groups["oid"]
        if not path.is_file() or path.stat().st_size != request.json()["size"]:
            raise Refused(404, "object missing or of another size")
        return Reply()

    @route("POST", _API + r"/commit/(?P<revision>[^/]+)")
    def commit(self, request: Request) -> Reply:
        """Takes a commit, to a branch or as a pull request."""
        user, repository = request.member(), self._find(request)
        lines = [json.loads(line) for line in request.body.splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        with self.store.lock:
            oid, number = self.store.push(
                user,
                repository,
                request.groups["revision"],
                header,
                self._changes(repository, lines),
                pull_request="create_pr" in request.query,
            )
        address = self._address(repository)
        pull = f"{address}/discussions/{number}" if number else None
        return Reply(
            {
                "success": True,
                "commitOid": oid,
                "commitUrl": f"{address}/commit/{oid}",
                "pullRequestUrl": pull,
                "hookOutput": "",
            }
        )

    def _changes(self, repository: Repository, lines: list[Any]) -> dict[str, Entry | None]:
        changes: dict[str, Entry | None] = {}
        for line in lines:
            key, value = line["key"], line["value"]
            path = value.get("path", "")
            if path.startswith("/") or ".." in path.split("/"):
                raise Refused(400, f"Invalid path: {path}")
            if key == "file":
                content = base64.b64decode(value["content"])
                changes[path] = Entry(self.store.add_blob(content), len(content), lfs=False)
            elif key == "lfsFile":
                changes[path] = self._uploaded(value)
            elif key == "deletedFile":
                changes[path] = None
            elif key == "deletedFolder":
                folder = path.rstrip("/") + "/"
                names = repository.files("main")
                changes |= {name: None for name in names if name.startswith(folder)}
        return changes

    def _uploaded(self, value: dict[str, Any]) -> Entry:
        blob = self.store.blobs / value["oid"]
        if not blob.is_file():
            raise Refused(400, f"{value['path']}: its LFS object was never uploaded")
        return Entry(value["oid"], blob.stat().st_size, lfs=True)

    @route("HEAD GET", _PLAIN + r"/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
    def resolve(self, request: Request) -> Reply:
        """The bytes of a file, or a part of them."""
        repository = self._find(request)
        sha = repository.resolve(request.groups["revision"])
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        entry = repository.files(sha).get(request.groups["path"])
        if entry is None:
            refused = refused_reply(Refused(404, "Entry not found", "EntryNotFound"))
            return Reply(refused.content, 404, refused.headers | headers)
        name = entry.sha256 if entry.lfs else entry.oid(self.store.blobs)
        headers |= {"ETag": f'"{name}"', "Content-Type": "application/octet-stream"}
        if entry.lfs:
            headers |= {"X-Linked-Etag": f'"{name}"', "X-Linked-Size": str(entry.size)}
        return ranged(self.store.read(entry), request.headers.get("range"), headers)

    @route("GET", _API + r"/discussions/(?P<number>\d+)")
    def discussion(self, request: Request) -> Reply:
        """A pull request."""
        repository, number = self._find(request), request.groups["number"]
        if number not in repository.pulls:
            raise Refused(404, "Discussion not found", "EntryNotFound")
        return Reply(records.pull_request(repository, number))

    @route("POST", _API + r"/discussions/(?P<number>\d+)/merge")
    def merge(self, request: Request) -> Reply:
        """Merges a pull request."""
        user = request.member()
        with self.store.lock:
            oid = self.store.merge(user, self._find(request), request.groups["number"])
        return Reply({"mergeCommitId": oid})

    def _find(self, request: Request) -> Repository:
        return self.store.find(request.user, request.kind, request.groups["id"])

    def _address(self, repository: Repository) -> str:
        prefix = "" if repository.kind == "models" else f"{repository.kind}/"
        return f"{self.url}/{prefix}{repository.id}"
