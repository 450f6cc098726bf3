"""Predictions of other programs: all that is right is taken, and all that is not is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import predictions_of

from lmdiag import predictions, stimuli
from lmdiag.elsewhere import read_elsewhere
from lmdiag.schema import BadInput

ROWS = [
    {"id": "1-good", "contrast": "1", "good": True, "target": "bird", "expected": "bird"},
    {"id": "1-bad", "contrast": "1", "good": False, "target": "tool", "expected": ""},
]


@pytest.fixture
def rows(tmp_path: Path) -> stimuli.Stimuli:
    """Two rows of a diagnostic of one's own."""
    filled = [
        {"item": "1", "condition": "c", "context": "A penguin is a", "right_context": "", **row}
        for row in ROWS
    ]
    names = list(filled[0])
    lines = [",".join(names)] + [",".join(str(row[name]) for name in names) for row in filled]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    return stimuli.load(str(tmp_path / "own.csv"), "own")


def read_lines(folder: Path, rows: stimuli.Stimuli, *lines: Any) -> Any:
    path = folder / "p.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return read_elsewhere(path, rows)


GOOD = {"id": "1-good", "top_words": ["bird"], "log_prob": -0.5}
BAD = {"id": "1-bad", "top_words": ["bird"], "log_prob": -3}


def test_json_lines_in_any_order(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    [found] = read_lines(tmp_path, rows, {**BAD, "n_tokens": 2, "note": "mine"}, "", GOOD)
    assert found == predictions_of(
        {"id": ["1-good", "1-bad"]}, [-0.5, -3.0], [["bird"], ["bird"]], n_tokens=[None, 2]
    )


def test_parquet_with_the_same_content(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    for type_ in (pa.float64(), pa.float32()):
        table = pa.table(
            {
                "id": ["1-bad", "1-good"],
                "log_prob": pa.array([-3.0, -0.5], type_),
                "top_words": [["bird"], ["bird"]],
                "further": [1, 2],
            }
        )
        pq.write_table(table, tmp_path / "p.parquet")
        [found] = read_elsewhere(tmp_path / "p.parquet", rows)
        assert found == read_lines(tmp_path, rows, GOOD, BAD)[0]


def test_either_column_may_be_missing_as_a_whole(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    without = [{"id": name, "top_words": ["bird"]} for name in ("1-good", "1-bad")]
    [found] = read_lines(tmp_path, rows, *without)
    assert found.log_prob == [None, None]
    without = [{"id": name, "log_prob": -1} for name in ("1-good", "1-bad")]
    [found] = read_lines(tmp_path, rows, *without)
    assert (found.log_prob, found.top_words) == ([-1.0, -1.0], [None, None])


def test_null_is_unscorable_and_minus_infinity_impossible(
    tmp_path: Path, rows: stimuli.Stimuli
) -> None:
    [found] = read_lines(tmp_path, rows, {**GOOD, "log_prob": None}, {**BAD, "log_prob": -math.inf})
    assert found.log_prob == [None, -math.inf]


def test_the_rounding_of_float32_is_forgiven(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    [found] = read_lines(tmp_path, rows, {**GOOD, "log_prob": 1.2e-7}, BAD)
    assert found.log_prob[0] == 0.0


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"id": "1-bad",', r"line 2: not valid JSON"),
        ('{"id": "1-bad"} {}', r"line 2: not valid JSON"),
        ("[1, 2]", r"line 2: not an object"),
        ({"top_words": ["x"]}, r"line 2: id is None"),
        ({**BAD, "id": 7}, r"line 2: id is 7"),
        ({**BAD, "log_prob": math.nan}, r"line 2: log_prob is NaN; write null"),
        ({**BAD, "log_prob": 0.5}, r"line 2: log_prob is 0.5; .* never above 0"),
        ({**BAD, "log_prob": "-1"}, r"line 2: log_prob is '-1'; it must be a number"),
        ({**BAD, "log_prob": True}, r"line 2: log_prob is True"),
        ({**BAD, "top_words": "bird"}, r"line 2: top_words is 'bird'"),
        ({**BAD, "top_words": ["a", 1]}, r"line 2: top_words is \['a', 1\]"),
        ({"id": "1-bad", "log_prob": -1}, r"line 2: top_words are there for some ids only"),
        ({**BAD, "n_tokens": -1}, r"line 2: n_tokens is -1"),
        ({**BAD, "rank": 1.5}, r"line 2: rank is 1.5"),
        ({**BAD, "id": "1-good"}, r"p\.jsonl: id 1-good more than once"),
        ({**BAD, "id": "2-bad"}, r"p\.jsonl: id 2-bad not among the rows"),
        ("", r"p\.jsonl: id 1-bad missing"),
    ],
)
def test_bad_input_is_named_by_file_and_line(
    tmp_path: Path, rows: stimuli.Stimuli, second: Any, message: str
) -> None:
    with pytest.raises(BadInput, match=message) as raised:
        read_lines(tmp_path, rows, GOOD, second)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "p.jsonl") in str(raised.value)


def test_files_with_nothing_in_them(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    with pytest.raises(BadInput, match="is empty"):
        read_lines(tmp_path, rows, "")
    with pytest.raises(BadInput, match="neither top_words nor log_prob"):
        read_lines(tmp_path, rows, {"id": "1-good"}, {"id": "1-bad"})
    with pytest.raises(BadInput, match="does not exist"):
        read_elsewhere(tmp_path / "nowhere.jsonl", rows)
    (tmp_path / "p.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(BadInput, match="line 1: not valid JSON"):
        read_elsewhere(tmp_path / "p.jsonl", rows)


def test_parquet_without_ids_or_damaged(tmp_path: Path, rows: stimuli.Stimuli) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"log_prob": [-1.0]}), path)
    with pytest.raises(BadInput, match="no column id"):
        read_elsewhere(path, rows)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(BadInput, match="not valid Parquet"):
        read_elsewhere(path, rows)
    pq.write_table(pa.table({"id": ["1-good", "1-bad"], "log_prob": [-1.0, math.nan]}), path)
    with pytest.raises(BadInput, match="row 2: log_prob is NaN"):
        read_elsewhere(path, rows)


def test_a_runs_own_file_gives_the_task_and_setting_asked_for(
    tmp_path: Path, rows: stimuli.Stimuli
) -> None:
    path = tmp_path / "predictions.parquet"
    other = predictions_of({"id": ["cprag102-0-expected", "1-bad", "1-good"]}, [-9.0, -2.0, -1.0])
    shuffled = [
        predictions_of({"id": ["1-good", "1-bad"]}, [-1.0 - i, -2.0], perturbation="shuf", run=i)
        for i in range(2)
    ]
    predictions.write(path, [other, *shuffled])
    [found] = read_elsewhere(path, rows)
    assert (found.id, found.log_prob) == (["1-good", "1-bad"], [-1.0, -2.0])
    assert read_elsewhere(path, rows, "shuf") == shuffled
    with pytest.raises(BadInput, match="no setting trunc"):
        read_elsewhere(path, rows, "trunc")
    (tmp_path / "p.jsonl").write_text(json.dumps(GOOD))
    with pytest.raises(BadInput, match="has no settings"):
        read_elsewhere(tmp_path / "p.jsonl", rows, "shuf")
