"""Conditions, cell means within items, effects over items, mixed models against a second fit."""

import itertools
import math
import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import lmdiag
from lmdiag.analysis.designs import analyse_table
from lmdiag.analysis.linear import fit_mixed
from lmdiag.report.analyses import analysis_grids
from lmdiag.stimuli.designs.conditions import uses_of
from lmdiag.types import BadInput


def design(levels, n, seed, missing=0, model="m"):
    """A table of n items in all cells, without some rows of the first items."""
    rng = np.random.default_rng(seed)
    rows = [
        {"model": model, "item": f"i{item}", **dict(zip(levels, cell, strict=True)),
         "frequency": item % 5, "context": f"{item} {cell}", "surprisal": rng.gamma(4, 2)}
        for item in range(n) for cell in itertools.product(*levels.values())
    ]  # fmt: skip
    n_cells = math.prod(map(len, levels.values()))
    return pd.DataFrame(rows).drop(index=range(0, missing * n_cells, n_cells))


TWO = {"a": ("x", "y"), "b": ("p", "q")}


def test_cell_means_and_intervals_by_hand():
    # item means 3, 6, 9; grand mean 6; within: 6 + (-1, 1), 6 + (-2, 2), 6 + (0, 0)
    # cell x: 5, 4, 6: mean 5, sd 1; Morey's factor sqrt(2 / 1); t(2) = 4.302653
    # margin 4.302653 * 1 * sqrt(2) / sqrt(3) = 3.513100
    table = pd.DataFrame(
        {"item": [1, 1, 2, 2, 3, 3], "a": ["x", "y"] * 3, "surprisal": [2.0, 4, 4, 8, 9, 9]}
    )
    found = analyse_table(table)
    margin = 4.302652729696142 * math.sqrt(2 / 3)
    first, second = found.cells.to_dict("records")
    assert (first["a"], first["n"], first["mean"]) == ("x", 3, pytest.approx(5))
    assert (first["ci_low"], first["ci_high"]) == pytest.approx((5 - margin, 5 + margin))
    assert (second["mean"], second["ci_low"]) == pytest.approx((7, 7 - margin))
    # differences 2, 4, 0: mean 2, sd 2; of the 4 sign patterns of those that differ 2 reach 6
    (effect,) = found.to_json()["effects"]
    assert (effect["label"], effect["n"]) == ("a[y - x]", 3)
    assert (effect["d_z"], effect["p_sign_flip"]) == pytest.approx((1, 2 / 4))


def test_intervals_of_right_and_wrong_answers_stay_between_0_and_1():
    """Deviations within items, (1/2, -1/2) or 0, about means of 1 and 6/8: Morey's factor is 2."""
    right = [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0]
    table = pd.DataFrame({"item": np.repeat(range(8), 2), "a": ["x", "y"] * 8, "correct": right})
    first, second = analyse_table(table, response="correct").cells.to_dict("records")
    z2 = 2.3646242510102993**2  # t(7)
    # all are right: n = 8, and the upper end is 1
    assert (first["ci_low"], first["ci_high"]) == pytest.approx((8 / (8 + z2), 1))
    # variance of the mean of y: 2 (2 (3/8)² + 6 (1/8)²) / 7 / 8 = 3 / 224, as of 14 items
    n = 14
    centre = (0.75 + z2 / (2 * n)) / (1 + z2 / n)
    margin = math.sqrt(z2 * (0.1875 / n + z2 / (4 * n**2))) / (1 + z2 / n)
    bounds = (centre - margin, centre + margin)
    assert (second["ci_low"], second["ci_high"]) == pytest.approx(bounds)
    few = analyse_table(table[table["item"] < 7], response="correct").cells
    assert few[["ci_low", "ci_high"]].isna().all(axis=None)


