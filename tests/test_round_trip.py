"""A leaderboard from end to end: on a Hub on the loopback interface, and killed at random."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import families
import pytest
import yaml
from hub import LoopbackHub, client_env, run_client
from hub.boards import request, write_request
from huggingface_hub import HfApi
from leaving import LEAVE
from limits import HANG
from runs import make_run
from safetensors.numpy import load_file, save_file

from lmdiag.cli import main
from lmdiag.hub.benchmark import leaderboard_figures
from lmdiag.hub.requests import RunRequest
from lmdiag.hub.submit import EVAL_RESULTS
from lmdiag.results import read_results

pytest_plugins = ["hub.fixtures"]
pytestmark = pytest.mark.slow

LOAD = """
import datasets, evaluate, json
rows = datasets.load_dataset("org/lmdiag", "neg136", split="test")
metric = evaluate.load("org/cloze_diagnostics", "neg136")
perfect = [
    {"top_words": row["expected"] or ["no"], "log_prob": 0.0 if row["good"] else -9.0}
    for row in rows
]
found = metric.compute(predictions=perfect, references=list(rows), k=[1, 5], threshold=0.01)
print(json.dumps({"rows": len(rows), "found": found}, default=float))
"""
ENDLESS = {
    "type": "Sequence",
    "normalizers": [
        {"type": "Prepend", "prepend": "x" * 3000},
        {"type": "Replace", "pattern": {"Regex": "x*x*(?<=y)"}, "content": ""},
    ],
}
"""A normaliser of texts that tries some 10^10 ways to match each."""


def damage(folder: Path, name: str) -> None:
    """Makes a model of this name out of an honest one."""
    config = json.loads((folder / "config.json").read_text())
    weights = folder / "model.safetensors"
    if name == "nan":
        save_file({key: x * float("nan") for key, x in load_file(weights).items()}, weights,
                  {"format": "pt"})  # fmt: skip
    elif name == "code":
        mapped = {"AutoConfig": "code.Config", "AutoModelForMaskedLM": "code.Model"}
        changed = config | {"model_type": "new", "auto_map": mapped}
        (folder / "config.json").write_text(json.dumps(changed))
        (folder / "code.py").write_text("open('/tmp/lmdiag-ran', 'w').close()")
    elif name == "large":
        header = {
            "w": {"dtype": "F32", "shape": [70_000, 100_000], "data_offsets": [0, 28 * 10**9]}
        }
        text = json.dumps(header).encode()
        weights.write_bytes(len(text).to_bytes(8, "little") + text)
    elif name == "endless":
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer | {"normalizer": ENDLESS}))
        named = folder / "tokenizer_config.json"  # so that transformers takes the file as it is
        named.write_text(named.read_text().replace("BertTokenizer", "PreTrainedTokenizerFast"))


def rows_of(site: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """`model dtype` -> its row; name -> why it was not run."""
    record = json.loads((site / "leaderboard.json").read_text())
    rows = {f"{row['model']['id']} {row['model']['dtype']}": row for row in record["rows"]}
    return rows, {entry["name"]: entry["reason"] for entry in record["not_run"]}


def test_a_request_is_submitted_merged_run_and_shown(
    hub: LoopbackHub,
    api: HfApi,
    demo_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The owner publishes; a stranger loads data and metric with empty caches.
    publish = ["--repo-id", "org/lmdiag", "--public"]
    assert main(["publish", "data", str(demo_dir), *publish]) == 0
    assert main(["publish", "metric", "--repo-id", "org/cloze_diagnostics", "--public"]) == 0
    api.create_repo("org/requests", repo_type="dataset")
    env = client_env(hub.url, tmp_path / "home", token="hf_other")
    loaded = run_client(["-c", LOAD + LEAVE], env, tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    found = json.loads(loaded.stdout)["found"]
    measures = found.get("measures", found)
    assert measures["accuracy@1"]["value"] == measures["sensitivity@0.01"]["value"] == 1.0

    commits = {}
    honest = families.MASKED[0].make(tmp_path / "honest")
    for name in ("honest", "nan", "code", "large", "endless"):
        folder = shutil.copytree(honest, tmp_path / "models" / name)
        (folder / "README.md").write_text(name)
        damage(folder, name)
        api.create_repo(f"org/{name}")
        commits[name] = str(api.upload_folder(repo_id=f"org/{name}", folder_path=folder).oid)

    # A stranger invents a run with figures to like, and submits it; the owners merge.
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    facts = {"id": "org/honest", "commit": commits["honest"]}
    forged = make_run(tmp_path / "forged", demo_dir, skill=50.0, **facts)
    capsys.readouterr()
    submit = ["submit", str(forged), "--data", "org/lmdiag", "--results-repo", "org/requests"]
    assert main(submit) == 0
    assert capsys.readouterr().out.split() == [
        f"{hub.url}/datasets/org/requests/discussions/1",
        f"{hub.url}/org/honest/discussions/1",
    ]
    api.merge_pull_request("org/requests", 1, repo_type="dataset")
    api.merge_pull_request("org/honest", 1)
    assert EVAL_RESULTS in api.list_repo_files("org/honest")
    honest_commit = commits["honest"]
    others = [RunRequest(model="org/honest", commit=honest_commit, dtype="bfloat16")]
    others += [request(f"org/{name}", commit=commits[name]) for name in ("nan", "code", "large")]
    others += [request("org/nowhere"), request("org/honest", commit="e" * 40)]
    for wanted in others:
        write_request(tmp_path / "more", wanted)
    hostile = {"model": "org/<b>x</b>", "commit": "e" * 40, "dtype": "float32"}
    write_request(tmp_path / "more", request("org/hostile"), yaml.safe_dump(hostile))
    api.upload_folder(repo_id="org/requests", repo_type="dataset", folder_path=tmp_path / "more")

    board = ["--data", "org/lmdiag", "--out", str(tmp_path / "board")]
    assert main(["leaderboard", "org/requests", *board]) == 0
    rows, reasons = rows_of(tmp_path / "board")
    assert rows.keys() == {"org/honest float32", "org/honest bfloat16"}
    assert sorted(row["rank"] for row in rows.values()) in ([1, 1], [1, 2])
    row = rows["org/honest float32"]
    (run,) = (tmp_path / "board-runs").glob("*/float32/org--honest@*/diagnostics-token")
    computed = {key: x.value for key, x in leaderboard_figures(read_results(run)).items()}
    assert {key: figure["value"] for key, figure in row["figures"].items()} == computed
    claimed = {key: x.value for key, x in leaderboard_figures(read_results(forged)).items()}
    assert row["claimed_otherwise"]
    assert row["claimed_otherwise"].items() <= claimed.items()
    assert (tmp_path / "board" / row["page"]).stat().st_size > 100_000
    told = {
        "org/nan": "NaN",
        "org/code": "own code",
        "org/large": "has 7,000,000,000 parameters, more than 3,000,000,000",
        "org/nowhere": "not found, or not visible to you",
        "org/honest": "at eeeeeeeeeeee: not found",
        f"org/requests/{request('org/hostile').path}": "is not a repository id",
    }
    assert reasons.keys() == told.keys()
    for name, text in told.items():
        assert text in reasons[name], (name, reasons[name])
    assert not Path("/tmp/lmdiag-ran").exists()
    fetched = {path for method, path, _ in hub.log if method == "GET"}
    assert not [path for path in fetched if "nowhere/resolve" in path]

    # A model that never ends; what is finished is not run again.
    write_request(tmp_path / "last", request("org/endless", commit=commits["endless"]))
    write_request(tmp_path / "last", request("org/honest", commit=honest_commit))
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "last"), *board, "--time-limit", "20"]) == 0
    again, reasons = rows_of(tmp_path / "board")
    assert reasons == {"org/endless": "it took longer than 20 seconds"}
    assert capsys.readouterr().err.count("running org/") == 1
    shown = again["org/honest float32"]
    assert (shown["figures"], shown["rank"]) == (row["figures"], 1)
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    assert main(["publish", "leaderboard", str(tmp_path / "board"), "--repo-id", "org/board"]) == 0
    assert (
        capsys.readouterr().out.strip().splitlines()[-1].startswith(f"{hub.url}/spaces/org/board")
    )


def site_of(folder: Path) -> dict[str, str]:
    """Name -> content of the files of a site, without the date and duration of runs."""
    files = {}
    for path in sorted(folder.rglob("*.*")):
        text = path.read_text()
        text = re.sub(r"<dt>(Cost|Finished)</dt><dd>.*?</dd>", "", text)
        files[str(path.relative_to(folder))] = text
    return files


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.nightly)])
def test_a_leaderboard_that_is_killed_ends_with_the_same_site(
    kills: int, demo_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "models.txt").write_text("demo:masked\ndemo:causal\n")
    write_request(tmp_path, request("org/a"), "broken")
    command = [sys.executable, "-m", "lmdiag", "leaderboard", str(tmp_path / "models.txt")]
    command += [str(tmp_path), "--data", str(demo_dir), "--out"]
    env = os.environ | {"HF_HUB_OFFLINE": "1"}

    def start(out: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, str(tmp_path / out)], env=env, stderr=subprocess.DEVNULL)

    began = time.monotonic()
    assert start("whole").wait(HANG) == 0
    seconds = time.monotonic() - began
    draw = random.Random(0)
    for _ in range(kills):
        process = start("killed")
        try:
            process.wait(draw.uniform(0, 1.1 * seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(HANG)
    assert start("killed").wait(HANG) == 0
    assert site_of(tmp_path / "killed") == site_of(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "killed", "killed-runs", "models.txt", "requests", "whole", "whole-runs",
    ]  # fmt: skip
