"""Writes a run in the formats of other projects.

- `metrics`: what each measure is, for readers that do not know lmdiag.
- `provenance`: what a run does not know about itself.
- `every_eval_ever`: the record of a run of the project Every Eval Ever; `samples`: its records of
  single items.

To add a format, add a module of its name (with `_` for `-`) that has a function `export` like that
of `every_eval_ever`, and its line in `EXPORT_FORMATS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.export.provenance import RELATIONSHIPS, Provenance

if TYPE_CHECKING:
    from lmdiag.results import Run

__all__ = ["EXPORT_FORMATS", "RELATIONSHIPS", "Provenance", "export_run"]

EXPORT_FORMATS: Mapping[str, str] = {
    "every-eval-ever": "a JSON record of the run, and JSON lines of its single items",
}
"""Name of a format -> one line of help."""


def export_run(
    run: Run, name: str, folder: Path, provenance: Provenance, *, overwrite: bool = False
) -> list[Path]:
    """Writes a run in a format; returns the files.

    Args:
        run: a finished run.
        name: a key of `EXPORT_FORMATS`.
        folder: in which the files are written, where the other project has them.
        provenance: who made the run, and of which model.
        overwrite: whether to replace the files of an earlier export of the same run.

    Raises:
        BadInput: the run was exported there before, its model has no organization, or its
            predictions cannot be read.
    """
    module = importlib.import_module(f"lmdiag.export.{name.replace('-', '_')}")
    files: list[Path] = module.export(run, folder, provenance, overwrite=overwrite)
    return files