@pytest.mark.parametrize(("n", "missing"), [(4, 0), (4, 2), (30, 2)])
@pytest.mark.parametrize(
    ("levels", "n_effects"),
    [({"a": ("x", "y")}, 1), (TWO, 3), ({**TWO, "c": ("s", "t")}, 7), ({"c": ("h", "l", "m")}, 3),
     ({"a": ("x", "y"), "c": ("h", "l", "m")}, 7)],
)  # fmt: skip
def test_effects_are_paired_t_tests(levels, n_effects, n, missing):
    table, n_cells = design(levels, n, seed=n_effects), math.prod(map(len, levels.values()))
    lacking = table.copy()  # values, and a row
    lacking.loc[[i * n_cells for i in range(missing)], "surprisal"] = np.inf
    found = analyse_table(lacking.drop(index=[0]) if missing else lacking)
    assert found.left_out["", "m"] == missing
    table = table[~table["item"].isin([f"i{i}" for i in range(missing)])]
    effects = found.to_json()["effects"]
    assert len(effects) == n_effects
    pairs = []
    for effect in effects:
        weights = table["surprisal"] / n_cells
        for part in effect["effect"].split(":"):
            name, *named = re.findall(r"\w+", part)
            high, low = named or reversed(levels[name])
            sign = (table[name] == high).astype(float) - (table[name] == low)
            weights = weights * sign * len(levels[name])
        expected = scipy.stats.ttest_1samp(weights.groupby(table["item"]).sum(), 0)
        interval = expected.confidence_interval()
        assert effect["t"] == pytest.approx(expected.statistic, rel=1e-9)
        assert effect["p"] == pytest.approx(expected.pvalue, rel=1e-9)
        assert effect["df"] == n - missing - 1
        assert (effect["ci_low"], effect["ci_high"]) == pytest.approx(tuple(interval))
        assert effect["estimate"] == pytest.approx(sum(interval) / 2)
        assert ("p_sign_flip" in effect) == (n - missing <= 16)
        pairs += [(effect["p"], effect["p_holm"])] if effect["effect"].startswith("c[") else []
    for place, (p, adjusted) in enumerate(sorted(pairs)):  # Holm (1979)
        before = sorted(pairs)[place - 1][1] if place else 0
        assert adjusted == pytest.approx(min(1, max(before, p * (3 - place))))


def test_two_steps_between_three_levels_are_a_family():
    """The smaller p doubled, and the larger one or that (Holm 1979)."""
    effects = analyse_table(design({"c": ("h", "l", "m")}, 9, seed=4), coding="difference").effects
    low, high = sorted(effects["p"])
    assert sorted(effects["p_holm"]) == pytest.approx([min(1, 2 * low), max(high, min(1, 2 * low))])
    assert [*effects["n_tests"]] == [2, 2]


def test_the_difference_of_effects_between_two_models():
    first, second = design(TWO, 12, seed=1, model="A"), design(TWO, 12, seed=2, model="B")
    record = analyse_table(pd.concat([first, second])).to_json()
    signs = {"x": -1 / 2, "y": 1 / 2}  # of the means of two cells
    by_item = [(t.surprisal * t.a.map(signs)).groupby(t.item).sum() for t in (first, second)]
    assert [effect["model"] for effect in record["effects"]] == ["A"] * 3 + ["B"] * 3
    difference = record["differences"][0]
    assert (difference["effect"], difference["model"]) == ("a", "B - A")
    assert difference["t"] == pytest.approx(scipy.stats.ttest_rel(*by_item[::-1]).statistic)


def test_effects_by_a_factor_between_items():
    table = design(TWO, 13, seed=4)
    table["group"] = ["efg"[i % 3] for i in range(13) for _ in range(4)]
    record = analyse_table(table, by="group").to_json()["by"]
    effect = (table.surprisal * table.a.map({"x": -0.5, "y": 0.5})).groupby(table.item).sum()
    group = table.groupby("item")["group"].first()
    found = {row["level"]: row for row in record if row["effect"] == "a"}
    pairs = [*itertools.combinations("efg", 2)]
    assert [*found] == [*"efg", *(f"{high} - {low}" for low, high in pairs)]
    for level in "efg":
        expected = scipy.stats.ttest_1samp(effect[group == level], 0)
        assert (found[level]["n"], found[level]["p"]) == (
            (group == level).sum(), pytest.approx(expected.pvalue)
        )  # fmt: skip
    for low, high in pairs:
        welch = scipy.stats.ttest_ind(effect[group == high], effect[group == low], equal_var=False)
        row = found[f"{high} - {low}"]
        assert [row["t"], row["df"], row["p"]] == pytest.approx(
            [welch.statistic, welch.df, welch.pvalue]
        )
        assert [row["ci_low"], row["ci_high"]] == pytest.approx([*welch.confidence_interval()])
        assert row["p_holm"] >= row["p"]
    with pytest.raises(BadInput, match="b differs within item i0: --by takes a column"):
        analyse_table(table, conditions=["a"], by="b")


