"""`lmdiag export`: a run in the format of another project."""

from __future__ import annotations

import argparse
from pathlib import Path

_FORMATS = ("every-eval-ever",)
"""The keys of `lmdiag.export.EXPORT_FORMATS`, which would be slow to import for `--help`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of a finished run")
    parser.add_argument(
        "--format", required=True, choices=_FORMATS,
        help="every-eval-ever: a JSON record of the run and JSON lines of its single items",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=Path(), metavar="DIR",
        help="directory to write to (default: the current one)",
    )  # fmt: skip
    parser.add_argument(
        "--model-id", metavar="ORG/NAME",
        help="id of the model in the record (default: the one the run was made by)",
    )  # fmt: skip
    parser.add_argument(
        "--organization",
        default="unknown",
        metavar="NAME",
        help="who made the run (default: unknown)",
    )
    parser.add_argument(
        "--relationship", default="other",
        choices=("first_party", "third_party", "collaborative", "other"),
        help="between this organization and the developer of the model (default: other)",
    )  # fmt: skip
    parser.add_argument(
        "--data", help="data set, if it has been moved since the run, or its id on the Hub"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier export")


def main(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from lmdiag.export import EXPORT_FORMATS, Provenance
    from lmdiag.results import load_run
    from lmdiag.text import visible

    provenance = Provenance(args.model_id, args.organization, args.relationship)
    run = load_run(args.run, args.data)
    for file in EXPORT_FORMATS[args.format](run, args.output, provenance, args.overwrite):
        print(f"Saved in {visible(str(file))}")
    return 0
