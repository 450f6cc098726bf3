"""Hostile submissions are judged in a child process: none costs much, none affects another."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub.boards import edit

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.bounded import MAX_REASONS, Refused
from lmdiag.hub.isolation import Judges, Limits
from lmdiag.results.predictions import schema
from lmdiag.types import DIAGNOSTICS, BadInput

pytest_plugins = ["hub.fixtures"]

needs_limits = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux enforces limits of memory"
)


def reasons(judges: Judges, run: Path) -> tuple[str, ...]:
    """The reasons why a submission is refused."""
    with pytest.raises(Refused) as caught:
        judges.judge(run)
    return caught.value.reasons


def test_a_refused_submission_affects_no_other(judges: Judges, honest: Path, run: Path) -> None:
    (run / "predictions.parquet").write_bytes(b"PAR1")
    assert reasons(judges, run) == ("predictions.parquet is not a Parquet file",)
    assert judges.judge(honest).results.model.id == "org/model"


def test_a_task_that_the_data_lack_rejects_the_submission_alone(
    demo_dir: Path, honest: Path, run: Path, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(demo_dir, tmp_path / "lmdiag"))
    shutil.rmtree(data / "agreement")
    edit(run, lambda r: r["protocol"].update(tasks=[*DIAGNOSTICS, "agreement"], verbs=3))
    with Judges(Benchmark(str(data))) as judges:
        assert reasons(judges, run) == ("this leaderboard's data have no agreement",)
        assert judges.judge(honest).results.model.id == "org/model"


def test_a_missing_benchmark_is_an_error_of_the_owner() -> None:
    with pytest.raises(BadInput, match="/nowhere"):
        Judges(Benchmark("/nowhere"))


def test_only_verified_fields_and_predictions_are_kept(judges: Judges, run: Path) -> None:
    """Unknown fields are dropped, and the predictions are a copy of what was read."""
    edit(run, lambda r: r.update(extra="<script>", device={"name": "my machine", "processes": 1}))
    edit(run, lambda r: r["model"].update(slogan="the best", name="the best"))
    judged = judges.judge(run)
    ids = judges.benchmark.stimuli("role88").columns()["id"]
    (run / "results.json").write_text("{}")
    (run / "predictions.parquet").write_bytes(b"")
    kept = json.dumps(judged.results.to_json())
    assert not [text for text in ("<script>", "my machine", "the best") if text in kept]
    table = pq.read_table(judged.copy / "predictions.parquet")
    assert set(ids) <= set(table.column("id").to_pylist())
    assert len(judged.log_probs) == table.num_rows


# ---- bombs --------------------------------------------------------------------------------------


def table_of(rows: int, words: pa.Array) -> pa.Table:
    """A table of predictions whose columns are small, except the words."""
    values = {"id": "x", "perturbation": "none", "run": 0, "log_prob": -1.0, "rank": 1}
    columns = {name: pa.repeat(value, rows) for name, value in values.items()}
    columns |= {"n_tokens": columns["rank"], "top_words": words}
    columns["top_log_probs"] = lists(1, rows, pa.repeat(-1.0, rows))
    return pa.table(columns).cast(schema())


def lists(size: int, rows: int, values: pa.Array) -> pa.Array:
    """Equal lists; Parquet stores values that are all the same as one value and a count."""
    offsets = np.minimum(np.arange(rows + 1, dtype=np.int64) * size, len(values))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


BOMBS: dict[str, Callable[[], pa.Table]] = {
    "many rows": lambda: table_of(2_000_000, lists(1, 2_000_000, pa.repeat("w", 2_000_000))),
    "long list": lambda: table_of(300, lists(20_000_000, 300, pa.repeat("w", 20_000_000))),
    "long lists": lambda: table_of(300, lists(60_000, 300, pa.repeat("w", 18_000_000))),
    "long words": lambda: table_of(300, lists(5, 300, pa.repeat("w" * 500_000, 1500))),
}
"""What is large -> a table that is small on disk and takes gigabytes as Python objects."""


@pytest.fixture(scope="module")
def strict(demo_dir: Path) -> Iterator[Judges]:
    """Judges that may use 10 seconds and 200 MB for a submission."""
    limits = Limits(seconds=10, memory=200_000_000)
    with Judges(Benchmark(str(demo_dir)), limits) as started:
        yield started


@needs_limits
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (n > 0)) for n, kind in enumerate(BOMBS)]
)
def test_bombs_cost_little(strict: Judges, honest: Path, run: Path, kind: str) -> None:
    path = run / "predictions.parquet"
    pq.write_table(BOMBS[kind](), path, compression="zstd")
    assert path.stat().st_size < 100_000
    assert reasons(strict, run)
    assert strict.judge(honest).results.model.id == "org/model"


# ---- the process --------------------------------------------------------------------------------


@needs_limits
def test_time_is_limited(demo_dir: Path, honest: Path) -> None:
    with Judges(Benchmark(str(demo_dir)), Limits(seconds=-1000, memory=500_000_000)) as judges:
        reason = "judging it took more than -1000 seconds of processor time"
        assert reasons(judges, honest) == (reason,)


def test_a_process_that_is_killed_is_replaced(judges: Judges, honest: Path) -> None:
    judges.judge(honest)
    assert judges._child is not None
    process, _ = judges._child
    process.kill()
    process.join()
    assert "it could not be judged" in reasons(judges, honest)[0]
    assert judges.judge(honest).results.model.id == "org/model"


@pytest.mark.parametrize(
    "reply", [b"{", b"\xff", b"1", b"[[1]]", b"[" * 100_000, b"{}", b'{"results": {}}', b"[]"]
)
def test_a_process_that_replies_anything_else_is_not_trusted(
    judges: Judges, honest: Path, reply: bytes
) -> None:
    judges.judge(honest)
    assert judges._child is not None
    process, connection = judges._child
    connection.close()  # which ends the process
    ours, theirs = multiprocessing.Pipe()
    theirs.send_bytes(reply)
    judges._child = process, ours
    assert "it could not be judged" in reasons(judges, honest)[0]
    judges._stop()
    assert judges.judge(honest).results.model.id == "org/model"


def test_reasons_are_few_short_and_visible() -> None:
    given = Refused(f"{number} \x1b[2J{'x' * 10_000}" for number in range(1000)).reasons
    assert len(given) == MAX_REASONS
    assert all(len(reason) == 300 for reason in given)
    assert given[3].startswith("3 ⟨U+001B⟩[2Jxxx")
