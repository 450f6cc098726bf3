"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Runs, and the site that shows them."""

    runs: tuple[str, ...] = field(kw_only=False)
    """run directories, folders with run directories, or the Hub id of a results repository"""
    out: Path
    """directory to write the site into"""
    data: str = "lmdiag"
    """data set that runs are verified on: a built directory or a Hub id"""
    data_revision: str | None = None
    """branch, tag or commit of the Hub data set"""
    allow_local: bool = False
    """list models of local folders, which nobody else can check"""


def main(options: Options) -> int:
    """Reads the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.hub.benchmark import Benchmark
    from lmdiag.leaderboard.collect import find_submissions, read_entries
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(options.data, options.data_revision)
    submissions = find_submissions([*options.runs])
    entries, rejected = read_entries(submissions, benchmark, allow_local=options.allow_local)
    for submission in rejected:
        say(f"rejected {submission.place}: {'; '.join(submission.reasons)}")
    write_site(options.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{options.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0
