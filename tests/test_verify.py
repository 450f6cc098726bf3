"""Submissions that were edited, broken or made for something else, and why each is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub.boards import edit
from runs import make_run

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.bounded import Refused, read_files
from lmdiag.hub.plausible import implausible
from lmdiag.hub.verify import verify
from lmdiag.protocol import Predictions, Protocol
from lmdiag.types import BadInput

pytest_plugins = ["hub.fixtures"]

Json = dict[str, Any]
Columns = dict[str, list[Any]]
Tamper = Callable[[Path], object]

REMOVED = object()
NAN = float("nan")


def reasons(run: Path, benchmark: Benchmark) -> list[str]:
    """Why a run is refused; an empty list if it is accepted."""
    try:
        verify(read_files(run), benchmark)
    except Refused as refusal:
        return list(refusal.reasons)
    return []


def at(path: str, value: Any) -> Tamper:
    """Sets the value at a path in results.json, or removes it."""

    *above, last = path.split(">")

    def change(inside: Json) -> None:
        for key in above:
            inside = inside[key]
        if value is REMOVED:
            del inside[last]
        else:
            inside[last] = value(inside[last]) if callable(value) else value

    return lambda run: edit(run, change)


def role88(path: str, value: Any) -> Tamper:
    return at(f"tasks>role88>none>{path}", value)


def text(old: str, new: str) -> Tamper:
    """Replaces the first of some texts in results.json."""

    def tamper(run: Path) -> None:
        path = run / "results.json"
        path.write_text(path.read_text().replace(old, new, 1))

    return tamper


def table(change: Callable[[Columns], object]) -> Tamper:
    """Edits the columns of predictions.parquet."""

    def tamper(run: Path) -> None:
        old = pq.read_table(run / "predictions.parquet")
        columns = old.to_pydict()
        change(columns)
        pq.write_table(pa.table(columns, schema=old.schema), run / "predictions.parquet")

    return tamper


def cell(column: str, value: Any, row: int | Callable[[Columns], int] = 0) -> Tamper:
    """Sets one value of predictions.parquet, or a function of it."""

    def change(columns: Columns) -> None:
        place = row(columns) if callable(row) else row
        old = columns[column][place]
        columns[column][place] = value(old) if callable(value) else value

    return table(change)


def column(name: str, change: Callable[[pa.ChunkedArray], Any]) -> Tamper:
    """Replaces a column of predictions.parquet, of any type."""

    def tamper(run: Path) -> None:
        old = pq.read_table(run / "predictions.parquet")
        place = old.schema.get_field_index(name)
        new = old.set_column(place, name, change(old.column(name)))
        pq.write_table(new, run / "predictions.parquet")

    return tamper


def write(name: str, content: bytes) -> Tamper:
    return lambda run: (run / name).write_bytes(content)


def instead(name: str, make: Callable[[Path], object]) -> Tamper:
    """Removes a file and makes something else of its name."""
    return lambda run: ((run / name).unlink(), make(run / name))


def flip_bytes(run: Path) -> None:
    content = bytearray((run / "predictions.parquet").read_bytes())
    for place in range(40, len(content) - 2000, 7):
        content[place] ^= 0x55
    (run / "predictions.parquet").write_bytes(content)


def first(task: str) -> Callable[[Columns], int]:
    return lambda columns: next(i for i, row in enumerate(columns["id"]) if row.startswith(task))


def last_ranked(columns: Columns) -> int:
    return columns["rank"].index(max(columns["rank"]))


def put_first(columns: Columns) -> None:
    """Puts the expected word of every cprag102 row before the model's words."""
    for index, row in enumerate(columns["id"]):
        if row.startswith("cprag102") and columns["rank"][index] > 1:
            columns["top_words"][index] = ["bird", *columns["top_words"][index][1:]]


