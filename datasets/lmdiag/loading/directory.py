"""Writes the directory that is the Hub data set: card, Parquet, loading scripts, provenance.

Everything is first written next to the target. When all of it is complete, the files are moved to
the target one by one, the card last: a build that fails or is killed changes nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmdiag.files import read_json
from lmdiag.types import BadInput

from .card import Built, fill
from .configs import features, rows
from .sources import CONFIGS, REPOSITORIES, SCRIPTS, Source, SourceFile, open_source, sha256

PROVENANCE = "provenance.json"
CARD = "README.md"
NAME = "lmdiag"
COPIED = ("build.py", "loading", "demo", "lm-evaluation-harness", "lighteval", "inspect-ai")
"""Copied into the data set: the loading scripts, the demo source, the task files."""
SUFFIXES = (".py", ".json", ".tsv", ".jsonl", ".csv", ".yaml")
"""Kinds of files in these."""
_ROW_GROUP = 10_000
"""Rows in a row group of the Parquet."""


def build(out: Path, source: str, configs: Sequence[str] | None = None) -> dict[str, int]:
    """Writes the data set directory `out`; the same input gives the same bytes.

    Progress bars are shown if standard error is a terminal.

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
    out.parent.mkdir(parents=True, exist_ok=True)
    work = out.parent / f".{out.name}.building"
    shutil.rmtree(work, ignore_errors=True)  # of a killed build
    try:
        new = work / "new"
        with _progress_on_terminals():
            built = [_parquet(name, files[name], work / "cache", new) for name in names]
        for inside, path in published_files():
            _copy(path, new / inside)
        for folder in dict.fromkeys(CONFIGS[name]["folder"] for name in names):
            if notice := opened.notice(folder):  # the MIT licence must be kept with the texts
                _copy(notice, new / "licenses" / f"{folder}.txt")
        _write_card(opened, built, new)
        _install(new, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {part.config: part.rows for part in built}


def published_files() -> Iterator[tuple[Path, Path]]:
    """Yields (path inside the data set, path here) of the files that every data set contains."""
    for path in sorted(SCRIPTS.rglob("*")):
        inside = path.relative_to(SCRIPTS)
        if path.suffix in SUFFIXES and inside.parts[0] in COPIED:
            yield inside, path


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


@contextmanager
def _progress_on_terminals() -> Iterator[None]:
    """Hides the progress bars of `datasets` if standard error is not a terminal."""
    import datasets

    hide = not sys.stderr.isatty() and not datasets.are_progress_bars_disabled()
    if hide:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if hide:
            datasets.enable_progress_bars()


def _earlier_outputs(out: Path) -> set[str] | None:
    """The files of the data set in a directory; None if none was built there."""
    try:
        record = read_json(out / PROVENANCE)
        return set(record["outputs"]) if record["name"] == NAME else None
    except (BadInput, TypeError, KeyError):
        return None


def _parquet(name: str, files: list[SourceFile], cache: Path, new: Path) -> Built:
    from datasets import Dataset, NamedSplit
    from datasets.exceptions import DatasetGenerationError

    try:
        data = Dataset.from_generator(
            rows,
            features=features(name),
            cache_dir=str(cache / name),
            gen_kwargs={"config": name, "paths": tuple(file.location for file in files)},
            split=NamedSplit("test"),
        )
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, BadInput):
            raise error.__cause__ from None
        raise
    path = f"{name}/test-00000-of-00001.parquet"
    (new / name).mkdir(parents=True)
    data.to_parquet(new / path, batch_size=_ROW_GROUP)
    data.info.download_size = (new / path).stat().st_size
    return Built(name, path, sha256(new / path), files, data.info)


def _write_card(source: Source, built: list[Built], new: Path) -> None:
    import yaml

    benchmark = yaml.safe_load((SCRIPTS / "eval.yaml").read_text("utf-8"))
    names = {part.config for part in built}
    benchmark["tasks"] = [task for task in benchmark["tasks"] if task["config"] in names]
    text = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=100)
    (new / "eval.yaml").write_text(text, "utf-8")
    template = (SCRIPTS / CARD).read_text("utf-8")
    (new / CARD).write_text(fill(template, source.name, built), "utf-8")
    record = _provenance(source, built, new)
    (new / PROVENANCE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _provenance(source: Source, built: list[Built], new: Path) -> dict[str, Any]:
    """What the data set was made from and what was made, without dates or paths."""
    import pyarrow

    configs = {}
    for part in built:
        folder = CONFIGS[part.config]["folder"]
        entry = REPOSITORIES[folder]
        configs[part.config] = {
            "repository": entry["repository"] if part.is_pinned else None,
            "commit": entry["commit"] if part.is_pinned else None,
            "license": entry["license"],
            "rows": part.rows,
            "inputs": {f"{folder}/{file.path}": file.sha256 for file in part.files},
        }
    return {
        "name": NAME,
        "schema_version": 1,
        "source": source.name,
        "configs": configs,
        "outputs": {path: sha256(new / path) for path in _files(new)},
        "written_with": {"pyarrow": pyarrow.__version__},
    }


def _files(folder: Path) -> list[str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.relative_to(folder).as_posix() for path in files]


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
