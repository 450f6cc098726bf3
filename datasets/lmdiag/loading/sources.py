"""Where source files come from: the pinned commits, a directory with their trees, or the demo.

All three give the same files to the same parsers. `sources.json` has the commits of the two
repositories, and for each config the SHA-256 of every file that is read.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lmdiag.files.reading import is_folder, read_bytes
from lmdiag.files.writing import write_atomically
from lmdiag.stimuli.dataset import user_cache
from lmdiag.text import suggest
from lmdiag.types import BadInput

SCRIPTS = Path(__file__).resolve().parents[1]
"""The folder of the loading scripts, with the demo source."""
NOTICE = "LICENSE"
SERVER = "https://raw.githubusercontent.com"

REPOSITORIES, CONFIGS, CHOICES = json.loads(
    (SCRIPTS / "loading/sources.json").read_text("utf-8")
).values()
"""Folder of a repository -> its GitHub name, commit, licence and SHA-256 of that; config -> what it
is about, the folder of its repository, and path -> SHA-256 of its files; config of questions ->
what it is about, the config that it is made from, and which rows and how."""
CONFIGS |= {name: CONFIGS[choice["rows"]] | choice for name, choice in CHOICES.items()}

AGREEMENT_FOLDERS = ("data/ML", "data/blimp")
"""All templates in these folders are read; a directory may have other ones than the published."""

PAUSE = 1.0
"""Seconds before the second attempt to download a file; doubled before each further one."""
ATTEMPTS = 5


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, hexadecimal."""
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
        """Returns the configs of which at least one file exists; `files` says what is missing."""
        there = [
            config
            for config in CONFIGS
            if self.server or any(path.is_file() for path in self._paths(config).values())
        ]
        if not there:
            examples = ", ".join(next(iter(facts["files"])) for facts in CONFIGS.values())
            raise BadInput(f"{self.root} has no source files such as {examples}")
        return there

    def files(self, config: str) -> dict[str, Path]:
        """Returns path in the repository -> path here, in the order in which a parser takes them.

        Raises:
            BadInput: there is no such config, a file is missing or cannot be downloaded, or its
                checksum differs.
        """
        if config not in CONFIGS:
            close = suggest(config, CONFIGS)
            raise BadInput(f"unknown config {config!r}{close}: choose from {', '.join(CONFIGS)}")
        folder = CONFIGS[config]["folder"]
        self._fetch(folder, CONFIGS[config]["files"])
        paths = self._paths(config)
        if not paths:
            needed = f"{config} needs {' or '.join(AGREEMENT_FOLDERS)}/*.jsonl"
            raise BadInput(f"{self._tree(folder)}: {needed}")
        for path in paths.values():
            if not path.is_file():
                raise BadInput(f"{path} is missing: {config} is made from it")
        return paths

    def notice(self, folder: str) -> Path | None:
        """Returns the licence of a repository; None if the tree has none."""
        self._fetch(folder, {NOTICE: REPOSITORIES[folder]["notice"]})
        path = self._tree(folder) / NOTICE
        return path if path.is_file() else None

    def _tree(self, folder: str) -> Path:
        """The root of a repository's tree."""
        if self.server:
            return self.root / folder / str(REPOSITORIES[folder]["commit"])
        return self.root / folder if (self.root / folder).is_dir() else self.root

    def _paths(self, config: str) -> dict[str, Path]:
        """The files of a config, present or not."""
        tree = self._tree(CONFIGS[config]["folder"])
        paths = [tree / path for path in CONFIGS[config]["files"]]
        if config == "agreement" and not self.server:
            folders = [tree / name for name in AGREEMENT_FOLDERS]
            paths = [path for folder in folders for path in sorted(folder.glob("*.jsonl"))]
        return {path.relative_to(tree).as_posix(): path for path in paths}

    def _fetch(self, folder: str, sums: dict[str, str]) -> None:
        """Downloads the files of a repository that are missing or damaged."""
        from rich.console import Console
        from rich.progress import track

        tree, entry = self._tree(folder), REPOSITORIES[folder]
        missing = [
            path
            for path, digest in sums.items()
            if self.server and not ((tree / path).is_file() and sha256(tree / path) == digest)
        ]
        console = Console(stderr=True)
        hide = not missing or not sys.stderr.isatty()
        for path in track(missing, folder, console=console, disable=hide):
            url = f"{self.server}/{entry['repository']}/{entry['commit']}/{quote(path)}"
            content = _downloaded(url, sums[path])
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(tree / path, content)


def _downloaded(url: str, digest: str) -> bytes:
    """The content at an address, whose SHA-256 is checked; tried again after temporary failures."""
    from httpx2 import HTTPError
    from huggingface_hub import utils
    from huggingface_hub.utils import logging

    instead = "use --source demo, or --source DIR with a copy of the repository"
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # a line per attempt
    try:
        answer = utils.http_backoff(  # type: ignore[attr-defined]
            "GET", url, max_retries=ATTEMPTS - 1, base_wait_time=PAUSE
        )
        answer.raise_for_status()
    except (HTTPError, OSError) as error:  # OSError: HF_HUB_OFFLINE is set
        reason = str(error).partition("\n")[0].rstrip(".")
        raise BadInput(f"{url} cannot be fetched ({reason}); {instead}") from error
    finally:
        logging.set_verbosity(verbosity)
    actual = hashlib.sha256(answer.content).hexdigest()
    if actual != digest:
        raise BadInput(
            f"checksum of {url} differs: expected {digest[:12]}..., got {actual[:12]}...; {instead}"
        )
    return bytes(answer.content)


def open_source(source: str) -> Source:
    """Returns the source that `--source` names: upstream, demo, or else a directory."""
    if source == "upstream":
        return Source("upstream", user_cache() / "sources", SERVER)
    if source == "demo":
        return Source("demo", SCRIPTS / "demo")
    if not is_folder(Path(source)):
        raise BadInput(f"no directory {source}: --source is upstream, demo or a directory")
    return Source("directory", Path(source))
