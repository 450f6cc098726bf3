"""Where source files come from: the pinned commits, a directory with their trees, or the demo.

All three give the same files to the same parsers. `sources.json` has, for each of the two
repositories, the commit and the SHA-256 of every file that is read.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .download import Download
from .lines import BadSource

SCRIPTS = Path(__file__).resolve().parents[1]
"""The folder of the loading scripts, with the demo source."""
NOTICE = "LICENSE"
CONFIGS = ("cprag102", "role88", "neg136", "agreement", "verbs")

AGREEMENT_FOLDERS = ("data/ML", "data/blimp")
"""All templates in these folders are read; a directory may have other ones than the published."""


@dataclass(frozen=True)
class SourceFile:
    """A file that rows are read from.

    Attributes:
        repository: folder name of its repository, e.g. "lm-diagnostics".
        path: its path inside the repository.
        location: its path on this machine.
        sha256: of its bytes, hexadecimal.
        pinned: whether these are the bytes of the pinned commit.
    """

    repository: str
    path: str
    location: Path
    sha256: str
    pinned: bool


@cache
def pinned() -> dict[str, dict[str, Any]]:
    """Repository folder -> its GitHub name, commit, licence, and config -> {path: SHA-256}."""
    file = SCRIPTS / "loading/sources.json"
    table: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return table


def repository_of(config: str) -> str:
    """Folder name of the repository that a config comes from.

    Raises:
        BadSource: there is no such config.
    """
    for folder, repository in pinned().items():
        if config in repository["configs"]:
            return folder
    close = difflib.get_close_matches(config, CONFIGS, n=1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    raise BadSource(f"unknown config {config!r}{meant}: choose from {', '.join(CONFIGS)}")


def checksums(config: str) -> dict[str, str]:
    """Path -> SHA-256 of a config's files at the pinned commit."""
    sums: dict[str, str] = pinned()[repository_of(config)]["configs"][config]
    return sums


def digest_of(sums: dict[str, str]) -> str:
    """A hash of the checksums of several files."""
    lines = "".join(f"{path} {digest}\n" for path, digest in sums.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal.

    Raises:
        BadSource: it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadSource(f"{path}: cannot be read ({error.strerror})") from error


class Tree:
    """A directory with the tree of one of the repositories, or a folder with both.

    Args:
        root: the directory.
        name: its name in the provenance.
    """

    def __init__(self, root: Path, name: str = "directory") -> None:
        self.root = root
        self.name = name

    def _repository(self, folder: str) -> Path:
        inside = self.root / folder
        return inside if inside.is_dir() else self.root

    def _paths(self, config: str) -> list[str]:
        if config != "agreement":
            return list(checksums(config))
        base = self._repository(repository_of(config))
        templates = (sorted((base / folder).glob("*.jsonl")) for folder in AGREEMENT_FOLDERS)
        return [path.relative_to(base).as_posix() for paths in templates for path in paths]

    def configs(self) -> list[str]:
        """Configs of which at least one file exists; `files` says what else is missing."""
        configs = []
        for config in CONFIGS:
            base = self._repository(repository_of(config))
            if any((base / path).is_file() for path in self._paths(config)):
                configs.append(config)
        if not configs:
            examples = ", ".join(next(iter(checksums(config))) for config in CONFIGS)
            raise BadSource(f"{self.root} has no source files such as {examples}")
        return configs

    def digest(self, config: str) -> str:
        """A hash of the bytes that a config is built from."""
        return digest_of({file.path: file.sha256 for file in self.files(config)})

    def files(self, config: str) -> list[SourceFile]:
        """The config's files, in the order in which its parser takes them.

        Raises:
            BadSource: a file is missing.
        """
        folder = repository_of(config)
        base = self._repository(folder)
        paths = self._paths(config)
        if not paths:
            raise BadSource(f"{base}: {config} needs {' or '.join(AGREEMENT_FOLDERS)}/*.jsonl")
        for path in paths:
            if not (base / path).is_file():
                raise BadSource(f"{base / path} is missing: {config} is made from it")
        return [self._file(folder, path, checksums(config)) for path in paths]

    def _file(self, folder: str, path: str, sums: dict[str, str]) -> SourceFile:
        location = self._repository(folder) / path
        digest = sha256(location)
        return SourceFile(folder, path, location, digest, digest == sums.get(path))

    def notice(self, repository: str) -> SourceFile | None:
        """The licence of a repository, if the tree has it."""
        if not (self._repository(repository) / NOTICE).is_file():
            return None
        return self._file(repository, NOTICE, pinned()[repository]["notice"])


class Upstream(Tree):
    """The two repositories on GitHub at their pinned commits, downloaded once.

    Args:
        base: address of the server, without the repository.
        cache: where files are kept; `lmdiag/sources` in the user's cache by default.
    """

    def __init__(
        self, base: str = "https://raw.githubusercontent.com", cache: Path | None = None
    ) -> None:
        super().__init__(cache or user_cache() / "sources", name="upstream")
        self.base = base

    def _repository(self, folder: str) -> Path:
        commit: str = pinned()[folder]["commit"]
        return self.root / folder / commit

    def configs(self) -> list[str]:
        """All configs."""
        return list(CONFIGS)

    def digest(self, config: str) -> str:
        """See `Tree.digest`; nothing is downloaded."""
        return digest_of(checksums(config))

    def files(self, config: str) -> list[SourceFile]:
        """See `Tree.files`.

        Raises:
            BadSource: no network, or a checksum that differs.
        """
        self._fetch(repository_of(config), checksums(config), config)
        return super().files(config)

    def notice(self, repository: str) -> SourceFile | None:
        """See `Tree.notice`."""
        self._fetch(repository, pinned()[repository]["notice"], repository)
        return super().notice(repository)

    def _fetch(self, folder: str, sums: dict[str, str], what: str) -> None:
        entry = pinned()[folder]
        remote = f"{self.base}/{entry['repository']}/{entry['commit']}"
        Download(remote, self._repository(folder), what).all(sums)


def open_source(source: str) -> Tree:
    """The source that `--source` names: upstream, demo, or else a directory.

    Raises:
        BadSource: there is no such directory.
    """
    if source == "upstream":
        return Upstream()
    if source == "demo":
        return Tree(SCRIPTS / "demo", name="demo")
    if not os.path.isdir(source):  # noqa: PTH112 (Path's raises for a name that is too long)
        raise BadSource(f"no directory {source}: --source is upstream, demo or a directory")
    return Tree(Path(source))


def user_cache() -> Path:
    """The user's cache of lmdiag: $LMDIAG_CACHE, else `lmdiag` in $XDG_CACHE_HOME or ~/.cache."""
    if chosen := os.environ.get("LMDIAG_CACHE"):
        return _expanded(chosen)
    return _expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "lmdiag"


def _expanded(text: str) -> Path:
    return Path(os.path.expanduser(text))  # noqa: PTH111 (Path's raises for an unknown user)
