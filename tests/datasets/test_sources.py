"""Source files: their rows by example and beside the published ones, errors by line, downloads.

In downloads of the pinned files, the transport answers in place of the network.
"""

import csv
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmdiag.stimuli.dataset import script
from lmdiag.types import BadInput

sources = script("sources")
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
SERVER = "https://server.example"
COMMITS = {
    "/aetting/lm-diagnostics": "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c",
    "/bnewm0609/refining-tse": "db423f80246ba2d7c2fc602fc514943949cfaf71",
}
REFUSED = httpx2.ConnectError("[Errno 111] Connection refused")
STRINGS = pa.list_(pa.string())
CORE = {
    "id": pa.string(), "item": pa.string(), "condition": pa.string(), "context": pa.string(),
    "right_context": pa.string(), "target": pa.string(), "good": pa.bool_(),
    "contrast": pa.string(), "expected": STRINGS,
}  # fmt: skip
COLUMNS = {
    "cprag102": CORE
    | dict.fromkeys(("sentence_1", "sentence_2", "constraint", "explanation"), pa.string()),
    "role88": CORE
    | dict.fromkeys(("expected_cloze", "target_cloze", "target_cloze_strict"), pa.float64())
    | {"expected_responses": STRINGS, "object": pa.string(), "subject": pa.string()},
    "neg136": CORE | {"subset": pa.string(), "polarity": pa.string(), "natural": pa.bool_()},
    "agreement": CORE | dict.fromkeys(("source", "template", "number"), pa.string()),
    "verbs": {"singular": pa.string(), "plural": pa.string()},
}
"""Columns in their order, stated independently of the loading scripts."""


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


def columns(folder, config):
    """The columns of a config, whose types are checked."""
    table = pq.read_table(folder / config)
    assert [(field.name, field.type) for field in table.schema] == list(COLUMNS[config].items())
    return table.to_pydict()


def tsv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_cprag_texts_are_those_of_the_source(upstream, data_dir):
    rows = columns(data_dir, "cprag102")
    source = tsv(upstream / "lm-diagnostics/datasets/CPRAG-102/CPRAG-102.tsv")
    assert list(zip(rows["id"], rows["context"], rows["target"], strict=True)) == [
        (f"cprag102-{line['item']}-{c}", f"{line['context_s1']} {line['context_s2']}", line[c])
        for line in source
        for c in ("expected", "within_category", "between_category")
    ]
    assert rows["good"] == [True, False, False] * len(source)
    constraint = {"H": "high", "L": "low"}
    assert rows["constraint"][::3] == [constraint[line["constraint"]] for line in source]
    assert all(rows["explanation"])
    assert any("’" in context for context in rows["context"])  # curly quotes stay


def test_role_texts_and_decimals_are_those_of_the_source(upstream, data_dir):
    rows = columns(data_dir, "role88")
    source = tsv(upstream / "lm-diagnostics/datasets/ROLE-88/ROLE-88.tsv")
    assert rows["id"] == [f"role88-{line['item']}" for line in source]
    assert rows["good"] == [line["item"].endswith("-a") for line in source]
    assert rows["context"] == [line["context"][:-1] for line in source]
    assert rows["target"] == [line["target"] for line in source]
    responses = ["|".join(words) for words in rows["expected_responses"]]
    assert responses == [line["expected"] for line in source]
    for name, published in {
        "expected_cloze": "exp_cloze",
        "target_cloze": "tgt_cloze",
        "target_cloze_strict": "tgt_cloze(strict)",
    }.items():  # the shortest decimals of the double are the source's own
        decimals = [f"{value:.9f}".rstrip("0").rstrip(".") for value in rows[name]]
        assert decimals == [line[published] for line in source]
    assert all(" " not in word for words in rows["expected"] for word in words)
    for context, noun, other in zip(rows["context"], rows["object"], rows["subject"], strict=True):
        assert context.endswith(f" which {noun} the {other} had")


def test_negation_texts_are_those_of_the_source(upstream, data_dir):
    rows = columns(data_dir, "neg136")
    facts = zip(rows["context"], rows["target"], rows["good"], rows["natural"], strict=True)
    by_id = dict(zip(rows["id"], facts, strict=True))
    aff, neg = "aff", "neg"
    conditions = (("TA", aff, aff), ("FA", aff, neg), ("TN", neg, neg), ("FN", neg, aff))
    for subset in ("simp", "nat"):
        path = upstream / f"lm-diagnostics/datasets/NEG-136/NEG-136-{subset.upper()}.tsv"
        for line in tsv(path):
            natural = {"Y": True, "N": False, None: None}[line.get("licensing")]
            for condition, context, target in conditions:
                word, text = line[f"target_{target}"], line[f"context_{context}"]
                determiner = "an" if re.match("[aeiou]", word) else "a"
                text = text.replace("(a|an)", determiner)
                published = (text, word, condition[0] == "T", natural)
                assert by_id.pop(f"neg136-{subset}-{line['item']}-{condition}") == published
    assert not by_id


