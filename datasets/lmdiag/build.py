"""Builds the lmdiag data set: `python datasets/lmdiag/build.py OUT [--source ...] [--configs ...]`.

Writes the directory OUT that is the Hub data set: card, Parquet, these scripts, `eval.yaml` and
`provenance.json`. Exit codes: 0 done, 2 bad input, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from loading.lines import BadSource

CONFIGS = ("cprag102", "role88", "neg136", "agreement", "verbs")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="build.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="directory to write")
    parser.add_argument(
        "--source",
        default="upstream",
        help="upstream: download the pinned commits (default); demo: the bundled sentences; "
        "DIR: a directory with the tree of lm-diagnostics, of refining-tse, or with both",
    )
    parser.add_argument(
        "--configs",
        nargs="+",
        metavar="CONFIG",
        help=f"any of {', '.join(CONFIGS)}; all that the source has by default",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = parser().parse_args(argv)
    try:
        built = _build(args.out, args.source, args.configs)
    except BadSource as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("build.py: interrupted, nothing was written", file=sys.stderr)
        return 1
    for name, rows in built.items():
        print(f"{name:<10} {rows:>8,} rows")
    print(f"written: {args.out}")
    return 0


def _build(out: Path, source: str, configs: Sequence[str] | None) -> dict[str, int]:
    # Here, and not above: `--help` need not wait for `datasets`.
    import datasets
    from loading.directory import build

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    return {each.config: each.rows for each in build(out, source, configs)}


if __name__ == "__main__":
    sys.exit(main())
