"""The published data and the demo source, compared with the source files by other means."""

import csv
import json
import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
