"""Which models a command runs: named one by one, in a file, or as the checkpoints of one model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from lmdiag.files import is_folder, read_text, user_path
from lmdiag.text import first_few
from lmdiag.training_steps import by_step
from lmdiag.types import BadInput


class RequestedModel(NamedTuple):
    """A model to run."""

    id: str
    revision: str | None
    name: str | None

    def __str__(self) -> str:
        """The id, with the revision if there is one."""
        return self.id if self.revision is None else f"{self.id} at {self.revision}"


@dataclass(frozen=True, kw_only=True)
class Models:
    """The options that name models."""

    model: tuple[str, ...] = ()
    """one or several models: Hub ids, local folders, demo:masked, demo:causal"""
    models_from: str | None = None
    """instead of model: file with one model per line, and optionally its revision after a space; #
    begins a comment"""
    revision: tuple[str, ...] = ()
    """branches, tags or commits of each model"""
    revisions: str | None = None
    """all branches and tags of the one model that match the pattern, e.g. `'step*'`, in the order
    of their steps"""
    name: tuple[str, ...] = ()
    """name of each model in folders and tables (default: its id or folder)"""

    def requested(self, output: Path) -> list[RequestedModel]:
        """Returns every model at every revision.

        Args:
            output: folder of all runs.

        Raises:
            BadInput: options that exclude each other, a file that is not a list of models, a
                pattern that matches no revision, not as many names as models, or two models with
                one folder for their results.
        """
        from lmdiag.results import model_slug

        models = self._models()
        names = self.name or (None,) * len(models)
        if len(names) != len(models):
            counts = f"{len(names)} for {len(models)} models"
            raise BadInput(f"--name: expected one name per model, got {counts}")
        if "" in names:
            raise BadInput("--name: a name must not be empty")
        requested, owners = [], dict[str, str]()
        for (model, revisions), name in zip(models, names, strict=True):
            for revision in revisions:
                slug = model_slug(model, revision, name)
                if (other := owners.setdefault(slug, model)) != model:
                    raise BadInput(
                        f"the results of {other} and {model} would share the folder "
                        f"{output / slug}: give each model a name of its own with --name"
                    )
                requested.append(RequestedModel(model, revision, name))
        return requested

    def _models(self) -> Sequence[tuple[str, Sequence[str | None]]]:
        """Returns each model with its revisions; None for its main branch or a local folder."""
        if bool(self.model) == (self.models_from is not None):
            raise BadInput("give --model or --models-from, and not both")
        if self.revisions is not None and self.revision:
            raise BadInput("--revision and --revisions exclude each other: leave one of them out")
        if self.models_from is not None:
            if self.revision or self.revisions is not None:
                option = "--revision" if self.revision else "--revisions"
                raise BadInput(f"--models-from names the revisions: leave {option} out")
            return [(model, [revision]) for model, revision in read_models(self.models_from)]
        if self.revisions is None:
            return [(model, self.revision or [None]) for model in self.model]
        if len(self.model) != 1:
            raise BadInput(f"--revisions is for one model, not {len(self.model)}: run them in turn")
        return [(self.model[0], matching_revisions(self.model[0], self.revisions))]


def read_models(file: str) -> list[tuple[str, str | None]]:
    """Returns the models and revisions of a file.

    A line has a model and optionally a revision; `#` at the beginning of a word begins a comment.

    Raises:
        BadInput: the file cannot be read or names no model, a line has more words, or repeats
            another one; names the file and the line.
    """
    lines: dict[tuple[str, str | None], int] = {}
    for number, line in enumerate(read_text(user_path(file)).split("\n"), start=1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if len(words) > 2:
            raise BadInput(
                f"{file}:{number}: expected a model and optionally a revision, got {len(words)} "
                "words (a folder with a space in its name: give it with --model)"
            )
        if words:
            entry = words[0], words[1] if len(words) == 2 else None
            if (first := lines.setdefault(entry, number)) != number:
                raise BadInput(f"{file}:{number}: repeats line {first}: remove one of them")
    if not lines:
        raise BadInput(f"{file} names no model: write one model per line")
    return [*lines]


def matching_revisions(model: str, pattern: str) -> list[str]:
    """Returns the branches and tags of a model that match a pattern, in the order of their steps.

    Args:
        model: Hub id.
        pattern: with `*`, `?` and `[...]`, for the whole name.

    Raises:
        BadInput: none matches; the model is a folder or cannot be found on the Hub.
    """
    if is_folder(user_path(model)) or model.startswith("demo:"):
        raise BadInput(f"--revisions: {model} is not a model on the Hub, so it has no branches")
    from huggingface_hub import HfApi

    from lmdiag.hub.client import plain_errors

    with plain_errors(f"cannot list the revisions of model {model}"):
        refs = HfApi().list_repo_refs(model)
    names = by_step(dict.fromkeys(ref.name for ref in (*refs.branches, *refs.tags)))
    if matches := [name for name in names if fnmatchcase(name, pattern)]:
        return matches
    raise BadInput(
        f"--revisions: model {model} has no branch or tag that matches {pattern!r}; it has "
        f"{first_few(names, 8)}"
    )
