"""`lmdiag leaderboard`: build the static leaderboard from runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD

if TYPE_CHECKING:
    from lmdiag.leaderboard.collect import Entry


def _parameter_count(_: Any, tokens: Sequence[Token]) -> int:
    return parameter_count(tokens[0].value)


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
    reproduce: str | None = None
    """load each submitted model and compare its answers to N random contexts, or all"""
    max_parameters: Annotated[int, Parameter(converter=_parameter_count)] = 3_000_000_000
    """load no larger model"""
    device: str | None = None
    """device of the models, e.g. cpu or cuda:1"""
    attempts: Path | None = None
    """where outcomes are kept and interrupted attempts resume (default: OUT-attempts)"""


def main(options: Options) -> int:
    """Verifies the runs and writes the site; what was rejected goes to standard error too."""
    from lmdiag.hub.benchmark import Benchmark
    from lmdiag.hub.isolation import Judges
    from lmdiag.leaderboard.collect import find_submissions, judge
    from lmdiag.leaderboard.site import write_site
    from lmdiag.leaderboard.standing import standings

    benchmark = Benchmark(options.data, options.data_revision)
    submissions = find_submissions([*options.runs])
    with Judges(benchmark) as judges:
        entries, rejected = judge(submissions, judges, allow_local=options.allow_local)
        entries = _reproduced(entries, options)
        for submission in rejected:
            say(f"rejected {submission.place}: {'; '.join(submission.reasons)}")
        write_site(options.out, standings(entries, benchmark), rejected, benchmark)
    print(f"{options.out}/index.html: {len(entries)} models, {len(rejected)} rejected")
    return 0


def _reproduced(entries: list[Entry], options: Options) -> list[Entry]:
    """Asks the models again where that is wanted; says how each attempt ended."""
    from lmdiag.reproduction.attempts import Settings, reproduce

    settings = None
    if options.reproduce is not None:
        n = None if options.reproduce == "all" else int(options.reproduce)
        settings = Settings(n, options.max_parameters, options.device)
    folder = options.attempts or options.out.with_name(f"{options.out.name}-attempts")
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
    raise ValueError(f"{text!r} is not a number of parameters, such as 7B or 7e9")
