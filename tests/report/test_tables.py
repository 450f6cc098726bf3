"""The tables have the papers' shape and hold every figure, of a diagnostic of one's own too."""

from __future__ import annotations

import pytest
from lmdiag.report.records import Table

from lmdiag.report import numbers
from lmdiag.report.tables import sections

from .conftest import Json, measure, results, setting


def grid(table: Table) -> dict[tuple[str, str], str]:
    """(row, column) -> the figure as a reader sees it."""
    return {
        (row.label, column): numbers.value(cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell
    }


def test_cprag102_has_the_shape_of_tables_4_and_5(cprag102: Json) -> None:
    (section,) = sections([results({"cprag102": cprag102})])
    accuracy, sensitivity = section.tables
    assert accuracy.columns == ("Orig", "Shuf")
    labels = ["accuracy@1", "high constraint", "low constraint"]
    assert [row.label for row in accuracy.rows] == [*labels, "accuracy@5", *labels[1:]]
    assert grid(accuracy)["accuracy@1", "Orig"] == "23.5"  # 8 of 34
    assert grid(accuracy)["accuracy@1", "Shuf"] == "11.8 ± 3.1"
    assert sensitivity.columns == ("sensitivity", "sensitivity@0.01", "within_category_boost")
    assert grid(sensitivity)["Orig", "sensitivity"] == "75.8"  # 25 of 33
    assert grid(sensitivity)["high constraint", "within_category_boost"] == "35.3"  # 6 of 17


def test_role88_has_the_shape_of_tables_7_8_and_9(role88: Json) -> None:
    (section,) = sections([results({"role88": role88})])
    accuracy, quartiles, sensitivity, further = section.tables
    assert accuracy.columns == ("Orig",)
    assert quartiles.columns == ("≤ .17", "≤ .23", "≤ .33", "≤ .77")
    assert grid(quartiles)["accuracy@1", "≤ .77"] == "23.5"  # 4 of 17
    assert quartiles.n_by == "column"
    assert [quartiles.column_n(i) for i in range(4)] == [25, 23, 23, 17]
    assert grid(sensitivity) == {
        ("Orig", "sensitivity"): "75.0",
        ("Orig", "sensitivity@0.01"): "31.8",
        ("People (cloze)", "sensitivity"): "100.0",
    }
    assert [row.human for row in sensitivity.rows] == [False, True]
    assert grid(further) == {("probability_difference", "Orig"): "0.012"}
    assert not further.percent


def test_quartile_bounds_are_those_of_the_published_rows_only(role88: Json) -> None:
    bins = {str(i + 1): measure(1, 8) for i in range(4)}
    role88["none"]["measures"]["accuracy@1"] = measure(4, 32, {"cloze_quartile": bins})
    (section,) = sections([results({"role88": role88})])
    assert section.tables[1].columns == ("lowest quartile", "second", "third", "highest")


def test_neg136_has_the_shape_of_tables_11_12_and_14(neg136: Json) -> None:
    (section,) = sections([results({"neg136": neg136})])
    accuracy, simp, natural, both, further = section.tables
    assert grid(accuracy) == {("accuracy@1", "SIMP"): "38.9", ("accuracy@1", "NAT"): "25.0"}
    assert grid(simp) == {
        ("sensitivity", "Affirmative"): "100.0",
        ("sensitivity", "Negative"): "0.0",
    }
    assert natural.columns == ("Aff. NT", "Neg. NT", "Aff. LN", "Neg. LN")
    assert grid(both) == {("sensitivity", "NT"): "75.0", ("sensitivity", "LN"): "37.5"}
    assert grid(further) == {("determiner_match@5", "Orig"): "83.3"}


def test_agreement_has_a_row_per_construction_and_a_curve() -> None:
    def scores(hits: int) -> Json:
        by = {
            "construction": {"blimp": measure(1, 5), "simple": measure(hits, 5)},
            "template": {"simple_agrmt_all": measure(hits, 5)},
        }
        return measure(hits, 10, by)

    names = ("tse", "ew", "mw", "sensitivity")
    cuts = ("top=0.1", "bottom=0.001")
    curve = {f"{name}@{cut}": scores(4) for name in ("ew", "mw", "mass") for cut in cuts}
    left_out = {f"left_out@{cut}": measure(2, 12) for cut in cuts}
    measures = {name: scores(hits) for hits, name in enumerate(names, start=1)} | curve | left_out
    (section,) = sections([results({"agreement": {"none": setting(measures)}})])
    constructions, cutoffs, templates = section.tables
    assert constructions.columns == ("MW", "EW", "TSE", "all pairs")
    assert [row.label for row in constructions.rows] == ["Simple", "BLiMP", "All"]
    assert grid(constructions)["Simple", "MW"] == "60.0"
    assert grid(constructions)["All", "TSE"] == "10.0"
    assert cutoffs.columns == ("MW", "EW", "mass of verbs", "contexts left out")
    assert [row.label for row in cutoffs.rows] == ["top 0.1", "bottom 0.001", "all verbs"]
    assert grid(cutoffs)["bottom 0.001", "contexts left out"] == "16.7"
    assert [row.n for row in cutoffs.rows] == ["10"] * 3  # not the 12 of the contexts left out
    assert [row.label for row in templates.rows] == ["simple_agrmt_all"]
    assert section.further is None


def test_people_stand_once_whatever_was_asked_of_whom(role88: Json) -> None:
    perturbed = {"sensitivity": measure(20, 44)}
    role88["obj"] = setting(perturbed)
    runs = [results({"role88": role88}, model) for model in ("org/first", "org/second")]
    (section,) = sections(runs)
    rows = section.tables[2].rows
    assert [(row.label, row.model) for row in rows] == [
        ("Orig", "org/first"), ("Orig", "org/second"), ("-Obj", "org/first"),
        ("-Obj", "org/second"), ("People (cloze)", ""),
    ]  # fmt: skip


def test_every_figure_is_in_some_table(cprag102: Json, role88: Json, neg136: Json) -> None:
    tasks = {"cprag102": cprag102, "role88": role88, "neg136": neg136}
    for section in sections([results(tasks)]):
        tables = [*section.tables, *([section.further] if section.further else [])]
        shown = {cell for table in tables for row in table.rows for cell in row.cells if cell}
        figures = {
            (figure["value"], figure["n"])
            for content in tasks[section.task].values()
            for whole in content["measures"].values()
            for figure in (whole, *(f for levels in whole["by"].values() for f in levels.values()))
        }
        assert figures == {(cell.value, cell.n) for cell in shown}


def test_a_diagnostic_of_ones_own_gets_one_table() -> None:
    by = {
        "tense": {"past": measure(1, 2), "present": measure(2, 2)},
        "condition": {"typical": measure(3, 4)},  # one level: the same again
    }
    own = setting({"accuracy@1": measure(1, 4), "sensitivity": measure(3, 4, by)})
    (section,) = sections([results({"tense": {"none": own}})])
    (table,) = section.tables
    assert grid(table) == {
        ("accuracy@1", "Orig"): "25.0",
        ("sensitivity", "Orig"): "75.0",
        ("sensitivity: past", "Orig"): "50.0",
        ("sensitivity: present", "Orig"): "100.0",
    }
    assert section.further is None


def test_several_runs_stand_under_each_other(cprag102: Json, neg136: Json) -> None:
    first = results({"cprag102": cprag102}, "org/first")
    second = results({"cprag102": cprag102, "neg136": neg136}, "org/second")
    cprag, neg = sections([first, second])
    assert [row.model for row in cprag.tables[0].rows[:2]] == ["org/first", "org/second"]
    assert {row.model for table in neg.tables for row in table.rows} == {"org/second"}
    assert cprag.signatures == (cprag102["none"]["signature"],)


def test_n_stands_in_the_row_and_shows_where_figures_differ(cprag102: Json) -> None:
    cprag102["shuf"]["measures"]["accuracy@1"]["n"] = 31
    (section,) = sections([results({"cprag102": cprag102})])
    table = section.tables[0]
    assert table.n_by == "row"
    assert [row.n for row in table.rows[:2]] == ["31–34", "17"]


def test_undefined_figures_are_shown_as_such() -> None:
    nothing = {"value": None, "n": 0, "ci_low": None, "ci_high": None, "by": {}}
    (section,) = sections([results({"tense": {"none": setting({"sensitivity": nothing})}})])
    assert grid(section.tables[0]) == {("sensitivity", "Orig"): "–"}


def test_published_figures_stand_beside_those_of_the_same_model_and_rows(neg136: Json) -> None:
    run = results({"neg136": neg136}, "bert-base-uncased")
    run["data"]["tasks"]["neg136"]["n"] = 136
    (section,) = sections([run])
    simp = section.tables[1].rows[0].cells
    # table 12 has 100 and 0.0; ours are 18 and 0 of 18
    assert [numbers.published(cell) for cell in simp if cell] == ["100.0 (0.0)", "0.0 (0.0)"]
    # table 14 has 62.5, 87.5, 75.0 and 0.0; ours are all 4 of 8, give or take ten points
    natural = section.tables[2].rows[0].cells
    assert [numbers.published(cell) for cell in natural if cell] == [
        "62.5 (−12.5)*", "87.5 (−37.5)*", "75.0 (−25.0)*", "0.0 (+50.0)*",
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "n"), [("bert-base-uncased", 104), ("org/model", 136)])
def test_other_rows_and_other_models_have_no_published_figures(
    neg136: Json, model: str, n: int
) -> None:
    run = results({"neg136": neg136}, model)
    run["data"]["tasks"]["neg136"]["n"] = n
    (section,) = sections([run])
    assert not any(row.is_published for table in section.tables for row in table.rows)


