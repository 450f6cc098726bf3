"""Writes the directory that is the Hub data set: card, Parquet, loading scripts, provenance.

Everything is first written next to the target. When all of it is complete, the files are moved to
the target one by one, the card last: a build that fails or is killed changes nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.diagnostics import CORE, built_in
from lmdiag.files.reading import read_json
from lmdiag.types import BadInput

from .agreement import agreement, verbs
from .card import PARQUET, fill
from .choices import FEATURES, questions
from .diagnostics import cprag102, neg136, role88
from .lines import Row
from .sources import CHOICES, CONFIGS, REPOSITORIES, SCRIPTS, open_source, sha256

if TYPE_CHECKING:
    import datasets

PARSERS: dict[str, Callable[..., Iterator[Row]]] = {
    parser.__name__: parser for parser in (cprag102, role88, neg136, agreement, verbs)
}
"""Config -> parser; its arguments are the config's source files, in `sources.json`'s order."""

PROVENANCE = "provenance.json"
CARD = "README.md"
NAME = "lmdiag"
COPIED = ("build.py", "loading", "demo", "lm-evaluation-harness", "lighteval", "inspect-ai")
"""Copied into the data set: the loading scripts, the demo source, the task files."""
BENCHMARKS = ("eval.yaml", "eval-lmdiag.yaml")
"""The tasks of the Hub's leaderboards, for the frameworks inspect-ai and lmdiag."""
SUFFIXES = (".py", ".json", ".tsv", ".jsonl", ".csv", ".yaml", ".toml", ".md")
"""Kinds of files in these."""


def build(out: Path, source: str, configs: Sequence[str] | None = None) -> dict[str, int]:
    """Writes the data set directory `out`; the same input gives the same bytes.

    Args:
        out: the directory; created, or overwritten if it is a data set built here.
        source: upstream, demo, or a directory with the upstream tree.
        configs: what to build; all that the source has by default.

    Returns:
        config -> number of rows.

    Raises:
        BadInput: the source cannot be used, or `out` contains other files.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file: name a directory to write")
    if out.is_dir() and any(out.iterdir()) and _earlier_outputs(out) is None:
        raise BadInput(f"{out} is not a data set built here; choose an empty directory")
    opened = open_source(source)
    names = list(dict.fromkeys(configs or opened.configs()))
    files = {name: opened.files(name) for name in names}
    copies = dict(published_files())
    for folder in dict.fromkeys(CONFIGS[name]["folder"] for name in names):
        if notice := opened.notice(folder):  # the MIT licence must be kept with the texts
            copies[Path("licenses", f"{folder}.txt")] = notice
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.parent / f".{out.name}.building"
    shutil.rmtree(new, ignore_errors=True)  # of a killed build
    try:
        infos = {name: _parquet(name, files[name].values(), new) for name in names}
        for inside, path in copies.items():
            (new / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, new / inside)
        _write_card(opened.name, files, infos, new)
        _install(new, out)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return {name: info.splits["test"].num_examples for name, info in infos.items()}


def published_files() -> Iterator[tuple[Path, Path]]:
    """Yields (path inside the data set, path here) of the files that every data set contains."""
    for path in sorted(SCRIPTS.rglob("*")):
        inside = path.relative_to(SCRIPTS)
        if path.suffix in SUFFIXES and inside.parts[0] in COPIED:
            yield inside, path


def _earlier_outputs(out: Path) -> set[str] | None:
    """The files of the data set in a directory; None if none was built there."""
    try:
        record = read_json(out / PROVENANCE)
        return set(record["outputs"]) if record["name"] == NAME else None
    except (BadInput, TypeError, KeyError):
        return None


def _parquet(config: str, paths: Iterable[Path], new: Path) -> datasets.DatasetInfo:
    """Writes the rows of a config, with the columns that the package declares for it."""
    import datasets
    from datasets import Dataset, Features, List, NamedSplit, SplitDict, SplitInfo, Value

    types = {
        "text": Value("string"),
        "number": Value("float64"),
        "boolean": Value("bool"),
        "words": List(Value("string")),
    }
    if config == "verbs":
        features = dict.fromkeys(("singular", "plural"), types["text"])
    elif config in CHOICES:
        features = dict.fromkeys(FEATURES, types["text"]) | {"choices": types["words"]}
    else:
        columns = (*CORE, *built_in()[config].columns)
        features = {column.name: types[column.type] for column in columns}
    rows = _rows(config, paths)
    table = {name: [row[name] for row in rows] for name in features}
    data = Dataset.from_dict(table, features=Features(features), split=NamedSplit("test"))
    path = new / PARQUET.format(config)
    path.parent.mkdir(parents=True)
    has_bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()  # writing takes less than a second
    data.to_parquet(path, batch_size=10_000)
    if has_bars:
        datasets.enable_progress_bars()
    info, size = data.info, data.data.nbytes
    info.splits = SplitDict({"test": SplitInfo("test", size, len(rows))})
    info.dataset_size, info.download_size = size, path.stat().st_size
    return info


def _rows(config: str, paths: Iterable[Path]) -> list[Row]:
    """The rows of a config, or the questions about some of another one's."""
    if config not in CHOICES:
        return list(PARSERS[config](*paths))
    choice = CHOICES[config]
    rows = _rows(choice["rows"], paths)
    return list(questions(rows, choice["where"], of_words=choice["of_words"]))


