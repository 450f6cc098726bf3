"""`lmdiag publish`: pushes the data set, the metric or the leaderboard to the Hub."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lmdiag.cli.parser import add_dry_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what can be published, each with its own arguments."""
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    data = kinds.add_parser("data", help="a built data set directory")
    data.add_argument("dir", type=Path, metavar="DIR", help="directory written by `lmdiag build`")
    data.add_argument(
        "--benchmark", action="store_true",
        help="also send eval.yaml (the Hub accepts it from registered benchmarks only)",
    )  # fmt: skip
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
        add_dry_run(kind)


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted publication."""
    return "files sent so far stay on the Hub; run the same command again to send the rest"


def main(args: argparse.Namespace) -> int:
    """Plans the publication, then describes or sends it."""
    from huggingface_hub import HfApi

    from lmdiag.hub import publish

    if args.what == "data":
        publication = publish.plan_data(args.dir, args.repo_id, benchmark=args.benchmark)
    elif args.what == "metric":
        publication = publish.plan_metric(args.repo_id)
    else:
        publication = publish.plan_leaderboard(args.dir, args.repo_id)
    private = not args.public
    if args.dry_run:
        print(publication.describe(private=private))
        return 0
    print(publication.describe(private=private), file=sys.stderr)
    address, is_private = publication.send(HfApi(library_name="lmdiag"), private=private)
    print(address)
    if is_private != private:
        now = "private" if is_private else "public"
        print(f"{args.repo_id} existed before and remains {now}", file=sys.stderr)
    return 0
