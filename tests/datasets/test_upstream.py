"""The published data, counted and compared with the source files by other means."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CORE = [
    ("id", pa.string()), ("item", pa.string()), ("condition", pa.string()),
    ("context", pa.string()), ("right_context", pa.string()), ("target", pa.string()),
    ("good", pa.bool_()), ("contrast", pa.string()), ("expected", pa.list_(pa.string())),
]  # fmt: skip
FURTHER = {
    "cprag102": [
        ("sentence_1", pa.string()), ("sentence_2", pa.string()), ("constraint", pa.string()),
        ("explanation", pa.string()),
    ],
    "role88": [
        ("expected_cloze", pa.float64()), ("target_cloze", pa.float64()),
        ("target_cloze_strict", pa.float64()), ("expected_responses", pa.list_(pa.string())),
        ("object", pa.string()), ("subject", pa.string()),
    ],
    "neg136": [("subset", pa.string()), ("polarity", pa.string()), ("natural", pa.bool_())],
    "agreement": [("source", pa.string()), ("template", pa.string()), ("number", pa.string())],
}  # fmt: skip

# Rows, contrasts, rows with `expected` (SPEC 1; issue "From clone to scores").
COUNTS = {"cprag102": (102, 34, 34), "role88": (88, 44, 88), "neg136": (136, 68, 34)}


def table(folder: Path, config: str) -> pa.Table:
    (file,) = (folder / config).glob("*.parquet")
    return pq.read_table(file)


def columns(folder: Path, config: str) -> dict[str, list]:
    return table(folder, config).to_pydict()


def tsv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("config", COUNTS)
def test_counts(data_dir: Path, config: str) -> None:
    rows = columns(data_dir, config)
    found = (len(rows["id"]), len(set(rows["contrast"])), sum(map(bool, rows["expected"])))
    assert found == COUNTS[config]
    assert len(set(rows["id"])) == len(rows["id"])
    assert set(rows["right_context"]) == {""}


def test_distinct_contexts_of_the_diagnostics(data_dir: Path) -> None:
    contexts = {text for config in COUNTS for text in columns(data_dir, config)["context"]}
    assert len(contexts) == 198  # the count: 326 rows, 198 contexts


@pytest.mark.parametrize("config", COUNTS)
def test_features_are_exact(data_dir: Path, config: str) -> None:
    schema = table(data_dir, config).schema
    due = CORE + FURTHER[config]
    assert schema.names == [name for name, _ in due]
    for name, kind in due:
        assert schema.field(name).type == kind, name


@pytest.mark.slow
def test_agreement_features_are_exact(agreement_dir: Path) -> None:
    schema = table(agreement_dir, "agreement").schema
    assert [(field.name, field.type) for field in schema] == CORE + FURTHER["agreement"]
    verbs = table(agreement_dir, "verbs").schema
    assert [(f.name, f.type) for f in verbs] == [("singular", pa.string()), ("plural", pa.string())]


@pytest.mark.slow
def test_every_contrast_has_one_good_row(data_dir: Path, agreement_dir: Path) -> None:
    for config in (*COUNTS, "agreement"):
        rows = columns(agreement_dir if config == "agreement" else data_dir, config)
        good = Counter(c for c, g in zip(rows["contrast"], rows["good"], strict=True) if g)
        bad = Counter(c for c, g in zip(rows["contrast"], rows["good"], strict=True) if not g)
        assert set(good.values()) == {1}
        assert set(bad.values()) == {2 if config == "cprag102" else 1}
        assert good.keys() == bad.keys()


def test_cprag_texts_are_the_source_s(upstream: Path, data_dir: Path) -> None:
    rows = columns(data_dir, "cprag102")
    source = tsv(upstream / "lm-diagnostics/datasets/CPRAG-102/CPRAG-102.tsv")
    due = [
        (f"cprag102-{line['item']}-{c}", f"{line['context_s1']} {line['context_s2']}", line[c])
        for line in source
        for c in ("expected", "within_category", "between_category")
    ]
    assert list(zip(rows["id"], rows["context"], rows["target"], strict=True)) == due
    constraint = {"H": "high", "L": "low"}
    assert rows["constraint"][::3] == [constraint[line["constraint"]] for line in source]
    assert all(rows["explanation"])
    assert any("’" in context for context in rows["context"])  # curly quotes stay


def test_role_texts_and_decimals_are_the_source_s(upstream: Path, data_dir: Path) -> None:
    rows = columns(data_dir, "role88")
    source = tsv(upstream / "lm-diagnostics/datasets/ROLE-88/ROLE-88.tsv")
    assert rows["id"] == [f"role88-{line['item']}" for line in source]
    assert rows["context"] == [line["context"][:-1] for line in source]
    assert rows["target"] == [line["target"] for line in source]
    assert ["|".join(words) for words in rows["expected_responses"]] == [
        line["expected"] for line in source
    ]
    for ours, theirs in {
        "expected_cloze": "exp_cloze",
        "target_cloze": "tgt_cloze",
        "target_cloze_strict": "tgt_cloze(strict)",
    }.items():
        # The shortest decimals of the double are the source's own.
        assert [f"{value:.9f}".rstrip("0").rstrip(".") for value in rows[ours]] == [
            line[theirs] for line in source
        ]
    assert all(" " not in word for words in rows["expected"] for word in words)
    for context, noun, other in zip(rows["context"], rows["object"], rows["subject"], strict=True):
        assert context.endswith(f" which {noun} the {other} had")


def test_role_cloze_figures(data_dir: Path) -> None:
    rows = columns(data_dir, "role88")
    clozes, good = np.array(rows["target_cloze"]), np.array(rows["good"])
    assert clozes[good].mean() - clozes[~good].mean() == pytest.approx(0.2333, abs=5e-5)
    bounds = np.percentile(rows["expected_cloze"], [25, 50, 75])
    bins = np.searchsorted(bounds, rows["expected_cloze"], side="left")
    assert np.bincount(bins).tolist() == [25, 23, 23, 17]  # table 8


def test_negation_texts_are_the_source_s(upstream: Path, data_dir: Path) -> None:
    rows = columns(data_dir, "neg136")
    by_id = {
        identifier: (context, target)
        for identifier, context, target in zip(
            rows["id"], rows["context"], rows["target"], strict=True
        )
    }
    folder = upstream / "lm-diagnostics/datasets/NEG-136"
    for subset in ("simp", "nat"):
        for line in tsv(folder / f"NEG-136-{subset.upper()}.tsv"):
            for condition, context, target in (
                ("TA", "aff", "aff"),
                ("FA", "aff", "neg"),
                ("TN", "neg", "neg"),
                ("FN", "neg", "aff"),
            ):
                word, text = line[f"target_{target}"], line[f"context_{context}"]
                fitting = "an" if re.match("[aeiou]", word) else "a"
                due = (text.replace("(a|an)", fitting), word)
                assert by_id.pop(f"neg136-{subset}-{line['item']}-{condition}") == due
    assert not by_id
    assert Counter(zip(rows["subset"], rows["polarity"], rows["natural"], strict=True)) == {
        ("simp", "affirmative", None): 36, ("simp", "negative", None): 36,
        ("nat", "affirmative", True): 16, ("nat", "negative", True): 16,
        ("nat", "affirmative", False): 16, ("nat", "negative", False): 16,
    }  # fmt: skip


@pytest.mark.slow
def test_agreement_counts(agreement_dir: Path) -> None:
    rows = columns(agreement_dir, "agreement")
    assert len(rows["id"]) == len(set(rows["id"])) == 2 * 125_220
    assert Counter(rows["source"]) == {"marvin_linzen": 2 * 121_220, "blimp": 2 * 4_000}
    assert len(set(rows["template"])) == 19
    assert len(set(zip(rows["context"], rows["right_context"], strict=True))) == 78_153
    assert len(set(rows["context"])) == 15_588
    assert not any(rows["expected"])
    assert table(agreement_dir, "verbs").num_rows == 1_951


@pytest.mark.slow
def test_agreement_rows_join_to_the_source_s_sentences(upstream: Path, agreement_dir: Path) -> None:
    rows = columns(agreement_dir, "agreement")
    texts = {}
    for identifier, *parts, number in zip(
        *(rows[name] for name in ("id", "context", "target", "right_context", "number")),
        strict=True,
    ):
        texts[identifier] = (" ".join(parts).replace(" .", "."), number)
    for path in sorted((upstream / "refining-tse/data").glob("[Mb]*/*.jsonl")):
        for i, line in enumerate(path.read_text("utf-8").splitlines()):
            pair = json.loads(line)
            number = "singular" if pair["label"] == -1 else "plural"
            for kind in ("good", "bad"):
                due = pair[f"sentence_{kind}"].rstrip(".") + "."
                assert texts.pop(f"agreement-{path.stem}-{i}-{kind}") == (due, number)
    assert not texts
