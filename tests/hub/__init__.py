"""A Hub on the loopback interface: real HTTP, repositories in memory, real clients.

The endpoints are those that huggingface_hub, datasets and evaluate call. The fixtures `hub` and
`api` of `conftest` start it; `boards` writes leaderboards.
"""

import base64
import hashlib
import json
import os
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

OWNERS = {"hf_test": "org", "hf_other": "stranger"}
"""Token -> the namespace that its user may write to."""


class Refused(Exception):
    """The Hub refuses: HTTP status, message, and value of `X-Error-Code` ("" for none)."""

    def __init__(self, status, message, code=""):
        super().__init__(message)
        self.status, self.code = status, code


def blob(content):
    """The name that git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """A repository: branch, `refs/tags/NAME` or `refs/pr/N` -> commit, and commit -> its files."""

    id: str
    address: str
    private: bool
    sdk: str | None
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def resolve(self, revision):
        commit = self.refs.get(revision, self.refs.get(f"refs/tags/{revision}", revision))
        if commit not in self.commits:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def files(self, revision):
        return dict(sorted(self.commits[self.resolve(revision)].items()))

    def add(self, ref, files):
        """Commits files to a branch or pull request; the name follows from all that went before."""
        names = [*self.commits, ref, *((path, blob(files[path])) for path in sorted(files))]
        commit = self.refs[ref] = hashlib.sha1(json.dumps(names).encode()).hexdigest()
        self.commits[commit] = files
        return commit


def info(repo, rev="main", **asked):
    facts = {"id": repo.id, "sha": repo.resolve(rev), "private": repo.private, "sdk": repo.sdk}
    return facts | {"tags": [], "siblings": [
        {"rfilename": path, "size": len(content)} for path, content in repo.files(rev).items()
    ]}  # fmt: skip


def refs(repo, **asked):
    listed = {"branches": [], "tags": [], "converts": []}
    for ref, commit in repo.refs.items():
        name = ref.removeprefix("refs/tags/")
        if not ref.startswith("refs/pr/"):
            kind = "branches" if name == ref else "tags"
            listed[kind].append({"name": name, "ref": ref, "targetCommit": commit})
    return listed


def tree(repo, rev, path="", query="", **asked):
    """Files and folders below a folder: all, or those directly below it."""
    prefix = f"{path}/".lstrip("/")
    inside = [name for name in repo.files(rev) if name.startswith(prefix)]
    if prefix and not inside:
        raise Refused(404, f"{prefix} does not exist", "EntryNotFound")
    above = {str(folder) for name in inside for folder in Path(name).parents} - {"."}
    entries = paths_info(repo, rev, {"paths": inside})
    entries += [{"type": "directory", "path": name, "size": 0, "oid": "0" * 40}
                for name in sorted(above) if name.startswith(prefix)]  # fmt: skip
    is_whole = re.search("recursive=(true|1)", query, re.IGNORECASE)
    return [x for x in entries if is_whole or "/" not in x["path"][len(prefix) :]]


def paths_info(repo, rev, wish, **asked):
    files = {path: content for path, content in repo.files(rev).items() if path in wish["paths"]}
    return [{"type": "file", "path": path, "size": len(content), "oid": blob(content)}
            for path, content in files.items()]  # fmt: skip


def resolve(repo, rev, path, **asked):
    content = repo.files(rev).get(path)
    if content is None:
        raise Refused(404, "Entry not found", "EntryNotFound")
    return content, {"X-Repo-Commit": repo.resolve(rev), "ETag": f'"{blob(content)}"'}


def preupload(repo, rev, wish, **asked):
    """Takes every file into the commit, none by LFS; says which ones are there already."""
    there = {path: blob(content) for path, content in repo.files(rev).items()}
    plan = {"uploadMode": "regular", "shouldIgnore": False}
    return {"files": [plan | {"path": file["path"], "oid": there.get(file["path"])}
                      for file in wish["files"]]}  # fmt: skip


def commit(repo, rev, wish, *, query, is_owner, **asked):
    """Takes a commit, to a branch or as a pull request."""
    if not is_owner and "create_pr" not in query:
        raise Refused(403, "Forbidden: you must use a write token of an owner")
    files, pull = repo.files(rev), None
    for line in wish:
        if line["key"] == "file":
            files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        elif line["key"] == "deletedFile":
            del files[line["value"]["path"]]
    if "create_pr" in query:
        number = 1 + sum(name.startswith("refs/pr/") for name in repo.refs)
        rev, pull = f"refs/pr/{number}", f"{repo.address}/discussions/{number}"
    oid = repo.add(rev, files)
    url = f"{repo.address}/commit/{oid}"
    return {"success": True, "commitOid": oid, "commitUrl": url, "pullRequestUrl": pull}


def merge(repo, number, **asked):
    """Merges a pull request: its files are added to those of main."""
    return {"mergeCommitId": repo.add("main", repo.files("main") | repo.files(f"refs/pr/{number}"))}


_API = r"/api/(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
_FILE = r"/(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)/resolve/(?P<rev>[^/]+)/(?P<path>.+)"
ROUTES = {
    rf"GET {_API}(?:/revision/(?P<rev>[^/]+))?": info,
    rf"GET {_API}/refs": refs,
    rf"GET {_API}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?": tree,
    rf"POST {_API}/paths-info/(?P<rev>[^/]+)": paths_info,
    rf"(?:HEAD|GET) {_FILE}": resolve,
    rf"POST {_API}/preupload/(?P<rev>[^/]+)": preupload,
    rf"POST {_API}/commit/(?P<rev>[^/]+)": commit,
    rf"POST {_API}/discussions/(?P<number>\d+)/merge": merge,
}


class LoopbackHub:
    """A Hub at `url` that lives as long as the `with` block.

    Attributes:
        repositories: (models, datasets or spaces; id) -> repository.
        log: method and path of every request so far.
        slow: files whose names end in this are sent at one byte per second.
    """

    def __init__(self):
        self.repositories = {}
        self.log = []
        self.slow = "no file"
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("", (Handler,), {"hub": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()

    def reply(self, method, target, token, body):
        """Returns status, content and headers of the answer to a request."""
        url, text = urlsplit(target), body.decode()
        self.log.append(line := f"{method} {url.path}")
        wish = [json.loads(line) for line in text.splitlines() if text[0] == "{"]
        if "/commit/" not in url.path:
            wish = wish[0] if wish else parse_qs(text)
        try:
            with self._lock:
                content = self._answer(line, url.query, token, wish)
        except Refused as refusal:
            reason = str(refusal)
            error = reason if reason.startswith("{") else json.dumps({"error": reason})
            headers = {"X-Error-Message": reason, "X-Error-Code": refusal.code}
            return refusal.status, error.encode(), headers
        if isinstance(content, tuple):
            return 200, *content
        return 200, json.dumps(content).encode(), {"Content-Type": "application/json"}

    def _answer(self, line, query, token, wish):
        """Returns what the endpoint of a method and path returns."""
        if (token or not line.startswith(("GET", "HEAD"))) and token not in OWNERS:
            raise Refused(401, "Invalid credentials in Authorization header")
        owner = OWNERS.get(token)
        if line == "POST /api/validate-yaml":
            return {"errors": [], "warnings": []}
        if line == "POST /api/repos/create":
            key = f"{wish.get('type', 'model')}s", f"{wish['organization']}/{wish['name']}"
            url = f"{self.url}/{'/'.join(key)}".replace("/models/", "/")
            if wish["organization"] != owner:
                raise Refused(403, f"You don't have the rights to create {key[1]}")
            if key in self.repositories:  # the client reads the address from the refusal
                raise Refused(409, json.dumps({"url": url}))
            private = wish.get("visibility") == "private"
            self.repositories[key] = Repository(key[1], url, private, wish.get("sdk"))
            self.repositories[key].add("main", {})
            return {"url": url}
        for pattern, endpoint in ROUTES.items():
            if match := re.fullmatch(pattern, line):
                asked = {k: unquote(x) for k, x in match.groupdict().items() if x is not None}
                repo = self.repositories.get((asked.pop("kind", "models"), asked.pop("id")))
                is_owner = repo is not None and repo.id.startswith(f"{owner}/")
                if repo is None or (repo.private and not is_owner):
                    raise Refused(404 if token else 401, "Repository not found", "RepoNotFound")
                return endpoint(repo, **asked, wish=wish, query=query, is_owner=is_owner)
        raise Refused(404, f"no endpoint {line}", "EntryNotFound")


class Handler(BaseHTTPRequestHandler):
    """Passes requests on to `hub`, which a subclass has."""

    hub: LoopbackHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        status, content, headers = self.hub.reply(self.command, self.path, token, body)
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET" and self.path.endswith(self.hub.slow):
            for byte in content:
                self.wfile.write(bytes([byte]))
                time.sleep(1)
        elif self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_POST = do_GET

    def log_message(self, format, *args):
        """Prints nothing."""


def client_env(endpoint, home, token="hf_test"):
    """Environment of a client in a process of its own: this Hub, this token, empty caches."""
    foreign = re.compile(r"HF_|HUGGING|TRANSFORMERS_|LMDIAG_|.*_proxy$", re.IGNORECASE)
    off = ("XET", "TELEMETRY", "UPDATE_CHECK", "PROGRESS_BARS")
    settings = {
        "HF_ENDPOINT": endpoint, "HF_TOKEN": token, "HF_HOME": str(home / "hf"),
        "HF_UPDATE_DOWNLOAD_COUNTS": "0", "XDG_CACHE_HOME": str(home / "cache"),
        "HOME": str(home), "OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1",
    } | {f"HF_HUB_DISABLE_{name}": "1" for name in off}  # fmt: skip
    return {name: x for name, x in os.environ.items() if not foreign.match(name)} | settings
