"""Where a data set lies: a directory with YAML `configs:`, a Hub data set, or a single file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmdiag import diagnostics
from lmdiag.building import BUILT, kept
from lmdiag.reading import (
    MAX_DOCUMENT,
    is_folder,
    parse_yaml,
    read_json,
    read_text,
    short,
    user_path,
)
from lmdiag.schema import BadInput
from lmdiag.stimuli.tables import READERS, Raw, read_file

CARD = "README.md"
PROVENANCE = "provenance.json"
SPLIT = "test"
VERBS = "verbs"
"""The config that holds the verbs of EW and MW."""
LONGEST_PATTERN = 300
"""Characters of a path in `data_files`."""
BUILD = "`lmdiag build` (with `--source demo` where there is no network)"


@dataclass(frozen=True)
class Place:
    """A data set that was found.

    Attributes:
        name: what the user called it.
        configs: config -> patterns of its files inside `root`; empty where `datasets` finds them.
        root: directory of the files.
        revisions: config -> commit; the key "" stands for all others.
        fetch: brings files of a Hub data set into `root`; nothing for local ones.
    """

    name: str
    configs: Mapping[str, tuple[str, ...]]
    root: Path
    revisions: Mapping[str, str | None] = field(default_factory=dict)
    fetch: Callable[[tuple[str, ...]], object] = lambda patterns: None

    def revision(self, config: str) -> str | None:
        """The commit that a config's rows come from, where it is known."""
        return self.revisions.get(config, self.revisions.get(""))

    def read(self, config: str) -> Raw:
        """Reads all rows of a config.

        Raises:
            BadInput: a file is missing or malformed.
        """
        patterns = self.configs[config]
        if not patterns:
            return _read_by_datasets(self.name, self.root, config)
        self.fetch(patterns)
        try:
            files = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        except (OSError, ValueError, NotImplementedError, re.error) as error:
            raise BadInput(f"{self.name}: no file name for {config} ({short(error)})") from None
        if not files:
            raise BadInput(f"{self.name}: no file {patterns[0]} for {config}: build it again")
        return Raw.joined([read_file(path) for path in files])


def find(data: str, revision: str | None = None) -> Place:
    """Finds a data set: what exists here comes before what is built on first use, then the Hub.

    Args:
        data: directory, file, Hub data set, or a key of `BUILT`.
        revision: branch, tag or commit of a Hub data set.

    Raises:
        BadInput: there is no such directory, file or Hub data set, or no network.
    """
    path = user_path(data)
    if data in BUILT and not _is_data_set(path):
        return _directory(data, kept(data))
    if is_folder(path):
        return _directory(data, path)
    if path.is_file():
        return _file(data, path)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", data) and path.suffix not in READERS:
        return _hub(data, revision)
    raise BadInput(f"no data at {data}: build the data set by {BUILD}, or name one of the Hub")


def _is_data_set(path: Path) -> bool:
    """Whether a directory has a card with YAML, as a clone of this repository has not."""
    card = path / CARD
    return card.is_file() and card.read_bytes().startswith(b"---")


def _file(data: str, path: Path) -> Place:
    if path.suffix not in READERS:
        kinds = ", ".join(READERS)
        raise BadInput(f"{data} is no data: a directory or a file ending in {kinds} is due")
    # Patterns are globs: a file called "a[1].csv" is named by its parent's exact listing instead.
    pattern = re.sub(r"([\[*?])", r"[\1]", path.name)
    return Place(data, {_task(path): (pattern,)}, path.parent)


def _task(path: Path) -> str:
    """The task of a file: its stem, and the whole name where the stem stands for other data.

    A file `neg136.csv` with the columns of that diagnostic holds the diagnostic; without them it is
    the user's own task, "neg136.csv".
    """
    known = diagnostics.built_in()
    if path.stem not in (*known, VERBS):
        return path.stem
    names = read_file(path).columns
    own = known[path.stem].missing_columns(names) if path.stem in known else "target" in names
    return path.name if own else path.stem


def _directory(data: str, root: Path) -> Place:
    if not (root / CARD).is_file():
        raise BadInput(f"{data} is no data set, it has no {CARD}: build one by {BUILD}")
    configs = _configs(root, data)
    if not configs:
        raise BadInput(f"{data}/{CARD} names no `configs:`: build the data set by {BUILD}")
    return Place(data, configs, root, _commits(root))


