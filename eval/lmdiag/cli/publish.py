"""`lmdiag publish`: push the data set, the metric or the leaderboard to the Hub."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmdiag.hub.publish import Publication


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what can be published, each with its own arguments."""
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    data = kinds.add_parser("data", help="a built data set directory")
    data.add_argument("dir", type=Path, metavar="DIR", help="directory written by `lmdiag build`")
    data.add_argument(
        "--benchmark",
        action="store_true",
        help="also send eval.yaml (the Hub accepts it from registered benchmarks only)",
    )
    metric = kinds.add_parser("metric", help="the evaluate metric of this installation")
    board = kinds.add_parser("leaderboard", help="a leaderboard, as a static Space")
    board.add_argument(
        "dir", type=Path, metavar="DIR", help="directory written by `lmdiag leaderboard`"
    )
    for kind in (data, metric, board):
        kind.add_argument("--repo-id", required=True, metavar="ORG/NAME", help="target repository")
        kind.add_argument(
            "--public", action="store_true", help="create a public repository (default: private)"
        )
        kind.add_argument(
            "--dry-run", action="store_true", help="list what would be sent, send nothing"
        )


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted publication."""
    return "files sent so far stay on the Hub; run the same command again to send the rest"


def main(args: argparse.Namespace) -> int:
    """Plans the publication, then describes or sends it."""
    from lmdiag.hub.client import client

    publication = _plan(args)
    wanted = not args.public
    if args.dry_run:
        print(publication.describe(private=wanted))
        return 0
    print(publication.describe(private=wanted), file=sys.stderr)
    address, private = publication.send(client(), private=wanted)
    print(address)
    if private != wanted:
        now = "private" if private else "public"
        print(f"{args.repo_id} existed before and remains {now}", file=sys.stderr)
    return 0


def _plan(args: argparse.Namespace) -> Publication:
    from lmdiag.hub import publish

    if args.what == "data":
        return publish.plan_data(args.dir, args.repo_id, benchmark=args.benchmark)
    if args.what == "metric":
        return publish.plan_metric(args.repo_id)
    return publish.plan_leaderboard(args.dir, args.repo_id)
