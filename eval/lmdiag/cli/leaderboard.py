"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from lmdiag.cli.exits import say
from lmdiag.cli.parser import add_data_revision


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN",
        help="run directories, folders with run directories, or the Hub id of a results repository",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="directory to write the site into"
    )
    parser.add_argument(
        "--data", default="lmdiag",
        help="data set that runs are verified on: a built directory or a Hub id",
    )  # fmt: skip
    add_data_revision(parser)
    parser.add_argument(
        "--allow-local", action="store_true",
        help="list models of local folders, which nobody else can check",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Reads the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.hub.benchmark import Benchmark
    from lmdiag.leaderboard.collect import find_submissions, read_entries
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(args.data, args.data_revision)
    submissions = find_submissions(args.runs)
    entries, rejected = read_entries(submissions, benchmark, allow_local=args.allow_local)
    for submission in rejected:
        say(f"rejected {submission.place}: {'; '.join(submission.reasons)}")
    write_site(args.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{args.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0