# ---- the table -----------------------------------------------------------------------------------


FORMULA = "surprisal ~ {0} * b + (1 + {0} | item)"


@cache
def named_a():
    """The analysis of the same data with `a`."""
    table = design(TWO, 8, seed=2).drop(columns="model")
    return analyse_table(table, conditions=["a", "b"], formula=FORMULA.format("a"))


RESERVED = ("mean", "n", "ci_low", "value", "model", "task", "suite", "number", "self", "mean_data")


@pytest.mark.parametrize("name", RESERVED)
def test_any_column_name_is_a_condition(name):
    """Figures, levels in the cells, and the mixed model are those of the same data with `a`."""
    expected, table = named_a(), design(TWO, 8, seed=2).drop(columns="model")
    table = table.rename(columns={"a": name})
    found = analyse_table(table, conditions=[name, "b"], formula=FORMULA.format(name))
    assert [*found.conditions] == [name, "b"]
    assert [*found.effects["effect"]] == [name, "b", f"{name}:b"]
    assert [*found.effects["p"]] == pytest.approx([*expected.effects["p"]])
    column = name if name in ("self", "mean_data", "task", "number") else f"{name}_data"
    assert [*found.cells[column]] == [*expected.cells["a"]] == ["x", "x", "y", "y"]
    assert [*found.cells["mean"]] == [*expected.cells["mean"]]
    (fit,), (fit_expected,) = found.mixed.values(), expected.mixed.values()
    assert fit.terms["estimate"].iloc[1] == fit_expected.terms["estimate"].iloc[1]


def test_levels_are_in_the_order_of_the_alphabet_or_of_the_user():
    levels = ("Éa", "b", "Ab")  # without case and accents: Ab, b, Éa; by code point Ab, b, Éa
    table = design({"c": (*levels, "Zb", "a")}, 12, seed=5)
    assert analyse_table(table).conditions == {"c": ("a", "Ab", "b", "Éa", "Zb")}
    order = ("b", "Zb", "a", "Éa", "Ab")
    formula = "surprisal ~ c + (1 | item)"
    options = {"levels": {"c": order}, "coding": "difference", "formula": formula}
    found = analyse_table(table, **options)
    pairs = [f"c[{high} - {low}]" for low, high in itertools.pairwise(order)]
    assert [*found.effects["effect"]] == pairs
    terms = found.mixed["m"].terms["estimate"][1:].to_dict()
    means = table.groupby("c")["surprisal"].mean()
    steps = [means[high] - means[low] for low, high in itertools.pairwise(order)]
    assert [*found.effects["estimate"]] == pytest.approx(steps)
    assert terms == pytest.approx(dict(zip(pairs, steps, strict=True)))
    (text,) = {row.cells[-1].value for row in next(analysis_grids(found)).rows}
    assert text == "4"  # tests in the family of Holm's method
    with pytest.raises(BadInput, match="does not name each level of c once: a, Ab, b, Éa, Zb"):
        analyse_table(table, levels={"c": ("a", "b")})
    for values, texts in (((True, False), ("false", "true")), ((10.0, 2.0), ("2", "10"))):
        table = design({"c": values}, 4, seed=0)
        assert analyse_table(table).conditions == {"c": texts}


def test_conditions_differ_within_items_and_follow_from_no_others():
    table = design(TWO, 6, seed=3)
    table["list"] = ["odd", "even"] * 12  # b again
    table["cell"] = table.a + table.b
    table["length"] = [3, 4, 5, 4] * 6
    table["good"] = (table.a == "x") == (table.b == "p")
    assert [*uses_of(table).conditions] == ["a", "b"]
    assert [*uses_of(table.drop(columns="b")).conditions] == ["a", "list"]
    assert [*uses_of(table.drop(columns=["b", "list", "length", "good"])).conditions] == ["cell"]


