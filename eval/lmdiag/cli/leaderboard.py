"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.cli.exits import say
from lmdiag.cli.parser import add_data_revision, whole_number

if TYPE_CHECKING:
    from lmdiag.leaderboard.collect import Entry


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
    again = parser.add_argument_group("asking the models again")
    again.add_argument(
        "--reproduce", nargs="?", const=30, metavar="N",
        type=lambda text: text if text == "all" else whole_number(text),
        help="load each submitted model and compare its answers to N random contexts (30), or all",
    )  # fmt: skip
    again.add_argument(
        "--max-parameters", type=parameter_count, default=3_000_000_000, metavar="N",
        help="load no larger model (3B)",
    )  # fmt: skip
    again.add_argument("--device", metavar="D", help="device of the models, e.g. cpu or cuda:1")
    again.add_argument(
        "--attempts", type=Path, metavar="DIR",
        help="where outcomes are kept and interrupted attempts resume (default: OUT-attempts)",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Verifies the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.hub.benchmark import Benchmark
    from lmdiag.hub.isolation import Judges
    from lmdiag.leaderboard.collect import find_submissions, judge
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(args.data, args.data_revision)
    submissions = find_submissions(args.runs)
    with Judges(benchmark) as judges:
        entries, rejected = judge(submissions, judges, allow_local=args.allow_local)
        entries = _reproduced(entries, args)
        for submission in rejected:
            say(f"rejected {submission.place}: {'; '.join(submission.reasons)}")
        write_site(args.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{args.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0


def _reproduced(entries: list[Entry], args: argparse.Namespace) -> list[Entry]:
    """Asks the models again where that is wanted; says how each attempt ended."""
    from lmdiag.reproduction.attempts import Settings, reproduce

    settings = None
    if args.reproduce is not None:
        n = None if args.reproduce == "all" else args.reproduce
        settings = Settings(n, args.max_parameters, args.device)
    folder = args.attempts or args.out.with_name(f"{args.out.name}-attempts")
    done = []
    for entry in reproduce(entries, folder, settings):
        done.append(entry)
        if settings is not None and entry.outcome is not None:
            detail = entry.outcome.detail and f": {entry.outcome.detail}"
            say(f"{entry.level} {entry.name}{detail}")
    return done


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
