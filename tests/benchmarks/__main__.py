"""`python -m benchmarks [WHAT ...]`: prints tables of ratios measured now, on this machine."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import agreement, material, shapes, startup, turns

PEERS = ("minicons", "lm-eval")
CONTENDERS = ("floor", "everywhere", "lmdiag", "lmdiag-report", *PEERS, "one-at-a-time")
"""The first is what the others are compared with."""

WHAT = ("speed", "families", "startup", "agreement")


def main() -> None:
    """Runs the benchmarks that are asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").split("`: ")[1])
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"some of {', '.join(WHAT)} (all)")
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"])
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS, help="of speed (all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--peers-python", metavar="PATH", help="a Python that has minicons and lm-eval"
    )
    parser.add_argument("--contexts", type=int, nargs="+", default=[1000, 20000])
    parser.add_argument(
        "--folder", type=Path, help="where models and data are kept between calls (nowhere)"
    )
    args = parser.parse_args()
    if unknown := set(args.what) - set(WHAT):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with tempfile.TemporaryDirectory() as scratch:
        run(args, args.folder or Path(scratch))


def run(args: argparse.Namespace, folder: Path) -> None:
    """Makes data and models, and prints one table after the other."""
    what = args.what or WHAT
    data, source = material.build(folder)
    print(f"{source} data, {args.threads} threads, medians of {args.rounds} rounds")
    if "speed" in what:
        for shape in args.shapes:
            speed(shape, folder, data, args, args.contenders)
    if "families" in what:
        for shape in shapes.FAMILIES:
            speed(shape, folder, data, args, ("floor", "lmdiag"))
    if "startup" in what:
        startup.show(shapes.make("bert-tiny", folder), data)
    if "agreement" in what:
        for shape in args.shapes:
            agreement.show(shapes.make(shape, folder), data, args.threads, args.rounds)
        agreement.show_memory(shapes.make("bert-tiny", folder), data, args.contexts)


def speed(
    shape: str, folder: Path, data: Path, args: argparse.Namespace, names: Sequence[str]
) -> None:
    """Prints the contenders' table for one shape."""
    model = shapes.make(shape, folder)
    rows = folder / "rows.json"
    n_rows = material.write_rows(data, rows)
    print(f"\n{shape}: {n_rows} rows of the three diagnostics")
    if not args.peers_python and set(names) & set(PEERS):
        print(f"{', '.join(PEERS)}: not installed (--peers-python PATH)")
        names = [name for name in names if name not in PEERS]
    pythons = dict.fromkeys(PEERS, args.peers_python)
    found = turns.take_turns(
        names, model, rows, data, threads=args.threads, rounds=args.rounds, pythons=pythons
    )
    turns.show(found, n_rows, names[0])


if __name__ == "__main__":
    main()
