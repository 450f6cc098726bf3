"""The JSON records in which the Hub speaks of repositories, files and pull requests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .store import Entry, Repository

CREATED = "2024-01-01T00:00:00.000Z"


def repository(repository: Repository, sha: str) -> dict[str, Any]:
    """What a repository is at a commit, and which files it has."""
    record = {
        "id": repository.id,
        "author": repository.namespace,
        "sha": sha,
        "private": repository.private,
        "gated": False,
        "disabled": False,
        "lastModified": CREATED,
        "createdAt": CREATED,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "siblings": [{"rfilename": path} for path in repository.files(sha)],
    }
    return record | ({"sdk": repository.sdk} if repository.sdk else {})


def listing(files: dict[str, Entry], prefix: str, recursive: bool, blobs: Path) -> list[Any]:
    """Files and the folders between them, all or only those directly below the prefix."""
    folders = {
        path[:end]
        for path in files
        for end in (match.start() for match in re.finditer("/", path))
        if end >= len(prefix)
    }
    entries = [file(path, entry, blobs) for path, entry in files.items()]
    entries += [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in folders]
    if not recursive:
        entries = [entry for entry in entries if "/" not in entry["path"][len(prefix) :]]
    return sorted(entries, key=lambda entry: str(entry["path"]))


def file(path: str, entry: Entry, blobs: Path) -> dict[str, Any]:
    """One file, with its LFS pointer where it has one."""
    oid = entry.oid(blobs)
    record: dict[str, Any] = {"type": "file", "path": path, "size": entry.size, "oid": oid}
    if entry.lfs:
        pointer = len(entry.pointer())
        record["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": pointer}
    return record


def pull_request(repository: Repository, number: str) -> dict[str, Any]:
    """One pull request."""
    pull = repository.pulls[number]
    return {
        "num": int(number),
        "title": pull["title"],
        "author": {"name": pull["author"]},
        "createdAt": CREATED,
        "status": pull["status"],
        "isPullRequest": True,
        "repo": {"name": repository.id, "type": repository.kind.removesuffix("s")},
        "events": [],
        "changes": {"base": "refs/heads/main", "mergeCommitId": pull.get("merge")},
        "filesWithConflicts": [],
        "diff": "",
    }
