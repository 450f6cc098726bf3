"""Writes the directory that is the Hub data set: card, Parquet, loading scripts, provenance.

Everything is first written next to the target. When all of it is complete, the files are moved to
the target one by one, the card last: a build that fails or is killed changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .card import fill
from .lines import BadSource
from .sources import SCRIPTS, SourceFile, Tree, open_source, pinned, repository_of, sha256

if TYPE_CHECKING:
    import datasets

PROVENANCE = "provenance.json"
CARD = "README.md"
NAME = "lmdiag"
COPIED = ("build.py", "loading", "demo", "lm-evaluation-harness", "lighteval", "inspect-ai")
"""Copied into the data set: the loading scripts, the demo source, the task files."""
SUFFIXES = (".py", ".json", ".tsv", ".jsonl", ".csv", ".yaml")
"""Kinds of files in these."""


@dataclass(frozen=True)
class Built:
    """A config that was written.

    Attributes:
        config: its name.
        parquet: path of its Parquet file inside the data set.
        sha256: of the Parquet file.
        files: what it was made from.
        info: features and sizes.
    """

    config: str
    parquet: str
    sha256: str
    files: list[SourceFile]
    info: datasets.DatasetInfo

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.info.splits["test"].num_examples)

    @property
    def is_pinned(self) -> bool:
        """Whether it was made from the bytes of the pinned commit."""
        return all(file.pinned for file in self.files)


def write_data_set(out: Path, source: str, configs: Sequence[str] | None = None) -> list[Built]:
    """Writes the data set directory `out`; the same input gives the same bytes.

    Args:
        out: the directory; created, or overwritten if it is a data set built here.
        source: upstream, demo, or a directory with the upstream tree.
        configs: what to build; all that the source has by default.

    Raises:
        BadSource: the source cannot be used, or `out` contains other files.
    """
    if out.exists() and not out.is_dir():
        raise BadSource(f"{out} is a file: name a directory to write")
    if out.is_dir() and any(out.iterdir()) and _provenance(out) is None:
        raise BadSource(f"{out} is not a data set built here; choose an empty directory")
    opened = open_source(source)
    names = list(dict.fromkeys(configs or opened.configs()))
    files = {name: opened.files(name) for name in names}
    out.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(out)
    work = _work_folder(out, os.getpid())
    try:
        new = work / "new"
        new.mkdir(parents=True)
        built = [_parquet(name, source, files[name], work / "cache", new) for name in names]
        for inside, path in published_files():
            _copy(path, new / inside)
        for folder in dict.fromkeys(map(repository_of, names)):
            if notice := opened.notice(folder):  # the MIT licence must be kept with the texts
                _copy(notice.location, new / "licenses" / f"{folder}.txt")
        _write_card(opened, built, new)
        _install(new, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return built


def published_files() -> Iterator[tuple[Path, Path]]:
    """Yields (path inside the data set, path here) of the files that every data set contains."""
    for path in sorted(SCRIPTS.rglob("*")):
        inside = path.relative_to(SCRIPTS)
        if path.suffix in SUFFIXES and inside.parts[0] in COPIED:
            yield inside, path


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def _work_folder(out: Path, process: int | str) -> Path:
    return out.parent / f".{out.name}.{process}.building"


def _remove_abandoned(out: Path) -> None:
    """Removes the work folders of killed builds; other processes may be building now."""
    for work in out.parent.glob(_work_folder(out, "*").name):
        process = work.name.split(".")[-2]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            shutil.rmtree(work, ignore_errors=True)
        except (ValueError, PermissionError):
            continue


def _provenance(out: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((out / PROVENANCE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("name") == NAME else None


def _parquet(name: str, source: str, files: list[SourceFile], cache: Path, new: Path) -> Built:
    import datasets

    from .builder import Lmdiag

    builder = Lmdiag(config_name=name, source=source, cache_dir=str(cache))
    target = cache / "parquet" / name
    try:
        builder.download_and_prepare(output_dir=str(target), file_format="parquet")
    except datasets.exceptions.DatasetGenerationError as error:
        if isinstance(error.__cause__, BadSource):
            raise error.__cause__ from None
        raise
    (written,) = target.glob("*.parquet")
    path = f"{name}/test-00000-of-00001.parquet"
    (new / name).mkdir()
    written.replace(new / path)
    builder.info.download_size = (new / path).stat().st_size
    return Built(name, path, sha256(new / path), files, builder.info)


def _write_card(source: Tree, built: list[Built], new: Path) -> None:
    import yaml

    benchmark = yaml.safe_load((SCRIPTS / "eval.yaml").read_text("utf-8"))
    names = {part.config for part in built}
    benchmark["tasks"] = [task for task in benchmark["tasks"] if task["config"] in names]
    text = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=100)
    (new / "eval.yaml").write_text(text, "utf-8")
    template = (SCRIPTS / CARD).read_text("utf-8")
    (new / CARD).write_text(fill(template, source.name, built), "utf-8")
    record = provenance(source, built, new)
    (new / PROVENANCE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")


def provenance(source: Tree, built: list[Built], new: Path) -> dict[str, Any]:
    """What the data set was made from and what was made, without dates or paths.

    Returns:
        `source`; for each config its repository, the commit (null if a file is not that commit's),
        rows and inputs with SHA-256; all `outputs` with SHA-256.
    """
    import pyarrow

    configs = {}
    for part in built:
        folder = repository_of(part.config)
        entry = pinned()[folder]
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
    if not out.exists() or not any(out.iterdir()):
        new.replace(out)
        return
    earlier = set((_provenance(out) or {}).get("outputs", ()))
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
