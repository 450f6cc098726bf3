"""Commits to repositories of the Hub: planned from files alone, shown, then sent as a whole."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.files import find_secret
from lmdiag.hub.client import plain_errors
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi


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
    replaces: str = r"(?!)"

    def __post_init__(self) -> None:
        for path, content in self.files.items():
            if find_secret(content):
                raise BadInput(f"{path} contains a token of the Hub: remove it, and revoke it")

    def describe(self, how: str) -> str:
        """Returns what would be sent, one line per file with its size in bytes, YAML as it is.

        Args:
            how: "private", "public" or "pull request".
        """
        kind = f"{self.sdk} space" if self.sdk else self.repo_type
        total = f"{len(self.files)} files, {sum(map(len, self.files.values())):,} bytes"
        lines = [f"{self.repo_id} ({kind}, {how}): {total}; {self.title}"]
        for path, content in sorted(self.files.items()):
            lines.append(f"  {len(content):>11,}  {path}")
            if path.endswith(".yaml"):
                lines.append(textwrap.indent(content.decode().rstrip(), "    "))
        return "\n".join([*lines, textwrap.indent(self.description, "  ")]).rstrip()

    def publish(self, api: HfApi, *, private: bool) -> tuple[str, bool]:
        """Creates the repository if it does not exist and commits.

        Returns:
            The address of the commit, and whether the repository is private: an existing one keeps
            its visibility.

        Raises:
            BadInput: the Hub refuses, or cannot be reached.
        """
        where: dict[str, Any] = {"repo_id": self.repo_id, "repo_type": self.repo_type}
        with plain_errors(f"cannot publish to {self.repo_id}"):
            api.create_repo(**where, private=private, space_sdk=self.sdk, exist_ok=True)
            old = set(api.list_repo_files(**where)) - set(self.files)
            commit = self._send(api, [path for path in old if re.fullmatch(self.replaces, path)])
            return str(commit.commit_url), bool(api.repo_info(**where).private)

    def propose(self, api: HfApi) -> str | None:
        """Opens a pull request and returns its address; None if the repository has it all.

        Raises:
            BadInput: the Hub refuses, or cannot be reached.
        """
        with plain_errors(f"cannot open a pull request on {self.repo_id}"):
            address: str | None = self._send(api, create_pr=True).pr_url
            return address

    def _send(self, api: HfApi, removed: Sequence[str] = (), *, create_pr: bool = False) -> Any:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [CommitOperationDelete(path) for path in sorted(removed)]
        operations += [CommitOperationAdd(path, content) for path, content in self.files.items()]
        return api.create_commit(
            self.repo_id, operations, repo_type=self.repo_type, create_pr=create_pr,
            commit_message=self.title, commit_description=self.description,
        )  # fmt: skip
