"""`report.html`: one page without a network, of one run or of several on the same rows.

The page is a template of `cards/`, escaped by default: names and words of models and data are data.
Its only script and its only style sheet are its own, and its Content-Security-Policy names their
digests and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag.home import home
from lmdiag.hub.text import visible
from lmdiag.report import numbers
from lmdiag.report.comparing import are_checkpoints, by_step, compared, ends, progress
from lmdiag.report.headline import headline
from lmdiag.report.tables import model_label, sources_of
from lmdiag.report.views import about, views
from lmdiag.results import Run

if TYPE_CHECKING:
    from jinja2 import Environment


def render(runs: Run | Sequence[Run], *, chosen: Sequence[str] = ()) -> str:
    """Returns the page of a run, or one that compares several.

    Args:
        runs: finished runs; several must be on the same data by the same protocol.
        chosen: ids of rows or contrasts that a task with too many items must list.

    Raises:
        BadInput: several runs that cannot be compared, or a data file of the package is missing.
    """
    several = [runs] if isinstance(runs, Run) else list(runs)
    if are_checkpoints(several):
        several = by_step(several)
    sources = sources_of([run.results for run in several])
    close = [sources[i] for i in ends(several)]
    style = home("cards", "report.css").read_text(encoding="utf-8")
    script = home("cards", "report.js").read_text(encoding="utf-8")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=title(several),
            runs=[about(source) for source in sources],
            close=[source.label for source in close],
            headline=headline(close),
            comparisons=compared(several, sources),
            progress=progress(sources) if are_checkpoints(several) else [],
            sections=views(several, sources, chosen),
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def title(runs: Sequence[Run]) -> str:
    """Returns what the page is about."""
    names = [model_label(run.results) for run in runs]
    if are_checkpoints(runs):
        return f"{runs[0].results['model']['id']}: {len(runs)} checkpoints"
    return " and ".join(names) if len(names) < 3 else f"{len(names)} models"


def environment() -> Environment:
    """Returns the templates' environment: everything that is put into a page is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader(home("cards")),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals["numbers"] = numbers
    return env


def shown(value: object) -> object:
    """Returns what is put into a page: of strangers' text nothing is hidden."""
    from markupsafe import Markup

    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def policy(style: str, script: str) -> str:
    """Returns the Content-Security-Policy: the page's own style and script, and nothing else."""
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Returns the SHA-256 of an inline style or script as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
