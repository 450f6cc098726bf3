"""Submissions that were touched up, broken or made for something else, and why each is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub.runs import make_run, model_info

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.files import read_files
from lmdiag.hub.plausible import implausible
from lmdiag.hub.refusal import Refused
from lmdiag.hub.shape import FORM, misfits
from lmdiag.hub.verify import differences, verify
from lmdiag.schema import BadInput, Predictions, Protocol


def reasons(run: Path, benchmark: Benchmark) -> list[str]:
    """Why a run is refused; an empty list if it is accepted."""
    try:
        verify(read_files(run), benchmark)
    except Refused as refusal:
        return list(refusal.reasons)
    return []


Json = dict[str, Any]
Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def benchmark_data(demo_dir: Path) -> Benchmark:
    return Benchmark(str(demo_dir))


@pytest.fixture(scope="module")
def honest(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with nothing wrong. Read only: copy it to change it."""
    return make_run(tmp_path_factory.mktemp("honest") / "run", demo_dir)


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "run"))


def in_json(edit: Callable[[Json], object]) -> Callable[[Path], None]:
    """Tampers with results.json."""

    def tamper(run: Path) -> None:
        results = json.loads((run / "results.json").read_text())
        edit(results)
        (run / "results.json").write_text(json.dumps(results))

    return tamper


def in_table(edit: Callable[[Columns], object]) -> Callable[[Path], None]:
    """Tampers with the columns of predictions.parquet."""

    def tamper(run: Path) -> None:
        table = pq.read_table(run / "predictions.parquet")
        columns = table.to_pydict()
        edit(columns)
        pq.write_table(pa.table(columns, schema=table.schema), run / "predictions.parquet")

    return tamper


def of_type(column: str, kind: pa.DataType) -> Callable[[Path], None]:
    """Writes a column as another type."""

    def tamper(run: Path) -> None:
        table = pq.read_table(run / "predictions.parquet")
        index = table.schema.get_field_index(column)
        table = table.set_column(index, column, table.column(column).cast(kind))
        pq.write_table(table, run / "predictions.parquet")

    return tamper


def unreadable_ids(run: Path) -> None:
    """Writes bytes that are no UTF-8 into a column of text."""
    table = pq.read_table(run / "predictions.parquet")
    damaged = pa.array([b"\xff"] * len(table)).cast(pa.string(), safe=False)
    table = table.set_column(table.schema.get_field_index("id"), "id", damaged)
    pq.write_table(table, run / "predictions.parquet")


def measure(results: Json, task: str, name: str) -> Json:
    found: Json = results["tasks"][task]["none"]["measures"][name]
    return found


def protocol(**changes: Any) -> Callable[[Path], None]:
    return in_json(lambda results: results["protocol"].update(changes))


def first(columns: Columns, task: str) -> int:
    return next(i for i, row in enumerate(columns["id"]) if row.startswith(task))


def put_first(columns: Columns) -> None:
    """Puts the expected word of every cprag102 row before what the model said."""
    for index, row in enumerate(columns["id"]):
        if row.startswith("cprag102") and columns["rank"][index] > 1:
            columns["top_words"][index] = ["bird", *columns["top_words"][index][1:]]


def drop(columns: Columns, index: int) -> None:
    for values in columns.values():
        del values[index]


def double(columns: Columns, index: int) -> None:
    for values in columns.values():
        values.append(values[index])


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        (run / name).write_bytes(content)

    return tamper


