"""Finds a data set: a directory with YAML `configs:` or of one form, a Hub data set, a file.

The extended sets are text files, which are known by their names, on the Hub too.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from glob import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from lmdiag import diagnostics
from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import (
    MAX_DOCUMENT,
    check_file,
    has_file,
    is_file,
    is_folder,
    json_layout,
    near_path,
    parse_yaml,
    read_json,
    read_text,
    readable,
    real_path,
    resource_path,
    user_path,
)
from lmdiag.files.writing import take_lock
from lmdiag.stimuli.extended_sets import EXTENDED_SETS, TEXT, extended_task
from lmdiag.stimuli.reading.forms import SHORT_NAMES, form_of, with_form
from lmdiag.tables.table_files import TABLE_SUFFIXES, Table, read_table, row_index
from lmdiag.tables.text_tables import is_text_table
from lmdiag.text import shortened
from lmdiag.types import DIAGNOSTICS, BadInput

BUILT: Mapping[str, str] = {"lmdiag": "upstream", "demo": "demo"}
"""Data set that is built on first use -> source that it is built from."""

VERBS = "verbs"
"""The config that holds the verbs of EW and MW."""

_CARD, _TEXT = "README.md", ".txt"  # text files hold extended sets
_SUFFIXES = (*TABLE_SUFFIXES, ".json", _TEXT)
_BUILD = "`lmdiag build` (with `--source demo` if you are offline)"
_LONGEST_PATTERN = 300  # characters of a pattern of files
# configs of multiple-choice questions, which other programs ask
_QUESTIONS = rf"({'|'.join(DIAGNOSTICS)})(_.+)?_choice"
# a language by its code (ISO 639), with a script or a region or both: eng, zh-Hans, pt_BR
_LANGUAGE = r"[a-z]{2,3}([-_][A-Za-z]{2,4})*"
# the YAML of a card, which is looked at once for each config; not to be changed
_parsed = lru_cache(maxsize=8)(parse_yaml)


def read_file(path: Path, sheet: str = "", *, raw: bool = False) -> Table:
    """Reads a table, a test suite, or the lines of an extended set as one column.

    Args:
        path: of the file; its ending says what it is.
        sheet: of an Excel file; "" for the first.
        raw: see `lmdiag.tables.table_files.read_table`.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        remedy = f"give a directory or a file ending in {', '.join(_SUFFIXES)}; save others as csv"
        raise BadInput(f"{path} cannot be read as data: {remedy}")
    if suffix == ".json" and not json_layout(path):  # one object, and no rows: a test suite
        from lmdiag.stimuli.syntaxgym import suite_rows

        return suite_rows(read_json(path), str(path), path.stem)
    if suffix == _TEXT and (extended_task(path.name) or not is_text_table(path)):
        lines = read_text(path).removesuffix("\n").split("\n")
        index = row_index(range(1, len(lines) + 1), "line")
        return Table.of(str(path), {TEXT: lines}, index)
    return read_table(path, raw=raw, sheet=sheet)


