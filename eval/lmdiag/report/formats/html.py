"""The page of a result, which needs no network; the template is `cards/page.html.j2`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from lmdiag.report.charts import MOST_BESIDE
from lmdiag.report.formats.page import environment, frame
from lmdiag.report.grid import signs
from lmdiag.report.output import Fact, Output, Section


class Lead(NamedTuple):
    """What the masthead says of models of which the same is known.

    Attributes:
        facts: of these models, for their names and colours.
        lines: beside the names, then below them.
    """

    facts: Sequence[Fact]
    lines: Sequence[str]


def render(output: Output, width: float) -> str:
    """Returns the page."""
    shown = [_with_signs_first(section) for section in output.sections if _has_content(section)]
    has_charts = any(len(section.plots) for section in shown)  # draws no more than it must
    return environment().get_template("page.html.j2").render(
        output=replace(output, sections=shown), leads=_leads(output.facts), most_beside=MOST_BESIDE,
        has_items=any(len(section.lists) for section in shown),
        **frame("report", charts=has_charts),
    )  # fmt: skip


def _has_content(section: Section) -> bool:
    """Whether there is anything below its title."""
    texts = section.grids or section.remarks or section.signatures or section.layout
    return bool(texts or len(section.plots) or len(section.lists))


def _with_signs_first(section: Section) -> Section:
    """The section with what its signs mean above its tables instead of below them."""
    meanings = [] if section.layout else signs(section.grids)
    remarks = [remark for remark in section.remarks if remark not in meanings]
    return section._replace(notes=[*section.notes, *meanings], remarks=remarks)


def _leads(facts: Sequence[Fact]) -> list[Lead]:
    """Returns the facts about the models as the head of the page lists them.

    Models in succession with the same lines share an entry. If only the first line of two entries
    differs, the further lines are printed once, below the later one.
    """
    leads = list[Lead]()
    for lines, facts_with_lines in groupby(facts, key=lambda fact: [*fact.lines]):
        if leads and leads[-1].lines[1:] == lines[1:]:
            leads[-1] = leads[-1]._replace(lines=leads[-1].lines[:1])
        leads.append(Lead([*facts_with_lines], lines))
    return leads
