"""Writes a run in the formats of other projects.

- `metrics`: what each measure is, for readers that do not know lmdiag.
- `every_eval_ever`: the JSON record of a run of the project Every Eval Ever; `samples`: its records
  of single items.

To add a format, add a module with a function like `write_every_eval_ever` and its line in
`EXPORT_FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.export.every_eval_ever import write_every_eval_ever
from lmdiag.export.provenance import Provenance, Relationship

if TYPE_CHECKING:
    from lmdiag.results import Run

__all__ = ["EXPORT_FORMATS", "Provenance", "Relationship", "Writer"]

Writer = Callable[["Run", Path, Provenance, bool], list[Path]]
"""(run, directory, provenance, whether files may be replaced) -> the files that were written."""

EXPORT_FORMATS: Mapping[str, Writer] = {"every-eval-ever": write_every_eval_ever}
"""Name of a format, as `--format` takes it -> what writes it."""
