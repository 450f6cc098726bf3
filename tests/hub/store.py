"""Repositories on disk: commits, branches, pull requests, and who may do what.

A commit is a JSON file with its parent and a mapping from path to blob; blobs lie in one folder
under their SHA-256. What the Hub would refuse raises `Refused` with its status and error code.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from . import rules

KINDS = ("models", "datasets", "spaces")
LFS_PATTERNS = ("*.parquet", "*.safetensors", "*.bin", "*.png", "*.arrow", "*.gz", "*.zip")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}")


class Refused(Exception):
    """The Hub says no.

    Attributes:
        status: HTTP status.
        code: value of `X-Error-Code`; "" for none.
        errors: complaints about the content of a file.
    """

    def __init__(self, status: int, message: str, code: str = "", errors: list[str] | None = None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = errors or []


@dataclass(frozen=True)
class User:
    """Someone with a token: the namespaces written to are the own name and the organisations."""

    name: str
    orgs: tuple[str, ...] = ()

    def owns(self, namespace: str) -> bool:
        """Whether the user may write there."""
        return namespace == self.name or namespace in self.orgs


@dataclass(frozen=True)
class Entry:
    """One file of a commit: where its bytes are, and how it is kept."""

    sha256: str
    size: int
    lfs: bool

    def oid(self, blobs: Path) -> str:
        """Git's name of the blob; for an LFS file that of its pointer."""
        content = self.pointer() if self.lfs else (blobs / self.sha256).read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def pointer(self) -> bytes:
        """What git itself holds of an LFS file."""
        return (
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{self.sha256}\nsize {self.size}\n"
        ).encode()


@dataclass
class Repository:
    """A repository: its state is `repo.json`, its history `commits/`.

    Attributes:
        kind: models, datasets or spaces.
        id: namespace/name.
        folder: where it is kept.
        private: whether only the owners see it.
        refs: branch, or `refs/pr/N` -> commit.
        pulls: number -> {"title", "author", "base", "status"}.
    """

    kind: str
    id: str
    folder: Path
    private: bool = False
    sdk: str | None = None
    refs: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The owner."""
        return self.id.split("/")[0]

    def save(self) -> None:
        """Writes the state."""
        state = {
            "private": self.private,
            "sdk": self.sdk,
            "refs": self.refs,
            "pulls": self.pulls,
        }
        (self.folder / "repo.json").write_text(json.dumps(state, indent=1))

    @classmethod
    def open(cls, kind: str, repo_id: str, folder: Path) -> Repository:
        """Reads the state."""
        return cls(kind, repo_id, folder, **json.loads((folder / "repo.json").read_text()))

    def resolve(self, revision: str) -> str:
        """The commit of a branch, a pull request or a commit; refuses one that is not there."""
        commit = self.refs.get(revision.removeprefix("refs/heads/"), revision)
        if not (self.folder / "commits" / f"{commit}.json").is_file():
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def commit(self, oid: str) -> dict[str, Any]:
        """The record of a commit."""
        record: dict[str, Any] = json.loads((self.folder / "commits" / f"{oid}.json").read_text())
        return record

    def files(self, revision: str) -> dict[str, Entry]:
        """Path -> entry at a revision, sorted by path."""
        files = self.commit(self.resolve(revision))["files"]
        return {path: Entry(**files[path]) for path in sorted(files)}

    def last_commits(self, revision: str) -> dict[str, dict[str, str]]:
        """Path -> the commit that changed it last; each commit is a day younger than its parent."""
        chain = [self.resolve(revision)]
        while (parent := self.commit(chain[-1])["parent"]) is not None:
            chain.append(parent)
        before: dict[str, Any] = {}
        last: dict[str, dict[str, str]] = {}
        for day, oid in enumerate(reversed(chain)):
            record = self.commit(oid)
            date = f"{datetime(2024, 1, 1) + timedelta(days=day):%Y-%m-%dT%H:%M:%S.000Z}"
            for path, entry in record["files"].items():
                if before.get(path) != entry:
                    last[path] = {"id": oid, "title": record["title"], "date": date}
            before = record["files"]
        return last

    def write_commit(self, parent: str | None, title: str, files: dict[str, Entry]) -> str:
        """Appends a commit and returns its name; which branch it belongs to is the caller's."""
        record = {
            "parent": parent,
            "title": title,
            "files": {path: vars(files[path]) for path in sorted(files)},
        }
        text = json.dumps(record, sort_keys=True)
        oid = hashlib.sha1(text.encode()).hexdigest()
        folder = self.folder / "commits"
        folder.mkdir(exist_ok=True)
        (folder / f"{oid}.json").write_text(text)
        return oid


