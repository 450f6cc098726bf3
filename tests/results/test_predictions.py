"""Predictions on disk, of runs and of other programs: what is read, and what is refused."""

import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from invented_runs import json_lines, predictions_of

from lmdiag import stimuli
from lmdiag.asking.possible import impossible_sum
from lmdiag.asking.protocol import Predictions
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.results.predictions import check_possible, read, read_external, read_run, write
from lmdiag.types import BadInput, WordSpan

GOOD = {"id": "1-good", "top_words": ["bird"], "log_prob": -0.5}
BAD = {"id": "1-bad", "top_words": ["bird"], "log_prob": -3}
ROWS = stimuli.load(
    {
        "id": ["1-good", "1-bad"], "context": ["A penguin is a"] * 2, "target": ["bird", "tool"],
        "good": [True, False], "contrast": ["1", "1"], "expected": [["bird"], []],
    }
)  # fmt: skip
IDS = {"id": ["1-good", "1-bad"]}
WORD = {"start": 0, "end": 3, "log_prob": -1.0, "n_tokens": 1}


def some(n=3, **more):
    """Predictions with all that can be in them: an unscorable word, a log-probability of zero."""
    columns = {
        "id": ["row-0", "row-1", "row-2"], "log_prob": [None, -0.1 - 0.2, 0.0],
        "rank": [None, 12, 1], "n_tokens": [0, 2, 1], "top_words": [["“a”", "##b"], [], ["c"]],
        "top_log_probs": [[-1.5, -2.5], [], [-1e-300]],
    }  # fmt: skip
    return Predictions(**{name: values[:n] for name, values in columns.items()} | more)


def read_lines(folder, *lines):
    [part], *_ = read_external(json_lines(folder / "p.jsonl", *lines), ROWS)
    return part


def test_what_is_written_is_read_to_the_last_bit(tmp_path):
    file = tmp_path / "p.parquet"
    shares = (*(i / 100 for i in range(len(AGREEMENT_LAYOUT) - 1)), None)
    parts = {
        ("none", 0): some(agreement=[None, shares, shares]),
        ("shuf", 0): some(perturbation="shuf", run=0),
        ("shuf", 1): some(2, perturbation="shuf", run=1),
    }
    write(file, parts.values())
    assert [*read(file).items()] == [*parts.items()]
    kept = read(file)["none", 0].agreement
    assert kept[1] is kept[2]  # rows of one context share the values in memory
    spans = [(WordSpan(0, 1, None, 1), WordSpan(2, 5, -1.0, 1)), (), (WordSpan(0, 3, -0.5, 0),)]
    nothing = dict.fromkeys(("rank", "top_words", "top_log_probs"), [None] * 3)
    sentences = replace(some(words=spans, entropies=[[None, 0.1 + 0.2], [], [0.0]]), **nothing)
    write(file, [sentences])
    assert read(file) == {("none", 0): sentences}
    word = "struct<start: int32, end: int32, log_prob: double, n_tokens: int32>"
    assert {field.name: str(field.type) for field in pq.read_schema(file)} == {
        "id": "string", "perturbation": "string", "run": "int32", "log_prob": "double",
        "rank": "int32", "n_tokens": "int32", "top_words": "list<element: string>",
        "top_log_probs": "list<element: double>", "words": f"list<element: {word}>",
        **dict.fromkeys(("entropies", "labels", "agreement"), "list<element: double>"),
    }  # fmt: skip


def test_columns_must_be_what_they_are(tmp_path):
    path = tmp_path / "p.parquet"
    write(path, [some(1)])
    written = pq.read_table(path).to_pydict()
    pq.write_table(pa.table(written), path)  # as other programs do, without types where all is null
    assert read(path) == {("none", 0): some(1)}
    for change, message in (
        ({"id": None}, "no column id"),
        ({"run": [-1]}, "row 1: run is -1"),
        ({"top_words": [["a"]]}, "row 1: top_log_probs has 2 values, top_words 1"),
        ({"top_log_probs": [[-1.0, math.nan]]}, r"row 1: top_log_probs\[1\] is nan"),
        ({"words": [[WORD | {"log_prob": math.nan}]]}, r"row 1: words\[0\].log_prob is nan"),
        ({"agreement": [[0.5]]}, "agreement must be lists of 59 numbers"),
        ({"agreement": [[-1.0] * 59]}, "agreement must be lists of 59 numbers"),
    ):
        columns = {name: of for name, of in (written | change).items() if of is not None}
        pq.write_table(pa.table(columns), path)
        with pytest.raises(BadInput, match=rf"p\.parquet.*{message}"):
            read(path)


