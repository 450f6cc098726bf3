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


class ModelsWithLines(NamedTuple):
    """Models at the head of a page, and the lines that hold for all of them.

    Attributes:
        facts: of these models, for their names and colours.
        lines: the first stands beside the names, others below them.
    """

    facts: Sequence[Fact]
    lines: Sequence[str]


def render(output: Output, width: float) -> str:
    """Returns the page of a result; its charts have the width of the page."""
    sections = [_with_signs_first(section) for section in output.sections if _has_content(section)]
    # `len` alone: plots and items are lists that are only made when an element is read
    has_charts = any(len(section.plots) for section in sections)
    has_items = any(len(section.lists) for section in sections)
    return environment().get_template("page.html.j2").render(
        output=replace(output, sections=sections),
        leads=_group_by_lines(output.facts),
        most_beside=MOST_BESIDE,
        has_items=has_items,
        **frame("report", charts=has_charts),
    )  # fmt: skip


def _has_content(section: Section) -> bool:
    """Whether there is anything below the title of a section."""
    texts = section.grids or section.remarks or section.signatures or section.layout
    return bool(texts or len(section.plots) or len(section.lists))


def _with_signs_first(section: Section) -> Section:
    """The section with lines on its signs, e.g. "↑ above chance", above its tables.

    They are among its remarks, which stand below the tables, and move to its notes. A section with
    a layout of its own stays as it is.
    """
    meanings = [] if section.layout else signs(section.grids)
    remarks = [remark for remark in section.remarks if remark not in meanings]
    return section._replace(notes=[*section.notes, *meanings], remarks=remarks)


def _group_by_lines(facts: Sequence[Fact]) -> list[ModelsWithLines]:
    """Returns the facts about the models as the head of the page lists them.

    Models in succession with the same lines share an entry. If only the first line of two entries
    differs, the further lines are printed once, below the later entry. For example, gpt2 and bert
    with the lines ("causal", "data lmdiag") and ("masked", "data lmdiag") become gpt2 with
    ("causal",) and bert with ("masked", "data lmdiag").
    """
    entries = list[ModelsWithLines]()
    for lines, facts_with_lines in groupby(facts, key=lambda fact: [*fact.lines]):
        if entries and entries[-1].lines[1:] == lines[1:]:
            first_line = entries[-1].lines[:1]
            entries[-1] = entries[-1]._replace(lines=first_line)
        entries.append(ModelsWithLines([*facts_with_lines], lines))
    return entries