def test_what_papers_say_of_people_stands_under_the_published_rows(cprag102: Json) -> None:
    run = results({"cprag102": cprag102})
    assert sections([run])[0].people == ()
    run["data"]["tasks"]["cprag102"]["n"] = 102
    assert sections([run])[0].people[0] == (
        "people: mean cloze of the expected completion 0.74 (Ettinger 2020, section 5.1)"
    )


def test_signed_differences_never_show_minus_zero() -> None:
    assert numbers.signed(-0.0001, percent=True) == "0.0"
    assert numbers.signed(0.0567, percent=True) == "+5.7"
    assert numbers.signed(float("nan"), percent=True) == "–"


def test_counts_are_short() -> None:
    assert [numbers.count(n) for n in (950, 4_385_920, 109_514_298, 6_738_415_616)] == [
        "950", "4.4M", "110M", "6.7B",
    ]  # fmt: skip


def with_chance(content: Json, name: str, chance: float | None) -> None:
    """Gives a measure and its levels a chance level."""
    whole = content["none"]["measures"][name]
    for figure in (whole, *(f for levels in whole["by"].values() for f in levels.values())):
        figure["chance"] = chance


def test_the_chance_level_is_said_once_a_column_or_a_row(cprag102: Json, neg136: Json) -> None:
    with_chance(cprag102, "sensitivity", 1 / 3)
    with_chance(cprag102, "sensitivity@0.01", None)
    with_chance(neg136, "sensitivity", 1 / 2)
    cprag, neg = sections([results({"cprag102": cprag102, "neg136": neg136})])
    sensitivity = cprag.tables[1]
    assert sensitivity.chance_by == "column"
    facts = [sensitivity.column_facts(i) for i in range(3)]
    assert facts == [["chance 33.3"], [], []]
    assert cprag.tables[0].chance_by == ""  # accuracy has none
    neg136["none"]["measures"]["sensitivity@0.01"] = dict(neg136["none"]["measures"]["sensitivity"])
    by = neg136["none"]["measures"]["sensitivity@0.01"]["by"]
    thresholded = {
        column: {level: {**cell, "chance": None} for level, cell in levels.items()}
        for column, levels in by.items()
    }
    neg136["none"]["measures"]["sensitivity@0.01"]["by"] = thresholded
    (neg,) = sections([results({"neg136": neg136})])
    simp = neg.tables[1]
    assert simp.chance_by == "row"
    assert [numbers.chances(row.chances) for row in simp.rows] == ["50.0", ""]


