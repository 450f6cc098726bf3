"""What the owner publishes: the data set, the metric, the leaderboard; each as one commit."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lmdiag.files import is_file, is_folder, read_bytes, read_json, resource_path
from lmdiag.hub.client import check_repo_id
from lmdiag.hub.commits import Commit
from lmdiag.types import BadInput

_METRIC = "cloze_diagnostics"
_BENCHMARK = "eval.yaml"
_PROVENANCE = "provenance.json"
SITE_INDEX = "leaderboard.json"
"""The file by which a directory is recognised as a leaderboard."""


def plan_data(folder: Path, repo_id: str, *, benchmark: bool = False) -> Commit:
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
    try:
        built = dict(read_json(folder / _PROVENANCE)["outputs"])
    except (BadInput, KeyError, TypeError, ValueError):
        built = {}
    if not built:
        raise BadInput(
            f"{folder} is not a built data set (it has no {_PROVENANCE} that lists its files): "
            "make one with `lmdiag build DIR`"
        )
    for path, digest in built.items():
        if path not in files or hashlib.sha256(files[path]).hexdigest() != digest:
            raise BadInput(
                f"{folder / path} is not the file that was built ({_PROVENANCE} has another "
                "SHA-256): build the data set again"
            )
    if benchmark and _BENCHMARK not in built:
        raise BadInput(f"{folder} has no {_BENCHMARK} for --benchmark: build the data set again")
    sent = {path: files[path] for path in (*built, _PROVENANCE) if benchmark or path != _BENCHMARK}
    return Commit(repo_id, "dataset", sent, replaces=r".*\.parquet")


def plan_metric(repo_id: str) -> Commit:
    """Plans to publish the metric of this installation as a Space that `evaluate.load` reads.

    Raises:
        BadInput: a repository name under which `evaluate` would not find the script.
    """
    files = _collect(resource_path("metrics", _METRIC), repo_id)
    namespace, name = repo_id.split("/")
    if name != _METRIC:
        raise BadInput(
            f"--repo-id {repo_id}: evaluate looks for a script with the name of the Space; "
            f"name it {namespace}/{_METRIC}"
        )
    return Commit(repo_id, "space", files, sdk="gradio")


def plan_leaderboard(folder: Path, repo_id: str) -> Commit:
    """Plans to publish a leaderboard as a static Space; pages of models that left it are removed.

    Raises:
        BadInput: the folder was not made by `lmdiag leaderboard`; or a token in a file.
    """
    if not is_file(folder / SITE_INDEX):
        raise BadInput(
            f"{folder} is not a leaderboard: make one with `lmdiag leaderboard REQUESTS... --out`"
        )
    files = _collect(folder, repo_id)
    return Commit(repo_id, "space", files, sdk="static", replaces=r"models/.*")


def _collect(folder: Path, repo_id: str) -> dict[str, bytes]:
    """Returns path in the repository -> content, without hidden files and bytecode."""
    check_repo_id(repo_id, "--repo-id")
    if not is_folder(folder):
        raise BadInput(f"{folder} is not a directory: name the one to publish")
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "/." in f"/{name}" or "__pycache__" in name or not path.is_file():
            continue
        if path.is_symlink():
            raise BadInput(f"{path} is a link: put the file itself there")
        files[name] = read_bytes(path)
    return files
