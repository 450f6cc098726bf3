"""Runs on models behind a server: what they say, what they leave, and how they resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from itertools import islice, product
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import Commands
from engines import DemoWeights, Engine, TableWeights, every
from launched import SCRIPT, environment
from limits import HANG

from lmdiag.models.demo import demo_folder

TOKENIZER = str(demo_folder("causal"))
KEY = "sk-of-this-test-alone"


@pytest.fixture(scope="module")
def demo() -> DemoWeights:
    return DemoWeights()


def test_a_run_says_what_is_not_known(
    demo: DemoWeights, command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMDIAG_SERVER_KEY", KEY)
    asked = ["--data", command.data, "--tasks", "neg136", "agreement", "--limit", "12", "--quiet"]
    asked += ["--k", "1", "50", "--output", command.folder]
    with Engine(demo) as engine:
        engine.key = KEY
        server = ["--server", engine.url, "--model", "tiny", "--tokenizer", TOKENIZER]
        code, out, err = command("run", *server, *asked, "--in-flight", 3)
        assert (code, err) == (0, "")
        assert engine.most_at_once <= 3
    out = " ".join(out.split())
    assert f"asked through {engine.url}/v1 · cased · commit and precision not known" in out
    assert "EW and MW are not computed" in out
    assert "accuracy@50 not computed: the server's list of top tokens is shorter" in out
    (run,) = (path.parent for path in command.folder.rglob("results.json"))
    document = json.loads((run / "results.json").read_text("utf-8"))
    assert document["model"]["server"] == document["identity"]["server"] == f"{engine.url}/v1"
    assert document["model"]["commit"] == "unknown"
    neg136 = document["tasks"]["neg136"]["none"]["measures"]
    assert {"accuracy@1", "sensitivity"} <= {*neg136}
    agreement = document["tasks"]["agreement"]["none"]["measures"]
    assert "tse" in agreement
    assert not {"ew", "mw"} & {*agreement}
    for path in command.folder.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    page = (run / "report.html").read_text("utf-8")
    assert f"not known: asked through {engine.url}/v1" in page

    assert command("run", "--model", "demo:causal", *asked)[0] == 0
    (local,) = {path.parent for path in command.folder.rglob("results.json")} - {run}
    code, out, _ = command("compare", run, local, "--resamples", 50)
    assert code == 0
    assert f"asked through {engine.url}/v1, commit and precision not known" in out
    code, out, _ = command("compare", run, local, "--resamples", 50, "--json")
    assert json.loads(out)["a"]["server"] == f"{engine.url}/v1"
    assert "no commit of it is known" in command.refused("submit", run, "--dry-run")


def test_another_server_does_not_continue_a_run(demo: DemoWeights, command: Commands) -> None:
    asked = ["--data", command.data, "--tasks", "neg136", "--limit", "8", "--quiet"]
    asked += ["--output", command.folder, "--model", "tiny"]
    with Engine(demo) as engine:
        assert command("run", "--server", engine.url, *asked)[0] == 0
    with Engine(demo) as engine:
        line = command.refused("run", "--server", engine.url, *asked)
    assert "holds a run of another server" in line


def test_surprisals_from_a_server(demo: DemoWeights, command: Commands) -> None:
    texts = command.folder / "texts.txt"
    texts.write_text("The robin is a bird.\nThe old man saw it.\n", "utf-8")
    code, ours, _ = command("surprisal", "--model", "demo:causal", texts, "--quiet")
    assert code == 0
    with Engine(demo) as engine:
        server = ["--server", engine.url, "--tokenizer", TOKENIZER]
        code, theirs, _ = command("surprisal", "--model", "tiny", *server, texts, "--quiet")
    assert code == 0
    columns = [[line.split(",") for line in text.splitlines()[1:]] for text in (ours, theirs)]
    for one, other in zip(*columns, strict=True):
        assert one[:3] + one[4:] == other[:3] + other[4:]
        assert float(one[3]) == pytest.approx(float(other[3]), abs=1e-3)


# ---- many questions ------------------------------------------------------------------------------


def start(data: Path, output: Path, url: str, in_flight: int) -> subprocess.Popen[str]:
    """Starts a run as a process of its own."""
    words = [sys.executable, SCRIPT, "--server", url, "--model", "tiny", "--data", str(data)]
    words += ["--output", str(output), "--in-flight", str(in_flight), "--quiet"]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def kill_midway(run: subprocess.Popen[str], output: Path, batches: int) -> int:
    """Kills a run when so many batches are saved; returns the number that is."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        saved = sum(path.read_bytes().count(b"\n") for path in output.rglob("journal/*.jsonl"))
        if saved >= batches:
            break
        assert run.poll() is None, run.communicate()[1]
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    return saved


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [10_000, 2_000])
def test_many_questions_killed_and_resumed(n_rows: int, tmp_path: Path) -> None:
    """The fewer ones are asked once more, undisturbed: the files are the same."""
    table = TableWeights()
    words = [piece.strip() for piece in table.pieces if piece.startswith(" w")]
    contexts = islice(product(words, words), n_rows)
    rows = [(f"{a} {b}", words[n % 397]) for n, (a, b) in enumerate(contexts)]
    data = tmp_path / "mine.csv"
    pd.DataFrame(rows, columns=["context", "target"]).to_csv(data, index=False)
    outputs = [tmp_path / "killed", tmp_path / "undisturbed"]
    with Engine(table) as engine:
        engine.fault = every(50)
        run = start(data, outputs[0], engine.url, 32)
        saved = kill_midway(run, outputs[0], batches=n_rows // 250)
        before = len(engine.bodies)
        began = time.monotonic()
        run = start(data, outputs[0], engine.url, 32)
        _, err = run.communicate(timeout=2 * HANG)
        assert run.returncode == 0, err
        seconds = time.monotonic() - began
        after = len(engine.bodies) - before
        print(
            f"{saved} batches saved; then {after} requests in {seconds:.0f} s, at most "
            f"{engine.most_at_once} at once"
        )
        assert saved >= n_rows // 250
        # two requests for each of the rest, a fiftieth of them again, and the check at the start
        assert after <= 2 * (n_rows - 64 * saved) * 50 / 49 + 100
        assert engine.most_at_once <= 32
    (file,) = outputs[0].rglob("predictions.parquet")
    read = pq.read_table(file).to_pydict()
    for (context, target), log_prob in zip(rows, read["log_prob"], strict=True):
        row = table.log_probs(table.encode(context))[-1]
        assert log_prob == pytest.approx(row[table.ids[f" {target}"]])
    if n_rows == 10_000:
        return
    with Engine(table, port=int(engine.url.rpartition(":")[2])) as engine:
        run = start(data, outputs[1], engine.url, 8)
        _, err = run.communicate(timeout=2 * HANG)
        assert run.returncode == 0, err
    (undisturbed,) = outputs[1].rglob("predictions.parquet")
    assert file.read_bytes() == undisturbed.read_bytes()
