"""Finds a data set: a directory with YAML `configs:` or of one form, a Hub data set, a file.

The extended sets of Shivagunde et al. (2023) are text files, which are known by their names, on the
Hub too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lmdiag import diagnostics
from lmdiag.files import (
    MAX_DOCUMENT,
    has_file,
    is_file,
    is_folder,
    parse_yaml,
    read_json,
    read_text,
    readable,
    real_path,
    user_path,
)  # fmt: skip
from lmdiag.stimuli.building import BUILT, cached
from lmdiag.stimuli.extended import EXTENDED_SETS, extended_task
from lmdiag.stimuli.files import READERS, TEXT_SUFFIX, read_file
from lmdiag.stimuli.forms import in_form
from lmdiag.stimuli.suites import SUITE_SUFFIX
from lmdiag.stimuli.table import PAIR_ALIASES, RawTable, concatenate, form_of
from lmdiag.text import shortened, suggest
from lmdiag.types import BadInput

VERBS = "verbs"
"""The config that holds the verbs of EW and MW."""

_CARD = "README.md"
_PROVENANCE = "provenance.json"
_SPLIT = "test"
_ONE_FORM = ({SUITE_SUFFIX}, READERS.keys() - {SUITE_SUFFIX, TEXT_SUFFIX})
"""Suffixes of the files in a folder of test suites, and in one of minimal pairs."""
_LANGUAGE = r"[a-z]{2,3}([-_][A-Za-z]{2,4})*"
"""A language by its code (ISO 639), with a script or a region or both: eng, zh-Hans, pt_BR."""
_MAX_PATTERN = 300
"""Characters of a path in `data_files`."""
_BUILD = "`lmdiag build` (with `--source demo` if you are offline)"


@dataclass(frozen=True)
class Dataset:
    """A data set that exists.

    Attributes:
        name: as the user named it.
        configs: config -> patterns of its files inside `root`; empty if `datasets` infers them.
        root: directory of the files.
        commits: config -> commit; the key "" stands for all others.
        fetch: downloads files of a Hub data set into `root`; does nothing for local ones.
        by_file: for a folder of test suites or of minimal pairs, the column that the name of a file
            is written to if the pairs lack it: `language` in a folder of languages, otherwise
            `UID`. "" for data whose files are parts of one table.
    """

    name: str
    configs: Mapping[str, tuple[str, ...]]
    root: Path
    commits: Mapping[str, str | None] = field(default_factory=dict)
    fetch: Callable[[tuple[str, ...]], object] = lambda patterns: None
    by_file: str = ""

    def commit(self, config: str) -> str | None:
        """The commit that the rows of a config come from; None if it is not known."""
        return self.commits.get(config, self.commits.get(""))

    def read(self, config: str) -> RawTable:
        """Reads all rows of a config.

        Raises:
            BadInput: a file is missing or malformed.
        """
        patterns = self.configs[config]
        if not patterns:
            return _read_with_datasets(self.name, self.root, config)
        self.fetch(patterns)
        try:
            files = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        except (OSError, ValueError, NotImplementedError, re.error) as error:
            raise BadInput(
                f"{self.name}: the file name of {config} cannot be used ({shortened(error)})"
            ) from None
        if not files:
            raise BadInput(f"{self.name}: no file {patterns[0]} for {config}: build it again")
        return concatenate([self._read_file(path) for path in files])

    def _read_file(self, path: Path) -> RawTable:
        table = read_file(path)
        if not self.by_file:
            return table
        place = path.relative_to(self.root).with_suffix("")
        if self.by_file == "language" and form_of(table.columns) == "minimal_pairs":
            table = _with_column(table, "language", place.parts[0])
        table = in_form(table, place.as_posix())
        if table.form not in ("minimal_pairs", "suites"):
            raise BadInput(
                f"{path} is not a file of minimal pairs (sentence_good, sentence_bad), as a folder "
                f"without {_CARD} has: name the file itself, or move it elsewhere"
            )
        is_paradigm = self.by_file == "UID" or len(place.parts) > 1
        if table.form == "minimal_pairs" and is_paradigm:
            table = _with_column(table, "UID", path.stem)
        return table


def _with_column(table: RawTable, name: str, value: str) -> RawTable:
    """Returns the table with a column of one value, unless it has this column."""
    if any(PAIR_ALIASES.get(column, column) == name for column in table.columns):
        return table
    return replace(table, columns={**table.columns, name: [value] * len(table)})


def find(data: str, revision: str | None = None) -> Dataset:
    """Finds a data set: first in the file system, then among those built on first use, then Hub.

    Args:
        data: directory, file, Hub data set, or a key of `BUILT`.
        revision: branch, tag or commit of a Hub data set.

    Raises:
        BadInput: there is no such directory, file or Hub data set, or no network.
    """
    path = user_path(data)
    if data in BUILT:
        card = path / _CARD
        # the card in a clone of this repository has no YAML
        if not is_file(card) or not card.read_bytes().startswith(b"---"):
            path = cached(data)
    if is_folder(path):
        return _directory(data, path)
    if has_file(path):
        return _file(data, path)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", data) and path.suffix not in READERS:
        return _hub(data, revision)
    raise BadInput(_nothing_at(data, path))


def _nothing_at(data: str, path: Path) -> str:
    """The message on a name of no data, with a file or folder of a similar name beside it."""
    folder = path.parent
    close = ""
    if is_folder(folder):
        with readable(folder):
            close = suggest(path.name, [each.name for each in folder.iterdir()])
    if path.suffix in READERS or (close and path.suffix):
        return f"there is no file {data}{close}: name a file that exists"
    return f"no data at {data}{close}: build the data set by {_BUILD}, or name one of the Hub"


# ---- local ---------------------------------------------------------------------------------------


def _file(data: str, path: Path) -> Dataset:
    if path.suffix not in READERS:
        raise BadInput(
            f"{data} cannot be read as data: give a directory or a file ending in "
            f"{', '.join(READERS)}"
        )
    if path.suffix == TEXT_SUFFIX:
        return Dataset(data, {_text_task(data): (_literally(path.name),)}, path.parent)
    task, known = path.stem, diagnostics.built_in()
    if task in (*known, VERBS):  # without the columns of the diagnostic it is the user's own task
        names = read_file(path).columns
        own = bool(known[task].missing_columns(names)) if task in known else "target" in names
        task = path.name if own or form_of(names) else task
    return Dataset(data, {task: (_literally(path.name),)}, path.parent)


def _text_task(data: str) -> str:
    """The task of a text file, which its name says."""
    if task := extended_task(Path(data).name):
        return task
    names = ", ".join(f"{name}{TEXT_SUFFIX}" for name in EXTENDED_SETS.values())
    raise BadInput(
        f"{data} is not known by its name: a text file holds an extended set ({names}); give rows "
        "of your own as a csv file"
    )


def _text_files(root: Path) -> dict[str, tuple[str, ...]]:
    """Task -> its text file, for all extended sets in a folder."""
    files = {extended_task(path.name): path.name for path in root.glob(f"*{TEXT_SUFFIX}")}
    return {task: (_literally(files[task]),) for task in EXTENDED_SETS if task in files}


def _literally(name: str) -> str:
    """The pattern of one file, whose name may contain characters of globs."""
    return re.sub(r"([\[*?])", r"[\1]", name)


def _directory(data: str, root: Path) -> Dataset:
    has_card = is_file(root / _CARD)
    configs = (_configs(root, data) if has_card else {}) or _text_files(root)
    if not configs and (names := _files_of_one_form(root)):
        task = real_path(root).name
        languages = [Path(name).with_suffix("").parts[0] for name in names]
        coded = all(re.fullmatch(_LANGUAGE, language) for language in languages)
        by_file = "language" if coded else "UID"
        return Dataset(data, {task: tuple(map(_literally, names))}, root, by_file=by_file)
    if not configs and not has_card:
        raise BadInput(
            f"{data} is not a data set, it has no {_CARD}: build one by {_BUILD}, or name a folder "
            "whose only data are test suites (.json) or minimal pairs, or one with a folder of "
            "minimal pairs for each language, named by its code (eng, zh-Hans)"
        )
    if not configs:
        raise BadInput(f"{data}/{_CARD} names no `configs:`: build the data set by {_BUILD}")
    return Dataset(data, configs, root, _commits(root))


def _files_of_one_form(root: Path) -> list[str]:
    """The data files in a folder if all may be test suites or all minimal pairs, as paths in it.

    Without any, those in the folders of languages that it has.
    """
    names = _data_files(root)
    if not names:
        with readable(root):
            folders = [path for path in sorted(root.iterdir()) if is_folder(path)]
        languages = [path for path in folders if re.fullmatch(_LANGUAGE, path.name)]
        names = [f"{path.name}/{name}" for path in languages for name in _data_files(path)]
    suffixes = {Path(name).suffix for name in names}
    return names if any(suffixes <= allowed for allowed in _ONE_FORM) else []


def _data_files(folder: Path) -> list[str]:
    with readable(folder):
        files = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    read = READERS.keys() - {TEXT_SUFFIX}
    return [path.name for path in files if path.suffix in read and is_file(path)]


def _configs(root: Path, data: str) -> dict[str, tuple[str, ...]]:
    """The YAML `configs:` of a card: config -> patterns of the files of its split."""
    text = read_text(root / _CARD, MAX_DOCUMENT)
    parts = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    front = _front_matter(parts[1], f"{data}/{_CARD}") if parts else {}
    try:
        entries = (front or {}).get("configs") or []
        return {str(entry["config_name"]): _patterns(entry["data_files"]) for entry in entries}
    except BadInput as error:
        raise BadInput(f"{data}/{_CARD}: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{data}/{_CARD}: its YAML `configs:` cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _front_matter(text: str, where: str) -> Any:
    """The YAML of a card, which is looked at once for each config; not to be changed."""
    return parse_yaml(text, where)


def _patterns(data_files: Any) -> tuple[str, ...]:
    """Patterns of the split `test`, or of the only split there is."""
    if not (isinstance(data_files, list) and all(isinstance(part, dict) for part in data_files)):
        return tuple(_checked_patterns(data_files))
    splits = {part["split"]: tuple(_checked_patterns(part["path"])) for part in data_files}
    if _SPLIT not in splits and len(splits) != 1:
        raise BadInput(f"no split {_SPLIT!r} among {', '.join(splits)}")
    return splits.get(_SPLIT) or next(iter(splits.values()))


def _checked_patterns(value: Any) -> Iterator[str]:
    for pattern in value if isinstance(value, list) else [value]:
        inside = isinstance(pattern, str) and not pattern.startswith("/")
        if not inside or ".." in Path(pattern).parts:
            raise BadInput(f"data_files {pattern!r} is not a path inside the data set")
        if len(pattern) > _MAX_PATTERN or pattern.count("**") > 2:  # glob would take minutes
            raise BadInput(f"data_files {pattern[:40]}... is too long or has too many **")
        yield pattern


def _commits(root: Path) -> dict[str, str | None]:
    """Config -> upstream commit, as the build recorded it; empty for other directories."""
    try:
        configs = read_json(root / _PROVENANCE)["configs"]
        commits = {name: facts["commit"] for name, facts in configs.items()}
    except (BadInput, KeyError, TypeError, AttributeError):
        return {}
    return {name: commit for name, commit in commits.items() if isinstance(commit, str)}


# ---- Hub -----------------------------------------------------------------------------------------


def _hub(repo: str, revision: str | None) -> Dataset:
    root = _snapshot(repo, revision, (_CARD,))
    commit = root.name  # the folder of a snapshot; all further files are of the same commit
    configs = _configs(root, repo) if (root / _CARD).is_file() else {}
    if configs:
        return Dataset(repo, configs, root, {"": commit}, partial(_snapshot, repo, commit))
    if extended_task(repo.partition("/")[2]):
        root = _snapshot(repo, commit, (_CARD, f"*{TEXT_SUFFIX}"))
        if configs := _text_files(root):
            return Dataset(repo, configs, root, {"": commit})
    datasets = _import_datasets()
    suffixes = READERS.keys() - {SUITE_SUFFIX, TEXT_SUFFIX}
    root = _snapshot(repo, commit, (_CARD, *(f"**{suffix}" for suffix in sorted(suffixes))))
    try:
        names = datasets.get_dataset_config_names(str(root))
    except (ValueError, OSError) as error:
        raise BadInput(f"{repo} cannot be read by datasets: {error}") from error
    return Dataset(repo, dict.fromkeys(names, ()), root, {"": commit})


def _snapshot(repo: str, revision: str | None, patterns: tuple[str, ...]) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(
            repo, repo_type="dataset", revision=revision, allow_patterns=list(patterns)
        )
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise BadInput(
            f"no data set {repo} here or on the Hub, or no access to it: build one by {_BUILD}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise BadInput(f"the data set {repo} has no revision {revision}") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise BadInput(
            f"no network, and {repo} is neither here nor in the cache: build one by {_BUILD}"
        ) from error
    return Path(folder)


def _read_with_datasets(repo: str, root: Path, config: str) -> RawTable:
    datasets = _import_datasets()
    try:
        splits = datasets.load_dataset(str(root), config)
    except (ValueError, OSError) as error:
        raise BadInput(f"{repo} cannot be read by datasets: {error}") from error
    name = _SPLIT if _SPLIT in splits else next(iter(splits))
    if name != _SPLIT and len(splits) > 1:
        raise BadInput(f"{repo} has no split {_SPLIT!r} among {', '.join(splits)}")
    return RawTable(repo, splits[name].to_dict(), lambda row: f"{repo}, {name} row {row + 1}")


def _import_datasets() -> Any:
    """Returns the library, which looks into transformers wherever that is loaded.

    The module transformers replaces itself at the end of its import. While a model is loaded in
    another thread, datasets could get hold of the module that is replaced; so this waits for it.
    """
    import_module("transformers")
    return import_module("datasets")