@pytest.mark.parametrize(
    ("response", "estimate"),
    # p = 1/2 and 1/4, 1/2 and 1/8; log odds 0 and ln(1/3), 0 and ln(1/7); "b" is right once in y
    [("probability", -(1 / 4 + 3 / 8) / 2), ("log_odds", math.log(1 / 21) / 2), ("correct", 1 / 2)],
)
def test_responses_follow_from_other_columns(response, estimate):
    table = pd.DataFrame({"item": [1, 1, 2, 2], "a": ["x", "y"] * 2, "surprisal": [1.0, 2, 1, 3]})
    table = table.assign(expected="A|b", top_word=["c", "B", "c", "d"])
    found = analyse_table(table, response=response, conditions=["a"]).effects
    assert found.estimate[0] == pytest.approx(estimate)


def test_correct_is_the_outcome_of_a_contrast():
    table = pd.DataFrame({
        "item": np.repeat([1, 2, 3, 4], 4), "polarity": ["aff", "aff", "neg", "neg"] * 4,
        "contrast": np.repeat([*"abcdefgh"], 2), "good": [True, False] * 8,
        "surprisal": [1, 2, 3, 2, 1, 1.5, 2, 1, 2, 2, 1, 4, 1, np.nan, 1, 2],
    })  # fmt: skip
    cells = analyse_table(table, response="correct", conditions=["polarity"]).cells
    assert list(cells["mean"]) == pytest.approx([2 / 3, 1 / 3])  # a tie is not; 4 is left out


def test_differences_of_rounding_are_none():
    table = design({"a": ("x", "y")}, 6, seed=1)
    table["surprisal"] = 50 + np.tile([0.0, 1e-6], 6) * np.repeat([1, 2, -1, 3, 1, 2], 2)
    effect = analyse_table(table).to_json()["effects"][0]
    assert (effect["estimate"], effect["ci_low"], effect["t"], effect["p"]) == (0, None, None, None)


def test_a_region_of_a_table():
    parts = [design(TWO, 5, seed).assign(number=seed, name=f"r{seed}", text="", start=0)
             for seed in (1, 2)]  # fmt: skip
    expected = analyse_table(design(TWO, 5, seed=2)).effects
    pd.testing.assert_frame_equal(analyse_table(pd.concat(parts), region="r2").effects, expected)
    for region in ("", "verb"):
        with pytest.raises(BadInput, match="choose a region with --region from 1 r1, 2 r2"):
            analyse_table(pd.concat(parts), region=region)


def test_suites_with_different_conditions_are_analysed_each_by_itself():
    tables = [
        design({"condition": levels}, 5, seed, missing=seed).assign(
            suite=suite, item=lambda table, suite=suite: f"{suite}/" + table["item"]
        )
        for seed, (suite, levels) in enumerate({"1": ("x", "y"), "b": ("p", "q", "r")}.items())
    ]
    found = analyse_table(pd.concat([*tables, tables[0].assign(suite="c", condition="x")]))
    assert found.left_out == {("1", "m"): 0, ("b", "m"): 1}
    alone = [analyse_table(table) for table in tables]
    assert list(found.effects["suite"]) == ["1", "b", "b", "b"]
    for name in ("n", "estimate", "p"):
        values = pd.concat([analysis.effects[name] for analysis in alone], ignore_index=True)
        pd.testing.assert_series_equal(found.effects[name], values)
    assert list(found.cells["mean"]) == [mean for a in alone for mean in a.cells["mean"]]


# ---- mixed models --------------------------------------------------------------------------------


@pytest.mark.parametrize(("coding", "values"), [("sum", (-0.5, 0.5)), ("treatment", (0, 1))])
def test_conditions_are_coded(coding, values):
    table = design(TWO, 20, seed=6)
    formula = "surprisal ~ a * b + frequency + (1 + a || item)"
    found = analyse_table(table, formula=formula, coding=coding).mixed["m"]
    for name, (low, high) in TWO.items():
        table[name] = table[name].map({low: values[0], high: values[1]})
    pd.testing.assert_frame_equal(found.terms, fit_mixed(formula, table).terms)