def without(task: str) -> Callable[[Columns], None]:
    def change(columns: Columns) -> None:
        kept = [i for i, row in enumerate(columns["id"]) if not row.startswith(task)]
        columns.update({name: [values[i] for i in kept] for name, values in columns.items()})

    return change


def doubled(columns: Columns) -> None:
    for values in columns.values():
        values.append(values[3])


def also_perturbed(columns: Columns) -> None:
    doubled(columns)
    columns["perturbation"][-1] = "shuf"


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


TAMPERED: dict[str, tuple[Tamper, str]] = {
    # Files that are not a submission.
    "no results": (instead("results.json", lambda path: None), "results.json cannot be read"),
    "results a pipe": (instead("results.json", os.mkfifo), "results.json is not a regular file"),
    "results a folder": (instead("results.json", Path.mkdir), "results.json is not a regular file"),
    "results too large": (at("extra", "x" * 5_000_000), "at most 5,000,000 are read"),
    "results no JSON": (write("results.json", b"{"), "results.json: not valid JSON"),
    "results a list": (write("results.json", b"[1]"), "results.json has schema version None"),
    "results nested": (write("results.json", b"[" * 100_000), "nested too deeply"),
    "extra nested": (at("extra", nested(600)), "nested"),
    "results not UTF-8": (write("results.json", b'{"a": "\xff"}'), "not UTF-8"),
    "number of 400 digits": (
        text('"value": ', f'"value": {10**400}, "x": '),
        "does not fit into 64 bits",
    ),
    "number infinite": (
        text('"ci_high": 1.0', '"ci_high": 1e999'),
        "number 1e999 is too large",
    ),
    "number NaN": (role88("measures>accuracy@1>value", NAN), "NaN is not a number in JSON"),
    "other schema version": (at("schema_version", 99), "schema version"),
    "no model": (at("model", REMOVED), "model: field required"),
    "other kind": (at("model>kind", "oracle"), "model.kind: input should be"),
    "other dtype": (at("model>dtype", "int3"), "model.dtype must be one of float64, float32"),
    "model id a list": (at("model>id", ["org/model"]), "model.id: input should be"),
    "model id too long": (at("model>id", "a" * 301), "model.id has more than 300 characters"),
    "model id no Unicode": (at("model>id", "\ud800"), "half of a surrogate pair"),
    "parameters below 0": (at("model>n_parameters", -1), "must be between 0 and 2**53"),
    "date in no calendar": (at("finished", "2025-02-30"), "finished is not an ISO 8601 date"),
    "many tasks": (at("protocol>tasks", ["x"] * 60), "protocol.tasks has more than 50 entries"),
    "no predictions": (instead("predictions.parquet", lambda path: None), "cannot be read"),
    "no Parquet": (write("predictions.parquet", b"PAR1 but not"), "is not a Parquet file"),
    "flipped bytes": (flip_bytes, "predictions.parquet"),
    "ids no Unicode": (
        column("id", lambda v: pa.array([b"\xff"] * len(v)).cast(pa.string(), safe=False)),
        "predictions.parquet cannot be read",
    ),
    "id null": (cell("id", None), "id is null"),
    "log_prob as text": (column("log_prob", lambda v: v.cast(pa.string())), "log_prob of type str"),
    "rows without end": (
        table(lambda c: [values.extend(values * 2) for values in c.values()]),
        "predictions.parquet is larger than",
    ),
    # Runs of a part of the protocol, or of another one.
    "partial by limit": (at("protocol>limit", 10), "partial: a sample of 10 rows"),
    "partial by task": (at("protocol>tasks", ["cprag102", "role88"]), "partial: it lacks neg136"),
    "other task": (at("protocol>tasks", lambda tasks: [*tasks, "mine"]), "not those of the bench"),
    "perturbed": (at("protocol>perturb", ["shuf"]), "the run is perturbed (shuf)"),
    "other unit": (at("protocol>unit", "word"), "another protocol: unit is word"),
    "other k": (at("protocol>k", [1, 10]), "another protocol: k is (1, 10)"),
    "other threshold": (at("protocol>threshold", 0.0), "another protocol: threshold is 0.0"),
    "other bos": (at("protocol>bos", "never"), "another protocol: bos is never"),
    "other match": (at("protocol>match", "exact"), "protocol.match: must be"),
    # Other data, or a signature for other things.
    "other rows": (at("data>tasks>role88>fingerprint", "0" * 8), "role88 was made on other data"),
    "other data": (at("data>fingerprint", "0" * 8), "fingerprint of its data is not the benchm"),
    "other number of rows": (at("data>tasks>role88>n", 1), "rows, not 1"),
    "signature": (
        at("signature", "lmdiag:9"),
        "its signature is not that of its protocol and data",
    ),
    "signature of a task": (role88("signature", "lmdiag:9"), "role88 none signature is lmdiag:9"),
    # Figures that do not follow from the predictions.
    "figure raised": (
        at("tasks>cprag102>none>measures>accuracy@1>value", 1.0),
        "cprag102 none accuracy@1: value is 1, its predictions give",
    ),
    "figure in percent": (role88("measures>accuracy@1>value", 50), "value is 50, its predictions"),
    "figure a text": (
        role88("measures>accuracy@1>value", "<b>1</b>"),
        "accuracy@1.value: input should be",
    ),
    "interval narrowed": (
        role88("measures>sensitivity>ci_low", 0.9),
        "role88 none sensitivity: ci_low is 0.9, its predictions give",
    ),
    "n raised": (role88("measures>sensitivity>n", 4400), "sensitivity: n is 4400, its predictions"),
    "break-down changed": (
        at("tasks>neg136>none>measures>sensitivity>by>subset>nat>n", 1),
        "neg136 none sensitivity by subset nat: n is 1",
    ),
    "break-down left out": (
        at("tasks>neg136>none>measures>sensitivity>by", {}),
        "neg136 none sensitivity by subset simp: is missing from its figures",
    ),
    "measure left out": (
        role88("measures>accuracy@1", REMOVED),
        "role88 none accuracy@1: is missing from its figures",
    ),
    "other measure": (
        role88("measures", lambda m: m | {"iq\x1b[2J": m["accuracy@1"]}),
        "role88 none iq⟨U+001B⟩[2J: does not follow from its predictions",
    ),
    "other setting": (
        at("tasks>role88", lambda settings: settings | {"shuf": settings["none"]}),
        "role88 shuf accuracy@1: does not follow from its predictions",
    ),
    "word left unscored": (
        cell("log_prob", None, first("role88")),
        "a word that the tokenizer can represent has no log-probability",
    ),
    "unscorable word named": (
        role88("unscorable", [{"id": "x", "word": "y"}]),
        "role88 none: its unscorable words are not those of its predictions",
    ),
    # Predictions that are not one for each row.
    "id missing": (table(lambda c: [values.pop(3) for values in c.values()]), "missing"),
    "id foreign": (cell("id", "cprag102-999-expected"), "cprag102-999-expected"),
    "id doubled": (table(doubled), "more than once"),
    "task missing": (table(without("neg136")), "no predictions for neg136"),
    "perturbed rows": (table(also_perturbed), "holds perturbed rows: shuf 0"),
    "all rows perturbed": (
        table(lambda c: c.update(perturbation=["shuf"] * len(c["id"]))),
        "holds perturbed rows: shuf 0",
    ),
    # Predictions that no model makes.
    "log_prob NaN": (cell("log_prob", NAN), "the log_prob of id cprag102-0-expected is NaN"),
    "top log_prob infinite": (
        cell("top_log_probs", lambda values: [*values[:4], -float("inf")]),
        "a log-probability is not finite (cprag102-0-expected)",
    ),
    "log_prob above 0": (cell("log_prob", 0.5), "a log-probability is above 0"),
    "log_prob raised": (
        cell("log_prob", -0.01, last_ranked),
        "a target's rank is worse than its log-probability allows",
    ),
    "rank improved": (
        cell("rank", 1, last_ranked),
        "a target's rank is better than its log-probability allows",
    ),
    "top words unsorted": (cell("top_log_probs", lambda v: v[::-1]), "top words is not sorted"),
    "top words too few": (cell("top_words", lambda v: v[:4]), "does not have 5 words"),
    "top words with holes": (cell("top_words", lambda v: [*v[:4], None]), "does not have 5 words"),
    "top words too probable": (cell("top_log_probs", [-0.1] * 5), "sum to more than 1"),
    "top words replaced": (table(put_first), "of one context have different top words"),
    "capital of an uncased model": (
        cell("top_words", lambda v: ["Robin", *v[1:]]),
        "said to be uncased, but a top word has a capital",
    ),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_each_kind_of_tampering_is_rejected(run: Path, benchmark: Benchmark, kind: str) -> None:
    tamper, reason = TAMPERED[kind]
    tamper(run)
    given = reasons(run, benchmark)
    assert any(reason in each for each in given), given
    assert all("\n" not in each and str(run) not in each for each in given)


def test_a_run_on_other_data_is_rejected(honest: Path, data_dir: Path) -> None:
    given = reasons(honest, Benchmark(str(data_dir)))
    assert len([each for each in given if "was made on other data" in each]) == 3


def without_chance(results: Json) -> None:
    """Changes results into those of an earlier version."""
    for measure in results["tasks"]["role88"]["none"]["measures"].values():
        del measure["chance"]


def test_honest_runs_are_accepted(
    honest: Path, run: Path, demo_dir: Path, benchmark: Benchmark, tmp_path: Path
) -> None:
    cased = make_run(tmp_path / "cased", demo_dir, cased=True)
    for each in (honest, cased, edit(run, without_chance)):
        assert reasons(each, benchmark) == []


def test_a_partial_run_is_rejected_whole(demo_dir: Path, benchmark: Benchmark, tmp_path) -> None:
    run = make_run(tmp_path / "run", demo_dir, Protocol(tasks=("cprag102",), limit=6))
    assert len(reasons(run, benchmark)) == 2


def test_a_missing_benchmark_is_not_an_error_of_the_run(honest: Path) -> None:
    with pytest.raises(BadInput) as caught:
        verify(read_files(honest), Benchmark("/nowhere"))
    assert not isinstance(caught.value, Refused)


def one_row(**changes: Any) -> list[str]:
    """What is said of a row whose target, second of the list, has probability 0.25."""
    row: Json = {
        "id": ["r"],
        # log .5, .25, .125, .0625, .03125: the probabilities of halves
        "top_words": [["a", "b", "c", "d", "e"]],
        "top_log_probs": [[-0.693147, -1.386294, -2.079442, -2.772589, -3.465736]],
        "log_prob": [-1.386294],
        "rank": [2],
        "n_tokens": [1],
    } | {name: [value] for name, value in changes.items()}
    columns = {"context": ["x"], "right_context": [""], "target": ["b"]}
    return implausible(columns, Predictions(**row), cased=True, top=5)


def test_ranks_are_compared_with_the_top_words() -> None:
    assert one_row() == []
    # A word of two pieces with p = .1 comes after .5, .25, .125; one of these may be its own first
    # piece, which is not counted: rank 3 or 4, and no other.
    two_pieces = {"log_prob": -2.302585, "n_tokens": 2}
    for rank in (2, 3, 4, 5):
        assert (one_row(**two_pieces, rank=rank) == []) == (rank in (3, 4))
    # Beyond the list a rank can be anything.
    assert one_row(log_prob=-9.0, rank=900, top_words=["a", "x", "c", "d", "e"]) == []
    # Nothing is claimed of an unscorable target.
    assert one_row(log_prob=None, rank=None, n_tokens=0) == []
    assert one_row(rank=None) != []
