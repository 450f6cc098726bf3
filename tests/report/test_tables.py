"""The tables have the papers' shape and hold every figure, of a user's own diagnostic too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmdiag.report import numbers
from lmdiag.report.sections import Section, sections
from lmdiag.report.table import Table

from .handmade import (
    Task,
    cprag102,
    measure,
    neg136,
    results,
    role88,
    setting,
    undefined,
    with_measures,
)


def section_of(**tasks: Task) -> Section:
    (section,) = sections([results(tasks)])
    return section


def grid(table: Table) -> dict[tuple[str, str], str]:
    """(row, column) -> the figure as a reader sees it."""
    return {
        (row.label, column): numbers.value(cell.figure)
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell
    }


# ---- the diagnostics -----------------------------------------------------------------------------


def test_cprag102_has_the_shape_of_tables_4_and_5() -> None:
    accuracy, sensitivity = section_of(cprag102=cprag102()).tables
    assert accuracy.columns == ("Orig", "Shuf")
    labels = ["accuracy@1", "high constraint", "low constraint"]
    assert [row.label for row in accuracy.rows] == [*labels, "accuracy@5", *labels[1:]]
    assert grid(accuracy)["accuracy@1", "Orig"] == "23.5"  # 8 of 34
    assert grid(accuracy)["accuracy@1", "Shuf"] == "11.8 ± 3.1"
    assert sensitivity.columns == ("sensitivity", "sensitivity@0.01", "within_category_boost")
    assert grid(sensitivity)["Orig", "sensitivity"] == "75.8"  # 25 of 33
    assert grid(sensitivity)["high constraint", "within_category_boost"] == "35.3"  # 6 of 17


def test_role88_has_the_shape_of_tables_7_8_and_9() -> None:
    accuracy, quartiles, sensitivity, further = section_of(role88=role88()).tables
    assert accuracy.columns == ("Orig",)
    assert quartiles.columns == ("≤ .17", "≤ .23", "≤ .33", "≤ .77")
    assert grid(quartiles)["accuracy@1", "≤ .77"] == "23.5"  # 4 of 17
    assert quartiles.n_by == "column"
    assert [quartiles.column_n(i) for i in range(4)] == [25, 23, 23, 17]
    assert grid(sensitivity) == {
        ("Orig", "sensitivity"): "75.0",
        ("Orig", "sensitivity@0.01"): "31.8",
        ("Human baseline (cloze)", "sensitivity"): "100.0",
    }
    assert grid(further) == {("probability_difference", "Orig"): "0.012"}
    assert not further.is_percent


def test_quartile_bounds_are_those_of_the_published_rows_only() -> None:
    bins = {"cloze_quartile": {str(i + 1): (1, 8) for i in range(4)}}
    section = section_of(role88=with_measures(role88(), {"accuracy@1": measure(4, 32, bins)}))
    assert section.tables[1].columns == ("lowest quartile", "second", "third", "highest")


def test_neg136_has_the_shape_of_tables_11_12_and_14() -> None:
    accuracy, simp, natural, both, further = section_of(neg136=neg136()).tables
    assert grid(accuracy) == {("accuracy@1", "SIMP"): "38.9", ("accuracy@1", "NAT"): "25.0"}
    assert grid(simp) == {
        ("sensitivity", "Affirmative"): "100.0", ("sensitivity", "Negative"): "0.0",
    }  # fmt: skip
    assert natural.columns == ("Aff. NT", "Neg. NT", "Aff. LN", "Neg. LN")
    assert grid(both) == {("sensitivity", "NT"): "75.0", ("sensitivity", "LN"): "37.5"}
    assert grid(further) == {("determiner_match@5", "Orig"): "83.3"}


def test_agreement_has_a_row_per_construction_and_a_curve() -> None:
    def scores(hits: int) -> object:
        return measure(hits, 10, {
            "construction": {"blimp": (1, 5), "simple": (hits, 5)},
            "template": {"simple_agrmt_all": (hits, 5)},
        })  # fmt: skip

    cuts = ("top=0.1", "bottom=0.001")
    measures = {name: scores(i + 1) for i, name in enumerate(("tse", "ew", "mw", "sensitivity"))}
    measures |= {f"{name}@{cut}": scores(4) for name in ("ew", "mw", "mass") for cut in cuts}
    measures |= {f"left_out@{cut}": measure(2, 12) for cut in cuts}
    section = section_of(agreement={"none": setting(measures)})  # type: ignore[arg-type]
    constructions, cutoffs, templates = section.tables
    assert constructions.columns == ("MW", "EW", "TSE", "all pairs")
    assert [row.label for row in constructions.rows] == ["Simple", "BLiMP", "All"]
    assert grid(constructions)["Simple", "MW"] == "60.0"
    assert grid(constructions)["All", "TSE"] == "10.0"
    assert cutoffs.columns == ("MW", "EW", "mass of verbs", "contexts left out")
    assert [row.label for row in cutoffs.rows] == ["top 0.1", "bottom 0.001", "all verbs"]
    assert grid(cutoffs)["bottom 0.001", "contexts left out"] == "16.7"
    assert [row.n for row in cutoffs.rows] == ["10"] * 3  # not the 12 of the contexts left out
    assert [row.label for row in templates.rows] == ["simple agrmt all"]
    assert section.further is None


def test_a_users_own_diagnostic_gets_one_table() -> None:
    by = {
        "tense": {"past": (1, 2), "present": (2, 2)},
        "condition": {"typical": (3, 4)},  # one level: the same again
    }
    own = setting({"accuracy@1": measure(1, 4), "sensitivity": measure(3, 4, by)})
    section = section_of(tense={"none": own})
    assert [grid(table) for table in section.tables] == [
        {
            ("accuracy@1", "Orig"): "25.0",
            ("sensitivity", "Orig"): "75.0",
            ("sensitivity, past", "Orig"): "50.0",
            ("sensitivity, present", "Orig"): "100.0",
        }
    ]
    assert section.further is None


def test_every_figure_is_in_some_table() -> None:
    run = results({"cprag102": cprag102(), "role88": role88(), "neg136": neg136()})
    for section in sections([run]):
        tables = [*section.tables, *([section.further] if section.further else [])]
        cells = [cell for table in tables for row in table.rows for cell in row.cells if cell]
        shown = {(cell.figure.value, cell.figure.n) for cell in cells}
        figures = [figure for place, figure in run.figures() if place.task == section.task]
        assert {(figure.value, figure.n) for figure in figures} == shown


# ---- several runs --------------------------------------------------------------------------------


def test_several_runs_are_listed_under_each_other() -> None:
    first = results({"cprag102": cprag102()}, "org/first")
    second = results({"cprag102": cprag102(), "neg136": neg136()}, "org/second")
    cprag, neg = sections([first, second])
    assert [row.model for row in cprag.tables[0].rows[:2]] == ["org/first", "org/second"]
    assert {row.model for table in neg.tables for row in table.rows} == {"org/second"}
    assert cprag.signatures == (first.signature,)


def test_the_human_baseline_is_shown_once() -> None:
    tasks = {"role88": role88() | {"obj": setting({"sensitivity": measure(20, 44)})}}
    (section,) = sections([results(tasks, model) for model in ("org/first", "org/second")])
    assert [(row.label, row.model) for row in section.tables[2].rows] == [
        ("Orig", "org/first"), ("Orig", "org/second"), ("-Obj", "org/first"),
        ("-Obj", "org/second"), ("Human baseline (cloze)", ""),
    ]  # fmt: skip


# ---- n and chance --------------------------------------------------------------------------------


def test_n_is_in_the_row_and_shows_where_figures_differ() -> None:
    shuffled = setting({"accuracy@1": measure(4, 31, sd=0.031, runs=100)})
    table = section_of(cprag102=cprag102() | {"shuf": shuffled}).tables[0]
    assert table.n_by == "row"
    assert [row.n for row in table.rows[:2]] == ["31–34", "17"]


def test_the_chance_level_is_shown_once_per_column_or_row() -> None:
    accuracy, sensitivity = section_of(cprag102=cprag102()).tables
    assert sensitivity.chance_by == "column"
    assert [sensitivity.column_facts(i) for i in range(3)] == [["chance 33.3"], [], []]
    assert accuracy.chance_by == ""
    plain = neg136(chance=1 / 2)
    thresholded = neg136()["none"].measures["sensitivity"]
    simp = section_of(neg136=with_measures(plain, {"sensitivity@0.01": thresholded})).tables[1]
    assert simp.chance_by == "row"
    assert [numbers.chances(row.chances) for row in simp.rows] == ["50.0", ""]
    assert numbers.chances([1 / 3, 1 / 2]) == "33.3–50.0"


def test_figures_at_chance_are_marked_and_the_mark_is_explained() -> None:
    note = "† not distinguishable from chance: the 95% interval contains the chance level"
    section = section_of(neg136=neg136(chance=1 / 2))
    # every interval is ten points to either side; natural contexts: all 4 of 8
    assert grid(section.tables[1])["sensitivity", "Affirmative"] == "100.0"
    assert grid(section.tables[2])["sensitivity", "Aff. NT"] == "50.0†"
    assert note in section.remarks
    assert note not in section_of(neg136=neg136()).remarks


def test_undefined_figures_say_why() -> None:
    nothing = undefined(not_defined="there is nothing to compare")
    both = setting({"sensitivity": nothing, "sensitivity@0.01": nothing})
    section = section_of(role88=role88() | {"both": both})
    assert grid(section.tables[2])["-Both", "sensitivity"] == "–"
    reason = "– sensitivity, sensitivity@0.01 in -Both not defined: there is nothing to compare"
    assert reason in section.remarks


# ---- published figures ---------------------------------------------------------------------------


def test_published_figures_are_beside_those_of_the_same_model_and_rows() -> None:
    (section,) = sections([results({"neg136": neg136()}, "bert-base-uncased", rows=136)])
    published = [
        [numbers.published(cell.published, cell.figure) for cell in table.rows[0].cells if cell]
        for table in section.tables[1:3]
    ]
    # table 12 has 100 and 0.0; ours are 18 and 0 of 18
    # table 14 has 62.5, 87.5, 75.0 and 0.0; ours are all 4 of 8, give or take ten points
    assert published == [
        ["100.0 (0.0)", "0.0 (0.0)"],
        ["62.5 (−12.5)*", "87.5 (−37.5)*", "75.0 (−25.0)*", "0.0 (+50.0)*"],
    ]
    assert "* the published figure lies outside our 95% interval" in section.remarks


@pytest.mark.parametrize(("model", "n"), [("bert-base-uncased", 104), ("org/model", 136)])
def test_other_rows_and_other_models_have_no_published_figures(model: str, n: int) -> None:
    (section,) = sections([results({"neg136": neg136()}, model, rows=n)])
    assert not any(row.is_published for table in section.tables for row in table.rows)


def test_human_facts_of_the_papers_are_under_the_published_rows() -> None:
    fact = "human baseline: mean cloze of the expected completion 0.74 (Ettinger 2020, section 5.1)"
    assert fact not in section_of(cprag102=cprag102()).remarks
    (section,) = sections([results({"cprag102": cprag102()}, rows=102)])
    assert fact in section.remarks


def test_a_sample_is_named() -> None:
    run = results({"neg136": neg136()}, rows=8)
    (section,) = sections([replace(run, protocol=replace(run.protocol, limit=8))])
    assert section.remarks[0].startswith("a sample of 8 rows")


# ---- numbers -------------------------------------------------------------------------------------


def test_numbers_as_readers_see_them() -> None:
    assert [numbers.signed(value, True) for value in (-0.0001, 0.0567, float("nan"))] == [
        "0.0", "+5.7", "–",
    ]  # fmt: skip
    assert [numbers.count(n) for n in (950, 4_385_920, 109_514_298, 6_738_415_616)] == [
        "950", "4.4M", "110M", "6.7B",
    ]  # fmt: skip
    assert numbers.chances([]) == ""
