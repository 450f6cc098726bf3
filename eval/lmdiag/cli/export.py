"""`lmdiag export`: a run in the format of another project."""

from __future__ import annotations

import argparse
from pathlib import Path

from lmdiag.cli.parser import add_data_of_runs, add_finished_run, add_overwrite
from lmdiag.export import EXPORT_FORMATS, RELATIONSHIPS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_finished_run(parser)
    parser.add_argument(
        "--format", required=True, choices=EXPORT_FORMATS,
        help="; ".join(f"{name}: {what}" for name, what in EXPORT_FORMATS.items()),
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
        "--organization", default="unknown", metavar="NAME",
        help="who made the run (default: unknown)",
    )  # fmt: skip
    parser.add_argument(
        "--relationship", default="other", choices=RELATIONSHIPS,
        help="between this organization and the developer of the model (default: other)",
    )  # fmt: skip
    add_data_of_runs(parser)
    add_overwrite(parser)


def main(args: argparse.Namespace) -> int:
    """Writes the files and prints their names."""
    from lmdiag.export import Provenance, export_run
    from lmdiag.results import load_run
    from lmdiag.text import visible

    provenance = Provenance(args.model_id, args.organization, args.relationship)
    run = load_run(args.run, args.data)
    files = export_run(run, args.format, args.output, provenance, overwrite=args.overwrite)
    for file in files:
        print(f"Saved in {visible(str(file))}")
    return 0
