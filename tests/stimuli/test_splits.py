"""Names of several parts: what divides them, and what each part is called."""

import pandas as pd
import pytest

from lmdiag import stimuli
from lmdiag.stimuli.designs.design import design_of
from lmdiag.stimuli.values.splits import split_of

LEVELS = {
    "_:grammaticality,number": ["gram_sg", "gram_pl", "ungram_sg", "ungram_pl"],
    "-:factor_1,factor_2": ["High-Match", "High-Non", "Low-Match", "Low-Non"],
    ", :factor_1,length": ["high, short", "high, long", "low, short", "low, long"],
    "_:factor_1,factor_2": ["non-match_a", "non-match_b", "match_a", "match_b"],
    ".:part_1,number,factor_3": ["s.sg.x", "s.sg.y", "s.pl.x", "s.pl.y"],
    "::factor_1,factor_2": ["a:c", "a:d", "b:c", "b:d"],
    "/:factor_1,factor_2": ["+def/+an", "+def/-an", "-def/+an", "-def/-an"],
    " :factor_1,part_2,factor_3": ["a x c", "a x d", "b x c", "b x d"],
    ":grammaticality,number": ["GramSg", "GramPl", "UngramSg", "UngramPl"],
    ":factor_1,factor_2": ["AC", "AD", "BC", "BD"],
    ", :factor_1,factor_2": [
        "subj sg, obj sg",
        "subj sg, obj pl",
        "subj pl, obj sg",
        "subj pl, obj pl",
    ],
    "": ["a_c", "a_d", "b_c"],
    "_:factor_1,factor_2,factor_3": [f"{a}_{b}_{c}" for a in "xy" for b in "xy" for c in "xy"],
}
"""What `--split` takes -> the levels; "" for levels that are not crossed."""


@pytest.mark.parametrize("split", LEVELS)
def test_levels_of_crossed_conditions_are_divided_as_proposed(split):
    levels = LEVELS[split]
    assert split_of(levels) == split
    if split:
        table = {"sentence": [f"It is {n}." for n in range(len(levels))], "kind": levels}
        rows = stimuli.load(table, split=f"kind={split}").columns()
        names = split.rpartition(":")[2].split(",")
        cells = {*zip(*(rows[name] for name in names), strict=True)}
        assert len(cells) == len(levels)


def test_a_proposed_split_has_no_name_of_another_column():
    assert split_of(LEVELS["_:grammaticality,number"], ["number"]) == "_:grammaticality,factor_2"


ITEMS = {
    "item=_:item,grammaticality,number": "{item}_{gram}_{number}",
    "item=-:part_1,grammaticality,item,number": "agr-{gram}-{item}-{number}",
    "id=.:item,grammaticality,number": "{item}.{gram}.{number}",
    "Code=_:grammaticality,number,item": "{gram}_{number}_{item}",
}


@pytest.mark.parametrize("split", ITEMS)
def test_conditions_in_names_of_items_are_divided_as_said(split):
    rows = pd.DataFrame(
        {
            split.partition("=")[0]: ITEMS[split].format(item=item, gram=gram, number=number),
            "sentence": f"The {noun} near the {number} door {gram} {noun} {item} {item}.",
        }
        for item, noun in enumerate(["baker", "pilot", "singer"], start=10)
        for gram in ("gram", "ungram")
        for number in ("sg", "pl")
    )
    warnings = " ".join(design_of(stimuli.load(rows)).warnings)
    assert f"--split {split} divides them" in warnings
    design = design_of(stimuli.load(rows, split=split))
    assert ({*design.levels}, design.n_complete) == ({"grammaticality", "number"}, 3)


def test_more_than_six_levels_are_answered_with_the_split_that_divides_them():
    rows = pd.DataFrame(
        {"item": str(item), "cond": f"{a}_{b}", "sentence": f"The {a} saw {b} of {item}."}
        for item in range(3)
        for a in ("near", "mid", "far")
        for b in ("sg", "pl", "du")
    )
    (warning,) = design_of(stimuli.load(rows)).warnings
    assert "divide them by --split cond=_:factor_1,factor_2" in warning


def test_labels_that_have_items_in_them_are_divided_under_their_own_name():
    """A column that is read as items, and one beside items; numbers have no parts."""
    rows = pd.DataFrame(
        {"Code": f"{number}{item}", "sentence": f"The {noun} with {item} {number} {verb}."}
        for item, noun in enumerate(["baker", "pilot", "singer"])
        for number in ("sg", "pl")
        for verb in ("ran", "sat")
    )
    warnings = design_of(stimuli.load(rows)).warnings
    assert "--split Code=:number,item divides them" in warnings[0]
    labels = [f"i{code[2:]}_{code[:2]}" for code in rows["Code"]]
    beside = rows.assign(item=rows["Code"].str[2:], Code=labels, kind=["a", "b"] * 6)
    warnings = " ".join(design_of(stimuli.load(beside)).warnings)
    assert "--split Code=_:part,number divides them" in warnings
    numbers = rows.assign(Code=[int(code[2:]) * 10 + (code[:2] == "sg") for code in rows["Code"]])
    assert "--split" not in " ".join(design_of(stimuli.load(numbers)).warnings)
