"""Runs on one, two and three real processes give the same files."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from families import FAMILIES
from launched import SCRIPT, alone, environment, finished, free_port, launch, torchrun
from limits import HANG
from sentence_texts import write_table

from lmdiag.runs.processes import Processes

WHOLE = re.compile(r": (\d+) (contexts|sentences)\n.*: asked \1 \2 in \S+ \S+ \2/s\n")
"""What the first process says of a run, whichever process asked the contexts."""


def file(output: Path, name: str) -> Path:
    (path,) = output.rglob(name)
    return path


TOKENS = ["--tasks", "neg136", "agreement", "cprag102", "--perturb", "all", "--shuffles", "2"]
CASES = {
    "tokens": (2, "blanks", [*TOKENS, "--limit", "24"]),
    "sentences": (2, "sentences", ["--batch-size", "4"]),
    "three processes": (3, "blanks", TOKENS),
    "whole words": (2, "blanks", ["--tasks", "neg136", "--unit", "word"]),
}
"""Case -> number of processes, data, and options."""
QUICKER = ("tokens", "sentences")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case in QUICKER else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_the_files_are_the_same_to_the_last_byte(
    tmp_path: Path, tiny_models: dict[str, Path], demo_dir: Path, case: str
) -> None:
    count, data, options = CASES[case]
    models = tiny_models
    if data != "blanks":
        demo_dir = write_table(tmp_path / "mine.csv")
    arguments = ["--model", *models.values(), "--data", demo_dir, *options, "--output"]
    code, alone_said = alone("run", *arguments, tmp_path / "1")
    assert code == 0, alone_said
    said = launch(torchrun(count), *arguments, tmp_path / "several")
    for folder, line, processes in (("1", alone_said, 1), ("several", said, count)):
        assert len(WHOLE.findall(line)) == len(models), line
        for name in models:
            results = json.loads(file(tmp_path / folder / name, "results.json").read_text())
            assert results["device"]["processes"] == processes
    one, several = (sorted((tmp_path / x).rglob("*.parquet")) for x in ("1", "several"))
    assert len(one) == len(models)
    assert [path.read_bytes() for path in several] == [path.read_bytes() for path in one]


@pytest.mark.slow
def test_a_context_that_one_process_cannot_answer_ends_all_with_its_message(
    tmp_path: Path, demo_dir: Path, tiny_models: dict[str, Path]
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights_file = Path(shutil.copytree(tiny_models["bert"], tmp_path / "m")) / "model.safetensors"
    weights = load_file(weights_file)
    weights["cls.predictions.bias"] = torch.full_like(weights["cls.predictions.bias"], torch.nan)
    save_file(weights, weights_file, metadata={"format": "pt"})
    output = tmp_path / "out"
    done = finished(torchrun(2), "--model", tmp_path / "m", "--data", demo_dir, "--output", output)
    assert done.returncode != 0
    assert "lmdiag: error: " in done.stderr
    assert "NaN" in done.stderr
    assert not [*output.rglob("results.json")]


@pytest.mark.slow
def test_a_model_that_is_split_over_processes_gives_the_numbers_of_a_whole_one(
    tmp_path: Path, demo_dir: Path
) -> None:
    llama = FAMILIES["llama"]
    two_heads = dataclasses.replace(llama, config=llama.config | {"num_key_value_heads": 2})
    arguments = ["--model", two_heads.make(tmp_path / "llama"), "--data", demo_dir]
    arguments += ["--tasks", "neg136", "--output"]
    assert alone("run", *arguments, tmp_path / "whole")[0] == 0
    launch(torchrun(2), *arguments, tmp_path / "split", "--tp")
    outputs = [tmp_path / "whole", tmp_path / "split"]
    whole, split = (json.loads(file(path, "results.json").read_text()) for path in outputs)
    assert split["device"]["processes"] == 2
    assert whole["n_contexts"] == split["n_contexts"]
    tables = [pq.read_table(file(path, "predictions.parquet")) for path in outputs]
    assert tables[0]["id"] == tables[1]["id"]
    values = [table["log_prob"].to_numpy() for table in tables]
    assert np.abs(values[0] - values[1]).max() < 1e-5


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are killed at the end of the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "killed", [pytest.param(0, marks=pytest.mark.nightly), pytest.param(1, marks=pytest.mark.slow)]
)
def test_a_killed_process_ends_the_others_in_one_line_and_the_run_resumes(
    killed: int,
    tmp_path: Path,
    tiny_models: dict[str, Path],
    demo_dir: Path,
    started: list[subprocess.Popen[str]],
) -> None:
    arguments = ["--model", str(tiny_models["bert"]), "--data", str(demo_dir), "--quiet"]
    arguments += ["--batch-size", "1", "--perturb", "all", "--shuffles", "5", "--output"]
    where = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    for rank in ("0", "1"):  # without a launcher, which would end the other one
        command = [sys.executable, SCRIPT, *arguments, str(tmp_path / "killed")]
        ranks = environment(**where, RANK=rank, LOCAL_RANK=rank)
        started.append(subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=ranks))
    while len([*tmp_path.rglob("journal/*.jsonl")]) < 2:
        assert started[0].poll() is None
        time.sleep(0.01)
    started[killed].kill()
    _, error = started[1 - killed].communicate(timeout=HANG)
    assert started[1 - killed].returncode == 1
    assert "lmdiag: error: another process of this run has ended" in error
    assert "Traceback" not in error
    for folder in ("killed", "undisturbed"):
        assert alone("run", *arguments, tmp_path / folder)[0] == 0
    first, second = sorted(tmp_path.rglob("predictions.parquet"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("count", "message", "raised"),
    [
        (2, "Connection closed by peer [127.0.0.1]:29500", ConnectionError),
        (1, "Connection closed by peer [127.0.0.1]:29500", RuntimeError),
        (2, "mat1 and mat2 shapes cannot be multiplied", RuntimeError),
    ],
)
def test_a_process_that_loses_another_within_the_model_says_so(
    count: int, message: str, raised: type[Exception]
) -> None:
    processes = Processes(alone=True)
    processes.count = count
    with pytest.raises(raised), processes:
        raise RuntimeError(message)
