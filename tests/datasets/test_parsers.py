"""Source files to rows: SPEC 1 by example, and what is said of malformed lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading.agreement import agreement, split_pair, verbs
from loading.diagnostics import cprag102, fit_determiner, neg136, role88
from loading.lines import BadSource

CPRAG = "item\tcontext_s1\tcontext_s2\texpected\twithin_category\tbetween_category\tconstraint\n"
ROLE = "item\tcontext\texpected\texp_cloze\ttarget\ttgt_cloze\ttgt_cloze(strict)\n"
SIMP = "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
NAT = SIMP.rstrip() + "\tlicensing\n"

CPRAG_LINE = "7\tIt rained.\tSo she took her\tumbrella\tcoat\tspoon\tH\n"
WHY = "7\tIt rained. So she took her\tumbrella\tan umbrella keeps off rain\n"
ROLE_A = "3-a\tMax saw which mouse the cat had \tcaught\t0.533333333\tcaught\t0.533333333\t0.5\n"
ROLE_B = "3-b\tMax saw which cat the mouse had \trun from|seen\t0.2\tcaught\t0.033333333\t0\n"
SIMP_LINE = "4\tA robin is (a|an)\tA robin is not (a|an)\tbird\tinsect\n"
NAT_LINE = "5\tIce is very\tIce isn't very\tcold\thot\tN\n"


def write(path: Path, *parts: str | bytes) -> Path:
    path.write_bytes(b"".join(p if isinstance(p, bytes) else p.encode() for p in parts))
    return path


def cprag(
    folder: Path, line: str | bytes = CPRAG_LINE, why: str = WHY, header: str = CPRAG
) -> list:
    return list(cprag102(write(folder / "c.tsv", header, line), write(folder / "e.tsv", why)))


def roles(folder: Path, *lines: str) -> list:
    return list(role88(write(folder / "r.tsv", ROLE, *lines)))


def negations(folder: Path, simp: str = SIMP_LINE, nat: str = NAT_LINE) -> list:
    return list(neg136(write(folder / "s.tsv", SIMP, simp), write(folder / "n.tsv", NAT, nat)))


def pairs(folder: Path, *lines: str, name: str = "ML/simple_agrmt_all.jsonl") -> list:
    (folder / name).parent.mkdir(exist_ok=True)
    return list(agreement(write(folder / name, *(line + "\n" for line in lines))))


def pair(good: str, bad: str, label: int = -1) -> str:
    return json.dumps({"sentence_good": good, "sentence_bad": bad, "label": label})


def test_cprag_item_is_three_rows_of_one_contrast(tmp_path: Path) -> None:
    rows = cprag(tmp_path)
    assert [row["id"] for row in rows] == [
        "cprag102-7-expected", "cprag102-7-within_category", "cprag102-7-between_category",
    ]  # fmt: skip
    assert [row["target"] for row in rows] == ["umbrella", "coat", "spoon"]
    assert [row["good"] for row in rows] == [True, False, False]
    assert [row["expected"] for row in rows] == [["umbrella"], [], []]
    assert {row["contrast"] for row in rows} == {"cprag102-7"}
    assert {row["context"] for row in rows} == {"It rained. So she took her"}
    assert rows[0]["explanation"] == "an umbrella keeps off rain"
    assert (rows[0]["item"], rows[0]["constraint"], rows[0]["right_context"]) == ("7", "high", "")


def test_role_rows_keep_decimals_and_raw_responses(tmp_path: Path) -> None:
    good, bad = roles(tmp_path, ROLE_A, ROLE_B)
    assert (good["id"], good["item"], good["contrast"]) == ("role88-3-a", "3-a", "role88-3")
    assert (good["condition"], bad["condition"]) == ("appropriate", "reversed")
    assert (good["good"], bad["good"]) == (True, False)
    assert good["context"] == "Max saw which mouse the cat had"  # the source ends in a blank
    assert (good["object"], good["subject"]) == ("mouse", "cat")
    assert bad["expected"] == ["run", "seen"]
    assert bad["expected_responses"] == ["run from", "seen"]
    assert (good["expected_cloze"], good["target_cloze_strict"]) == (0.533333333, 0.5)
    assert (bad["target_cloze"], bad["target_cloze_strict"]) == (0.033333333, 0.0)


def test_negation_rows_pair_truth_with_polarity(tmp_path: Path) -> None:
    rows = {row["id"]: row for row in negations(tmp_path)}
    simp = {
        # id -> (context with the determiner of the row's own target, target, good, expected)
        "neg136-simp-4-TA": ("A robin is a", "bird", True, ["bird"]),
        "neg136-simp-4-FA": ("A robin is an", "insect", False, []),
        "neg136-simp-4-TN": ("A robin is not an", "insect", True, []),
        "neg136-simp-4-FN": ("A robin is not a", "bird", False, []),
    }
    for identifier, due in simp.items():
        row = rows[identifier]
        assert (row["context"], row["target"], row["good"], row["expected"]) == due
        assert row["natural"] is None
    assert rows["neg136-simp-4-TN"]["contrast"] == "neg136-simp-4-negative"
    assert rows["neg136-nat-5-TN"]["target"] == "hot"
    assert rows["neg136-nat-5-TN"]["context"] == "Ice isn't very"
    assert rows["neg136-nat-5-TA"]["natural"] is False
    assert len(rows) == 8


@pytest.mark.parametrize(
    ("target", "determiner"),
    [("insect", "an"), ("Oak", "an"), ("bird", "a"), ("unit", "an"), ("yak", "a")],
)
def test_determiner_goes_by_the_first_letter(target: str, determiner: str) -> None:
    assert fit_determiner("It is (a|an)", target) == f"It is {determiner}"
    assert fit_determiner("It is very", target) == "It is very"


def test_agreement_pair_is_a_good_and_a_bad_row(tmp_path: Path) -> None:
    line = pair("The dogs that the cat sees run.", "The dogs that the cat see run.")
    good, bad = pairs(tmp_path, "", line, name="ML/obj_rel_within_anim_all.jsonl")
    # The line number, from 0, is part of the id: an empty line before it changes nothing else.
    assert good["contrast"] == bad["contrast"] == "agreement-obj_rel_within_anim_all-1"
    assert (good["id"], bad["id"]) == (f"{good['contrast']}-good", f"{bad['contrast']}-bad")
    assert (good["context"], good["right_context"]) == ("The dogs that the cat", "run.")
    assert (good["target"], bad["target"]) == ("sees", "see")
    assert (good["number"], good["source"], good["expected"]) == ("singular", "marvin_linzen", [])
    assert good["template"] == "obj_rel_within_anim_all"


def test_last_word_leaves_the_period_to_the_right(tmp_path: Path) -> None:
    good, _ = pairs(tmp_path, pair("the dogs run", "the dogs runs", -2), name="blimp/x.jsonl")
    assert (good["context"], good["right_context"]) == ("the dogs", ".")
    assert (good["number"], good["source"]) == ("plural", "blimp")


WORDS = st.text("abcdefgh'-", min_size=1).filter(lambda word: word.strip("'-") == word)


@given(
    st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6), WORDS, WORDS, st.sampled_from("?.! ")
)
def test_a_split_pair_joins_to_its_sentences(
    left: list[str], right: list[str], good: str, bad: str, end: str
) -> None:
    if good == bad:
        return
    sentences = [" ".join([*left, word, *right]) for word in (good, bad)]
    found = split_pair("", *(f'"{sentence}{end}' for sentence in sentences))
    assert [" ".join(filter(None, [found[0], word, found[2]])) for word in found[1]] == sentences
    assert found[1] == (good, bad)


def test_verbs_are_the_two_middle_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", "idx,sing,plur,freq\n_,goes,go,_\n_,has,have,_\n")
    rows = [{"singular": "goes", "plural": "go"}, {"singular": "has", "plural": "have"}]
    assert list(verbs(path)) == rows


BAD_CPRAG = {
    "header": ({"header": "item\tcontext\n"}, "c.tsv:1: the header must name the columns item,"),
    "fields": (
        {"line": "7\tIt rained.\tSo\tumbrella\n"},
        "c.tsv:2: 4 tab-separated fields where 7",
    ),
    "empty": ({"line": CPRAG_LINE.replace("coat", " ")}, "c.tsv:2: the column within_category is"),
    "code": (
        {"line": CPRAG_LINE.replace("\tH", "\tM")},
        "c.tsv:2: constraint must be one of H, L",
    ),
    "utf-8": ({"line": b"7\tIt r\xffined.\n"}, "c.tsv:2: not UTF-8"),
    "twice": ({"line": CPRAG_LINE * 2}, "c.tsv:3: the item 7 was there before"),
    "unexplained": ({"why": WHY.replace("7", "8", 1)}, "c.tsv:2: item 7 has no explanation in"),
    "other context": ({"why": WHY.replace("rained", "snowed")}, "e.tsv:1: context or completion"),
}


@pytest.mark.parametrize("case", BAD_CPRAG)
def test_malformed_cprag_is_named_by_file_and_line(tmp_path: Path, case: str) -> None:
    arguments, message = BAD_CPRAG[case]
    with pytest.raises(BadSource) as error:
        cprag(tmp_path, **arguments)
    assert message in str(error.value)


BAD_ROLE = {
    "cloze": (
        [ROLE_A.replace("0.5\n", "half\n")],
        "r.tsv:2: tgt_cloze(strict) is no number: 'half'",
    ),
    "range": ([ROLE_A.replace("0.5\n", "1.5\n")], "r.tsv:2: tgt_cloze(strict) is no proportion"),
    "not a number": ([ROLE_A.replace("0.5\n", "nan\n")], "r.tsv:2: tgt_cloze(strict) is no prop"),
    "roles": (
        [ROLE_A.replace("which", "a")],
        'r.tsv:2: a context ends in "which NOUN the NOUN had',
    ),
    "item": (
        [ROLE_A.replace("3-a", "3-c")],
        "r.tsv:2: an item is a number with -a or -b, not '3-c'",
    ),
    "alone": ([ROLE_A], "r.tsv: pair 3 needs contexts -a and -b"),
    "targets": (
        [ROLE_A, ROLE_B.replace("caught", "eaten")],
        "r.tsv: pair 3 needs contexts -a and -b",
    ),
    "response": ([ROLE_B.replace("|seen", "|")], "r.tsv:2: an expected response is empty"),
}


@pytest.mark.parametrize("case", BAD_ROLE)
def test_malformed_role_is_named_by_file_and_line(tmp_path: Path, case: str) -> None:
    lines, message = BAD_ROLE[case]
    with pytest.raises(BadSource) as error:
        roles(tmp_path, *lines)
    assert message in str(error.value)


def test_malformed_negation_is_named_by_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(
        BadSource, match=r"s\.tsv:2: a context ends in \(a\|an\), not 'A robin is a'"
    ):
        negations(tmp_path, simp=SIMP_LINE.replace("is (a|an)", "is a"))
    with pytest.raises(BadSource, match=r"n\.tsv:2: licensing must be one of Y, N"):
        negations(tmp_path, nat=NAT_LINE.replace("\tN", "\tX"))


BAD_PAIRS = {
    "json": ("{", "simple_agrmt_all.jsonl:2: not JSON"),
    "nested": ("[" * 100_000, "simple_agrmt_all.jsonl:2: not JSON"),
    "digits": ('{"label": ' + "1" * 5000 + "}", "simple_agrmt_all.jsonl:2: not JSON"),
    "surrogate": ('{"sentence_good": "\\ud800"}', "simple_agrmt_all.jsonl:2: not JSON"),
    "object": ("[1]", "simple_agrmt_all.jsonl:2: a JSON object is due"),
    "sentence": ('{"sentence_good": "a", "label": -1}', ":2: sentence_bad is missing or no text"),
    "label": (pair("a dog runs", "a dog run", 1), ":2: label must be -1 (singular) or -2 (plural)"),
    "nowhere": (pair("a dog runs", "a dog runs."), ":2: the pair differs nowhere"),
    "several": (pair("a dog runs", "one dog run"), ":2: the pair differs in several places"),
    "longer": (pair("a dog runs", "a dog does run"), ":2: the pair differs in several places"),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_malformed_pair_is_named_by_file_and_line(tmp_path: Path, case: str) -> None:
    line, message = BAD_PAIRS[case]
    with pytest.raises(BadSource) as error:
        pairs(tmp_path, pair("a dog runs", "a dog run"), line)
    assert message in str(error.value)


def test_malformed_verbs_are_named_by_file_and_line(tmp_path: Path) -> None:
    header = "idx,sing,plur,freq\n"
    for text, message in {
        "sing,plur\n": "v.csv:1: the header must be idx,sing,plur,freq",
        f"{header}_,goes,,_\n": "v.csv:2: idx,sing,plur,freq are due",
        f"{header}_,goes,go,_\n_,goes,go,_\n": "v.csv:3: the item goes,go was there before",
    }.items():
        with pytest.raises(BadSource) as error:
            list(verbs(write(tmp_path / "v.csv", text)))
        assert message in str(error.value)
