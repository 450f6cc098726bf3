"""Commits to repositories of the Hub, and what the owner publishes as one.

A commit is planned from files alone, shown, then sent as a whole.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import exists, is_file, is_folder, read_bytes, read_json, resource_path
from lmdiag.files.secrets import has_secret
from lmdiag.text import shortened, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo, HfApi

_MOST_LISTED = 6
"""Files of a commit up to which each is listed, and YAML is shown."""

_METRIC = "cloze_diagnostics"
_BENCHMARK = "eval.yaml"
_PROVENANCE = "provenance.json"
SITE_INDEX = "leaderboard.json"
"""The file by which a directory is recognised as a leaderboard."""


def is_repo_id(name: str) -> bool:
    """Returns whether a name is namespace/name by the Hub's own rule, in plain ASCII."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return "/" in name and name.isascii()


def is_on_hub(source: str) -> bool:
    """Returns whether a source is the id of a Hub repository, and not a path of this machine."""
    return is_repo_id(source) and not exists(Path(source))


def check_repo_id(repo_id: str, option: str) -> str:
    """Returns the id of a repository; `BadInput` if it is not namespace/name.

    `option` is what the message calls it, e.g. "--repo-id".
    """
    if not is_repo_id(repo_id):
        raise BadInput(f"{option} {repo_id!r} is not a repository id: write namespace/name")
    return repo_id


