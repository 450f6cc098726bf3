"""`lmdiag compare`: runs on the same rows, measure by measure, with paired statistics."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
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
    """Declares run directories and the knobs of the bootstrap."""
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help="run directory")
    parser.add_argument(
        "others",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="run directories on the same data, each to be compared with RUN_A",
    )
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
    from lmdiag.cli.exits import say
    from lmdiag.comparison import compare
    from lmdiag.results import load_run

    runs = [load_run(path, args.data) for path in (args.run_a, *args.others)]
    found = compare(*runs, seed=args.seed, resamples=args.resamples)
    for line in not_compared(runs):
        say(f"lmdiag: not compared: {line}")
    if args.json:
        print(json.dumps(document(runs, found, args), allow_nan=False))
    else:
        show(runs, found, args)
    return 0


def not_compared(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a line for what cannot be compared, and why."""
    from lmdiag.comparison import CONTEXTUAL, sides_differ

    kinds = [run.results["model"]["kind"] for run in runs]
    unlike = [run for run, kind in zip(runs, kinds, strict=True) if sides_differ(kinds[0], kind)]
    if unlike and AGREEMENT in runs[0].results["tasks"]:
        names = " and ".join(CONTEXTUAL)
        others = ", ".join(str(run.path) for run in unlike)
        yield (
            f"{names} of {runs[0].path} and {others}: only one of the models sees what is right "
            "of the blank"
        )


def document(
    runs: Sequence[Run], found: Sequence[Comparison], args: argparse.Namespace
) -> dict[str, Any]:
    """Returns what `--json` prints; undefined is null.

    The runs are named a, b, c and so on. Of more than two runs, each comparison says by `pair`
    which two it is of.
    """
    from lmdiag.report.labels import run_letter

    models = [run.results["model"] for run in runs]
    names = [run_letter(number).lower() for number in range(len(runs))]
    comparisons = []
    for one in found:
        values = asdict(one)
        pair = {"pair": ["a", names[values.pop("second")]]}
        record = {key: None if is_nan(value) else value for key, value in values.items()}
        comparisons.append(record | (pair if len(runs) > 2 else {}))
    return {
        "signature": runs[0].results["signature"],
        **{
            name: {"model": model["id"], "commit": model["commit"]}
            for name, model in zip(names, models, strict=True)
        },
        "seed": args.seed,
        "resamples": args.resamples,
        "comparisons": comparisons,
    }


def is_nan(value: object) -> bool:
    """Returns whether a value is the undefined number."""
    return isinstance(value, float) and math.isnan(value)


def show(runs: Sequence[Run], found: Sequence[Comparison], args: argparse.Namespace) -> None:
    """Prints a table for each pair, task and setting."""
    from rich.console import Console
    from rich.text import Text

    from lmdiag.hub.text import visible
    from lmdiag.report.formats.terminal import print_comparisons
    from lmdiag.report.labels import run_letter, short_commit

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for number, run in enumerate(runs):
        model = run.results["model"]
        name = visible(f"{run_letter(number)}  {model['id']}  ")
        console.print(Text(name, style="bold"), end="")
        console.print(Text(visible(f"commit {short_commit(model['commit'])}"), style="dim"))
    print_comparisons(found, console)
    console.print()
    tested = [one for one in found if one.test != "none"]
    remarks = [
        f"differences and their 95% intervals: paired bootstrap over items, {args.resamples} "
        "resamples",
        "p: exact McNemar where each item is right or wrong (m), else the bootstrap (b)",
        f"p adj.: by Holm's method, over the {len(tested)} tests above",
        runs[0].results["signature"],
    ]
    if len(tested) < len(found):
        remarks.insert(2, "–: the two do not differ in any item, so there is nothing to test")
    for remark in remarks:
        console.print(Text(visible(remark), style="dim"))
