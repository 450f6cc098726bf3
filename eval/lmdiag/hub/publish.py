"""What the owner publishes: the data set, the metric, the leaderboard.

A publication is planned first, from files alone and without a network. It is then described, or
sent as one commit, so that the Hub never shows a part of it.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.hub.client import check_repo_id, plain_errors
from lmdiag.reading import is_file, is_folder, read_json
from lmdiag.redact import find_secret
from lmdiag.resources import resource_path
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_METRIC = "cloze_diagnostics"
_BENCHMARK = "eval.yaml"
_PROVENANCE = "provenance.json"
SITE_INDEX = "leaderboard.json"
"""The file by which a directory is recognised as a leaderboard."""


@dataclass(frozen=True)
class Publication:
    """One commit to one repository.

    Attributes:
        repo_id: namespace/name.
        repo_type: dataset or space.
        files: path in the repository -> file on this machine.
        sdk: of a Space.
        replaces: pattern of paths; those that the repository has and `files` has not are removed.
    """

    repo_id: str
    repo_type: Literal["dataset", "space"]
    files: Mapping[str, Path]
    sdk: str | None = None
    replaces: str = r"(?!)"

    def describe(self, *, private: bool) -> str:
        """Returns what would be sent, one line per file with its size in bytes."""
        kind = f"{self.sdk} space" if self.sdk else self.repo_type
        sizes = {path: file.stat().st_size for path, file in self.files.items()}
        width = len(f"{max(sizes.values()):,}")
        lines = [f"  {size:>{width},}  {path}" for path, size in sorted(sizes.items())]
        total = f"{len(sizes)} files, {sum(sizes.values()):,} bytes"
        visibility = "private" if private else "public"
        return "\n".join([f"{self.repo_id} ({kind}, {visibility}): {total}", *lines])

    def send(self, api: HfApi, *, private: bool) -> tuple[str, bool]:
        """Creates the repository if it does not exist and commits.

        Returns:
            The address of the commit, and whether the repository is private: an existing one keeps
            its visibility.

        Raises:
            BadInput: the Hub refuses, or cannot be reached.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        where: dict[str, Any] = {"repo_id": self.repo_id, "repo_type": self.repo_type}
        with plain_errors(f"cannot publish to {self.repo_id}"), warnings.catch_warnings():
            # The Parquet of a leaderboard belongs into its Space.
            warnings.filterwarnings("ignore", message=".*about to commit a data file")
            api.create_repo(**where, private=private, space_sdk=self.sdk, exist_ok=True)
            old = [
                path
                for path in api.list_repo_files(**where)
                if path not in self.files and re.fullmatch(self.replaces, path)
            ]
            operations: list[Any] = [CommitOperationDelete(path) for path in old]
            operations += [CommitOperationAdd(path, file) for path, file in self.files.items()]
            commit = api.create_commit(
                **where, operations=operations, commit_message="Publish with lmdiag"
            )
            info = api.repo_info(**where)
        return str(commit.commit_url), bool(info.private)


def plan_data(folder: Path, repo_id: str, *, benchmark: bool = False) -> Publication:
    """Plans to publish a built data set directory: the files that were built, and no others.

    Args:
        folder: directory that `lmdiag build` wrote.
        repo_id: target repository.
        benchmark: send `eval.yaml` too, which the Hub accepts from registered benchmarks only.

    Raises:
        BadInput: not a built data set, files that differ from those that were built, or a token in
            a file.
    """
    files = _collect(folder, repo_id)
    built = _built_files(folder)
    for path, digest in built.items():
        if path not in files or hashlib.sha256(files[path].read_bytes()).hexdigest() != digest:
            raise BadInput(
                f"{folder / path} is not the file that was built ({_PROVENANCE} has another "
                "SHA-256): build the data set again"
            )
    files = {path: files[path] for path in (*built, _PROVENANCE)}
    if benchmark and _BENCHMARK not in files:
        raise BadInput(f"{folder} has no {_BENCHMARK} for --benchmark: build the data set again")
    if not benchmark:
        files.pop(_BENCHMARK, None)
    return Publication(repo_id, "dataset", files, replaces=r".*\.parquet")


def plan_metric(repo_id: str) -> Publication:
    """Plans to publish the metric of this installation as a Space that `evaluate.load` reads.

    Raises:
        BadInput: a repository name under which `evaluate` would not find the script.
    """
    files = _collect(resource_path("metrics", _METRIC), repo_id)
    if not repo_id.endswith(f"/{_METRIC}"):
        raise BadInput(
            f"--repo-id {repo_id}: evaluate looks for a script with the name of the Space; "
            f"name it {repo_id.split('/')[0]}/{_METRIC}"
        )
    return Publication(repo_id, "space", files, sdk="gradio")


def plan_leaderboard(folder: Path, repo_id: str) -> Publication:
    """Plans to publish a leaderboard as a static Space; pages of models that left it are removed.

    Raises:
        BadInput: the folder was not made by `lmdiag leaderboard`.
    """
    if not is_file(folder / SITE_INDEX):
        raise BadInput(
            f"{folder} is not a leaderboard: make one with `lmdiag leaderboard RUN... --out`"
        )
    files = _collect(folder, repo_id)
    return Publication(repo_id, "space", files, sdk="static", replaces=r"models/.*")


def _collect(folder: Path, repo_id: str) -> dict[str, Path]:
    """Returns path in the repository -> file, without hidden files and bytecode."""
    check_repo_id(repo_id, "--repo-id")
    if not is_folder(folder):
        raise BadInput(f"{folder} is not a directory: name the one to publish")
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if hidden or not path.is_file():
            continue
        if path.is_symlink():
            raise BadInput(f"{path} is a link: put the file itself there")
        if find_secret(path.read_bytes()):
            raise BadInput(f"{path} contains a token of the Hub: remove it, and revoke it")
        files[name.as_posix()] = path
    return files


def _built_files(folder: Path) -> dict[str, str]:
    """Returns path -> SHA-256 of the files that `lmdiag build` wrote."""
    try:
        outputs = read_json(folder / _PROVENANCE)["outputs"]
        if outputs and all(isinstance(digest, str) for digest in outputs.values()):
            return dict(outputs)
    except (BadInput, KeyError, TypeError, AttributeError):
        pass
    raise BadInput(
        f"{folder} is not a built data set (it has no {_PROVENANCE} that lists its files): "
        "make one with `lmdiag build DIR`"
    )
