"""The models of `lmdiag run`: every `--model` at every `--revision`, with its `--name`."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from lmdiag.results import model_slug
from lmdiag.schema import BadInput


class Wanted(NamedTuple):
    """A model to run: its id, its revision and its name."""

    model: str
    revision: str | None
    name: str | None


def wanted_models(args: argparse.Namespace) -> list[Wanted]:
    """Returns every model at every revision.

    Raises:
        BadInput: not as many names as models, or two models whose results would share a folder.
    """
    names = args.name or [None] * len(args.model)
    if len(names) != len(args.model):
        raise BadInput(
            f"--name: expected one name per model, got {len(names)} for {len(args.model)} models"
        )
    if "" in names:
        raise BadInput("--name: a name must not be empty")
    wanted = [
        Wanted(model, revision, name)
        for model, name in zip(args.model, names, strict=True)
        for revision in args.revision or [None]
    ]
    owners: dict[str, str] = {}
    for model, revision, name in wanted:
        slug = model_slug(model, revision, name)
        if (other := owners.setdefault(slug, model)) != model:
            raise BadInput(
                f"the results of {other} and {model} would share the folder {args.output / slug}: "
                "give each model a name of its own with --name"
            )
    return wanted
