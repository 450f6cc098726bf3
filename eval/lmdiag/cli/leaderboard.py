"""`lmdiag leaderboard`: run what is requested, and build the site."""

from __future__ import annotations

import argparse
from pathlib import Path

from lmdiag.cli.exits import say
from lmdiag.cli.parser import add_data_revision, whole_number
from lmdiag.schema import DIAGNOSTICS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "requests", nargs="+", metavar="REQUESTS",
        help="the Hub id of a results repository, a folder with requests, or a file with a model "
        "and optionally its revision on each line",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR",
        help="directory to write the site into; the runs are kept in DIR-runs",
    )  # fmt: skip
    parser.add_argument(
        "--data", default="lmdiag", help="data set: a built directory or a Hub id (default: lmdiag)"
    )
    add_data_revision(parser)
    parser.add_argument(
        "--tasks", nargs="+", metavar="T", default=DIAGNOSTICS,
        help="diagnostics to run (default: the three diagnostics)",
    )  # fmt: skip
    parser.add_argument("--device", metavar="D", help="device of the models, e.g. cpu or cuda:1")
    parser.add_argument(
        "--max-parameters", type=parameter_count, default=3_000_000_000, metavar="N",
        help="run no larger model (default: 3B)",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=whole_number, default=3600, metavar="SECONDS",
        help="of each run, with the download of the model (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--no-run", action="store_true", help="build the site from the runs that are there"
    )


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted command."""
    return "finished runs and answers saved so far are kept; run the same command again to continue"


def main(args: argparse.Namespace) -> int:
    """Runs what has no run yet, and writes the site."""
    import psutil

    from lmdiag.cli.requested import read_models
    from lmdiag.hub.requests import listed_models, read_requests
    from lmdiag.leaderboard.board import Board
    from lmdiag.leaderboard.rows import make_rows
    from lmdiag.leaderboard.running import Limits, run_missing
    from lmdiag.leaderboard.site import check_target, write_site
    from lmdiag.reading import is_file

    files = [place for place in args.requests if is_file(Path(place))]
    entries, refused = read_requests([place for place in args.requests if place not in files])
    entries += [entry for file in files for entry in listed_models(read_models(file))]
    runs = args.out.with_name(f"{args.out.name}-runs")
    board = Board(runs, args.data, args.data_revision, tuple(args.tasks))
    check_target(args.out)
    if not args.no_run:
        # The libraries of accelerators reserve more memory than they use.
        on_processor = args.device in (None, "cpu")
        memory = int(0.9 * psutil.virtual_memory().available) if on_processor else None
        limits = Limits(args.max_parameters, args.time_limit, memory, args.device)
        run_missing(board, entries, limits, say)
    rows, unranked = make_rows(board, entries, refused)
    write_site(args.out, rows, unranked, board)
    print(f"{args.out}/index.html: {len(rows)} runs, {len(unranked)} requests without a run")
    return 0


def parameter_count(text: str) -> int:
    """A number of parameters: 7000000000, 7e9 or 7B."""
    units = {"K": 1e3, "M": 1e6, "B": 1e9}
    try:
        value = float(text.rstrip("KMB")) * units.get(text[-1:], 1)
        if 1 <= value < 1e15:
            return int(value)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of parameters, such as 7B or 7e9")