def test_a_run_with_other_rows_or_settings_is_refused(tmp_path, demo_dir):
    rows = {task: stimuli.load(str(demo_dir), task) for task in ("neg136", "role88")}
    ids, file = rows["neg136"].columns()["id"], tmp_path / "predictions.parquet"
    for changed, message in (
        ([*ids, "stranger"], "id stranger in none of the tasks neg136, role88"),
        (ids[4:], rf"4 ids \({', '.join(ids[:3])}, …\) missing"),
        ([*ids, ids[0]], f"id {ids[0]} more than once"),
    ):
        write(file, [predictions_of({"id": changed}, [-1.0] * len(changed))])
        with pytest.raises(BadInput, match=message):
            read_run(file, rows)


def test_json_lines_in_any_order_and_parquet_with_the_same_content(tmp_path):
    expected = predictions_of(IDS, [-0.5, -3.0], [["bird"], ["bird"]], n_tokens=[None, 2])
    assert read_lines(tmp_path, {**BAD, "n_tokens": 2, "note": "mine"}, "", GOOD) == expected
    columns = {
        "id": ["1-bad", "1-good"], "log_prob": pa.array([-3.0, -0.5], pa.float32()),
        "top_words": [["bird"]] * 2, "n_tokens": [2, None], "further": [1, 2],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    assert read_external(tmp_path / "p.parquet", ROWS) == ([expected], [], [])


@pytest.mark.parametrize("mark", [" ", "Ġ", "▁"])
def test_the_mark_of_a_words_beginning_is_removed_and_said(tmp_path, mark):
    """Tokens of GPT-2 and Llama decode to " animal", and are "Ġanimal" and "▁animal"."""
    words = [f"{mark}bird", mark, "##s", "New York", ""]
    path = json_lines(tmp_path / "p.jsonl", *({**row, "top_words": words} for row in (GOOD, BAD)))
    [part], missing, notes = read_external(path, ROWS)
    assert (part.top_words, missing) == ([["bird", "", "##s", "New York", ""]] * 2, [])
    assert notes == [f"{path}: the leading space (or Ġ, ▁) of 4 top words was removed"]


def test_rows_and_columns_may_be_missing(tmp_path):
    given, missing, notes = read_external(json_lines(tmp_path / "p.jsonl", GOOD), ROWS)
    assert (missing, notes) == (["1-bad"], [])
    assert given == [predictions_of(IDS, [-0.5, None], [["bird"], None])]
    for name, kept in (("top_words", [["bird"]] * 2), ("log_prob", [-0.5, -3.0])):
        part = read_lines(tmp_path, *({"id": x["id"], name: x[name]} for x in (GOOD, BAD)))
        assert part == predictions_of(IDS, **{name: kept})
    # null is unscorable, and rounding of float32 above 0 is accepted
    for value, log_prob in ((None, None), (-math.inf, -math.inf), (1.2e-7, 0.0)):
        assert read_lines(tmp_path, {**GOOD, "log_prob": value}, BAD).log_prob[0] == log_prob


def test_words_of_sentences(tmp_path):
    """In the form of predictions.parquet; the sums follow from them."""
    rows = stimuli.load({"id": ["1"], "sentence": ["A key fits."]})
    path = tmp_path / "p.jsonl"
    spans = [(0, 1, None, 1), (2, 5, -1.0, 1), (6, 11, -2.5, 2)]
    words = [dict(zip(WordSpan._fields, span, strict=True)) for span in spans]
    [part], *_ = read_external(json_lines(path, {"id": "1", "words": words}), rows)
    assert (part.log_prob, part.n_tokens) == ([-3.5], [3])
    assert part.words == [tuple(WordSpan(*span) for span in spans)]
    json_lines(path, {"id": "1", "words": [{"start": 0, "end": 12, "log_prob": -1}]})
    with pytest.raises(BadInput, match="a word of 1 ends at 12, but its sentence has 11"):
        read_external(path, rows)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"id": "1-bad",', r":2: not valid JSON"),
        ({**BAD, "log_prob": math.nan}, r":2: log_prob is nan; .* never above 0 .null for a word"),
        ({**BAD, "log_prob": 0.5}, r":2: log_prob is 0.5; .* never above 0"),
        ({**BAD, "log_prob": -1e300}, r":2: a log-probability is -1e\+300; give null for none"),
        ({**BAD, "log_prob": -9999}, r":2: .* is -9999.0; .* .-9999.0 is what vLLM writes"),
        ({**BAD, "labels": [-1, -1e6]}, r":2: a log-probability is -1000000.0; give null"),
        ({"id": "1-bad", "log_prob": -1}, r": top_words are not given for id 1-bad; give"),
        ({**BAD, "id": "1-good"}, r"p\.jsonl: id 1-good more than once"),
        ({**BAD, "id": "2-bad"}, r"p\.jsonl: id 2-bad not among the rows"),
        ({**BAD, "top_words": ["  bird"]}, r": id 1-bad: top_words has '  bird': remove"),
        ({**BAD, "top_words": ["\n"]}, r": id 1-bad: .*for a token of white space alone, give .."),
        ({**BAD, "words": [WORD, {"start": 1, "end": 4}]}, r":2: words\[1\] is from 1"),
    ],
)
def test_errors_name_file_and_line(tmp_path, second, message):
    with pytest.raises(BadInput, match=message) as raised:
        read_lines(tmp_path, GOOD, second)
    assert str(tmp_path / "p.jsonl") in str(raised.value)


