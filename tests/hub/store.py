"""Repositories in memory: commits, branches, pull requests, and who may do what.

What the Hub would refuse raises `Refused` with its status and error code.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from . import rules

LFS_SUFFIXES = {".parquet", ".safetensors", ".bin", ".png", ".arrow", ".gz", ".zip"}
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}")

Files = dict[str, bytes]


class Refused(Exception):
    """The Hub refuses: HTTP status, message, and value of `X-Error-Code` ("" for none)."""

    def __init__(self, status: int, message: str, code: str = ""):
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class User:
    """Someone with a token, who may write to the own namespace and to those of organisations."""

    name: str
    orgs: tuple[str, ...] = ()

    def owns(self, namespace: str) -> bool:
        return namespace in (self.name, *self.orgs)


def is_lfs(path: str, size: int) -> bool:
    """Whether the Hub keeps such a file outside git: known binary kinds, and large ones."""
    return size > 10_000_000 or PurePosixPath(path).suffix in LFS_SUFFIXES


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pointer(content: bytes) -> bytes:
    """What git itself holds of an LFS file."""
    return (
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{sha256(content)}\nsize {len(content)}\n"
    ).encode()


def describe(path: str, content: bytes) -> dict[str, Any]:
    """A file as the Hub's API describes it, with its LFS pointer if it has one."""
    lfs = is_lfs(path, len(content))
    kept = pointer(content) if lfs else content
    oid = hashlib.sha1(b"blob %d\0" % len(kept) + kept).hexdigest()
    record: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": oid}
    if lfs:
        sizes = {"size": len(content), "pointerSize": len(kept)}
        record["lfs"] = {"oid": sha256(content), **sizes}
    return record


@dataclass(frozen=True)
class Commit:
    """The files at one moment; `parent` is the name of the commit before."""

    parent: str | None
    title: str
    files: Files

    @property
    def oid(self) -> str:
        """Its name, which depends on nothing but its content and history."""
        sums = {path: sha256(self.files[path]) for path in sorted(self.files)}
        return hashlib.sha1(json.dumps([self.parent, self.title, sums]).encode()).hexdigest()


@dataclass
class Pull:
    """A pull request: who opened it, the commit that it started from, open or merged."""

    title: str
    author: str
    base: str
    status: str = "open"


@dataclass
class Repository:
    """A repository; kind is models, datasets or spaces, refs are branches and `refs/pr/N`."""

    kind: str
    id: str
    private: bool = False
    sdk: str | None = None
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    pulls: dict[str, Pull] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.id.split("/")[0]

    def resolve(self, revision: str) -> str:
        """The commit of a branch, a pull request or a commit."""
        commit = self.refs.get(revision.removeprefix("refs/heads/"), revision)
        if commit not in self.commits:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def files(self, revision: str) -> Files:
        """Path -> content at a revision, sorted by path."""
        return dict(sorted(self.commits[self.resolve(revision)].files.items()))

    def add(self, ref: str, parent: str | None, title: str, files: Files) -> str:
        """Appends a commit, which a branch or pull request then names."""
        commit = Commit(parent, title, files)
        self.commits[commit.oid] = commit
        self.refs[ref] = commit.oid
        return commit.oid

    def last_commits(self, revision: str) -> dict[str, dict[str, str]]:
        """Path -> the commit that changed it last; each commit is a day younger than its parent."""
        chain = [self.resolve(revision)]
        while (parent := self.commits[chain[-1]].parent) is not None:
            chain.append(parent)
        before: Files = {}
        last: dict[str, dict[str, str]] = {}
        for day, oid in enumerate(reversed(chain)):
            commit = self.commits[oid]
            date = f"{datetime(2024, 1, 1) + timedelta(days=day):%Y-%m-%dT%H:%M:%S.000Z}"
            record = {"id": oid, "title": commit.title, "date": date}
            last |= {p: record for p, content in commit.files.items() if before.get(p) != content}
            before = commit.files
        return last

    def push(
        self, user: User, revision: str, header: dict[str, Any], changes: dict[str, bytes | None],
        *, new_pull: bool,
    ) -> tuple[str, int | None]:  # fmt: skip
        """Commits changes (None removes) to a branch, or to a new pull request.

        Returns the commit and the number of the pull request.
        """
        pull = self.pulls.get(revision.removeprefix("refs/pr/"))
        may_write = user.owns(self.namespace) or (pull and pull.author == user.name)
        if not (may_write or new_pull):
            raise Refused(403, "Forbidden: you must use a write token of an owner")
        parent = self.resolve(revision)
        if header.get("parentCommit") not in (None, parent):
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        given = {path: content for path, content in changes.items() if content is not None}
        errors = [
            e for p, content in given.items() for e in rules.check_file(self.kind, p, content)
        ]
        if errors:
            raise Refused(400, "; ".join(errors))
        files = {p: c for p, c in {**self.files(parent), **changes}.items() if c is not None}
        number = len(self.pulls) + 1 if new_pull else None
        if number is not None:
            self.pulls[str(number)] = Pull(header["summary"], user.name, parent)
            revision = f"refs/pr/{number}"
        return self.add(revision, parent, header["summary"], files), number

    def merge(self, user: User, number: str) -> str:
        """Merges a pull request: what it changed since its base is changed on main."""
        if not user.owns(self.namespace):
            raise Refused(403, "Only an owner can merge")
        pull = self.pulls[number]
        if pull.status != "open":
            raise Refused(409, f"Pull request is {pull.status}")
        base, head, main = map(self.files, (pull.base, f"refs/pr/{number}", "main"))
        changed = {path for path in {*base, *head} if base.get(path) != head.get(path)}
        if any(base.get(path) != main.get(path) for path in changed):
            raise Refused(409, "Pull request has conflicts")
        pull.status = "merged"
        files = {p: c for p, c in main.items() if p not in changed}
        files |= {p: c for p, c in head.items() if p in changed}
        return self.add("main", self.refs["main"], f"{pull.title} (#{number})", files)


class Store:
    """All repositories of a Hub, and the bytes of LFS files that no commit names yet."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.uploads: dict[str, bytes] = {}

    def create(self, user: User, kind: str, repo_id: str, **state: Any) -> None:
        """Makes an empty repository, refusing foreign namespaces, bad names and existing ones."""
        namespace, _, name = repo_id.partition("/")
        if not user.owns(namespace):
            message = f"You don't have the rights to create a repo under the namespace {namespace}"
            raise Refused(403, message)
        if not _NAME.fullmatch(name) or name.endswith((".git", "-", ".")) or ".." in name:
            raise Refused(400, f"Invalid repository name: {name}")
        if (kind, repo_id) in self.repositories:
            raise Refused(409, "You already created this repo")
        repository = Repository(kind, repo_id, **state)
        repository.add("main", None, "initial commit", {})
        self.repositories[kind, repo_id] = repository

    def find(self, user: User | None, kind: str, repo_id: str) -> Repository:
        """Returns a repository; a private one looks to strangers as if it did not exist."""
        repository = self.repositories.get((kind, repo_id))
        if repository and (not repository.private or (user and user.owns(repository.namespace))):
            return repository
        raise Refused(401 if user is None else 404, "Repository not found", "RepoNotFound")