TAMPERED: dict[str, tuple[Callable[[Path], object], str]] = {
    # Files that are no submission.
    "no results": (lambda run: (run / "results.json").unlink(), "there is no results.json"),
    "results no JSON": (write("results.json", b"{"), "results.json cannot be read"),
    "results a list": (write("results.json", b"[1]"), "must hold a JSON object"),
    "results nested": (write("results.json", b"[" * 100_000), "nested more than 32 levels deep"),
    "results not UTF-8": (write("results.json", b'{"a": "\xff"}'), "cannot be read"),
    "other schema version": (
        in_json(lambda r: r.update(schema_version=2)),
        "schema version 2, not 1",
    ),
    "no model": (in_json(lambda r: r.pop("model")), "model is missing"),
    "kind of its own": (
        in_json(lambda r: r["model"].update(kind="oracle")),
        "model.kind must be one of masked, causal, seq2seq",
    ),
    "model id no text": (
        in_json(lambda r: r["model"].update(id=["org/model"])),
        "model.id is of the wrong type",
    ),
    "model id too long": (
        in_json(lambda r: r["model"].update(id="a" * 301)),
        "model.id has more than 300 characters",
    ),
    "date in no calendar": (
        in_json(lambda r: r.update(finished="2025-02-30")),
        "finished is not an ISO 8601 date",
    ),
    "no predictions": (
        lambda run: (run / "predictions.parquet").unlink(),
        "there is no predictions.parquet",
    ),
    "predictions no Parquet": (
        write("predictions.parquet", b"PAR1 but not really"),
        "predictions.parquet is not a Parquet file",
    ),
    "words no Unicode": (unreadable_ids, "predictions.parquet cannot be read"),
    "model id no Unicode": (
        in_json(lambda r: r["model"].update(id="\ud800")),
        "model.id is not valid Unicode text",
    ),
    "measure named to fool a terminal": (
        in_json(lambda r: r["tasks"]["role88"]["none"]["measures"].update({"\x1b[2J": 1})),
        "measures ⟨U+001B⟩[2J: does not follow from its predictions",
    ),
    "log_prob as text": (of_type("log_prob", pa.string()), "column log_prob is string, not double"),
    # Runs that are not the whole of the protocol, or another.
    "partial by limit": (protocol(limit=10), "partial: a sample of 10 rows"),
    "partial by task": (
        in_json(lambda r: r["protocol"]["tasks"].remove("neg136")),
        "partial: it lacks neg136",
    ),
    "foreign task": (protocol(tasks=["cprag102", "role88", "neg136", "mine"]), "not those of the"),
    "perturbed": (protocol(perturb=["shuf"]), "the run is perturbed (shuf)"),
    "other unit": (protocol(unit="word"), "another protocol: unit is word"),
    "other k": (protocol(k=[1, 10]), "another protocol: k is (1, 10)"),
    "other threshold": (protocol(threshold=0.0), "another protocol: threshold is 0.0"),
    "other bos": (protocol(bos="never"), "another protocol: bos is never"),
    "case-blind without need": (protocol(match="exact"), "words were compared exact"),
    # Other data, or a signature for other things.
    "other rows": (
        in_json(lambda r: r["data"]["tasks"]["role88"].update(fingerprint="00000000")),
        "role88 was made on other data",
    ),
    "other fingerprint": (
        in_json(lambda r: r["data"].update(fingerprint="00000000")),
        "the fingerprint of its data is not the benchmark's",
    ),
    "other number of rows": (
        in_json(lambda r: r["data"]["tasks"]["role88"].update(n=1)),
        "rows, not 1",
    ),
    "signature": (
        in_json(lambda r: r.update(signature=r["signature"].replace("seed:0", "seed:1"))),
        "its signature is not that of what it says it did",
    ),
    "signature of a task": (
        in_json(lambda r: r["tasks"]["role88"]["none"].update(signature="lmdiag:9")),
        "role88 none signature: is lmdiag:9",
    ),
    "figures of a further task": (
        in_json(lambda r: r["tasks"].update(extra={})),
        "figures for cprag102, extra, neg136, role88, not for its tasks",
    ),
    # Figures that do not follow from the predictions.
    "figure raised": (
        in_json(lambda r: measure(r, "cprag102", "accuracy@1").update(value=1.0)),
        "cprag102 none measures accuracy@1 value: is 1, its predictions give",
    ),
    "figure in percent": (
        in_json(lambda r: measure(r, "cprag102", "accuracy@1").update(value=50)),
        "value: is 50, its predictions give",
    ),
    "figure not a number": (
        in_json(lambda r: measure(r, "cprag102", "accuracy@1").update(value=float("nan"))),
        "NaN is not a number in JSON",
    ),
    "figure infinite": (
        lambda run: (run / "results.json").write_text(
            (run / "results.json").read_text().replace('"ci_high": 1.0', '"ci_high": 1e999')
        ),
        "is inf, its predictions give 1",
    ),
    "figure a text": (
        in_json(lambda r: measure(r, "cprag102", "accuracy@1").update(value="<b>1</b>")),
        "is <b>1</b>, its predictions give",
    ),
    "interval narrowed": (
        in_json(lambda r: measure(r, "role88", "sensitivity").update(ci_low=0.9)),
        "role88 none measures sensitivity ci_low: is 0.9",
    ),
    "n raised": (
        in_json(lambda r: measure(r, "role88", "sensitivity").update(n=4400)),
        "sensitivity n: is 4400",
    ),
    "break-down changed": (
        in_json(lambda r: measure(r, "neg136", "sensitivity")["by"]["subset"]["nat"].update(n=1)),
        "sensitivity by subset nat n: is 1",
    ),
    "measure left out": (
        in_json(lambda r: r["tasks"]["role88"]["none"]["measures"].pop("accuracy@1")),
        "accuracy@1: is missing from its figures",
    ),
    "measure of its own": (
        in_json(lambda r: r["tasks"]["role88"]["none"]["measures"].update(iq={"value": 160})),
        "role88 none measures iq: does not follow from its predictions",
    ),
    "setting of its own": (
        in_json(lambda r: r["tasks"]["role88"].update(shuf={})),
        "role88 shuf: does not follow from its predictions",
    ),
    "word left unscored": (
        in_table(lambda c: c["log_prob"].__setitem__(first(c, "role88"), None)),
        "role88 none measures sensitivity n: is",
    ),
    "unscorable word named": (
        in_json(lambda r: r["tasks"]["role88"]["none"]["unscorable"].append({"id": "x"})),
        "role88 none unscorable: is not what its predictions give",
    ),
    # Predictions that are not one for each row.
    "id missing": (in_table(lambda c: drop(c, 3)), "missing"),
    "id foreign": (
        in_table(lambda c: c["id"].__setitem__(0, "cprag102-999-expected")),
        "cprag102-999-expected",
    ),
    "id doubled": (in_table(lambda c: double(c, 3)), "more than once"),
    "task missing": (
        in_table(
            lambda c: [drop(c, i) for i in reversed(range(len(c["id"]))) if "neg" in c["id"][i]]
        ),
        "no predictions for neg136",
    ),
    "perturbed rows": (
        in_table(lambda c: (double(c, 0), c["perturbation"].__setitem__(-1, "shuf"))),
        "holds perturbed rows: shuf 0",
    ),
    "all rows perturbed": (
        in_table(lambda c: c.update(perturbation=["shuf"] * len(c["id"]))),
        "holds perturbed rows: shuf 0",
    ),
    "rows without end": (
        in_table(lambda c: [values.extend(values * 2) for values in c.values()]),
        "predictions.parquet is larger than",
    ),
    # Predictions that no model makes.
    "log_prob NaN": (
        in_table(lambda c: c["log_prob"].__setitem__(0, float("nan"))),
        "the log_prob of id cprag102-0-expected is NaN",
    ),
    "top log_prob infinite": (
        in_table(lambda c: c["top_log_probs"][0].__setitem__(4, -float("inf"))),
        "a log-probability is not finite (cprag102-0-expected)",
    ),
    "log_prob above 0": (
        in_table(lambda c: c["log_prob"].__setitem__(0, 0.5)),
        "a log-probability is above 0",
    ),
    "log_prob raised": (
        in_table(lambda c: c["log_prob"].__setitem__(c["rank"].index(max(c["rank"])), -0.01)),
        "a target's rank is worse than its log-probability allows",
    ),
    "rank improved": (
        in_table(lambda c: c["rank"].__setitem__(c["rank"].index(max(c["rank"])), 1)),
        "a target's rank is better than its log-probability allows",
    ),
    "top list unsorted": (
        in_table(lambda c: c["top_log_probs"][0].reverse()),
        "a top list is not sorted",
    ),
    "top list short": (
        in_table(lambda c: c["top_words"][0].pop()),
        "a top list has not 5 words",
    ),
    "top list with holes": (
        in_table(lambda c: c["top_words"][0].__setitem__(4, None)),
        "a top list has not 5 words",
    ),
    "top list too probable": (
        in_table(lambda c: c["top_log_probs"].__setitem__(0, [-0.1] * 5)),
        "sum to more than 1",
    ),
    "words put into the top list": (in_table(put_first), "of one context have different top lists"),
    "uncased by word alone": (
        in_table(lambda c: c["top_words"].__setitem__(0, ["Robin", *c["top_words"][0][1:]])),
        "said to be uncased, but a top word has a capital",
    ),
}


