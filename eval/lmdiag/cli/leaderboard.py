"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares where the runs are, what they are verified on, and where the site goes."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run directories, folders of them, or the id of a results repository",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the site")
    parser.add_argument(
        "--data", default="lmdiag", help="built directory or Hub data set that runs are verified on"
    )
    parser.add_argument(
        "--data-revision", metavar="R", help="branch, tag or commit of a Hub data set"
    )
    parser.add_argument(
        "--allow-local",
        action="store_true",
        help="list models of local folders, which nobody else can check",
    )


def main(args: argparse.Namespace) -> int:
    """Verifies the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.hub.isolation import Judges
    from lmdiag.hub.verify import Benchmark
    from lmdiag.leaderboard.collect import find_submissions, judge
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(args.data, args.data_revision)
    submissions = find_submissions(args.runs)
    with Judges(benchmark) as judges:
        entries, rejected = judge(submissions, judges, allow_local=args.allow_local)
        for each in rejected:
            print(f"rejected {each.place}: {'; '.join(each.reasons)}", file=sys.stderr)
        write_site(args.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{args.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0
