"""Subject-verb agreement: TSE over minimal pairs, EW and MW over a list of verbs.

Source: Newman, Ang, Gong and Hewitt (2021); items of Marvin and Linzen (2018) and BLiMP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.diagnostics.base import Chart, Column, Diagnostic, FigureSelection, Finding, TableShape

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels

_CONSTRUCTIONS = {
    "simple_agrmt_all": "simple",
    "sent_comp_all": "sentential_complement",
    "vp_coord_all": "vp_coordination",
    "long_vp_coord_all": "vp_coordination",
    "prep_anim_all": "across_prepositional_phrase",
    "prep_inanim_all": "across_prepositional_phrase",
    "subj_rel_all": "across_subject_relative",
    "obj_rel_across_anim_all": "across_object_relative",
    "obj_rel_across_inanim_all": "across_object_relative",
    "obj_rel_no_comp_across_anim_all": "across_object_relative_no_that",
    "obj_rel_no_comp_across_inanim_all": "across_object_relative_no_that",
    "obj_rel_within_anim_all": "in_object_relative",
    "obj_rel_within_inanim_all": "in_object_relative",
    "obj_rel_no_comp_within_anim_all": "in_object_relative_no_that",
    "obj_rel_no_comp_within_inanim_all": "in_object_relative_no_that",
}
"""Template -> row of the table of Newman et al. (2021); their four BLiMP templates are one row."""


def construction(template: str, source: str | None = None) -> str:
    """Returns the construction of a template: the row that it has in the table of the paper.

    Templates from BLiMP are one construction; another template without a row is its own.

    >>> construction("prep_anim_all"), construction("any", "blimp"), construction("new")
    ('across_prepositional_phrase', 'blimp', 'new')
    """
    return "blimp" if source == "blimp" else _CONSTRUCTIONS.get(template, template)


def _levels(rows: Columns) -> dict[str, Labels]:
    """Returns the break-down by construction: the construction of each row."""
    pairs = zip(rows["template"], rows["source"], strict=True)
    return {"construction": [construction(template, source) for template, source in pairs]}


_SOURCES = {"marvin_linzen": "Marvin & Linzen", "blimp": "BLiMP"}
_FIGURES = ("mw", "ew", "tse", "sensitivity")
_LABELS = {"mw": "MW", "ew": "EW", "tse": "TSE", "sensitivity": "all pairs"}
_OF_CUTOFFS = {"mw": "MW", "ew": "EW", "mass": "mass of verbs", "left_out": "contexts left out"}

AGREEMENT = Diagnostic(
    name="agreement",
    title="Agreement: subject and verb",
    short_title="Agreement",
    about=(
        "Minimal pairs that differ in the number of one verb. TSE: the right form of that verb is "
        "more probable than the wrong one. EW: the share of all verbs whose right form is more "
        "probable. MW: the share of the probability of all verb forms that is on right forms."
    ),
    position=4,
    columns=(
        Column("source", required=True),
        Column("template", required=True),
        Column("number", required=True),
    ),
    item_within="template",
    own_levels=_levels,
    breakdowns=("source", "template"),
    tables=(
        TableShape(
            "By construction",
            "Newman et al. 2021",
            _FIGURES,
            by=("construction", ""),
            labels=_LABELS | {"": "All"},
        ),
        TableShape(
            "By cut-off",
            "Newman et al. 2021",
            ("mw@*", "ew@*", "mass@*", "left_out@*", "mw", "ew"),
            rows=("cutoff",),
            columns="score",
            labels=_OF_CUTOFFS | {"": "all verbs"},
            plain=("mass", "left_out"),
        ),
        TableShape("By source", "", _FIGURES, by=("source",), labels=_LABELS),
        TableShape("By template", "", _FIGURES, by=("template",), labels=_LABELS),
    ),
    charts=(
        Chart("cutoffs", by="construction"),
        Chart("levels", "By construction", by="construction", measures=("mw", "ew", "tse")),
        Chart("scatter"),
    ),
    headlines=(FigureSelection(("mw", "ew", "tse")),),
    finding=Finding(
        "prefers the verb that agrees with its subject",
        "prefers the verb that does not agree with its subject",
        ("tse", "sensitivity"),
    ),
    leaderboard=(
        FigureSelection(("tse",), label="TSE", is_overview=True),
        FigureSelection(("ew",), label="EW"),
        FigureSelection(("mw",), label="MW"),
    ),
    level_labels={
        "construction": {
            "simple": "Simple",
            "sentential_complement": "In a sentential complement",
            "vp_coordination": "VP coordination",
            "across_prepositional_phrase": "Across a prepositional phrase",
            "across_subject_relative": "Across a subject relative",
            "across_object_relative": "Across an object relative",
            "across_object_relative_no_that": "Across an object relative, no that",
            "in_object_relative": "In an object relative",
            "in_object_relative_no_that": "In an object relative, no that",
            "blimp": "BLiMP",
        },
        "source": _SOURCES,
        "template": _SOURCES,
    },
    verbatim=frozenset({"template"}),
    untagged=frozenset({"source"}),
    has_verbs=True,
    capitalise=True,
)
