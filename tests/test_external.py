"""Predictions of other programs: valid ones are read, errors name file and line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import predictions_of

from lmdiag import stimuli
from lmdiag.protocol import Predictions
from lmdiag.results import predictions
from lmdiag.results.external import read_external
from lmdiag.types import BadInput, WordSpan

GOOD = {"id": "1-good", "top_words": ["bird"], "log_prob": -0.5}
BAD = {"id": "1-bad", "top_words": ["bird"], "log_prob": -3}
ROWS = stimuli.load(
    {
        "id": ["1-good", "1-bad"], "context": ["A penguin is a"] * 2, "target": ["bird", "tool"],
        "good": [True, False], "contrast": ["1", "1"], "expected": [["bird"], []],
    }
)  # fmt: skip


def read(folder: Path, *lines: Any) -> Predictions:
    """Reads JSON lines, given as objects or as text."""
    path = folder / "p.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts))
    [part] = read_external(path, ROWS).runs
    return part


def test_json_lines_in_any_order(tmp_path: Path) -> None:
    assert read(tmp_path, {**BAD, "n_tokens": 2, "note": "mine"}, "", GOOD) == predictions_of(
        {"id": ["1-good", "1-bad"]}, [-0.5, -3.0], [["bird"], ["bird"]], n_tokens=[None, 2]
    )


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_parquet_with_the_same_content(tmp_path: Path, kind: pa.DataType) -> None:
    log_probs = pa.array([-3.0, -0.5], kind)
    columns = {"id": ["1-bad", "1-good"], "log_prob": log_probs, "top_words": [["bird"]] * 2}
    pq.write_table(pa.table(columns | {"further": [1, 2]}), tmp_path / "p.parquet")
    [part] = read_external(tmp_path / "p.parquet", ROWS).runs
    assert part == read(tmp_path, GOOD, BAD)


@pytest.mark.parametrize("mark", [" ", "Ġ", "▁"])
def test_the_mark_of_a_words_beginning_is_removed_and_said(tmp_path: Path, mark: str) -> None:
    """Tokens of GPT-2 and Llama decode to " animal", and are "Ġanimal" and "▁animal"."""
    words = [f"{mark}bird", mark, "##s", "New York", ""]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(json.dumps({**row, "top_words": words}) for row in (GOOD, BAD)))
    external = read_external(path, ROWS)
    assert external.runs[0].top_words == [["bird", "", "##s", "New York", ""]] * 2
    [note] = external.notes
    assert note == f"{path}: the leading space (or Ġ, ▁) of 4 top words was removed"
    scores = ROWS.diagnostic.score(ROWS.columns(), vars(external.runs[0]), k=[1])
    assert [each.values.tolist() for each in scores if each.name == "accuracy@1"] == [[1.0]]


def test_rows_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(GOOD))
    external = read_external(path, ROWS)
    assert external.missing == ("1-bad",)
    assert external.runs == [
        predictions_of({"id": ["1-good", "1-bad"]}, [-0.5, None], [["bird"], None])
    ]


def test_words_of_sentences(tmp_path: Path) -> None:
    """In the form of predictions.parquet; the sums follow from them."""
    rows = stimuli.load({"id": ["1"], "sentence": ["A key fits."]})
    path = tmp_path / "p.jsonl"
    spans = [(0, 1, None, 1), (2, 5, -1.0, 1), (6, 11, -2.5, 2)]
    words = [dict(zip(WordSpan._fields, span, strict=True)) for span in spans]
    path.write_text(json.dumps({"id": "1", "words": words}))
    [part] = read_external(path, rows).runs
    assert (part.log_prob, part.n_tokens) == ([-3.5], [3])
    assert part.words == [tuple(WordSpan(*span) for span in spans)]
    path.write_text(json.dumps({"id": "1", "words": [{"start": 0, "end": 12, "log_prob": -1}]}))
    with pytest.raises(BadInput, match="a word of 1 ends at 12, but its sentence has 11"):
        read_external(path, rows)


def test_one_column_is_enough(tmp_path: Path) -> None:
    words = read(tmp_path, *({"id": row["id"], "top_words": ["bird"]} for row in (GOOD, BAD)))
    assert words.log_prob == [None, None]
    log_probs = read(tmp_path, *({"id": row["id"], "log_prob": -1} for row in (GOOD, BAD)))
    assert (log_probs.log_prob, log_probs.top_words) == ([-1.0, -1.0], [None, None])


@pytest.mark.parametrize(
    ("value", "log_prob"), [(None, None), (-math.inf, -math.inf), (1.2e-7, 0.0)]
)
def test_null_is_unscorable_and_rounding_of_float32_is_accepted(
    tmp_path: Path, value: float | None, log_prob: float | None
) -> None:
    assert read(tmp_path, {**GOOD, "log_prob": value}, BAD).log_prob[0] == log_prob


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"id": "1-bad",', r":2: not valid JSON"),
        ('{"id": "1-bad"} {}', r":2: not valid JSON"),
        ("[1, 2]", r":2: expected one JSON object"),
        ({"top_words": ["x"]}, r":2: id is None"),
        ({**BAD, "id": 7}, r":2: id is 7"),
        ({**BAD, "log_prob": math.nan}, r":2: log_prob is nan; .* never above 0 .null for a word"),
        ({**BAD, "log_prob": 0.5}, r":2: log_prob is 0.5; .* never above 0"),
        ({**BAD, "log_prob": "-1"}, r":2: log_prob is '-1'; log_prob must be a number"),
        ({**BAD, "log_prob": True}, r":2: log_prob is True"),
        ({**BAD, "top_words": "bird"}, r":2: top_words is 'bird'"),
        ({**BAD, "top_words": ["a", 1]}, r":2: top_words\[1\] is 1"),
        (
            {"id": "1-bad", "log_prob": -1},
            r": top_words are not given for id 1-bad; give",
        ),
        ({**BAD, "n_tokens": -1}, r":2: n_tokens is -1"),
        ({**BAD, "rank": 1.5}, r":2: rank is 1.5"),
        ({**BAD, "id": "1-good"}, r"p\.jsonl: id 1-good more than once"),
        ({**BAD, "id": "2-bad"}, r"p\.jsonl: id 2-bad not among the rows"),
        ({**BAD, "top_words": ["\tbird"]}, r": id 1-bad: top_words has '\\tbird': remove"),
        ({**BAD, "top_words": ["  bird"]}, r": id 1-bad: top_words has '  bird'"),
        ({**BAD, "top_words": ["bird\n"]}, r": id 1-bad: top_words has 'bird\\n'"),
        ({**BAD, "top_words": ["\n"]}, r": id 1-bad: .*for a token of white space alone, give .."),
        ({**BAD, "words": [{}]}, r":2: words\[0\].start"),
        (
            {**BAD, "words": [{"start": 0, "end": 2}, {"start": 1, "end": 3}]},
            r":2: words\[1\] is from 1",
        ),
        (
            {**BAD, "words": [{"start": 0, "end": 2, "log_prob": 1}]},
            r":2: words\[0\].log_prob is 1",
        ),
        (
            {**BAD, "words": [["A", -1]]},
            r":2: words\[0\]\[0\] is 'A'; words must be a list of objects",
        ),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, second: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        read(tmp_path, GOOD, second)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "p.jsonl") in str(raised.value)


def test_files_without_usable_content(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is empty"):
        read(tmp_path, "")
    with pytest.raises(BadInput, match="neither top_words nor log_prob"):
        read(tmp_path, {"id": "1-good"}, {"id": "1-bad"})
    with pytest.raises(BadInput, match="does not exist"):
        read_external(tmp_path / "nowhere.jsonl", ROWS)
    (tmp_path / "p.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(BadInput, match=":1: not valid JSON"):
        read_external(tmp_path / "p.jsonl", ROWS)
    path = tmp_path / "p.parquet"
    ids = {"id": ["1-good", "1-bad"]}
    for columns, message in (
        ({"log_prob": [-1.0]}, "no column id"),
        (ids | {"log_prob": [-1.0, math.nan]}, "row 2: log_prob is nan"),
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(BadInput, match=message):
            read_external(path, ROWS)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BadInput, match="not valid Parquet"):
        read_external(path, ROWS)


def test_the_file_of_a_run_gives_the_task_and_setting_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    other = predictions_of({"id": ["cprag102-0-expected", "1-bad", "1-good"]}, [-9.0, -2.0, -1.0])
    ids = {"id": ["1-good", "1-bad"]}
    shuffled = [predictions_of(ids, [-1.0 - i, -2.0], perturbation="shuf", run=i) for i in range(2)]
    predictions.write(path, [other, *shuffled])
    [part] = read_external(path, ROWS).runs
    assert (part.id, part.log_prob) == (["1-good", "1-bad"], [-1.0, -2.0])
    assert read_external(path, ROWS, "shuf").runs == shuffled
    with pytest.raises(BadInput, match="no setting trunc"):
        read_external(path, ROWS, "trunc")
    read(tmp_path, GOOD, BAD)
    with pytest.raises(BadInput, match="has no settings"):
        read_external(tmp_path / "p.jsonl", ROWS, "shuf")
