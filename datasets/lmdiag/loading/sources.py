"""Where source files come from: the pinned commits, a directory with their trees, or the demo.

All three give the same files to the same parsers. `sources.json` has, for each of the two
repositories, the commit and the SHA-256 of every file that is read.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lmdiag.files import is_folder, read_bytes, write_atomically
from lmdiag.stimuli.building import user_cache
from lmdiag.text import suggest
from lmdiag.types import BadInput

SCRIPTS = Path(__file__).resolve().parents[1]
"""The folder of the loading scripts, with the demo source."""
NOTICE = "LICENSE"
SERVER = "https://raw.githubusercontent.com"

AGREEMENT_FOLDERS = ("data/ML", "data/blimp")
"""All templates in these folders are read; a directory may have other ones than the published."""

PAUSE = 1.0
"""Seconds before the second attempt to download a file; doubled before each further one."""
ATTEMPTS = 5


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
    table: dict[str, dict[str, Any]] = json.loads((SCRIPTS / "loading/sources.json").read_text())
    return table


def config_names() -> list[str]:
    """Returns the names of all configs, in their order."""
    return [name for repository in pinned().values() for name in repository["configs"]]


def repository_of(config: str) -> str:
    """Returns the folder name of the repository that a config comes from.

    Raises:
        BadInput: there is no such config.
    """
    for folder, repository in pinned().items():
        if config in repository["configs"]:
            return folder
    known = config_names()
    raise BadInput(
        f"unknown config {config!r}{suggest(config, known)}: choose from {', '.join(known)}"
    )


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, hexadecimal.

    Raises:
        BadInput: it cannot be read.
    """
    return hashlib.sha256(read_bytes(path)).hexdigest()


@dataclass(frozen=True)
class Source:
    """The trees of the two repositories.

    Attributes:
        name: in the provenance: upstream, demo or directory.
        root: a directory with the tree of one repository, or a folder with both.
        server: address that the pinned commits are downloaded from, into `root`; "" for files that
            are there.
    """

    name: str
    root: Path
    server: str = ""

    def configs(self) -> list[str]:
        """Returns the configs of which at least one file exists; `files` says what is missing.

        Raises:
            BadInput: there is no source file.
        """
        names = config_names()
        there = names if self.server else [name for name in names if self._has(name)]
        if not there:
            raise BadInput(
                f"{self.root} has no source files such as "
                + ", ".join(next(iter(_checksums(name))) for name in names)
            )
        return there

    def files(self, config: str) -> list[SourceFile]:
        """Returns the files of a config, in the order in which its parser takes them.

        Raises:
            BadInput: a file is missing; or it cannot be downloaded, or its checksum differs.
        """
        folder = repository_of(config)
        paths = self._paths(config)
        base = self._base(folder)
        if not paths:
            raise BadInput(f"{base}: {config} needs {' or '.join(AGREEMENT_FOLDERS)}/*.jsonl")
        self._fetch(folder, _checksums(config))
        for path in paths:
            if not (base / path).is_file():
                raise BadInput(f"{base / path} is missing: {config} is made from it")
        return [self._file(folder, path, _checksums(config)) for path in paths]

    def notice(self, folder: str) -> Path | None:
        """Returns the licence of a repository; None if the tree has none."""
        self._fetch(folder, pinned()[folder]["notice"])
        path = self._base(folder) / NOTICE
        return path if path.is_file() else None

    def _base(self, folder: str) -> Path:
        if self.server:
            return self.root / folder / str(pinned()[folder]["commit"])
        inside = self.root / folder
        return inside if inside.is_dir() else self.root

    def _has(self, config: str) -> bool:
        base = self._base(repository_of(config))
        return any((base / path).is_file() for path in self._paths(config))

    def _paths(self, config: str) -> list[str]:
        if config != "agreement" or self.server:
            return list(_checksums(config))
        base = self._base(repository_of(config))
        files = (
            path for name in AGREEMENT_FOLDERS for path in sorted((base / name).glob("*.jsonl"))
        )
        return [path.relative_to(base).as_posix() for path in files]

    def _file(self, folder: str, path: str, sums: dict[str, str]) -> SourceFile:
        location = self._base(folder) / path
        digest = sha256(location)
        return SourceFile(folder, path, location, digest, digest == sums.get(path))

    def _fetch(self, folder: str, sums: dict[str, str]) -> None:
        """Downloads the files of a repository that are missing or damaged."""
        from rich.console import Console
        from rich.progress import track

        if not self.server:
            return
        entry, base = pinned()[folder], self._base(folder)
        missing = [
            path
            for path, digest in sums.items()
            if not (base / path).is_file() or sha256(base / path) != digest
        ]
        console = Console(stderr=True)
        for path in track(missing, folder, console=console, disable=not sys.stderr.isatty()):
            url = f"{self.server}/{entry['repository']}/{entry['commit']}/{quote(path)}"
            content = _downloaded(url, sums[path])
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(base / path, content)


def _checksums(config: str) -> dict[str, str]:
    """Path -> SHA-256 of a config's files at the pinned commit."""
    sums: dict[str, str] = pinned()[repository_of(config)]["configs"][config]
    return sums


def _downloaded(url: str, digest: str) -> bytes:
    """The content at an address, whose SHA-256 is checked; tried again after temporary failures."""
    from httpx2 import HTTPError
    from huggingface_hub import utils

    instead = "use --source demo, or --source DIR with a copy of the repository"
    try:
        answer = utils.http_backoff(  # type: ignore[attr-defined]
            "GET", url, max_retries=ATTEMPTS - 1, base_wait_time=PAUSE
        )
        answer.raise_for_status()
    except (HTTPError, OSError) as error:  # OSError: HF_HUB_OFFLINE is set
        reason = str(error).partition("\n")[0].rstrip(".")
        raise BadInput(f"{url} cannot be fetched ({reason}); {instead}") from error
    actual = hashlib.sha256(answer.content).hexdigest()
    if actual != digest:
        raise BadInput(
            f"checksum of {url} differs: expected {digest[:12]}..., got {actual[:12]}...; {instead}"
        )
    return bytes(answer.content)


def open_source(source: str) -> Source:
    """Returns the source that `--source` names: upstream, demo, or else a directory.

    Raises:
        BadInput: there is no such directory.
    """
    if source == "upstream":
        return Source("upstream", user_cache() / "sources", SERVER)
    if source == "demo":
        return Source("demo", SCRIPTS / "demo")
    if not is_folder(Path(source)):
        raise BadInput(f"no directory {source}: --source is upstream, demo or a directory")
    return Source("directory", Path(source))