def test_a_formula_names_its_response_and_may_have_the_model():
    table = pd.concat([design(TWO, 8, seed=1, model="A"), design(TWO, 8, seed=2, model="B")])
    table = table.rename(columns={"item": "frame", "surprisal": "Surprisal"})
    found = analyse_table(table, formula="Surprisal ~ a*model + (1 | frame)")
    ((key, fit),) = found.mixed.items()
    assert (key, fit.n, found.response, len(found.items)) == ("", 64, "Surprisal", 0)
    assert [*fit.terms.index] == ["(Intercept)", "a", "model", "a:model"]
    # columns that only have the word in their name are not the column `model`
    table = table.rename(columns={"frequency": "model.size"})
    found = analyse_table(table, formula="Surprisal ~ model.size + (1 | frame)")
    assert [*found.mixed] == ["A", "B"]


def crossed(seed):
    """20 items x 4 subjects, which differ, in all cells of two coded factors."""
    table = design({"a": (-0.5, 0.5), "b": (-0.5, 0.5), "subject": tuple("stuv")}, 20, seed)
    return table.assign(y=table["surprisal"] + 3 * table["frequency"])


def test_a_mixed_fit_of_balanced_groups_is_the_analysis_of_variance():
    """Whose mean squares REML's variances follow from; AIC as lme4's: test_reproduced.py."""
    table = crossed(4)
    by_item = table.groupby("item")["y"]
    between, within = 16 * by_item.mean().var(), by_item.var().mean()
    mean, se = table["y"].mean(), math.sqrt(between / 320)
    table.loc[320] = table.loc[0]
    table.loc[320, "y"] = math.nan
    fit = fit_mixed("y ~ 1 + (1 | item)", table)
    assert (fit.n, fit.left_out, fit.groups, fit.warning) == (320, 1, {"item": 20}, "")
    assert fit.residual_sd == pytest.approx(math.sqrt(within), rel=1e-4)
    of_items = math.sqrt((between - within) / 16)
    assert fit.random_sd == {"item": {"(Intercept)": pytest.approx(of_items, rel=1e-4)}}
    low, high = scipy.stats.t.interval(0.95, 19, mean, se)
    expected = {"estimate": mean, "se": se, "df": 19, "ci_low": low, "ci_high": high}
    found = fit.terms.loc["(Intercept)", [*expected]]
    assert found.to_dict() == pytest.approx(expected, rel=1e-3)
    fit = fit_mixed("y ~ a * b + (1 + a + b || item) + (1 | subject)", table)
    assert [*fit.terms.index] == ["(Intercept)", "a", "b", "a:b"]
    assert {group: [*sds] for group, sds in fit.random_sd.items()} == {
        "item": ["(Intercept)", "a", "b"], "subject": ["(Intercept)"],
    }  # fmt: skip


def test_levels_of_text_columns_are_named():
    table = crossed(2).assign(c=["one", "two", "three", "two"] * 80)
    terms = fit_mixed("y ~ c + (1 | item)", table).terms
    assert [*terms.index] == ["(Intercept)", "c[three]", "c[two]"]
    terms = fit_mixed("y ~ c + (1 | item)", table, coding="sum").terms
    assert [*terms.index] == ["(Intercept)", "c[one]", "c[three]"]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ a + (1 | item", "write it as lme4 has it"),
        ("y ~ a + (1 | pair)", "no column 'pair'; choose from model, item"),
        ("y ~ a + (1 | y)", "320 rows for 320 random effects of y"),
        ("y ~ a + double + (1 | item)", "cannot be fitted: .* rank deficient"),
    ],
)
def test_a_formula_that_cannot_be_fitted(formula, message, monkeypatch):
    table = crossed(3)
    with pytest.raises(BadInput, match=message):
        fit_mixed(formula, table.assign(double=2 * table.a))
    monkeypatch.setitem(sys.modules, "mixedlm", None)
    with pytest.raises(BadInput, match=r"pip install '\.\[mixed\]'` in a clone"):
        fit_mixed(formula, table)


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"response": "time"}, "no column 'time': choose --response from frequency, surprisal"),
        ({"response": "a"}, "rows:1: the column a: 'x' is not a number"),
        ({"conditions": ["c"]}, "no column 'c': choose from model, item"),
        ({"conditions": ["model"]}, "the column model has fewer than two levels"),
        ({"conditions": ["context"]}, "no item has a value in all 24 cells of context"),
        ({"region": "3"}, "the table has no regions"),
        ({"response": "correct"}, "correct needs the columns good and contrast"),
    ],
)
def test_what_cannot_be_analysed_is_one_line(options, message):
    with pytest.raises(BadInput, match=message):
        lmdiag.analyse(design(TWO, 6, seed=1), **options)
    with pytest.raises(BadInput, match="no column item"):
        analyse_table(design(TWO, 6, seed=1).drop(columns="item"))