def _write_card(
    source: str,
    files: Mapping[str, Mapping[str, Path]],
    infos: Mapping[str, datasets.DatasetInfo],
    new: Path,
) -> None:
    """Writes the benchmark files, the card and the provenance, without dates and paths."""
    import pyarrow
    import yaml

    for name in BENCHMARKS:
        benchmark = yaml.safe_load((SCRIPTS / name).read_text("utf-8"))
        benchmark["tasks"] = [task for task in benchmark["tasks"] if task["config"] in infos]
        text = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=100)
        if benchmark["tasks"]:
            (new / name).write_text(text, "utf-8")
    configs = {}
    for config, paths in files.items():
        folder, published = CONFIGS[config]["folder"], CONFIGS[config]["files"]
        entry, digests = REPOSITORIES[folder], {x: sha256(path) for x, path in paths.items()}
        is_pinned = digests.items() <= published.items()
        configs[config] = {
            "repository": entry["repository"] if is_pinned else None,
            "commit": entry["commit"] if is_pinned else None,
            "license": entry["license"],
            "rows": infos[config].splits["test"].num_examples,
            "inputs": {f"{folder}/{path}": digest for path, digest in digests.items()},
        }
    parquet = [PARQUET.format(config) for config in files]
    record = {
        "name": NAME,
        "schema_version": 1,
        "source": source,
        "configs": configs,
        "outputs": {path: sha256(new / path) for path in parquet},
        "written_with": {"pyarrow": pyarrow.__version__},
    }
    template = (SCRIPTS / CARD).read_text("utf-8")
    (new / CARD).write_text(fill(template, record, infos), "utf-8")
    record["outputs"] = {path: sha256(new / path) for path in _files(new)}
    (new / PROVENANCE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _files(folder: Path) -> list[str]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.relative_to(folder).as_posix() for path in paths]


def _install(new: Path, out: Path) -> None:
    """Moves what was built to the target, and removes the other files of an earlier build."""
    earlier = _earlier_outputs(out) or set()
    files = _files(new)
    for path in sorted(files, key=lambda path: (path == CARD, path == PROVENANCE)):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (new / path).replace(out / path)
    for path in earlier - set(files):
        stale = (out / path).resolve()
        # provenance.json may have been changed: nothing outside the data set is removed.
        if stale.is_relative_to(out.resolve()) and stale.is_file():
            stale.unlink()
            if not any(stale.parent.iterdir()):
                stale.parent.rmdir()
