"""The page of a result, which needs no network; the template is `cards/page.html.j2`."""

from __future__ import annotations

from dataclasses import replace

from altair.utils import schemapi

from lmdiag.report.charts import MOST_BESIDE
from lmdiag.report.formats.page import environment, frame
from lmdiag.report.output import Output, Section


@schemapi.debug_mode(False)  # altair would validate each part of each chart
def render(output: Output, width: float) -> str:
    """Returns the page."""
    shown = [section for section in output.sections if _has_content(section)]
    has_charts = any(len(section.plots) for section in shown)  # draws no more than it must
    return environment().get_template("page.html.j2").render(
        output=replace(output, sections=shown), most_beside=MOST_BESIDE,
        **frame("report", charts=has_charts),
    )  # fmt: skip


def _has_content(section: Section) -> bool:
    """Whether there is anything below its title."""
    texts = section.grids or section.remarks or section.signatures or section.layout
    return bool(texts or len(section.plots) or len(section.lists))