@dataclass(frozen=True)
class Commit:
    """One commit to one repository, which has not been sent yet.

    Attributes:
        repo_id: namespace/name.
        repo_type: model, dataset or space.
        files: path in the repository -> content.
        title: of the commit.
        description: below the title.
        sdk: of a Space.
        replaces: pattern of paths; those that the repository has and `files` has not are removed.

    Raises:
        BadInput: a file contains a token.
    """

    repo_id: str
    repo_type: str
    files: Mapping[str, bytes]
    title: str = "Publish with lmdiag"
    description: str = ""
    sdk: str | None = None
    replaces: str = r"(?!)"  # matches no path

    def __post_init__(self) -> None:
        """Refuses a file that contains a token."""
        for path, content in self.files.items():
            if has_secret(content):
                raise BadInput(f"{path} contains a token of the Hub: remove it, and revoke it")

    def describe(self, how: str) -> str:
        """Returns a text that shows the commit: repository, title, files with bytes, description.

        Of few files, each has a line, and the content of YAML files is shown. Of many, all Parquet
        files have one line, and so have the files of each folder.

        Args:
            how: "private", "public" or "pull request".
        """
        kind = f"{self.sdk} space" if self.sdk else self.repo_type
        total = f"{len(self.files)} files, {sum(map(len, self.files.values())):,} bytes"
        lines = [f"{self.repo_id} ({kind}, {how}): {total}; {self.title}"]
        lists_all = len(self.files) <= _MOST_LISTED
        sizes_of_line = dict[str, list[int]]()  # name in a line -> bytes of its files
        for path, content in sorted(self.files.items()):
            if lists_all:
                name = path
            elif path.endswith(".parquet"):
                name = "*.parquet"
            elif "/" in path:
                name = f"{path.partition('/')[0]}/"
            else:
                name = path
            sizes_of_line.setdefault(name, []).append(len(content))
        for name, sizes in sizes_of_line.items():
            count = "" if name in self.files else f" ({len(sizes)} files)"
            lines.append(f"  {sum(sizes):>11,}  {visible(name)}{count}")
            if name.endswith(".yaml") and lists_all:
                lines.append(textwrap.indent(self.files[name].decode().rstrip(), "    "))
        return "\n".join([*lines, textwrap.indent(self.description, "  ")]).rstrip()

    def publish(self, api: HfApi, *, private: bool) -> tuple[str, bool]:
        """Sends the commit, and creates the repository if it does not exist.

        Args:
            private: whether a new repository is private; an existing one stays as it is.

        Returns:
            the address of the commit, and whether the repository is private.
        """
        repository: dict[str, Any] = {"repo_id": self.repo_id, "repo_type": self.repo_type}
        with plain_errors(f"cannot publish to {self.repo_id}"):
            api.create_repo(**repository, private=private, space_sdk=self.sdk, exist_ok=True)
            other_files = set(api.list_repo_files(**repository)) - set(self.files)
            removed = [path for path in other_files if re.fullmatch(self.replaces, path)]
            commit = self._send(api, removed)
            return commit.commit_url, bool(api.repo_info(**repository).private)

    def propose(self, api: HfApi) -> str | None:
        """Opens a pull request and returns its address; None if the repository has it all."""
        with plain_errors(f"cannot open a pull request on {self.repo_id}"):
            return self._send(api, create_pr=True).pr_url

    def _send(
        self, api: HfApi, removed: Sequence[str] = (), *, create_pr: bool = False
    ) -> CommitInfo:
        """Adds `files` and removes the paths `removed`, in one commit or in a pull request."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [CommitOperationDelete(path) for path in sorted(removed)]
        operations += [CommitOperationAdd(path, content) for path, content in self.files.items()]
        return api.create_commit(
            self.repo_id, operations, repo_type=self.repo_type, create_pr=create_pr,
            commit_message=self.title, commit_description=self.description,
        )  # fmt: skip


def plan_data(folder: Path, repo_id: str, *, benchmark: bool = False) -> Commit:
    """Plans to publish a built data set directory: the files that were built, and no others.

    `BadInput` if the directory was not built, or if a file in it was changed since then.

    Args:
        folder: directory that `lmdiag build` wrote.
        repo_id: target repository.
        benchmark: send `eval.yaml` too, which the Hub accepts from registered benchmarks only.
    """
    files = _files_to_publish(folder, repo_id)
    try:
        digest_of_file = dict(read_json(folder / _PROVENANCE)["outputs"])
    except (BadInput, KeyError, TypeError, ValueError):
        digest_of_file = {}
    if not digest_of_file:
        raise BadInput(
            f"{folder} is not a built data set (it has no {_PROVENANCE} that lists its files): "
            "make one with `lmdiag build DIR`"
        )
    # every file that was built is there and unchanged; files that were not built are ignored
    for path, digest in digest_of_file.items():
        if path not in files or hashlib.sha256(files[path]).hexdigest() != digest:
            raise BadInput(
                f"{folder / path} is not the file that was built ({_PROVENANCE} has another "
                "SHA-256): build the data set again"
            )
    if benchmark and _BENCHMARK not in digest_of_file:
        raise BadInput(f"{folder} has no {_BENCHMARK} for --benchmark: build the data set again")
    paths = [*digest_of_file, _PROVENANCE]
    if not benchmark:
        paths = [path for path in paths if path != _BENCHMARK]
    published_files = {path: files[path] for path in paths}
    # Parquet files of an earlier version that are not built any more are removed
    return Commit(repo_id, "dataset", published_files, replaces=r".*\.parquet")


def plan_metric(repo_id: str) -> Commit:
    """Plans to publish the metric of this installation as a Space that `evaluate.load` reads."""
    files = _files_to_publish(resource_path("metrics", _METRIC), repo_id)
    namespace, name = repo_id.split("/")
    if name != _METRIC:
        raise BadInput(
            f"--repo-id {repo_id}: evaluate looks for a script with the name of the Space; "
            f"name it {namespace}/{_METRIC}"
        )
    return Commit(repo_id, "space", files, sdk="gradio")


def plan_app(repo_id: str) -> Commit:
    """Plans to publish the page of `lmdiag app` as a Space."""
    check_repo_id(repo_id, "--repo-id")
    files = {
        "README.md": read_bytes(resource_path("cards", "space.card.md")),
        "app.py": read_bytes(resource_path("cards", "space.py")),
        "requirements.txt": b"lm-diagnostics[app,word]\n",
    }
    return Commit(repo_id, "space", files, sdk="gradio")


def plan_leaderboard(folder: Path, repo_id: str) -> Commit:
    """Plans to publish a leaderboard as a static Space; pages of models that left it are removed.

    `BadInput` if the folder is not a leaderboard, or shows the path of a model on this machine.
    """
    if not is_file(folder / SITE_INDEX):
        raise BadInput(
            f"{folder} is not a leaderboard: make one with `lmdiag leaderboard REQUESTS... --out`"
        )
    files = _files_to_publish(folder, repo_id)
    commit = Commit(repo_id, "space", files, sdk="static", replaces=r"models/.*")
    for model in _models_of_site(folder):
        name = str(model["id"])
        # a demo model has no commit either, but its name is not a path
        is_local = not model["commit"] and not name.startswith("demo:")
        if is_local:
            raise BadInput(
                f"{folder} shows the local path {shortened(name)} as the name of a model: "
                "build it from ids on the Hub"
            )
    return commit


def _models_of_site(folder: Path) -> list[Mapping[str, str | None]]:
    """Returns the facts on the models of a leaderboard that was built, each with `id` and `commit`.

    `BadInput` if the index of the leaderboard in the folder is damaged.
    """
    try:
        return [row["model"] for row in read_json(folder / SITE_INDEX)["rows"]]
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{folder / SITE_INDEX} is damaged: build the leaderboard again") from None


def _files_to_publish(folder: Path, repo_id: str) -> dict[str, bytes]:
    """Returns path in a repository -> content of the files in a folder.

    Hidden files and bytecode of Python are left out.

    Args:
        folder: the folder that is published.
        repo_id: the repository.

    Raises:
        BadInput: the id of the repository is wrong, the folder does not exist, or has a link in it.
    """
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
