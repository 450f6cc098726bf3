"""Hostile submissions are judged in a child process: none costs much, none touches another."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub.runs import make_run

from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.isolation import Judges, Limits
from lmdiag.hub.refusal import MAX_REASONS, Refused
from lmdiag.predictions import schema
from lmdiag.schema import DIAGNOSTICS, BadInput

needs_limits = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux enforces limits of memory"
)


@pytest.fixture(scope="module")
def honest(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with nothing wrong. Read only: copy it to change it."""
    return make_run(tmp_path_factory.mktemp("honest") / "run", demo_dir)


@pytest.fixture(scope="module")
def judges(demo_dir: Path) -> Iterator[Judges]:
    with Judges(Benchmark(str(demo_dir))) as started:
        yield started


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "run"))


def refusal(judges: Judges, run: Path) -> tuple[str, ...]:
    """The reasons why a submission is refused, checked for their bounds."""
    with pytest.raises(Refused) as caught:
        judges.judge(run)
    reasons = caught.value.reasons
    assert 1 <= len(reasons) <= MAX_REASONS
    assert all(len(reason) <= 300 and "\n" not in reason for reason in reasons)
    return reasons


def edit(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    results = json.loads((run / "results.json").read_text())
    change(results)
    (run / "results.json").write_text(json.dumps(results))


def replace_text(run: Path, old: str, new: str) -> None:
    text = (run / "results.json").read_text()
    assert old in text
    (run / "results.json").write_text(text.replace(old, new, 1))


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def flip_bytes(run: Path) -> None:
    content = bytearray((run / "predictions.parquet").read_bytes())
    for place in range(40, len(content) - 2000, 7):
        content[place] ^= 0x55
    (run / "predictions.parquet").write_bytes(content)


def null_id(run: Path) -> None:
    table = pq.read_table(run / "predictions.parquet")
    ids = [None, *table.column("id").to_pylist()[1:]]
    pq.write_table(table.set_column(0, "id", pa.array(ids)), run / "predictions.parquet")


def huge(figure: str) -> Callable[[Path], None]:
    """Writes 10**400 for a figure."""
    return lambda run: replace_text(run, f'"{figure}": ', f'"{figure}": {10**400}, "old": ')


def in_another_task(run: Path) -> None:
    edit(run, lambda r: r["protocol"].update(tasks=[*DIAGNOSTICS, "agreement"], verbs=3))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "threshold of 400 digits": (huge("threshold"), "a whole number has more than 18 digits"),
    "figure of 400 digits": (huge("value"), "a whole number has more than 18 digits"),
    "deep extra": (
        lambda run: edit(run, lambda r: r.update(extra=nested(600))),
        "nested more than 32 levels deep",
    ),
    "too much JSON": (
        lambda run: edit(run, lambda r: r.update(extra="x" * 5_000_000)),
        "results.json has more than 5,000,000 bytes",
    ),
    "null id": (null_id, "column id has empty values"),
    "flipped bytes": (flip_bytes, "predictions.parquet"),
    "named pipe": (
        lambda run: ((run / "results.json").unlink(), os.mkfifo(run / "results.json")),
        "results.json is not a regular file",
    ),
    "folder": (
        lambda run: ((run / "results.json").unlink(), (run / "results.json").mkdir()),
        "results.json cannot be read",
    ),
    "many reasons": (
        lambda run: edit(run, lambda r: r["protocol"].update(tasks=["x" * 300] * 50)),
        "tasks are not those of the benchmark",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_broken_is_refused_and_nothing_else(
    judges: Judges, honest: Path, run: Path, kind: str
) -> None:
    tamper, reason = BROKEN[kind]
    tamper(run)
    reasons = refusal(judges, run)
    assert any(reason in each for each in reasons), reasons
    assert judges.judge(honest).results["model"]["id"] == "org/model"


def test_a_task_that_the_data_lack_is_no_fault_of_the_board(
    demo_dir: Path, honest: Path, run: Path, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(demo_dir, tmp_path / "lmdiag"))
    shutil.rmtree(data / "agreement")
    in_another_task(run)
    with Judges(Benchmark(str(data))) as judges:
        assert refusal(judges, run) == ("this leaderboard's data have no agreement",)
        assert judges.judge(honest).results["model"]["id"] == "org/model"


def test_a_benchmark_that_is_not_there_is_no_fault_of_the_submissions() -> None:
    with pytest.raises(BadInput, match="/nowhere"):
        Judges(Benchmark("/nowhere"))


def test_what_is_kept_is_what_was_verified(judges: Judges, demo_dir: Path, run: Path) -> None:
    """Fields that nobody checks are dropped, and the predictions are a copy of what was read."""
    edit(run, lambda r: r.update(extra="<script>", device={"name": "mine"}))
    edit(run, lambda r: r["model"].update(slogan="the best"))
    judged = judges.judge(run)
    before = judges.benchmark.stimuli("role88").columns()["id"]
    (run / "results.json").write_text("{}")
    (run / "predictions.parquet").write_bytes(b"")
    assert not {"extra", "device"} & set(judged.results)
    assert "slogan" not in judged.results["model"]
    table = pq.read_table(judged.copy / "predictions.parquet")
    assert set(before) <= set(table.column("id").to_pylist())
    assert len(judged.log_probs) == table.num_rows


# ---- bombs --------------------------------------------------------------------------------------


def table_of(rows: int, words: pa.Array) -> pa.Table:
    """A table of predictions, all of whose columns but one are small."""
    columns = {
        "id": pa.repeat("x", rows),
        "perturbation": pa.repeat("none", rows),
        "run": pa.repeat(0, rows),
        "log_prob": pa.repeat(-1.0, rows),
        "rank": pa.repeat(1, rows),
        "n_tokens": pa.repeat(1, rows),
        "top_words": words,
        "top_log_probs": lists(1, rows, pa.repeat(-1.0, rows)),
    }
    return pa.table(columns).cast(schema())


def lists(size: int, rows: int, values: pa.Array) -> pa.Array:
    """Equal lists; Parquet stores values that are all the same as one value and a count."""
    offsets = np.minimum(np.arange(rows + 1, dtype=np.int64) * size, len(values))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


BOMBS: dict[str, Callable[[], pa.Table]] = {
    "long list": lambda: table_of(300, lists(20_000_000, 300, pa.repeat("w", 20_000_000))),
    "long lists": lambda: table_of(300, lists(60_000, 300, pa.repeat("w", 18_000_000))),
    "long words": lambda: table_of(300, lists(5, 300, pa.repeat("w" * 500_000, 1500))),
    "many rows": lambda: table_of(2_000_000, lists(1, 2_000_000, pa.repeat("w", 2_000_000))),
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
    "kind",
    [
        kind if n == 0 else pytest.param(kind, marks=pytest.mark.slow)
        for n, kind in enumerate(BOMBS)
    ],
)
def test_bombs_cost_little(strict: Judges, honest: Path, run: Path, kind: str) -> None:
    path = run / "predictions.parquet"
    pq.write_table(BOMBS[kind](), path, compression="zstd")
    assert path.stat().st_size < 100_000
    refusal(strict, run)
    assert strict.judge(honest).results["model"]["id"] == "org/model"


# ---- the process --------------------------------------------------------------------------------


@needs_limits
def test_time_is_limited(demo_dir: Path, honest: Path) -> None:
    with Judges(Benchmark(str(demo_dir)), Limits(seconds=-1000, memory=500_000_000)) as judges:
        reason = "judging it took more than -1000 seconds of processor time"
        assert refusal(judges, honest) == (reason,)


def test_a_process_that_is_killed_is_replaced(judges: Judges, honest: Path) -> None:
    judges.judge(honest)
    worker = judges._worker
    assert worker is not None
    worker.kill()
    worker.wait()
    assert "it could not be judged" in refusal(judges, honest)[0]
    assert judges.judge(honest).results["model"]["id"] == "org/model"


def test_reasons_are_few_short_and_visible() -> None:
    reasons = Refused(f"{number} \x1b[2J{'x' * 10_000}" for number in range(1000)).reasons
    assert len(reasons) == MAX_REASONS
    assert all(len(reason) == 300 for reason in reasons)
    assert reasons[3].startswith("3 ⟨U+001B⟩[2Jxxx")