def test_the_file_of_a_run_gives_the_task_and_setting_asked_for(tmp_path):
    path = tmp_path / "predictions.parquet"
    other = predictions_of({"id": ["cprag102-0-expected", "1-bad", "1-good"]}, [-9.0, -2.0, -1.0])
    shuffled = [predictions_of(IDS, [-1.0 - i, -2.0], perturbation="shuf", run=i) for i in range(2)]
    write(path, [other, *shuffled])
    [part], *_ = read_external(path, ROWS)
    assert (part.id, part.log_prob) == (["1-good", "1-bad"], [-1.0, -2.0])
    assert read_external(path, ROWS, "shuf")[0] == shuffled
    lines = json_lines(tmp_path / "p.jsonl", GOOD)
    for file, name, message in (path, "trunc", "no setting trunc"), (lines, "shuf", "no settings"):
        with pytest.raises(BadInput, match=message):
            read_external(file, ROWS, name)


IMPOSSIBLE = {
    "two targets": ([-0.1, -0.1], [None] * 2, "1.8097 of probability together, more than 1"),
    "a target beside the list": ([-0.1, -9.0], [[-0.2, -3.0]] * 2, "1.7735 of probability"),
    "a list": ([-9.0, -9.0], [[-0.1, -0.2]] * 2, "1.723"),
    "rank 1 below the list": ([-4.0, -9.0], [[-0.2, -3.0]] * 2, "has rank 1 and log_prob -4"),
}
"""What cannot be true -> log_prob of two rows with one blank, their lists, part of the message."""


@pytest.mark.parametrize(("log_prob", "lists", "message"), IMPOSSIBLE.values(), ids=[*IMPOSSIBLE])
def test_probabilities_that_cannot_be_true_are_refused(log_prob, lists, message):
    """By `score`, as by a run's own file: both check rows with their predictions by this."""
    tops = [words and ["hat", "cup"] for words in lists]
    ranks = [1, 2] if "rank" in message else [None, None]
    how = {"rank": ranks, "n_tokens": [1, 1], "top_log_probs": lists}
    part = predictions_of(ROWS.columns(), log_prob, tops if any(tops) else None, **how)
    with pytest.raises(BadInput, match=message):
        check_possible(part, ROWS, "FILE")
    several = replace(part, n_tokens=[2, 2])  # the list is another distribution than that of masks
    if any(tops) and message == "1.723":
        with pytest.raises(BadInput, match=message):
            check_possible(several, ROWS, "FILE")
    else:
        check_possible(several, ROWS, "FILE")


def test_sentences_with_a_column_target_have_no_blanks():
    rows = stimuli.load({"sentence": ["A hen ran.", "Hens ran."], "target": ["ran", "ran"]})
    check_possible(predictions_of(rows.columns(), [-0.1, -0.1]), rows, "FILE")


def test_words_that_begin_another_may_share_their_probability():
    assert impossible_sum({"bird": -0.1, "birds": -0.2}) is None
    assert impossible_sum({"a": -1.0, "an": -1.0, "and": -1.0, "ant": -1.0}) is None
    assert impossible_sum({"a": -0.7, "ab": -0.7, "ac": -0.7, "b": -0.7}) == pytest.approx(
        3 * math.exp(-0.7)
    )