def _configs(root: Path, data: str) -> dict[str, tuple[str, ...]]:
    """The YAML `configs:` of a card: config -> patterns of the files of its split."""
    card = root / CARD
    parts = re.match(r"---\r?\n(.*?)\r?\n---", read_text(card, MAX_DOCUMENT), re.DOTALL)
    front = parse_yaml(parts[1], f"{data}/{CARD}") if parts else {}
    try:
        entries = (front or {}).get("configs") or []
        return {str(entry["config_name"]): _patterns(entry["data_files"]) for entry in entries}
    except BadInput as error:
        raise BadInput(f"{data}/{CARD}: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{data}/{CARD}: its YAML `configs:` cannot be read: {error}") from error


def _patterns(data_files: Any) -> tuple[str, ...]:
    """Patterns of the split `test`, or of the only split there is."""
    if not (isinstance(data_files, list) and all(isinstance(each, dict) for each in data_files)):
        return tuple(_strings(data_files))
    splits = {each["split"]: tuple(_strings(each["path"])) for each in data_files}
    if SPLIT not in splits and len(splits) != 1:
        raise BadInput(f"no split {SPLIT!r} among {', '.join(splits)}")
    return splits.get(SPLIT) or next(iter(splits.values()))


def _strings(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str) or each.startswith("/") or ".." in Path(each).parts:
            raise BadInput(f"data_files {each!r} is no path inside the data set")
        if len(each) > LONGEST_PATTERN or each.count("**") > 2:  # glob would take minutes
            raise BadInput(f"data_files {each[:40]}... is too long or has too many **")
        yield each


def _commits(root: Path) -> dict[str, str | None]:
    """Config -> upstream commit, as the build noted it; empty for directories made otherwise."""
    try:
        configs = read_json(root / PROVENANCE)["configs"]
        commits = {name: facts["commit"] for name, facts in configs.items()}
    except (BadInput, KeyError, TypeError, AttributeError):
        return {}
    return {name: commit for name, commit in commits.items() if isinstance(commit, str)}


def _hub(repo: str, revision: str | None) -> Place:
    root = _snapshot(repo, revision, (CARD,))
    # The folder of a snapshot is named by its commit: all further files are of the same one.
    commit = root.name
    configs = _configs(root, repo) if (root / CARD).is_file() else {}
    if not configs:
        root = _snapshot(repo, commit, (CARD, *(f"**{suffix}" for suffix in READERS)))
        return Place(repo, _names_by_datasets(repo, root), root, {"": commit})
    return Place(repo, configs, root, {"": commit}, lambda wanted: _snapshot(repo, commit, wanted))


def _snapshot(repo: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(
            repo, repo_type="dataset", revision=revision, allow_patterns=list(patterns)
        )
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise BadInput(
            f"no data set {repo} here or on the Hub, or no access to it: build one by {BUILD}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise BadInput(f"the data set {repo} has no revision {revision}") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise BadInput(
            f"no network, and {repo} is neither here nor in the cache: build one by {BUILD}"
        ) from error
    return Path(folder)


def _names_by_datasets(repo: str, root: Path) -> dict[str, tuple[str, ...]]:
    """Configs of a data set without YAML, as `datasets` infers them."""
    from datasets import get_dataset_config_names

    try:
        return dict.fromkeys(get_dataset_config_names(str(root)), ())
    except (ValueError, OSError) as error:
        raise BadInput(f"{repo} cannot be read by datasets: {error}") from error


def _read_by_datasets(repo: str, root: Path, config: str) -> Raw:
    from datasets import load_dataset

    try:
        splits = load_dataset(str(root), config)
    except (ValueError, OSError) as error:
        raise BadInput(f"{repo} cannot be read by datasets: {error}") from error
    name = SPLIT if SPLIT in splits else next(iter(splits))
    if name != SPLIT and len(splits) > 1:
        raise BadInput(f"{repo} has no split {SPLIT!r} among {', '.join(splits)}")
    return Raw(repo, splits[name].to_dict(), lambda row: f"{repo}, {name} row {row + 1}")
