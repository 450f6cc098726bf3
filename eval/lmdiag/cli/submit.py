"""`lmdiag submit`: submits a run to the model's repository and to a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lmdiag.cli.options import RECORD


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """A run, and where it goes."""

    run: Path = field(kw_only=False)
    """directory of a finished run"""
    data: str | None = None
    """published data set (default: the one the run was made on)"""
    results_repo: str | None = None
    """data set repository in which a leaderboard collects runs"""
    dry_run: bool = False
    """list what would be sent, send nothing"""


def stopped(options: Options) -> str:
    """Says what is left of an interrupted submission."""
    return "pull requests opened so far stay on the Hub; run the same command again for the rest"


def main(options: Options) -> int:
    """Verifies the run, then shows or opens the pull requests."""
    from huggingface_hub import HfApi

    from lmdiag.hub.submit import check_commit, prepare

    api = HfApi(library_name="lmdiag")
    model, offers = prepare(options.run, options.data, options.results_repo, str(api.endpoint))
    if options.dry_run:
        print("\n".join(offer.describe() for offer in offers))
        return 0
    check_commit(api, model)
    for offer in offers:
        address = offer.send(api)
        print(address or f"{offer.repo_id} has all of it already")
    return 0