class Store:
    """All repositories of a Hub under one folder."""

    def __init__(self, root: Path):
        self.root = root
        self.blobs = root / "blobs"
        self.blobs.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()

    def create(self, user: User, kind: str, namespace: str, name: str, **state: Any) -> Repository:
        """Makes an empty repository, refusing foreign namespaces, bad names and existing ones."""
        if not user.owns(namespace):
            message = f"You don't have the rights to create a repo under the namespace {namespace}"
            raise Refused(403, message)
        if not _NAME.fullmatch(name) or name.endswith((".git", "-", ".")) or ".." in name:
            raise Refused(400, f"Invalid repository name: {name}")
        folder = self.root / kind / namespace / name
        with self.lock:
            if folder.exists():
                raise Refused(409, "You already created this repo")
            folder.mkdir(parents=True)
            repository = Repository(kind, f"{namespace}/{name}", folder, **state)
            repository.refs["main"] = repository.write_commit(None, "initial commit", {})
            repository.save()
        return repository

    def find(self, user: User | None, kind: str, repo_id: str) -> Repository:
        """Opens a repository; a private one looks to strangers as if it were not there."""
        namespace, _, name = repo_id.partition("/")
        folder = self.root / kind / namespace / name
        well_formed = _NAME.fullmatch(namespace) and _NAME.fullmatch(name)
        if well_formed and (folder / "repo.json").is_file():
            repository = Repository.open(kind, repo_id, folder)
            if not repository.private or (user and user.owns(repository.namespace)):
                return repository
        status, message = (401, "Invalid username or password.") if user is None else (404, "")
        raise Refused(status, message or "Repository not found", "RepoNotFound")

    def add_blob(self, content: bytes) -> str:
        """Keeps bytes, returns their SHA-256."""
        name = hashlib.sha256(content).hexdigest()
        path = self.blobs / name
        if not path.is_file():
            path.write_bytes(content)
        return name

    def read(self, entry: Entry) -> bytes:
        """The bytes of a file."""
        return (self.blobs / entry.sha256).read_bytes()

    def push(
        self,
        user: User,
        repository: Repository,
        revision: str,
        header: dict[str, Any],
        changes: dict[str, Entry | None],
        *,
        pull_request: bool,
    ) -> tuple[str, int | None]:
        """Commits changes (None removes) to a branch, or to a new pull request against it.

        Returns the commit and the number of the pull request.
        """
        author = repository.pulls.get(revision.rpartition("/")[2], {}).get("author")
        if not (user.owns(repository.namespace) or pull_request or author == user.name):
            raise Refused(403, "Forbidden: you must use a write token of an owner")
        parent = repository.resolve(revision)
        if header.get("parentCommit") not in (None, parent):
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        self._check(repository, changes)
        files = _apply(repository.files(parent), changes)
        oid = repository.write_commit(parent, header["summary"], files)
        number = len(repository.pulls) + 1 if pull_request else None
        if number is None:
            repository.refs[revision] = oid
        else:
            repository.refs[f"refs/pr/{number}"] = oid
            repository.pulls[str(number)] = {
                "title": header["summary"],
                "description": header.get("description", ""),
                "author": user.name,
                "base": parent,
                "status": "open",
            }
        repository.save()
        return oid, number

    def _check(self, repository: Repository, changes: dict[str, Entry | None]) -> None:
        errors = [
            f"{path}: {complaint}"
            for path, entry in changes.items()
            if entry is not None
            for complaint in rules.check_file(repository.kind, path, self.read(entry))
        ]
        if errors:
            raise Refused(400, "; ".join(errors), errors=errors)

    def merge(self, user: User, repository: Repository, number: str) -> str:
        """Merges a pull request: what it changed since its base is changed on main."""
        if not user.owns(repository.namespace):
            raise Refused(403, "Only an owner can merge")
        pull = repository.pulls.get(number)
        if pull is None:
            raise Refused(404, "Discussion not found", "EntryNotFound")
        if pull["status"] != "open":
            raise Refused(409, f"Pull request is {pull['status']}")
        base, head = repository.files(pull["base"]), repository.files(f"refs/pr/{number}")
        main = repository.files("main")
        changed = {path for path in {*base, *head} if base.get(path) != head.get(path)}
        if any(base.get(path) != main.get(path) for path in changed):
            raise Refused(409, "Pull request has conflicts")
        files = _apply(main, {path: head.get(path) for path in changed})
        parent = repository.refs["main"]
        oid = repository.write_commit(parent, f"{pull['title']} (#{number})", files)
        repository.refs["main"] = oid
        pull["status"] = "merged"
        pull["merge"] = oid
        repository.save()
        return oid


def is_lfs(path: str, size: int) -> bool:
    """Whether the Hub keeps such a file outside git: known binary kinds, and large ones."""
    return size > 10_000_000 or any(fnmatch.fnmatch(path, pattern) for pattern in LFS_PATTERNS)


def _apply(files: dict[str, Entry], changes: dict[str, Entry | None]) -> dict[str, Entry]:
    merged: dict[str, Entry | None] = {**files, **changes}
    return {path: entry for path, entry in merged.items() if entry is not None}
