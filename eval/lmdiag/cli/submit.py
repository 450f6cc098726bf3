"""`lmdiag submit`: request a model on a leaderboard, and offer the figures of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmdiag.cli.options import RECORD
from lmdiag.types import BadInput

STOPPED = "pull requests opened so far stay on the Hub; run the same command again for the rest"


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """A model or a run, and where it goes."""

    model: str = field(kw_only=False)
    """id of a model on the Hub, or directory of a finished run, whose figures are offered to the
    model's repository, too"""
    results_repo: str | None = None
    """data set repository in which a leaderboard collects requests"""
    revision: str | None = None
    """branch, tag or commit of the model"""
    dtype: Literal["float64", "float32", "float16", "bfloat16"] | None = None
    """of the weights (default: float32; of a run: its own)"""
    note: str = ""
    """for the owner of the leaderboard, at most 200 characters"""
    data: str | None = None
    """published data set of a run (default: the one that it was made on)"""
    dry_run: bool = False
    """list what would be sent, send nothing"""


def main(options: Options) -> int:
    """Shows or opens the pull requests."""
    from huggingface_hub import HfApi

    from lmdiag.files import exists
    from lmdiag.hub.requests import offer_request, offers_of_run, request_of

    api, repo, note = HfApi(library_name="lmdiag"), options.results_repo, options.note
    if exists(run := Path(options.model)):
        if options.revision or options.dtype:
            raise BadInput("--revision and --dtype are those of the run: leave them out")
        offers = offers_of_run(run, options.data, repo, note)
    elif repo is None:
        raise BadInput("--results-repo ORG/NAME is needed to request a model on a leaderboard")
    else:
        dtype = options.dtype or "float32"
        offers = [
            offer_request(request_of(options.model, options.revision, dtype, note=note), repo)
        ]
    if options.dry_run:
        print("\n".join(offer.describe("pull request") for offer in offers))
        return 0
    for offer in offers:
        address = offer.propose(api)
        print(address or f"{offer.repo_id} has all of it already")
    return 0
