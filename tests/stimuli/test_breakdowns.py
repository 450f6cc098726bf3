"""The columns of a user's own rows by which figures are broken down."""

from lmdiag import stimuli

SUBJECTS = ["robin", "robins", "cook", "cooks", "clerk", "clerks", "guard", "guards"]
ROWS = {
    "number": ["sg", "pl"] * 4,
    "list": ["A", "B", "B", "A"] * 2,
    "frequency": ["high"] * 4 + ["low"] * 4,
    "participant": ["x", "x", "y", "y"] * 2,
    "correct": ["1", "0", "0", "1", "1", "1", "0", "1"],
    "critical": SUBJECTS,
    "sentence": [f"The {subject} near the gate slept." for subject in SUBJECTS],
}
ITEMS = ["1", "1", "2", "2", "3", "3", "4", "4"]


def test_rows_of_items_are_broken_down_by_their_conditions():
    assert [*stimuli.load({"item": ITEMS, **ROWS}).levels] == ["number"]


def test_rows_without_items_are_not_broken_down_by_lists_readers_responses_and_their_words():
    assert [*stimuli.load(ROWS).levels] == ["number", "frequency"]


def test_pairs_are_broken_down_by_what_differs_between_them():
    pairs = {"good": [True, False] * 4, "contrast": ITEMS}
    rows = stimuli.load({"item": ITEMS, **ROWS, **pairs})
    assert [*rows.levels] == ["number", "frequency"]
