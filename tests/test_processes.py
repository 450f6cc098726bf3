"""Runs on one, two and three real processes give the same files."""

import dataclasses
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from families import FAMILIES

pytestmark = pytest.mark.slow

TASKS = ("cprag102", "role88", "neg136", "agreement")

WHOLE = re.compile(r": (\d+) contexts\n.*: asked \1 contexts in \S+ \S+ contexts/s\n")
"""What the first process says of a run, whoever asked the contexts."""


def launch(root: Path, count: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `eval/run.py` on so many processes, as `accelerate launch` does on several CPUs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={count}"]
    command += [f"--master_port={port}", str(root / "eval/run.py"), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [FAMILIES[name].make(folder / name) for name in ("bert", "gpt2")]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, root: Path, models: list[Path], demo_dir: Path
) -> dict[int, Path]:
    """Number of processes -> output of the same sweep over two models."""
    outputs = {}
    for count in (1, 2, 3):
        outputs[count] = tmp_path_factory.mktemp(f"processes{count}")
        arguments = ["--model", *map(str, models), "--data", str(demo_dir), "--tasks", *TASKS]
        arguments += ["--perturb", "all", "--shuffles", "2", "--output", str(outputs[count])]
        done = launch(root, count, *arguments)
        assert done.returncode == 0, done.stderr
        assert len(WHOLE.findall(done.stderr)) == len(models), done.stderr
    return outputs


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_the_files_are_the_same_to_the_last_byte(
    runs: dict[int, Path], name: str, count: int
) -> None:
    for file in ("predictions.parquet", "agreement.parquet"):
        ((one,), (several,)) = ([*runs[n].glob(f"{name}/*/{file}")] for n in (1, count))
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, several)]
        assert digests[0] == digests[1]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_there_were_as_many_processes_as_asked_for(
    runs: dict[int, Path], name: str, count: int
) -> None:
    (path,) = runs[count].glob(f"{name}/*/results.json")
    assert json.loads(path.read_text())["device"]["processes"] == count


def test_whole_words_are_the_same_to_the_last_byte_too(
    tmp_path: Path, root: Path, models: list[Path], demo_dir: Path
) -> None:
    for count in (1, 2):
        arguments = ["--model", *map(str, models), "--data", str(demo_dir), "--tasks", "neg136"]
        arguments += ["--unit", "word", "--output", str(tmp_path / str(count))]
        done = launch(root, count, *arguments)
        assert done.returncode == 0, done.stderr
    for model in models:
        one, two = (
            next((tmp_path / count / model.name).rglob("predictions.parquet")).read_bytes()
            for count in ("1", "2")
        )
        assert one == two


def test_a_context_that_one_process_cannot_answer_ends_all_with_its_message(
    tmp_path: Path, root: Path, demo_dir: Path, models: list[Path]
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    subprocess.run(["cp", "-r", str(models[0]), str(broken)], check=True)
    weights = load_file(broken / "model.safetensors")
    name = "cls.predictions.bias"
    weights[name] = torch.full_like(weights[name], torch.nan)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    done = launch(
        root, 2, "--model", str(broken), "--data", str(demo_dir), "--output", str(tmp_path / "out")
    )
    assert done.returncode != 0
    assert "lmdiag: error: " in done.stderr
    assert "NaN" in done.stderr or "nan" in done.stderr
    assert not [*tmp_path.rglob("results.json")]


def test_a_model_that_is_split_over_processes_gives_the_numbers_of_a_whole_one(
    tmp_path: Path, root: Path, demo_dir: Path
) -> None:
    llama = FAMILIES["llama"]
    two_heads = dataclasses.replace(llama, config=llama.config | {"num_key_value_heads": 2})
    model = two_heads.make(tmp_path / "llama")
    for count, option in ((1, "--quiet"), (2, "--tp")):
        arguments = ["--model", str(model), "--data", str(demo_dir), "--tasks", "neg136", option]
        done = launch(root, count, *arguments, "--output", str(tmp_path / str(count)))
        assert done.returncode == 0, done.stderr
    whole, split = (
        json.loads(next((tmp_path / count).rglob("results.json")).read_text())
        for count in ("1", "2")
    )
    assert split["device"]["processes"] == 2
    tables = [
        pq.read_table(next((tmp_path / count).rglob("predictions.parquet"))) for count in ("1", "2")
    ]
    assert tables[0]["id"] == tables[1]["id"]
    values = [table["log_prob"].to_numpy() for table in tables]
    assert np.abs(values[0] - values[1]).max() < 1e-5
    assert whole["n_contexts"] == split["n_contexts"]


def start(root: Path, rank: int, port: int, *arguments: str) -> subprocess.Popen[str]:
    """Starts one of two processes of a run, without a launcher that would end the other with it."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WORLD_SIZE": "2", "RANK": str(rank),
        "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    command = [sys.executable, str(root / "eval/run.py"), *arguments]
    return subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_others_in_one_line_and_the_run_resumes(
    killed: int, root: Path, tmp_path: Path, models: list[Path], demo_dir: Path
) -> None:
    arguments = ["--model", str(models[0]), "--data", str(demo_dir), "--batch-size", "1"]
    arguments += ["--perturb", "all", "--shuffles", "5", "--quiet"]
    output = ["--output", str(tmp_path / "killed")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [start(root, rank, port, *arguments, *output) for rank in (0, 1)]
    while len([*tmp_path.rglob("journal/*.jsonl")]) < 2 and both[0].poll() is None:
        time.sleep(0.01)
    both[killed].kill()
    _, error = both[1 - killed].communicate(timeout=600)
    both[killed].communicate()
    assert both[1 - killed].returncode == 1
    assert "lmdiag: error: another process of this run has ended" in error
    assert "Traceback" not in error
    for folder in ("killed", "undisturbed"):
        done = launch(root, 1, *arguments, "--output", str(tmp_path / folder))
        assert done.returncode == 0, done.stderr
    first, second = sorted(tmp_path.rglob("predictions.parquet"))
    assert first.read_bytes() == second.read_bytes()
