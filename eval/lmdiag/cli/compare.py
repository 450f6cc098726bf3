"""`lmdiag compare`: two runs on the same rows, measure by measure, with paired statistics."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.cli.run import positive

if TYPE_CHECKING:
    from lmdiag.comparison import Comparison
    from lmdiag.results import Run


WIDTH = 100
"""Characters of a line where the output is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares two run directories and the knobs of the bootstrap."""
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help="run directory")
    parser.add_argument("run_b", type=Path, metavar="RUN_B", help="run directory on the same data")
    parser.add_argument("--data", help="data set of both (default: where the runs found it)")
    parser.add_argument(
        "--resamples", type=positive, default=10_000, metavar="N", help="of the bootstrap (10000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON document, nothing else")


def main(args: argparse.Namespace) -> int:
    """Compares and prints."""
    from lmdiag.comparison import compare, refuse_different
    from lmdiag.results import load_run

    a, b = load_run(args.run_a, args.data), load_run(args.run_b, args.data)
    refuse_different(a, b)
    found = compare(a, b, seed=args.seed, resamples=args.resamples)
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

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for name, run in (("A", a), ("B", b)):
        model = run.results["model"]
        console.print(Text(f"{name}  {model['id']}  ", style="bold"), end="")
        console.print(Text(f"commit {model['commit'][:12]}", style="dim"))
    for (task, setting), rows in groupby(found, key=lambda one: (one.task, one.setting)):
        console.print()
        console.print(Text(task if setting == "none" else f"{task}, {setting}", style="bold"))
        console.print(table(list(rows)))
    console.print()
    remarks = (
        f"A - B and its 95% interval: paired bootstrap over items, {args.resamples} resamples",
        "p: exact McNemar where each item is right or wrong (m), else the bootstrap (b)",
        f"p adj.: by Holm's method, over the {len(found)} measures above",
        a.results["signature"],
    )
    for remark in remarks:
        console.print(Text(remark, style="dim"))


def table(rows: Sequence[Comparison]) -> Any:
    """Returns the rows of one task in one setting as a table."""
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    drawn.add_column("", overflow="fold", min_width=max(len(one.measure) for one in rows))
    for heading in ("n", "A", "B", "A - B", "95% interval", "p", "p adj."):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for one in rows:
        percent = one.statistic in ("proportion", "share")
        a, b, difference, low, high = (
            figure(value, percent)
            for value in (one.a, one.b, one.difference, one.ci_low, one.ci_high)
        )
        p = f"{p_value(one.p)} {one.test[0]}"
        interval = f"[{low}, {high}]"
        drawn.add_row(
            one.measure, str(one.n), a, b, difference, interval, p, p_value(one.p_adjusted)
        )
    return drawn


def figure(value: float, percent: bool) -> str:
    """Returns a value as readers see it: percent with one decimal, else three decimals."""
    if math.isnan(value):
        return "–"
    text = f"{100 * value:.1f}" if percent else f"{value:.3f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def p_value(p: float) -> str:
    """Returns a p-value in three decimals; a smaller one is "< .001".

    >>> p_value(0.0426), p_value(0.0002), p_value(1.0)
    ('.043', '< .001', '1')
    """
    if math.isnan(p):
        return "–"
    if p < 0.001:
        return "< .001"
    return "1" if p > 0.9995 else f"{p:.3f}".removeprefix("0")
