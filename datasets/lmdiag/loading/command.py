"""The command that builds the data set: `build.py OUT`, and `lmdiag build` of the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .sources import CONFIGS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "out", metavar="DIR", type=Path, nargs="?", default=Path("lmdiag"),
        help="directory to write (lmdiag)",
    )  # fmt: skip
    parser.add_argument(
        "--source", default="upstream",
        help="upstream: download the pinned commits (default); demo: the bundled sentences; "
        "DIR: a directory with the tree of lm-diagnostics, of refining-tse, or with both",
    )  # fmt: skip
    parser.add_argument(
        "--configs", nargs="+", metavar="CONFIG",
        help=f"any of {', '.join(CONFIGS)}; all that the source has by default",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Builds the data set and prints the number of rows of each config.

    Raises:
        BadSource: the source cannot be used, or the directory contains other files.
    """
    for name, rows in build(args.out, args.source, args.configs).items():
        print(f"{name:<10} {rows:>8,} rows")
    print(f"written: {args.out}")


def build(out: Path, source: str, configs: Sequence[str] | None = None) -> dict[str, int]:
    """Builds the data set, with progress bars if standard error is a terminal.

    Args:
        out: the directory to write.
        source: upstream, demo or a directory.
        configs: what to build; all that the source has by default.

    Returns:
        config -> number of rows.

    Raises:
        BadSource: the source cannot be used, or the directory contains other files.
    """
    import datasets  # not at the top: `--help` need not wait for it

    from .directory import write_data_set

    hide = not sys.stderr.isatty() and not datasets.are_progress_bars_disabled()
    if hide:
        datasets.disable_progress_bars()
    try:
        return {built.config: built.rows for built in write_data_set(out, source, configs)}
    finally:
        if hide:
            datasets.enable_progress_bars()