@dataclass(frozen=True)
class Dataset:
    """A data set that exists.

    Attributes:
        name: as the user named it.
        root: directory of the files; of a Hub data set the snapshot, whose name is the commit.
        configs: config -> patterns of its files, below the root.
        is_hub: whether its files are downloaded when they are read.
        by_file: of a folder of suites or minimal pairs: the column for the names of files, if the
            pairs lack it (`language` or `UID`); "" for data whose files are parts of one table.
    """

    name: str
    root: Path
    configs: Mapping[str, Sequence[str]]
    is_hub: bool = False
    by_file: str = ""

    @property
    def tasks(self) -> list[str]:
        """The configs that lmdiag asks about: all but verbs and multiple-choice questions."""
        configs = [config for config in self.configs if config != VERBS]
        return [config for config in configs if not re.fullmatch(_QUESTIONS, config)]

    def commit(self, config: str) -> str | None:
        """Returns the commit that the rows of a config come from; None if it is not known."""
        if self.is_hub:
            return self.root.name
        with suppress(BadInput, KeyError, TypeError):  # as the build recorded it
            commit = read_json(self.root / "provenance.json")["configs"][config]["commit"]
            return commit if isinstance(commit, str) else None
        return None

    def read(self, config: str, sheet: str = "", *, raw: bool = False) -> Table:
        """Reads all rows of a config.

        Args:
            config: a key of `configs`.
            sheet: of Excel files; "" for the first.
            raw: see `lmdiag.tables.table_files.read_table`.
        """
        patterns = self.configs[config]
        if self.is_hub:
            _snapshot(self.name, self.root.name, patterns)
        try:
            paths = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        except (OSError, ValueError, NotImplementedError, re.error) as error:
            problem = f"the file name of {config} cannot be used ({shortened(error)})"
            raise BadInput(f"{self.name}: {problem}") from None
        if not paths:
            raise BadInput(f"{self.name}: no file {patterns[0]} for {config}: build it again")
        return _concatenated(
            [self._with_file_columns(path, read_file(path, sheet, raw=raw)) for path in paths]
        )

    def _with_file_columns(self, path: Path, table: Table) -> Table:
        """Returns minimal pairs with columns `language` and `UID` from the place of their file.

        For example, the pairs of eng/simple.csv get the language "eng" and the UID "simple", if
        they lack these columns. Suites, and files that are not in a folder of pairs (`by_file` is
        ""), are returned as they are. `BadInput` for other files in a folder of pairs.
        """
        if not self.by_file or table.form == "suites":
            return table
        if form_of(table.columns) != "minimal_pairs":
            due = f"minimal pairs (sentence_good, sentence_bad), as a folder without {_CARD} has"
            raise BadInput(f"{path} is not a file of {due}: name the file itself, or move it")
        place = path.relative_to(self.root).with_suffix("")
        names = {}
        if self.by_file == "language":
            names["language"] = place.parts[0]
        if self.by_file == "UID" or len(place.parts) > 1:
            names["UID"] = path.stem
        known = {SHORT_NAMES.get(column, column) for column in table.columns}
        columns = {name: [text] * len(table) for name, text in names.items() if name not in known}
        return with_form(table.with_columns(columns), place.as_posix())


def _concatenated(parts: Sequence[Table]) -> Table:
    """Returns the rows of several files, in order, as one table.

    Files of minimal pairs may have different columns: a row has None in a column that its file
    lacks. `BadInput` if other files have different columns, or if files have different forms.
    """
    reference = parts[0]
    if len(parts) == 1:
        return reference
    names = dict.fromkeys(name for part in parts for name in part.columns)
    for part in parts:
        columns_differ = part.form != "minimal_pairs" and part.columns.keys() != names.keys()
        if part.form != reference.form or columns_differ:
            paths = ", ".join(part.name for part in parts)
            raise BadInput(f"{paths} are files of one config, but their columns or forms differ")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    places = []
    notes: dict[str, None] = {}  # in order, each once
    for part in parts:
        for name, values in columns.items():
            values += part.columns.get(name, [None] * len(part))
        places += [part.where(row) for row in range(len(part))]
        notes |= dict.fromkeys(part.notes)
    index = row_index(places)
    return Table.of(reference.name, columns, index, form=reference.form, notes=tuple(notes))