def test_figures_at_chance_are_marked_and_the_mark_is_explained(neg136: Json) -> None:
    with_chance(neg136, "sensitivity", 1 / 2)
    (section,) = sections([results({"neg136": neg136})])
    # every interval is ten points to either side; natural contexts: all 4 of 8
    assert grid(section.tables[1])["sensitivity", "Affirmative"] == "100.0"
    assert grid(section.tables[2])["sensitivity", "Aff. NT"] == "50.0†"
    note = "† not distinguishable from chance: the 95% interval contains the chance level"
    assert note in section.remarks
    with_chance(neg136, "sensitivity", None)
    (section,) = sections([results({"neg136": neg136})])
    assert note not in section.remarks


def test_the_two_ends_of_several_chance_levels() -> None:
    assert numbers.chances([1 / 3, 1 / 2]) == "33.3–50.0"
    assert numbers.chances([]) == ""


def test_what_is_not_defined_says_why(role88: Json) -> None:
    nothing = {"value": None, "n": 0, "ci_low": None, "ci_high": None, "chance": None, "by": {}}
    nothing |= {"not_defined": "there is nothing to compare"}
    role88["both"] = setting({"sensitivity": nothing, "sensitivity@0.01": nothing})
    (section,) = sections([results({"role88": role88})])
    assert grid(section.tables[2])["-Both", "sensitivity"] == "–"
    why = "– sensitivity, sensitivity@0.01 in -Both not defined: there is nothing to compare"
    assert why in section.remarks
