"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares where the runs are, what they are verified on, and where the site goes."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run directories, folders with run directories, or the Hub id of a results repository",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="directory to write the site into"
    )
    parser.add_argument(
        "--data",
        default="lmdiag",
        help="data set that runs are verified on: a built directory or a Hub id",
    )
    parser.add_argument(
        "--data-revision", metavar="R", help="branch, tag or commit of the Hub data set"
    )


def main(args: argparse.Namespace) -> int:
    """Verifies the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.cli.exits import say
    from lmdiag.hub.verify import Benchmark
    from lmdiag.leaderboard.collect import find_submissions, judge
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(args.data, args.data_revision)
    entries, rejected = judge(find_submissions(args.runs), benchmark)
    for each in rejected:
        say(f"rejected {each.place}: {'; '.join(each.reasons)}")
    write_site(args.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{args.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0