def find(data: str, revision: str | None = None) -> Dataset:
    """Finds a data set: first in the file system, then among those built on first use, then Hub.

    Args:
        data: directory, file or Hub id, of which `ID@REVISION` is a branch, tag or commit.
        revision: of the Hub id, where `data` has none.
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
        return Dataset(data, path.parent, {_task_of(data, path): [escape(path.name)]})
    if os.path.lexists(path):  # a named pipe, a device, or a link to nothing
        check_file(path)
    repo, revision_in_data = split_revision(data)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", repo) and Path(repo).suffix.lower() not in _SUFFIXES:
        return _hub(repo, revision_in_data or revision)
    suggestion = near_path(path)
    if path.suffix.lower() in _SUFFIXES or (suggestion and path.suffix):
        raise BadInput(f"there is no file {data}{suggestion}: name a file that exists")
    if data in diagnostics.built_in():
        remedy = f"choose it by --tasks {data}"
        raise BadInput(f"{data} is a task of the data set lmdiag, not a data set: {remedy}")
    remedy = f"build the data set by {_BUILD}, or name one of the Hub"
    raise BadInput(f"no data at {data}{suggestion}: {remedy}")


def split_revision(data: str) -> tuple[str, str | None]:
    """Returns the id of a Hub data set and its revision, None without one.

    >>> split_revision("org/data@v1"), split_revision("org/data")
    (('org/data', 'v1'), ('org/data', None))
    """
    repo, _, revision = data.partition("@")
    return repo, revision or None


def _task_of(data: str, path: Path) -> str:
    """Returns the name of the task of a file, which mostly is its stem.

    - "mine" for mine.csv.
    - "role1500" for ROLE-1500.txt, an extended set of a diagnostic.
    - "neg136" for neg136.csv with the columns of this diagnostic, and "neg136.csv" for a table of
      the user's own with this name, which lacks these columns.

    `BadInput` for a text file that is neither an extended set nor a table.

    Args:
        data: what messages call the file.
        path: of the file.
    """
    if path.suffix == _TEXT:
        task = extended_task(path.name)
        if task:
            return task
        if is_text_table(path):
            return path.stem
        sets = ", ".join(f"{name}{_TEXT}" for name in EXTENDED_SETS.values())
        command = f"`lmdiag surprisal {shlex.quote(data)} --model M`"
        table = "a table has a line that names columns, with tabs between (in R: write.csv)"
        named = f"{data} is not a table, and is not called as an extended set ({sets})"
        raise BadInput(f"{named}: {command} reads a text in each line; {table}")
    task = path.stem
    built_in = diagnostics.built_in()
    if path.suffix.lower() in _SUFFIXES and task not in (*built_in, VERBS):
        return task
    columns = read_file(path).columns
    if task in built_in:
        is_own = bool(built_in[task].missing_columns(columns))
    else:  # verbs, if it has no targets
        is_own = "target" in columns
    # sentences and pairs are own data, too: diagnostics of lmdiag have rows with a blank
    return path.name if is_own or form_of(columns) else task


def _directory(data: str, root: Path) -> Dataset:
    """Returns the data set of a directory, by its card or the files in it.

    Without a card these are extended sets, or nothing but test suites, or nothing but minimal
    pairs. `BadInput` for other directories. Messages call the directory `data`.
    """
    configs = _configs(root, data)
    if configs:
        return Dataset(data, root, configs)
    paths = [path.relative_to(root) for path in _data_files(root)]
    if len({path.suffix == ".json" for path in paths}) == 1:  # nothing but suites, or no suite
        # eng/simple.csv or eng.csv, of which the first part is a language
        first_parts = [path.with_suffix("").parts[0] for path in paths]
        are_languages = all(re.fullmatch(_LANGUAGE, part) for part in first_parts)
        configs = {real_path(root).name: [escape(path.as_posix()) for path in paths]}
        return Dataset(data, root, configs, by_file="language" if are_languages else "UID")
    with readable(root):
        scripts = sorted(path.name for path in root.glob("*.py"))
    if scripts and not paths:
        rows = "name a file with its rows (csv, Excel, JSON lines or Parquet)"
        raise BadInput(f"{data} has {scripts[0]} and no rows: scripts are not read; {rows}")
    if is_file(root / _CARD):
        raise BadInput(f"{data}/{_CARD} names no `configs:`: build the data set by {_BUILD}")
    raise BadInput(
        f"{data} is not a data set, it has no {_CARD}: build one by {_BUILD}, or name a folder "
        "whose only data are test suites (.json) or minimal pairs, or one with a folder of "
        "minimal pairs for each language, named by its code (eng, zh-Hans)"
    )


def _data_files(folder: Path, *, of_languages: bool = True) -> list[Path]:
    """Returns the files of rows and suites in a folder, sorted.

    If there are none, the files of its folders of languages are returned, such as eng/simple.csv.

    Args:
        folder: that is searched.
        of_languages: whether folders of languages are searched, too.
    """
    suffixes = [suffix for suffix in _SUFFIXES if suffix != _TEXT]
    with readable(folder):
        entries = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    files = [path for path in entries if path.suffix.lower() in suffixes and is_file(path)]
    if not files and of_languages:
        for path in entries:
            if re.fullmatch(_LANGUAGE, path.name) and is_folder(path):
                files += _data_files(path, of_languages=False)
    return files


def _configs(root: Path, data: str) -> Mapping[str, Sequence[str]]:
    """Returns config -> patterns of its files, from the YAML `configs:` of a card.

    Without any, these are the text files of extended sets, by their tasks. `BadInput` if the YAML
    cannot be read, or a pattern leads out of the data set. Messages call the data set `data`.
    """
    where = f"{data}/{_CARD}"
    has_card = is_file(root / _CARD)
    text = read_text(root / _CARD, MAX_DOCUMENT) if has_card else ""
    front = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    configs: dict[str, list[str]] = {}
    try:
        card = _parsed(front[1], where) if front else None
        for entry in (card or {}).get("configs") or []:
            name = str(entry["config_name"])
            configs[name] = _patterns(entry["data_files"], where)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{where}: its YAML `configs:` cannot be read: {error}") from error
    if configs:
        return configs
    file_names = {extended_task(path.name): path.name for path in root.glob(f"*{_TEXT}")}
    return {task: [escape(file_names[task])] for task in EXTENDED_SETS if task in file_names}


def _patterns(data_files: Any, where: str) -> list[str]:
    """Returns the patterns of the files of a config; of several splits, the patterns of `test`.

    For example, ["data/test.csv"] for "data/test.csv", for ["data/test.csv"], and for
    [{"split": "train", "path": "data/train.csv"}, {"split": "test", "path": "data/test.csv"}].

    Args:
        data_files: as the card has it: a pattern, a list of patterns, or a list of splits such as
            {"split": "test", "path": "data/*.parquet"}.
        where: the card, for messages.
    """
    patterns = data_files
    if isinstance(data_files, list) and all(isinstance(part, dict) for part in data_files):
        splits = {part["split"]: part["path"] for part in data_files}
        if "test" not in splits and len(splits) != 1:
            raise BadInput(f"{where}: no split 'test' among {', '.join(splits)}")
        patterns = splits.get("test") or next(iter(splits.values()))
    if not isinstance(patterns, list):
        patterns = [patterns]
    for pattern in patterns:
        is_inside = isinstance(pattern, str) and not pattern.startswith("/")
        is_inside = is_inside and ".." not in Path(pattern).parts
        # glob would take minutes for a long pattern, or for one with many **
        if not is_inside or len(pattern) > _LONGEST_PATTERN or "**/**" in pattern:
            raise BadInput(f"{where}: {pattern!r:.60} is not a path inside the data set")
    return patterns


def _hub(repo: str, revision: str | None) -> Dataset:
    """Returns a data set of the Hub; without `configs:`, its data files are the config `default`.

    Of these, files of a test split are preferred: those with the word "test" in their name.
    """
    root = _snapshot(repo, revision, [_CARD])
    configs = _configs(root, repo)
    if not configs:
        commit = root.name  # so that the files are of the same commit as the card
        _snapshot(repo, commit, [f"*{suffix}" for suffix in _SUFFIXES])
        paths = [path for path in sorted(root.rglob("*.*")) if path.suffix in TABLE_SUFFIXES]
        test_paths = [path for path in paths if _names_test_split(path.stem)]
        paths = test_paths or paths
        default = [escape(path.relative_to(root).as_posix()) for path in paths]
        # the text files of extended sets, which now are there, make configs of their own
        configs = _configs(root, repo) or {"default": default}
        if not any(configs.values()):
            raise BadInput(f"{repo} has no data files: {', '.join(_SUFFIXES)} are read")
    return Dataset(repo, root, configs, is_hub=True)


def _names_test_split(stem: str) -> bool:
    """Returns whether the name of a file, without its ending, has the word "test".

    >>> [_names_test_split(stem) for stem in ("test-00000-of-00001", "my_test2", "latest")]
    [True, True, False]
    """
    return "test" in re.split(r"[\W\d_]+", stem)


def _snapshot(repo: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """Downloads some files of a Hub data set; returns their folder, whose name is the commit.

    The revision is a branch, a tag or a commit; None for the newest commit.
    """
    from huggingface_hub import snapshot_download

    wanted: Any = {"revision": revision, "allow_patterns": list(patterns)}
    at = f" at revision {revision}" if revision else ""
    remedy = "`lmdiag build` makes one, offline with `--source demo`"
    here = f"data set {repo} is not a folder here ({remedy})"
    with plain_errors(f"{here}, and cannot be read from the Hub{at}"):
        return Path(snapshot_download(repo, repo_type="dataset", **wanted))


# ---- data sets that are built on first use -------------------------------------------------------


@cache
def script(name: str) -> Any:
    """Returns a module of the loading scripts, which are published with the data set.

    They are not in this package, and are imported as one of the name `lmdiag_loading`.
    """
    if "lmdiag_loading" not in sys.modules:
        package = ModuleType("lmdiag_loading")
        package.__path__ = [str(resource_path("datasets", "lmdiag", "loading"))]
        sys.modules["lmdiag_loading"] = package
    return importlib.import_module(f"lmdiag_loading.{name}")


def user_cache() -> Path:
    """Returns the folder for what lmdiag keeps between runs.

    That is the environment variable `LMDIAG_CACHE`, or the folder `lmdiag` in the user's cache.
    """
    folder = os.environ.get("LMDIAG_CACHE")
    if folder:
        return user_path(folder)
    parent = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return user_path(parent) / "lmdiag"


def cached(name: str) -> Path:
    """Returns the directory of a key of `BUILT` in the user's cache; the first call builds it.

    If several processes call it at the same time, one builds and the others wait. `BadInput` if
    the source files cannot be fetched, or the cache cannot be written.
    """
    # another folder after any change of the columns, of the scripts or of the demo source
    columns = {name: diagnostic.columns for name, diagnostic in diagnostics.built_in().items()}
    digest = hashlib.sha256(repr((diagnostics.CORE, columns)).encode())
    for inside, path in script("directory").published_files():
        digest.update(f"{inside}\n".encode() + path.read_bytes())
    folder = user_cache() / "data" / f"{name}-{digest.hexdigest()[:12]}"
    if is_folder(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with take_lock(Path(f"{folder}.lock")):
            if not folder.is_dir():  # another process may have built it meanwhile
                items = "demo" if name == "demo" else "published"
                line = f"lmdiag: building the {items} items in {folder} (only the first time)"
                print(line, file=sys.stderr, flush=True)
                script("directory").build(folder, BUILT[name])
    except OSError as error:
        raise BadInput(
            f"cannot write the data set {name} to {folder.parent} ({error.strerror or error}): "
            "set LMDIAG_CACHE to a writable directory"
        ) from error
    except BadInput as error:
        reason = str(error).partition("; use --source")[0]
        raise BadInput(
            f"the data set {name} is not built yet: {reason}; build it from copies of the "
            "repositories with `lmdiag build --source DIR`, or use the bundled demo items with "
            "`--data demo`"
        ) from error
    return folder
