"""Source files to rows: section 1 of the specification by example, and errors by file and line."""

import json
from pathlib import Path

import pytest

from lmdiag.stimuli.dataset import script
from lmdiag.types import BadInput

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


def pair(good, bad, label=-1):
    return json.dumps({"sentence_good": good, "sentence_bad": bad, "label": label}) + "\n"


PAIR = pair("a dog runs", "a dog run")

SOURCES = {
    "cprag102": {"c.tsv": CPRAG + CPRAG_LINE, "e.tsv": WHY},
    "role88": {"r.tsv": ROLE + ROLE_A + ROLE_B},
    "neg136": {"s.tsv": SIMP + SIMP_LINE, "n.tsv": NAT + NAT_LINE},
    "agreement": {"ML/simple.jsonl": PAIR},
}
"""Config -> its valid files, in the order of its parser's arguments."""


def parse(folder, config, **changed):
    """Parses the files of a config; `changed` replaces their content, by file stem."""
    for name, text in SOURCES[config].items():
        content = changed.get(Path(name).stem, text)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    paths = [folder / name for name in SOURCES[config]]
    return list(script("directory").PARSERS[config](*paths))


# What the parsers make of the published files is compared with these in test_upstream.py.


def test_an_agreement_pair_is_a_good_and_a_bad_row(tmp_path):
    line = pair("The dogs that the cat sees run.", "The dogs that the cat see run.")
    good, bad = parse(tmp_path, "agreement", simple="\n" + line)
    # the id has the line number, from 0, so that an empty line changes nothing else
    assert good["contrast"] == bad["contrast"] == "agreement-simple-1"
    assert (good["id"], bad["id"]) == (f"{good['contrast']}-good", f"{bad['contrast']}-bad")
    assert (good["context"], good["right_context"]) == ("The dogs that the cat", "run.")
    assert (good["target"], bad["target"]) == ("sees", "see")
    assert (good["number"], good["source"], good["expected"]) == ("singular", "marvin_linzen", [])
    assert good["template"] == "simple"
    last, _ = parse(tmp_path, "agreement", simple=pair("the dogs run", "the dogs runs", -2))
    assert (last["context"], last["right_context"], last["number"]) == ("the dogs", ".", "plural")


BAD = [
    ("cprag102", {"c": "item\tcontext\n"}, "c.tsv:1: the header must name the columns item,"),
    ("cprag102", {"c": f"{CPRAG}7\tIt rained.\tSo\tumbrella\n"}, "c.tsv:2: 4 fields, expected 7"),
    ("cprag102", {"c": CPRAG + CPRAG_LINE.replace("coat", " ")}, "c.tsv:2: the column within_ca"),
    ("cprag102", {"c": CPRAG + CPRAG_LINE.replace("\tH", "\tM")}, "constraint must be one of H, L"),
    ("cprag102", {"c": CPRAG.encode() + b"7\tIt r\xffined.\n"}, "c.tsv:2: not UTF-8"),
    ("cprag102", {"c": CPRAG + CPRAG_LINE * 2}, "c.tsv:3: the item 7 is repeated, first in line 2"),
    ("cprag102", {"e": WHY.replace("7", "8", 1)}, "c.tsv:2: item 7 has no explanation in"),
    ("cprag102", {"e": WHY.replace("rained", "snowed")}, "e.tsv:1: context or completion"),
    ("role88", {"r": ROLE + ROLE_A.replace("0.5\n", "half\n")}, "(strict) is not a number: 'half'"),
    ("role88", {"r": ROLE + ROLE_A.replace("0.5\n", "1.5\n")}, "tgt_cloze(strict) is not a prop"),
    ("role88", {"r": ROLE + ROLE_A.replace("which", "a")}, 'must end in "which NOUN the NOUN had'),
    ("role88", {"r": ROLE + ROLE_A.replace("3-a", "3-c")}, "a number with -a or -b, not '3-c'"),
    ("role88", {"r": ROLE + ROLE_A + ROLE_B.replace("caught", "eaten")}, "pair 3 needs contexts"),
    ("role88", {"r": ROLE + ROLE_B.replace("|seen", "|")}, "an expected response is empty"),
    ("neg136", {"s": SIMP + SIMP_LINE.replace("is (a|an)", "is a")}, "s.tsv:2: a context must end"),
    ("neg136", {"n": NAT + NAT_LINE.replace("\tN", "\tX")}, "n.tsv:2: licensing must be one of Y"),
    ("agreement", {"simple": '{"sentence_good": "a", "label": -1}'}, "sentence_bad is missing or"),
    ("agreement", {"simple": pair("a dog runs", "a dog run", 1)}, "label must be one of -1, -2,"),
    ("agreement", {"simple": pair("a dog runs", "a dog runs.")}, "the pair differs nowhere"),
    ("agreement", {"simple": pair("a dog runs", "one dog run")}, "differs in several places"),
]


@pytest.mark.parametrize(("config", "changed", "message"), BAD, ids=[case[2] for case in BAD])
def test_malformed_lines_are_named_by_file_and_line(tmp_path, config, changed, message):
    with pytest.raises(BadInput) as error:
        parse(tmp_path, config, **changed)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