@pytest.mark.slow
def test_agreement_rows_join_to_the_sentences_of_the_source(upstream, agreement_dir):
    rows = columns(agreement_dir, "agreement")
    assert len(rows["id"]) == len(set(rows["id"])) == 2 * 125_220
    assert Counter(rows["source"]) == {"marvin_linzen": 2 * 121_220, "blimp": 2 * 4_000}
    assert len(set(rows["template"])) == 19
    assert not any(rows["expected"])
    assert len(columns(agreement_dir, "verbs")["plural"]) == 1_951
    texts = {}
    names = ("id", "context", "target", "right_context", "number")
    for identifier, *parts, number in zip(*(rows[name] for name in names), strict=True):
        texts[identifier] = (" ".join(parts).replace(" .", "."), number)
    for path in sorted((upstream / "refining-tse/data").glob("[Mb]*/*.jsonl")):
        for i, line in enumerate(path.read_text("utf-8").splitlines()):
            pair = json.loads(line)
            number = "singular" if pair["label"] == -1 else "plural"
            for kind in ("good", "bad"):
                published = pair[f"sentence_{kind}"].rstrip(".") + "."
                assert texts.pop(f"agreement-{path.stem}-{i}-{kind}") == (published, number)
    assert not texts


def test_the_program_makes_the_committed_files(import_file, scripts, tmp_path):
    generate = import_file(scripts / "demo/generate.py")
    generate.write_agreement(tmp_path)
    committed = scripts / "demo/refining-tse/data"
    made = list(tmp_path.rglob("*.jsonl"))
    assert len(made) == 19
    for path in made:
        assert path.read_bytes() == (committed / path.relative_to(tmp_path)).read_bytes()
    generate.write_simple_negation(tmp_path / "simp.tsv")
    simp = scripts / "demo/lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    assert (tmp_path / "simp.tsv").read_bytes() == simp.read_bytes()


@pytest.fixture
def server(upstream, monkeypatch):
    """Serves the pinned commits; the first requests fail by a status, an exception or bytes."""
    state = SimpleNamespace(paths=[], failures=[])

    def answer(transport, request):
        state.paths.append(request.url.path)
        match state.failures.pop(0) if state.failures else None:
            case Exception() as error:
                raise error
            case int(status):
                return httpx2.Response(status)
            case bytes(content):
                return httpx2.Response(200, content=content)
        for start, commit in COMMITS.items():
            before, _, path = request.url.path.partition(f"/{commit}/")
            if before == start:
                file = upstream / start.split("/")[2] / path
                return httpx2.Response(200, content=file.read_bytes())
        raise AssertionError(request.url)

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", answer)
    monkeypatch.setattr(sources, "PAUSE", 0.0)
    return state


def test_the_pinned_files_are_fetched_once(server, tmp_path, upstream):
    remote = sources.Source("upstream", tmp_path / "kept", SERVER)
    copies = sources.Source("directory", upstream)
    assert remote.configs() == copies.configs()
    for config in remote.configs():
        fetched, copied = remote.files(config), copies.files(config)
        assert [*fetched] == [*copied] == [*sources.CONFIGS[config]["files"]]
        for path, local in fetched.items():
            assert local.read_bytes() == copied[path].read_bytes()
    assert "MIT License" in remote.notice("refining-tse").read_text()
    count = len(server.paths)
    (damaged,) = remote.files("role88").values()
    content = damaged.read_bytes()
    damaged.write_text("damaged")
    assert [path.read_bytes() for path in remote.files("role88").values()] == [content]
    assert len(server.paths) == count + 1


@pytest.mark.parametrize(
    ("failures", "requests", "message"),
    [
        ([503, 429, 500], 4, ""),  # tried again
        ([503] * 9, 5, r"ROLE-88.tsv cannot be fetched \(.*503.*--source demo, or --source DIR"),
        ([404], 1, "cannot be fetched .*404"),
        ([b"other"], 1, r"checksum of http.*ROLE-88.tsv differs: expected 06a3dfdfbeb3"),
        ([REFUSED] * 9, 5, "refused.*--source demo, or --source DIR"),
        ([], 0, "HF_HUB_OFFLINE"),
    ],
)
def test_lasting_failures_are_named_and_nothing_is_kept(
    server, tmp_path, monkeypatch, failures, requests, message
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", not requests)
    server.failures = list(failures)
    remote = sources.Source("upstream", tmp_path / "kept", SERVER)
    if message:
        with pytest.raises(BadInput, match=message):
            remote.files("role88")
        assert not (tmp_path / "kept").exists()
    else:
        assert remote.files("role88")
    assert len(server.paths) == requests
