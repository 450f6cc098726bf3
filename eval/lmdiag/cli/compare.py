"""`lmdiag compare`: two runs on the same rows, measure by measure, with paired statistics."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.cli.run import positive
from lmdiag.schema import AGREEMENT

if TYPE_CHECKING:
    from lmdiag.comparison import Comparison
    from lmdiag.results import Run


WIDTH = 100
"""Characters of a line where the output is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares two run directories and the knobs of the bootstrap."""
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help="run directory")
    parser.add_argument("run_b", type=Path, metavar="RUN_B", help="run directory on the same data")
    parser.add_argument("--data", help="data set of the runs (default: the one they were made on)")
    parser.add_argument(
        "--resamples",
        type=positive,
        default=10_000,
        metavar="N",
        help="number of bootstrap resamples (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of the bootstrap (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, nothing else")


def main(args: argparse.Namespace) -> int:
    """Compares and prints."""
    from lmdiag.comparison import CONTEXTUAL, compare, refuse_different, sides_differ
    from lmdiag.results import load_run

    a, b = load_run(args.run_a, args.data), load_run(args.run_b, args.data)
    refuse_different(a, b)
    found = compare(a, b, seed=args.seed, resamples=args.resamples)
    if AGREEMENT in a.results["tasks"] and sides_differ(a, b):
        names = " and ".join(CONTEXTUAL)
        why = "only one of the models sees what is right of the blank"
        print(f"lmdiag: not compared: {names}: {why}", file=sys.stderr)
    if args.json:
        print(json.dumps(document(a, b, found, args), ensure_ascii=False, allow_nan=False))
    else:
        show(a, b, found, args)
    return 0


def document(
    a: Run, b: Run, found: Sequence[Comparison], args: argparse.Namespace
) -> dict[str, Any]:
    """Returns what `--json` prints; undefined is null."""
    models = {name: run.results["model"] for name, run in (("a", a), ("b", b))}
    return {
        "signature": a.results["signature"],
        **{name: {"model": m["id"], "commit": m["commit"]} for name, m in models.items()},
        "seed": args.seed,
        "resamples": args.resamples,
        "comparisons": [
            {name: None if is_nan(value) else value for name, value in asdict(one).items()}
            for one in found
        ],
    }


def is_nan(value: object) -> bool:
    """Returns whether a value is the undefined number."""
    return isinstance(value, float) and math.isnan(value)


def show(a: Run, b: Run, found: Sequence[Comparison], args: argparse.Namespace) -> None:
    """Prints a table for each task and setting."""
    from rich.console import Console
    from rich.text import Text

    from lmdiag.report.labels import short_commit
    from lmdiag.report.paired import print_comparisons

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for name, run in (("A", a), ("B", b)):
        model = run.results["model"]
        console.print(Text(f"{name}  {model['id']}  ", style="bold"), end="")
        console.print(Text(f"commit {short_commit(model['commit'])}", style="dim"))
    print_comparisons(found, console)
    console.print()
    remarks = (
        f"A - B and its 95% interval: paired bootstrap over items, {args.resamples} resamples",
        "p: exact McNemar where each item is right or wrong (m), else the bootstrap (b)",
        f"p adj.: by Holm's method, over the {len(found)} measures above",
        a.results["signature"],
    )
    for remark in remarks:
        console.print(Text(remark, style="dim"))