def test_an_honest_run_is_accepted(honest: Path, benchmark_data: Benchmark) -> None:
    assert reasons(honest, benchmark_data) == []


@pytest.mark.parametrize("kind", TAMPERED)
def test_each_kind_of_tampering_is_rejected(
    run: Path, benchmark_data: Benchmark, kind: str
) -> None:
    tamper, reason = TAMPERED[kind]
    tamper(run)
    given = reasons(run, benchmark_data)
    assert any(reason in each for each in given), given
    assert all("\n" not in each and str(run) not in each for each in given)


def test_a_run_on_other_data_is_rejected(demo_dir: Path, data_dir: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", demo_dir)
    given = reasons(run, Benchmark(str(data_dir)))
    assert len([each for each in given if "was made on other data" in each]) == 3


def test_a_cased_run_is_verified_as_such(demo_dir: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", demo_dir, info=model_info(cased=True))
    assert reasons(run, Benchmark(str(demo_dir))) == []


def test_a_partial_run_is_rejected_whole(demo_dir: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", demo_dir, protocol=Protocol(tasks=("cprag102",), limit=6))
    assert len(reasons(run, Benchmark(str(demo_dir)))) == 2


def test_a_benchmark_that_is_not_there_is_no_fault_of_the_run(honest: Path) -> None:
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


def test_ranks_are_weighed_against_the_list() -> None:
    assert one_row() == []
    # A word of two pieces with p = .1 stands behind .5, .25, .125; one of these may be its own
    # first piece, which is not counted: rank 3 or 4, and no other.
    two_pieces = {"log_prob": -2.302585, "n_tokens": 2}
    assert one_row(**two_pieces, rank=3) == []
    assert one_row(**two_pieces, rank=4) == []
    assert one_row(**two_pieces, rank=2) != []
    assert one_row(**two_pieces, rank=5) != []
    # Beyond the list a rank can be anything.
    assert one_row(log_prob=-9.0, rank=900, top_words=["a", "x", "c", "d", "e"]) == []
    # An unscorable target says nothing.
    assert one_row(log_prob=None, rank=None, n_tokens=0) == []
    assert one_row(rank=None) != []


def test_differences_names_places_and_allows_rounding() -> None:
    computed = {"a": {"value": 0.5, "n": 3, "low": None}, "b": [1]}
    assert list(differences(computed, computed, "t")) == []
    assert (
        list(
            differences({"a": {"value": 0.5 + 1e-12, "n": 3, "low": None}, "b": [1]}, computed, "t")
        )
        == []
    )
    said = {"a": {"value": True, "n": 4, "low": 0.1}, "b": [], "c": 1}
    assert [line.split(":")[0] for line in differences(said, computed, "t")] == [
        "t a value", "t a n", "t a low", "t b", "t c",
    ]  # fmt: skip
    assert list(differences({"a": 1, "b": [1]}, computed, "t")) == [
        "t a: there is no such break-down in its figures"
    ]


def test_forms() -> None:
    assert list(misfits({"a": 1}, {"a": int, "b": str}, "")) == ["b is missing"]
    assert list(misfits({"a": True}, {"a": int}, "")) == ["a is of the wrong type"]
    assert list(misfits({"a": {"b": [1, "2"]}}, {"a": {"b": [int]}}, "")) == [
        "a.b is of the wrong type"
    ]
    assert list(misfits([], FORM, "")) == ["it must be an object"]
