"""A folder or a Hub repository, pinned to the bytes that will be read.

A branch moves and the files of a folder change; results name what was read. A Hub revision is
resolved to its commit, a folder to a digest of the files that decide the model's answers.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lmdiag.asking.training_steps import training_step
from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.reading import has_file, is_file, is_folder, real_path, user_path
from lmdiag.types import BadInput

MODEL_FILES = (
    "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*", "config.json", "*.py",
    "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt",
    "*.model", "spiece*",
)  # fmt: skip
"""Files of a model folder that decide what it answers; cards and optimizer states do not."""

_NO_CONFIG = (
    "has no config.json: is it a transformers model? (An adapter must first be merged into its "
    "base model.)"
)


@dataclass(frozen=True)
class Checkpoint:
    """Weights, tokenizer and configuration of one model at one moment.

    Attributes:
        id: as given by the user; the name in every message.
        location: what transformers is given: a folder's path or a Hub id.
        revision: the resolved commit of a Hub repository; None for a folder.
        training_step: see `lmdiag.asking.training_steps`.
    """

    id: str
    location: str
    revision: str | None
    training_step: int | None

    @cached_property
    def commit(self) -> str:
        """The commit of a Hub repository, or `model_digest` of a folder, computed at first use."""
        try:
            return self.revision or model_digest(Path(self.location))
        except OSError as error:
            message = f"model folder {self.id}: cannot read {error.filename}"
            raise BadInput(message) from error

    def file(self, name: str) -> Path | None:
        """Returns the path of a file, fetched if necessary; None if the checkpoint has none."""
        from transformers.utils.hub import cached_file

        # transformers asks for the file in the same way later, and gets it from the cache
        path = cached_file(
            self.location,
            name,
            revision=self.revision,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        return None if path is None else Path(path)


def resolve(model_id: str, revision: str | None = None) -> Checkpoint:
    """Finds the model and pins it to a commit, before anything large is fetched.

    Args:
        model_id: Hub id or local folder; a folder of that name comes first.
        revision: branch, tag or commit of a Hub repository.

    Raises:
        BadInput: there is no such folder, repository or revision, or it has no config.json.
    """
    folder = user_path(model_id)
    if is_folder(folder):
        if revision is not None:
            raise BadInput(
                f"model {model_id} is a folder, which has no revision {revision}: "
                "name the folder of the checkpoint, or a Hub id"
            )
        if not has_file(folder / "config.json"):
            raise BadInput(f"model folder {model_id} {_NO_CONFIG}")
        return Checkpoint(model_id, str(folder), None, training_step(real_path(folder).name))
    if is_file(folder):
        raise BadInput(f"model {model_id} is a file: give the folder that holds it")
    looks_like_path = re.match(r"[./~\\]", model_id) or model_id.count("/") > 1
    if looks_like_path:  # Hub ids are "name" or "owner/name"
        raise BadInput(f"no model folder {model_id}: check the path")
    commit = _hub_commit(model_id, revision)
    step = training_step(revision or "")
    if step is None:  # not `or`: 0 is a step, too
        step = training_step(model_id.rpartition("/")[2])
    return Checkpoint(model_id, model_id, commit, step)


def model_digest(folder: Path) -> str:
    """Returns `sha256:` and 16 hex digits of a SHA-256 over names and contents of `MODEL_FILES`."""
    total = hashlib.sha256()
    # a set, since several patterns may match a file
    paths = {path for pattern in MODEL_FILES for path in real_path(folder).glob(pattern)}
    for path in sorted(filter(Path.is_file, paths), key=lambda path: path.name):
        with path.open("rb") as file:
            content_digest = hashlib.file_digest(file, "sha256")
        total.update(f"{content_digest.hexdigest()}  {path.name}\n".encode())
    return f"sha256:{total.hexdigest()[:16]}"


def _hub_commit(model_id: str, revision: str | None) -> str:
    """Returns the commit that a revision of a Hub repository is at; None is the main branch.

    The configuration is fetched, whose folder in the cache is named by the commit. This works
    offline, too, if it is in the cache.
    """
    from huggingface_hub import errors, hf_hub_download

    at = f" at revision {revision}" if revision else ""
    where = f"model {model_id} is not a folder here, and cannot be read from the Hub{at}"
    with plain_errors(where):
        try:
            config = hf_hub_download(model_id, "config.json", revision=revision)
        except errors.RemoteEntryNotFoundError as error:
            raise BadInput(f"model {model_id}{at} {_NO_CONFIG}") from error
    return Path(config).parent.name
