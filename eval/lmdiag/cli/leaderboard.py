"""`lmdiag leaderboard`: run what is requested, and build the site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Count
from lmdiag.types import DIAGNOSTICS


def parameter_count(_: Any, tokens: Sequence[Token]) -> int:
    """Returns a number of parameters: 7000000000, 7e9 or 7B."""
    text, units = tokens[0].value, {"K": 1e3, "M": 1e6, "B": 1e9}
    try:
        value = float(text.rstrip("KMB")) * units.get(text[-1:], 1)
        if 1 <= value < 1e15:
            return int(value)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a number of parameters, such as 7B or 7e9")


STOPPED = "finished runs and answers saved so far are kept; run the same command again to continue"


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """What is run, within which limits, and where the site goes."""

    requests: tuple[str, ...] = field(kw_only=False)
    """Hub id of a results repository, folder with requests, or file with a model and optionally its
    revision on each line"""
    out: Path
    """directory to write the site into; the runs are kept in DIR-runs"""
    data: str = "lmdiag"
    """data set: a built directory or a Hub id"""
    data_revision: str | None = None
    """branch, tag or commit of the Hub data set"""
    tasks: tuple[str, ...] = DIAGNOSTICS
    """diagnostics to run"""
    device: str | None = None
    """device of the models, e.g. cpu or cuda:1"""
    max_parameters: Annotated[int, Parameter(converter=parameter_count)] = 3_000_000_000
    """run no larger model, e.g. 7B"""
    time_limit: Count = 3600
    """seconds of each run, with the download of the model"""
    no_run: bool = False
    """build the site from the runs that are there"""


def main(options: Options) -> int:
    """Runs what has no run yet, and writes the site."""
    from lmdiag.cli.requested import read_models
    from lmdiag.files import is_file
    from lmdiag.leaderboard.board import Board
    from lmdiag.leaderboard.entries import listed_models, read_requests
    from lmdiag.leaderboard.site import check_target, write_site

    out = options.out
    check_target(out)
    files = [place for place in options.requests if is_file(Path(place))]
    listed = [entry for file in files for entry in listed_models(read_models(file))]
    requested = read_requests(place for place in options.requests if place not in files)
    entries = {entry.key: entry for entry in (*listed, *requested)}.values()
    board = Board(
        out.with_name(f"{out.name}-runs"), options.data, options.data_revision, options.tasks,
        options.device, options.max_parameters, options.time_limit,
    )  # fmt: skip
    if not options.no_run:
        board.run_missing([entry.request for entry in entries if entry.request], say)
    rows, others = board.rows(entries)
    write_site(out, rows, others, board)
    print(f"{out}/index.html: {len(rows)} runs, {len(others)} requests without a run")
    return 0
