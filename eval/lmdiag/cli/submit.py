"""`lmdiag submit`: submits a run to the model's repository and to a leaderboard."""

from __future__ import annotations

import argparse

from lmdiag.cli.parser import add_dry_run, add_finished_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_finished_run(parser)
    parser.add_argument(
        "--data", metavar="ORG/NAME",
        help="published data set (default: the one the run was made on)",
    )  # fmt: skip
    parser.add_argument(
        "--results-repo", metavar="ORG/NAME",
        help="data set repository in which a leaderboard collects runs",
    )  # fmt: skip
    add_dry_run(parser)


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted submission."""
    return "pull requests opened so far stay on the Hub; run the same command again for the rest"


def main(args: argparse.Namespace) -> int:
    """Verifies the run, then shows or opens the pull requests."""
    from huggingface_hub import HfApi

    from lmdiag.hub.submit import check_commit, prepare

    api = HfApi(library_name="lmdiag")
    model, offers = prepare(args.run, args.data, args.results_repo, str(api.endpoint))
    if args.dry_run:
        print("\n".join(offer.describe() for offer in offers))
        return 0
    check_commit(api, model)
    for offer in offers:
        address = offer.send(api)
        print(address or f"{offer.repo_id} has all of it already")
    return 0
