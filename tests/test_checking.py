"""The record of `lmdiag.check`: uses of columns, what is read, problems and proposals."""

import shlex

import pytest
from pandas import DataFrame

import lmdiag
from lmdiag.types import BadInput

TEXTS = ["The hen sat.", "The hens sat.", "A dog ran off.", "Some dogs ran off."]
ITEMS = DataFrame({"Item": [1, 1, 2, 2], "number": ["sg", "pl"] * 2, "sentence": TEXTS})
WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "ran"]
SAID = {"item": [1] * 5 + [2] * 5, "context": ["A hen is a"] * 5 + ["A cat is a"] * 5}
TABLES = {
    "sentences": (ITEMS.assign(n=[3, 3, 5, 5]), "item condition sentence covariate"),
    "blanks": (
        DataFrame({"context": ["A hen is a", "A cat is a"], "target": ["bird", "pet"]}),
        "context target",
    ),
    "pairs": (
        DataFrame({"sentence_good": TEXTS[::2], "sentence_bad": TEXTS[1::2]}),
        "sentence_good sentence_bad",
    ),
    "critical word": (ITEMS.assign(word=2), "item condition sentence critical", "critical=word"),
    "wide": (
        DataFrame({"sg": TEXTS[::2], "pl": TEXTS[1::2]}), "wide wide condition",
        "wide=sg", "wide=pl",
    ),
    "regions": (
        DataFrame({f"R{n}": ["The", "A"] for n in range(3)}), "region region region",
        "columns=region=R0..R2",
    ),
    "times": (
        DataFrame({"text": [1] * 10, "position": range(1, 11), "word": WORDS, "rt": range(10)}),
        "text position word response",
    ),
    "responses": (
        DataFrame({**SAID, "response": ["pet", "bird", "pet", "pet", "tree"] * 2}),
        "item context response",
    ),
    "measures": (
        DataFrame({"item": [1, 1, 2, 2], "cond": ["a", "b"] * 2, "rt": [301, 322, 290, 340]}),
        "item condition response",
    ),
}  # fmt: skip
"""Tables -> the use of each column, and options."""


@pytest.mark.parametrize("case", TABLES)
def test_each_column_has_its_use_and_values(case, tmp_path, command):
    table, uses, *given = TABLES[case]
    options = {}
    for text in given:
        name, _, value = text.partition("=")
        options.setdefault(name, []).append(value)
    options |= {"critical": options["critical"][0]} if "critical" in options else {}
    path = tmp_path / "own.csv"
    table.to_csv(path, index=False)
    found = lmdiag.check(path, **options)
    assert [column.use for column in found.columns] == uses.split(), found
    names = [column.name for column in found.columns if not column.is_made]
    assert names == [*table.columns]
    assert found.columns[0].values[0] == str(table.iloc[0, 0])
    assert [*found.first_rows[0].values()] == [*map(str, table.iloc[0])]
    assert str(found) == command("check", path, *shlex.split(found.typed))[1].strip()
    assert [x.use for x in lmdiag.check(table, **options).columns] == uses.split()


def test_a_problem_stands_at_its_column():
    rows = ITEMS.assign(Item=[1, 1, None, None])
    found = lmdiag.check(rows)
    assert [bool(column.problems) for column in found.columns] == [True, False, False]
    assert found.columns[0].problems == tuple(x for x in found.warnings if "item" in x[:4])
    found = lmdiag.check(ITEMS.assign(sentence=["A <b>hen</b>.", *TEXTS[1:]]))
    assert "the column sentence has markup in it" in found.error
    assert [bool(column.problems) for column in found.columns] == [False, False, True]


def test_proposals_read_the_table_as_they_say():
    rows = DataFrame({"Nr": [1, 2], "good_text": TEXTS[::2], "bad_text": TEXTS[1::2]})
    found = lmdiag.check(rows)
    assert (found.reads, found.lacks) == ((), "column of texts")
    assert len(found.proposals) > 1
    for proposal in found.proposals:
        read = lmdiag.check(rows, **proposal.options.stored())
        assert (read.reads, read.lacks, read.proposals) == (proposal.rows, "", ())
        assert read.typed == proposal.typed


def test_bad_input_is_an_error_of_the_record_and_a_wrong_option_is_raised(tmp_path):
    found = lmdiag.check(tmp_path / "none.csv")
    assert "none.csv" in found.error
    assert (found.columns, found.n_rows) == ((), 0)
    with pytest.raises(BadInput, match="no option 'colums'"):
        lmdiag.check(ITEMS, colums="a=b")


ACTS = {"eat a shoe?": "odd", "eat bread?": "usual", "drink a hill?": "odd", "paint it?": "usual"}
EVENTS = DataFrame(
    {"ID": reader, "age": 4 + reader % 3, "event": event, "kind": kind, "RT": len(event) * reader}
    for reader in range(8)
    for event, kind in ACTS.items()
)


RATINGS = DataFrame(
    {
        "item": item, "version": version, "element": element, "Value": value,
        "sentence": f"The {noun} near the gate slept.",
    }
    for reader in range(4)
    for item, nouns in enumerate((("hen", "hens"), ("dog", "dogs")))
    for version, noun in zip("ab", nouns, strict=True)
    for element, value in (("rating", str(1 + reader)), ("answer", ["Yes", "No"][reader % 2]))
)  # fmt: skip


def test_ratings_among_other_answers_have_the_filter_that_keeps_them(tmp_path, command):
    path = tmp_path / "own.csv"
    RATINGS.to_csv(path, index=False)
    found = lmdiag.check(path)
    options = "--response Value --filter element=rating"
    assert found.other.endswith(options)
    # what no condition explains is only named: the list, and not the kind of the answer
    assert found.warnings[-1].endswith("if it is one, give --conditions version")
    analysed = command(*shlex.split(f"analyse {path} {options} --conditions version"))
    assert analysed[0] == 0
    assert "--filter element=rating" in command("analyse", path, "--response", "Value")[2]


def test_items_and_conditions_that_are_given_are_used_or_refused(tmp_path, command):
    """Also beside responses and proposals, for which the table alone says something else."""
    path = tmp_path / "own.csv"
    EVENTS.to_csv(path, index=False)
    found = lmdiag.check(path)  # ID is the participant, and each event has one kind
    assert (found.n_items, found.conditions, found.warnings) == (8, ("kind",), ())
    assert found.other.endswith("--response RT --item ID --conditions kind")
    assert found.typed == lmdiag.check(path, item="ID", conditions="kind").typed
    assert command(*shlex.split(f"analyse {path} --response RT {found.typed}"))[0] == 0
    remedy = "kind differs between items alone: --item ID --conditions kind compares it"
    assert remedy in lmdiag.check(path, item="event").warnings[0]
    assert remedy in lmdiag.check(path, item="event", conditions="kind").error
    for options in ("--item event --conditions kind", ""):
        assert remedy in command(*shlex.split(f"analyse {path} --response RT {options}"))[2]
    for options in ({"item": "nosuch"}, {"conditions": ["kind", "nosuch"]}):
        assert "no column 'nosuch'" in lmdiag.check(path, **options).error
    later = [text.replace(".", " today.") for text in TEXTS]
    wide = DataFrame({"sent_id": range(4), "set": [*"aabb"], "sg": TEXTS, "pl": later})
    (proposal,) = lmdiag.check(wide, item=["set", "sent_id"]).proposals
    assert "4 items" in proposal.summary
    assert not [text for text in proposal.options.columns if text.startswith("item=")]
