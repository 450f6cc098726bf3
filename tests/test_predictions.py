"""Predictions on disk: what is written is read, and nothing else is taken for it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import largest_file
from runs import predictions_of

from lmdiag import stimuli
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Predictions
from lmdiag.questions import Setting
from lmdiag.results import predictions as saved
from lmdiag.results.predictions import align, read, read_agreement, read_run, write
from lmdiag.types import BadInput, WordSpan


def some(n: int = 3, **more: Any) -> Predictions:
    """Predictions with all that can be in them: an unscorable word, a log-probability of zero."""
    return Predictions(
        id=[f"row-{i}" for i in range(n)],
        log_prob=[None, -0.1 - 0.2, 0.0][:n],
        rank=[None, 12, 1][:n],
        n_tokens=[0, 2, 1][:n],
        top_words=[["“a”", "##b"], [], ["c"]][:n],
        top_log_probs=[[-1.5, -2.5], [], [-1e-300]][:n],
        **more,
    )


def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path) -> None:
    parts = [some(), some(perturbation="shuf", run=0), some(2, perturbation="shuf", run=1)]
    write(tmp_path / "p.parquet", parts)
    back = read(tmp_path / "p.parquet")
    assert list(back.values()) == parts
    assert list(back) == [("none", 0), ("shuf", 0), ("shuf", 1)]
    spans = [(WordSpan(0, 1, None, 1), WordSpan(2, 5, -1.0, 1)), (), (WordSpan(0, 3, -0.5, 0),)]
    sentences = replace(some(words=spans), rank=[None] * 3, top_words=[None] * 3)
    sentences = replace(sentences, top_log_probs=[None] * 3)
    write(tmp_path / "p.parquet", [sentences])
    assert read(tmp_path / "p.parquet") == {("none", 0): sentences}


def test_the_columns_are_those_of_the_specification(tmp_path: Path) -> None:
    write(tmp_path / "p.parquet", [some()])
    schema = pq.read_schema(tmp_path / "p.parquet")
    assert {field.name: str(field.type) for field in schema} == {
        "id": "string", "perturbation": "string", "run": "int32", "log_prob": "double",
        "rank": "int32", "n_tokens": "int32", "top_words": "list<element: string>",
        "top_log_probs": "list<element: double>",
        "words": "list<element: struct<start: int32, end: int32, log_prob: double, "
        "n_tokens: int32>>",
    }  # fmt: skip


def test_the_same_predictions_are_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    write(tmp_path / "here.parquet", [some()])
    code = (
        "import sys; sys.path.insert(0, 'tests'); from pathlib import Path;"
        "from test_predictions import some, write; write(Path(sys.argv[1]), [some()])"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there.parquet")],
        check=True, cwd=Path(__file__).parents[1], env=os.environ | {"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    write(path, [some()])
    before = path.read_bytes()
    with largest_file(100), pytest.raises(OSError, match="File too large"):
        write(path, [some(perturbation="shuf")])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["p.parquet"]


WORD = {"start": 0, "end": 3, "log_prob": -1.0, "n_tokens": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "no column id"),
        ({"id": [None]}, r"row 1: id is None; id must be the id of a row"),
        ({"id": [b"\xff"]}, r"row 1: id is b'\\xff'"),
        ({"perturbation": [None]}, "row 1: perturbation is None"),
        ({"run": [-1]}, "row 1: run is -1"),
        ({"log_prob": ["high"]}, "row 1: log_prob is 'high'; log_prob must be a number"),
        ({"log_prob": [math.nan]}, "row 1: log_prob is nan"),
        ({"log_prob": [800.0]}, "row 1: log_prob is 800.0; .* never above 0"),
        ({"rank": [1.5]}, "row 1: rank is 1.5"),
        ({"top_words": ["bird"]}, "row 1: top_words is 'bird'"),
        ({"top_words": [["a", None]]}, r"row 1: top_words\[1\] is None"),
        ({"top_words": [["a"]]}, "row 1: top_log_probs has 2 values, top_words 1"),
        ({"top_log_probs": [[-1.0, math.nan]]}, r"row 1: top_log_probs\[1\] is nan"),
        ({"top_log_probs": [[-1.0, 800.0]]}, r"row 1: top_log_probs\[1\] is 800.0"),
        ({"words": [["a"]]}, r"row 1: words\[0\] is 'a'; words must be a list of objects"),
        ({"words": [[WORD | {"start": None}]]}, r"row 1: words\[0\].start is None"),
        ({"words": [[WORD, None]]}, r"row 1: words\[1\]"),
        ({"words": [[WORD, WORD]]}, r"row 1: words\[1\] is from 0 to 3"),
        ({"words": [[WORD | {"log_prob": math.nan}]]}, r"row 1: words\[0\].log_prob is nan"),
    ],
)
def test_columns_must_be_what_they_are(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "p.parquet"
    write(path, [some(1)])
    columns = pq.read_table(path).to_pydict() | change
    pq.write_table(pa.table({name: of for name, of in columns.items() if of is not None}), path)
    with pytest.raises(BadInput, match=rf"p\.parquet.*{message}"):
        read(path)
    with pytest.raises(BadInput, match=r"gone\.parquet does not exist"):
        read(tmp_path / "gone.parquet")


# ---- meeting the rows ---------------------------------------------------------------------------


@given(st.permutations([f"row-{i}" for i in range(3)]))
def test_predictions_take_the_order_of_the_rows(rows: list[str]) -> None:
    aligned = align(some(), rows, "file")
    assert aligned.id == rows
    assert aligned.rank == [{"row-0": None, "row-1": 12, "row-2": 1}[row] for row in rows]


@pytest.mark.parametrize(
    ("given_ids", "message"),
    [
        (["a", "b"], r"^file: id c missing"),
        ([], r"^file: 3 ids \(a, b, c\) missing"),
        (["a", "b", "c", "b"], r"^file: id b more than once"),
        (
            ["a", "b", "c", "v", "w", "x", "y", "z"],
            r"^file: 5 ids \(v, w, x, …\) not among the rows",
        ),
    ],
)
def test_ids_must_be_those_of_the_rows(given_ids: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        align(predictions_of({"id": given_ids}), ["a", "b", "c"], "file")


# ---- a run's files -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(demo_dir: Path) -> dict[str, stimuli.Stimuli]:
    return {task: stimuli.load(str(demo_dir), task) for task in ("neg136", "agreement")}


def agreement_of(rows: stimuli.Stimuli, *, left_only: bool) -> list[Any]:
    """Values that tell the contexts apart; the last cut-off has none."""
    columns = rows.columns()
    right = [""] * len(rows) if left_only else columns["right_context"]
    keys = list(zip(columns["context"], right, columns["number"], strict=True))
    place = {key: i / len(keys) for i, key in enumerate(dict.fromkeys(keys))}
    return [(*[place[key]] * (len(AGREEMENT_LAYOUT) - 3), None, None, None) for key in keys]


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_a_run_is_read_back_with_the_values_of_its_contexts(
    tmp_path: Path, rows: dict[str, stimuli.Stimuli], kind: Any
) -> None:
    agreement = agreement_of(rows["agreement"], left_only=kind == "causal")
    parts = {
        "neg136": predictions_of(rows["neg136"].columns(), [-1.0] * len(rows["neg136"])),
        "agreement": predictions_of(rows["agreement"].columns(), agreement=agreement),
    }
    saved.write_run(
        tmp_path, list(parts.values()), [Setting(rows[task]) for task in parts], kind=kind
    )
    back = read_run(tmp_path, rows, kind)
    assert back == {task: {("none", 0): part} for task, part in parts.items()}
    file = tmp_path / "agreement.parquet"
    contexts = read_agreement(file)
    assert len(contexts) == len(set(agreement))
    contexts.pop(next(iter(contexts)))
    saved.write_agreement(file, contexts)
    with pytest.raises(BadInput, match=r"agreement\.parquet lacks the context"):
        read_run(tmp_path, rows, kind)


def test_a_run_without_agreement_has_no_such_file(
    tmp_path: Path, rows: dict[str, stimuli.Stimuli]
) -> None:
    part = predictions_of(rows["neg136"].columns(), [-1.0] * len(rows["neg136"]))
    saved.write_run(tmp_path, [part], [Setting(rows["neg136"])], kind="masked")
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.parquet"]


@pytest.mark.parametrize(
    ("tasks", "change", "message"),
    [
        (["neg136"], lambda ids: [*ids, "stranger"], "id stranger in none of the tasks neg136"),
        (["neg136"], lambda ids: ids[1:], "id {0} missing"),
        (["neg136"], lambda ids: [*ids, ids[0]], "id {0} more than once"),
        (["neg136", "agreement"], lambda ids: ids, "no predictions for agreement"),
    ],
)
def test_a_run_with_other_rows_is_refused(
    tmp_path: Path, rows: dict[str, stimuli.Stimuli], tasks: list[str], change: Any, message: str
) -> None:
    ids = rows["neg136"].columns()["id"]
    changed = change(ids)
    write(
        tmp_path / "predictions.parquet", [predictions_of({"id": changed}, [-1.0] * len(changed))]
    )
    with pytest.raises(BadInput, match=message.format(ids[0])):
        read_run(tmp_path, {task: rows[task] for task in tasks}, "masked")