def test_the_surprisal_of_a_region_is_the_sum_over_its_words():
    """Item 1: 5 + 9 and 3 + 7 + 8; item 2: 5 + 11 and 3 + 9 + 8; two readers have the same."""
    rows = [(1, "a", [5, 9]), (1, "b", [3, 7, 8]), (2, "a", [5, 11]), (2, "b", [3, 9, 8])]
    table = pd.DataFrame(
        {"item": item, "cond": cond, "word_index": place, "region": "np", "surprisal": bits,
         "rt": 100 * place, "subject": reader}
        for item, cond, words in rows for place, bits in enumerate(words, 1) for reader in (1, 2)
    )  # fmt: skip
    found = analyse_table(table, region="np", conditions=["cond"])
    assert (found.effects.estimate[0], [*found.cells["mean"]]) == (4, [15, 19])
    assert found.notes == (
        "surprisal: sum over the words of an item and cell, 20 rows make 8 sums",
    )
    found = analyse_table(table, response="rt", conditions=["cond"])
    assert [*found.cells["mean"]] == [150, 200]
    assert found.notes == (
        "rt: mean over the rows of an item and cell, 20 rows of 4 cells; the "
        "rows of a cell differ in word_index: --filter word_index=VALUE chooses some",
    )
    found = analyse_table(pd.concat([table, table[:3]]), response="rt", conditions=["cond"])
    assert "; 3 rows repeat an earlier one of their reader, but for rt" in found.notes[0]
    parts = table.drop(columns="subject")[::2].assign(token="ha")
    parts = pd.concat([parts, parts.assign(token="ho", surprisal=1)])
    found = analyse_table(parts, region="np", conditions=["cond"])  # two tokens of each word
    assert [*found.cells["mean"]] == [15 + 2, 19 + 3]
    averaged = pd.concat([parts, parts.assign(surprisal=9)])
    found = analyse_table(averaged, region="np", conditions=["cond"])
    assert found.notes[0].endswith("of one word with several values are averaged before")
    verb = table.assign(region="verb")
    with pytest.raises(BadInput, match="choose a region with --region from np, verb"):
        analyse_table(pd.concat([table, verb]))


def test_one_of_several_measures_has_to_be_chosen():
    table = design({"c": ("x", "y")}, 6, seed=4)
    both = pd.concat([table.assign(measure=name) for name in ("ffd", "tt")])
    with pytest.raises(BadInput, match=r"measure has the names of 2 measures \(ffd, tt\): choose"):
        analyse_table(both)
    assert [*analyse_table(both[both["measure"] == "tt"]).conditions] == ["c"]


def test_a_known_name_of_items_is_taken_and_levels_may_be_texts():
    table = pd.DataFrame({"stimulus": [1, 1, 2, 2, 3, 3], "a": list("xyxyxy")})
    table["surprisal"] = [1.0, 4, 2, 3, 1.5, 3.5]
    found = lmdiag.analyse(table, levels="a=y,x")
    assert found.effects["label"].tolist() == ["a[x - y]"]
    assert "columns: stimulus as item" in found.notes
    with pytest.raises(BadInput, match=r"levels.*: write COLUMN=a,b,c"):
        lmdiag.analyse(table, levels="y,x")
    with pytest.raises(BadInput, match="for the effects of b at one level give --filter a=x"):
        lmdiag.analyse(table.assign(b=[1, 2] * 3), by="a", conditions="b")
