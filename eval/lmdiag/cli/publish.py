"""`lmdiag publish`: pushes the data set, the metric or the leaderboard to the Hub."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmdiag.cli.options import RECORD
from lmdiag.types import BadInput

STOPPED = "files sent so far stay on the Hub; run the same command again to send the rest"


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """What is published, and where."""

    what: Literal["data", "metric", "leaderboard"] = field(kw_only=False)
    """a built data set, the evaluate metric of this installation, or a leaderboard (a static
    Space)"""
    dir: Path | None = field(default=None, kw_only=False)
    """directory written by `lmdiag build` or `lmdiag leaderboard`; none for the metric"""
    repo_id: str
    """target repository, ORG/NAME"""
    public: bool = False
    """create a public repository (default: private)"""
    benchmark: bool = False
    """with data, also send eval.yaml (the Hub accepts it from registered benchmarks only)"""
    dry_run: bool = False
    """list what would be sent, send nothing"""


def main(options: Options) -> int:
    """Plans the publication, then describes or sends it."""
    from huggingface_hub import HfApi

    from lmdiag.hub import publish

    if options.benchmark and options.what != "data":
        raise BadInput("--benchmark is for data: leave it out")
    if (options.dir is None) != (options.what == "metric"):
        given = "give no directory" if options.dir else "give the directory"
        raise BadInput(f"publish {options.what}: {given}")
    if options.dir is None:
        publication = publish.plan_metric(options.repo_id)
    elif options.what == "data":
        publication = publish.plan_data(options.dir, options.repo_id, benchmark=options.benchmark)
    else:
        publication = publish.plan_leaderboard(options.dir, options.repo_id)
    shown = publication.describe("public" if options.public else "private")
    print(shown, file=None if options.dry_run else sys.stderr)
    if options.dry_run:
        return 0
    address, is_private = publication.publish(
        HfApi(library_name="lmdiag"), private=not options.public
    )
    print(address)
    if is_private == options.public:
        now = "private" if is_private else "public"
        print(f"{options.repo_id} existed before and remains {now}", file=sys.stderr)
    return 0
