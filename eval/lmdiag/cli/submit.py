"""`lmdiag submit`: request a model on a leaderboard, and offer the figures of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from lmdiag.cli.parser import add_dry_run
from lmdiag.schema import BadInput


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "model", metavar="MODEL|RUN",
        help="id of a model on the Hub, or directory of a finished run, whose figures are offered "
        "to the model's repository, too",
    )  # fmt: skip
    parser.add_argument(
        "--results-repo", metavar="ORG/NAME",
        help="data set repository in which a leaderboard collects requests",
    )  # fmt: skip
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of the model")
    parser.add_argument(
        "--dtype", choices=("float64", "float32", "float16", "bfloat16"),
        help="of the weights (default: float32; of a run: its own)",
    )  # fmt: skip
    parser.add_argument(
        "--note", default="", metavar="TEXT", help="for the owner, at most 200 characters"
    )
    parser.add_argument(
        "--data", metavar="ORG/NAME",
        help="published data set of a run (default: the one that it was made on)",
    )  # fmt: skip
    add_dry_run(parser)


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted submission."""
    return "pull requests opened so far stay on the Hub; run the same command again for the rest"


def main(args: argparse.Namespace) -> int:
    """Shows or opens the pull requests."""
    from huggingface_hub import HfApi

    from lmdiag.hub.requests import request_of
    from lmdiag.hub.submit import offer_request, offers_of_run
    from lmdiag.reading import exists

    api, repo = HfApi(library_name="lmdiag"), args.results_repo
    if exists(Path(args.model)):
        if args.revision or args.dtype:
            raise BadInput("--revision and --dtype are those of the run: leave them out")
        offers = offers_of_run(Path(args.model), args.data, repo, args.note, str(api.endpoint))
    elif repo is None:
        raise BadInput("--results-repo ORG/NAME is needed to request a model on a leaderboard")
    else:
        request = request_of(args.model, args.revision, args.dtype or "float32", note=args.note)
        offers = [offer_request(request, repo)]
    if args.dry_run:
        print("\n".join(offer.describe() for offer in offers))
        return 0
    for offer in offers:
        address = offer.send(api)
        print(address or f"{offer.repo_id} has all of it already")
    return 0
