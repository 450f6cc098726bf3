"""What the owner publishes: the data set, the metric, the leaderboard.

A publication is planned first, from files alone and without a network, then described or sent as
one commit: the Hub never shows half of it.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.hub.client import check_repo_id, find_secret, plain_errors
from lmdiag.reading import MAX_DOCUMENT, read_json, read_text, short
from lmdiag.resources import resource_path
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi

METRIC = "cloze_diagnostics"
BENCHMARK = "eval.yaml"
PROVENANCE = "provenance.json"
SITE_INDEX = "leaderboard.json"


@dataclass(frozen=True)
class Publication:
    """One commit to one repository.

    Attributes:
        repo_id: namespace/name.
        repo_type: dataset or space.
        files: path in the repository -> file on this machine.
        sdk: of a Space.
        replaces: pattern of the paths that this publication owns: those of them that the repository
            has and `files` has not are removed.
    """

    repo_id: str
    repo_type: Literal["dataset", "space"]
    files: Mapping[str, Path]
    sdk: str | None = None
    replaces: str = r"(?!)"

    def describe(self, *, private: bool) -> str:
        """What would go, a file a line with its size in bytes."""
        kind = f"{self.sdk} space" if self.sdk else self.repo_type
        sizes = {path: file.stat().st_size for path, file in self.files.items()}
        width = len(f"{max(sizes.values()):,}")
        lines = [f"  {size:>{width},}  {path}" for path, size in sorted(sizes.items())]
        total = f"{len(sizes)} files, {sum(sizes.values()):,} bytes"
        visibility = "private" if private else "public"
        return "\n".join([f"{self.repo_id} ({kind}, {visibility}): {total}", *lines])

    def send(self, api: HfApi, *, private: bool) -> tuple[str, bool]:
        """Makes the repository if need be and commits.

        Returns:
            The address of the commit, and whether the repository is private: one that was there
            before keeps its visibility.

        Raises:
            BadInput: the Hub refuses, or cannot be reached.
        """
        with plain_errors(f"cannot publish to {self.repo_id}"), warnings.catch_warnings():
            # A leaderboard's Parquet belongs where it is, in a Space.
            warnings.filterwarnings("ignore", message=".*about to commit a data file")
            api.create_repo(
                self.repo_id,
                repo_type=self.repo_type,
                private=private,
                space_sdk=self.sdk,
                exist_ok=True,
            )
            there = api.list_repo_files(self.repo_id, repo_type=self.repo_type)
            commit = api.create_commit(
                self.repo_id,
                self._operations(there),
                commit_message="Publish with lmdiag",
                repo_type=self.repo_type,
            )
            info = api.repo_info(self.repo_id, repo_type=self.repo_type)
        return str(commit.commit_url), bool(info.private)

    def _operations(self, there: Iterable[str]) -> list[Any]:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        gone = [
            path for path in there if path not in self.files and re.fullmatch(self.replaces, path)
        ]
        return [
            *(CommitOperationAdd(path, file) for path, file in sorted(self.files.items())),
            *(CommitOperationDelete(path) for path in gone),
        ]


def plan_data(folder: Path, repo_id: str, *, benchmark: bool = False) -> Publication:
    """Plans to publish a built data set directory: the files that were built, and no others.

    Args:
        folder: what `lmdiag build` wrote.
        repo_id: where to.
        benchmark: whether to send `eval.yaml`, which the Hub takes from registered benchmarks only.

    Raises:
        BadInput: no built data set, files that are not the ones that were built, a card that the
            Hub would refuse, a token in a file.
    """
    files = _collect(folder, repo_id)
    provenance = _read_provenance(folder)
    for path, digest in provenance["outputs"].items():
        if path not in files or _sha256(files[path]) != digest:
            raise BadInput(
                f"{folder / path} is not the file that was built (provenance.json has another "
                "SHA-256): build the data set again"
            )
    files = {path: files[path] for path in (*provenance["outputs"], PROVENANCE)}
    _check_card(files, kind="dataset")
    if benchmark and BENCHMARK not in files:
        raise BadInput(f"{folder} has no {BENCHMARK} for --benchmark: build the data set again")
    if not benchmark:
        files.pop(BENCHMARK, None)
    return Publication(repo_id, "dataset", files, replaces=r".*\.parquet")


def plan_metric(repo_id: str) -> Publication:
    """Plans to publish the metric of this installation as a Space that `evaluate.load` reads.

    Raises:
        BadInput: a repository name under which `evaluate` would not find the script.
    """
    check_repo_id(repo_id, "--repo-id")
    if not repo_id.endswith(f"/{METRIC}"):
        raise BadInput(
            f"--repo-id {repo_id}: evaluate looks for a script named like the Space; "
            f"name it {repo_id.split('/')[0]}/{METRIC}"
        )
    files = _collect(resource_path("metrics", METRIC), repo_id)
    _check_card(files, kind="space")
    return Publication(repo_id, "space", files, sdk="gradio")


def plan_leaderboard(folder: Path, repo_id: str) -> Publication:
    """Plans to publish a leaderboard as a static Space; pages of models that left it are removed.

    Raises:
        BadInput: the folder is no leaderboard that `lmdiag leaderboard` made.
    """
    if not (folder / SITE_INDEX).is_file():
        raise BadInput(
            f"{folder} is no leaderboard: make one with `lmdiag leaderboard RUN... --out`"
        )
    files = _collect(folder, repo_id)
    _check_card(files, kind="space")
    return Publication(repo_id, "space", files, sdk="static", replaces=r"models/.*")


def _is_litter(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _collect(folder: Path, repo_id: str) -> dict[str, Path]:
    """Path in the repository -> file, for all files of a folder but hidden ones and bytecode."""
    check_repo_id(repo_id, "--repo-id")
    if not folder.is_dir():
        raise BadInput(f"{folder} is no directory: name the one to publish")
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(map(_is_litter, path.relative_to(folder).parts))
    }
    for name, path in files.items():
        if path.is_symlink():
            raise BadInput(f"{path} is a link: put the file itself there")
        if find_secret(path.read_bytes()):
            raise BadInput(f"{folder / name} holds a token of the Hub: remove it, and revoke it")
    return files


def _read_provenance(folder: Path) -> dict[str, Any]:
    try:
        record = read_json(folder / PROVENANCE)
        outputs = record["outputs"]
        if outputs and all(isinstance(value, str) for value in outputs.values()):
            return dict(record)
    except (BadInput, KeyError, TypeError, AttributeError):
        pass
    raise BadInput(
        f"{folder} is no built data set (no provenance.json that lists its files): "
        "make one with `lmdiag build DIR`"
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_card(files: Mapping[str, Path], kind: str) -> None:
    """Refuses a card whose metadata no reader could use, and configs without their files."""
    from huggingface_hub import DatasetCard, SpaceCard
    from yaml import YAMLError

    if "README.md" not in files:
        raise BadInput(f"a {kind} needs a card: there is no README.md beside its files")
    text = read_text(files["README.md"], MAX_DOCUMENT)
    card = DatasetCard if kind == "dataset" else SpaceCard
    try:
        metadata: dict[str, Any] = card(text).data.to_dict()  # type: ignore[no-untyped-call]
        named = [
            (str(config["config_name"]), str(entry["path"]))
            for config in metadata.get("configs") or []
            for entry in config["data_files"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, YAMLError) as error:
        reason = short(error)
        raise BadInput(f"{files['README.md']}: metadata cannot be read ({reason})") from None
    if not metadata:
        raise BadInput(f"{files['README.md']} has no YAML metadata: the Hub would not know it")
    for config, path in named:
        if path not in files:
            raise BadInput(
                f"{files['README.md']}: config {config} names {path}, which is not there: "
                "build the data set again"
            )
