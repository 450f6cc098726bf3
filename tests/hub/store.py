"""Repositories in memory: commits, branches, pull requests, and who may do what.

What the Hub would refuse raises `Refused` with its status and error code.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

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

    def owns(self, repo_id: str) -> bool:
        return repo_id.split("/")[0] in (self.name, *self.orgs)


def blob(content: bytes) -> str:
    """The name that git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def describe(path: str, content: bytes) -> dict[str, Any]:
    """A file as the Hub's API describes it; this Hub keeps all files in git, none in LFS."""
    return {"type": "file", "path": path, "size": len(content), "oid": blob(content)}


@dataclass(frozen=True)
class Commit:
    """The files at one moment; `parent` is the name of the commit before."""

    parent: str | None
    title: str
    files: Files

    @property
    def oid(self) -> str:
        """Its name, which depends on nothing but its content and history."""
        names = {path: blob(self.files[path]) for path in sorted(self.files)}
        return hashlib.sha1(json.dumps([self.parent, self.title, names]).encode()).hexdigest()


@dataclass
class Repository:
    """A repository.

    Attributes:
        kind: models, datasets or spaces.
        refs: branch, `refs/tags/NAME` or `refs/pr/N` -> commit.
        pulls: number of a pull request -> the commit that it started from.
    """

    kind: str
    id: str
    private: bool = False
    sdk: str | None = None
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)

    def resolve(self, revision: str) -> str:
        """The commit of a branch, a tag, a pull request or a commit."""
        tagged = self.refs.get(f"refs/tags/{revision}", revision)
        commit = self.refs.get(revision.removeprefix("refs/heads/"), tagged)
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

    def push(
        self, user: User, revision: str, title: str, changes: dict[str, bytes | None],
        *, new_pull: bool,
    ) -> tuple[str, int | None]:  # fmt: skip
        """Commits changes (None removes) to a branch, or to a new pull request.

        Returns the commit and the number of the pull request.
        """
        if not (user.owns(self.id) or new_pull):
            raise Refused(403, "Forbidden: you must use a write token of an owner")
        parent, number = self.resolve(revision), None
        files = {p: c for p, c in {**self.files(parent), **changes}.items() if c is not None}
        if new_pull:
            number = len(self.pulls) + 1
            self.pulls[str(number)] = parent
            revision = f"refs/pr/{number}"
        return self.add(revision, parent, title, files), number

    def merge(self, user: User, number: str) -> str:
        """Merges a pull request: the files that it changed since its base replace those of main."""
        if not user.owns(self.id):
            raise Refused(403, "Only an owner can merge")
        base, head = self.files(self.pulls[number]), self.files(f"refs/pr/{number}")
        changed = {path: content for path, content in head.items() if base.get(path) != content}
        return self.add("main", self.refs["main"], f"Merge {number}", self.files("main") | changed)


class Store:
    """All repositories of a Hub."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}

    def create(self, user: User, kind: str, repo_id: str, **state: Any) -> None:
        """Makes an empty repository, refusing foreign namespaces and existing ones."""
        if not user.owns(repo_id):
            raise Refused(403, f"You don't have the rights to create {repo_id}")
        if (kind, repo_id) in self.repositories:
            raise Refused(409, "You already created this repo")
        repository = Repository(kind, repo_id, **state)
        repository.add("main", None, "initial commit", {})
        self.repositories[kind, repo_id] = repository

    def find(self, user: User | None, kind: str, repo_id: str) -> Repository:
        """Returns a repository; a private one looks to strangers as if it did not exist."""
        repository = self.repositories.get((kind, repo_id))
        if repository and (not repository.private or (user and user.owns(repo_id))):
            return repository
        raise Refused(401 if user is None else 404, "Repository not found", "RepoNotFound")
