"""`lmdiag export`: a run in the format of another project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmdiag.cli.options import RECORD


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """A run, and the record that is written."""

    run: Path = field(kw_only=False)
    """directory of a finished run"""
    format: Literal["every-eval-ever"]
    """format of another project"""
    output: Path = Path()
    """directory to write to"""
    model_id: str | None = None
    """id of the model in the record (default: the one the run was made by)"""
    organization: str = "unknown"
    """who made the run"""
    relationship: Literal["first_party", "third_party", "collaborative", "other"] = "other"
    """between this organization and the developer of the model"""
    data: str | None = None
    """data set of the run, if it has been moved since"""
    overwrite: bool = False
    """replace existing files"""


def main(options: Options) -> int:
    """Writes the files and prints their names."""
    from lmdiag.export import Provenance, export_run
    from lmdiag.results import load_run
    from lmdiag.text import visible

    provenance = Provenance(options.model_id, options.organization, options.relationship)
    run = load_run(options.run, options.data)
    files = export_run(run, options.format, options.output, provenance, overwrite=options.overwrite)
    for file in files:
        print(f"Saved in {visible(str(file))}")
    return 0
