"""Writes the directory that is the Hub data set: card, Parquet, loading scripts, provenance.

Everything is made beside the target first and put in its place file by file when all of it is
there, the card last: a build that fails or is killed leaves the data set as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .card import fill
from .lines import BadSource
from .sources import HERE, Source, SourceFile, open_source, pinned, repository_of

if TYPE_CHECKING:
    import datasets

SCRIPTS = HERE.parent
PROVENANCE = "provenance.json"
CARD = "README.md"
NAME = "lmdiag"
COPIED = ("build.py", "loading", "demo", "lm-evaluation-harness")
"""What goes into the data set as it is: the loading scripts, the demo source, the task files."""
SUFFIXES = (".py", ".json", ".tsv", ".jsonl", ".csv", ".yaml")
"""Kinds of files that these consist of."""


@dataclass(frozen=True)
class Built:
    """A config that was written.

    Attributes:
        config: its name.
        parquet: path of its Parquet inside the data set.
        sha256: of the Parquet.
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


def build(out: Path, source: str, configs: Sequence[str] | None = None) -> list[Built]:
    """Writes the data set directory `out`; the same input gives the same bytes.

    Args:
        out: the directory; made, or overwritten where it is a data set of ours already.
        source: upstream, demo, or a directory with the upstream tree.
        configs: what to build; all that the source has by default.

    Raises:
        BadSource: the source cannot be used, or `out` holds something else.
    """
    _check_target(out)
    opened = open_source(source)
    names = list(dict.fromkeys(configs or opened.configs()))
    files = {name: opened.files(name) for name in names}
    out.parent.mkdir(parents=True, exist_ok=True)
    _sweep(out)
    work = _workplace(out, os.getpid())
    try:
        new = work / "new"
        new.mkdir(parents=True)
        built = [_parquet(name, source, files[name], work / "cache", new) for name in names]
        _copy_scripts(new)
        _copy_notices(opened, built, new)
        _write_card(opened, built, new)
        _install(new, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return built


def _workplace(out: Path, process: int | str) -> Path:
    return out.parent / f".{out.name}.{process}.building"


def _sweep(out: Path) -> None:
    """Removes what builds left behind that were killed; other processes may be building now."""
    for work in out.parent.glob(_workplace(out, "*").name):
        process = work.name.split(".")[-2]
        if process.isdigit() and not _runs(int(process)):
            shutil.rmtree(work, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _check_target(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise BadSource(f"{out} is a file: name a directory to write")
    if out.is_dir() and any(out.iterdir()) and _provenance(out) is None:
        raise BadSource(f"{out} holds something else than a data set built here: name another")


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
    return Built(name, path, _sha256(new / path), files, builder.info)


def published_files() -> Iterator[tuple[Path, Path]]:
    """Yields (path inside the data set, path here) of the files that every data set contains."""
    for path in sorted(SCRIPTS.rglob("*")):
        inside = path.relative_to(SCRIPTS)
        if path.suffix in SUFFIXES and inside.parts[0] in COPIED:
            yield inside, path


def _copy_scripts(new: Path) -> None:
    for inside, path in published_files():
        (new / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, new / inside)


def _copy_notices(source: Source, built: list[Built], new: Path) -> None:
    """The sources' MIT licences ask to be kept with what is copied from them."""
    for folder in dict.fromkeys(repository_of(each.config) for each in built):
        notice = source.notice(folder)
        if notice is not None:
            (new / "licenses").mkdir(exist_ok=True)
            shutil.copyfile(notice.location, new / "licenses" / f"{folder}.txt")


def _write_card(source: Source, built: list[Built], new: Path) -> None:
    import yaml

    benchmark = yaml.safe_load((SCRIPTS / "eval.yaml").read_text("utf-8"))
    names = {each.config for each in built}
    benchmark["tasks"] = [task for task in benchmark["tasks"] if task["config"] in names]
    text = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True, width=100)
    (new / "eval.yaml").write_text(text, "utf-8")
    template = (SCRIPTS / CARD).read_text("utf-8")
    (new / CARD).write_text(fill(template, source.name, built), "utf-8")
    record = provenance(source, built, new)
    (new / PROVENANCE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")


def provenance(source: Source, built: list[Built], new: Path) -> dict[str, Any]:
    """What the data set was made from and what was made, without dates or places.

    Attributes of the record: `source`; for each config its repository, the commit (null where a
    file is not that commit's), rows and inputs with SHA-256; all `outputs` with SHA-256.
    """
    import pyarrow

    configs = {}
    for each in built:
        folder = repository_of(each.config)
        entry = pinned()[folder]
        faithful = all(file.pinned for file in each.files) and source.name != "demo"
        configs[each.config] = {
            "repository": entry["repository"] if faithful else None,
            "commit": entry["commit"] if faithful else None,
            "license": entry["license"],
            "rows": each.rows,
            "inputs": {f"{folder}/{file.path}": file.sha256 for file in each.files},
        }
    return {
        "name": NAME,
        "schema_version": 1,
        "source": source.name,
        "configs": configs,
        "outputs": {path: _sha256(new / path) for path in _files(new)},
        "written_with": {"pyarrow": pyarrow.__version__},
    }


def _files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _install(new: Path, out: Path) -> None:
    """Puts what was built in its place, and removes what an earlier build left behind."""
    if not out.exists() or not any(out.iterdir()):
        new.replace(out)
        return
    earlier = set((_provenance(out) or {}).get("outputs", ()))
    files = list(_files(new))
    for path in sorted(files, key=lambda path: (path == CARD, path == PROVENANCE)):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (new / path).replace(out / path)
    for path in earlier - set(files):
        stale = (out / path).resolve()
        # provenance.json may have been tampered with: nothing outside the data set is touched.
        if stale.is_relative_to(out.resolve()) and stale.is_file():
            stale.unlink()
            if not any(stale.parent.iterdir()):
                stale.parent.rmdir()
