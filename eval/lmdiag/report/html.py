"""`report.html`: one page without a network, of one run or of several on the same rows."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.collector import uncollected
from lmdiag.hub.text import visible
from lmdiag.report.checkpoints import are_checkpoints, trained, training_order
from lmdiag.report.comparing import compared, ends, progress
from lmdiag.report.headline import headline
from lmdiag.report.page import environment, frame
from lmdiag.report.tables import model_label, sources_of
from lmdiag.report.views import about, views
from lmdiag.results import Run


def render(runs: Run | Sequence[Run], *, chosen: Sequence[str] = ()) -> str:
    """Returns the page of a run, or one that compares several.

    Args:
        runs: finished runs; several must be on the same data by the same protocol.
        chosen: ids of rows or contrasts that a task with too many items must list.

    Raises:
        BadInput: several runs that cannot be compared, or a data file of the package is missing.
    """
    several = [runs] if isinstance(runs, Run) else list(runs)
    several = [several[i] for i in training_order([run.results for run in several])]
    sources = sources_of([run.results for run in several])
    close = [sources[i] for i in ends(several)]
    page = environment().get_template("report.html.j2")
    with uncollected():
        return page.render(
            title=title(several),
            runs=[about(source) for source in sources],
            close=[source.label for source in close],
            headline=headline(close),
            comparisons=compared(several, sources),
            progress=progress(sources)
            if are_checkpoints([source.results for source in sources])
            else [],
            sections=views(several, sources, chosen),
            **frame("report"),
        )


def title(runs: Sequence[Run]) -> str:
    """Returns what the page is about."""
    results = [run.results for run in runs]
    names = [model_label(each) for each in results]
    if are_checkpoints(results):
        return f"{visible(trained(results[0]))}: {len(runs)} checkpoints"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} models"
