"""A leaderboard from end to end: on a Hub on the loopback interface, and killed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import families
import psutil
import pytest
import yaml
from hub import client_env
from hub.boards import request, write_request
from invented_runs import make_run
from launched import HANG, LEAVE

from lmdiag.cli import main
from lmdiag.hub.benchmark import columns, leaderboard_figures, task_id
from lmdiag.results import FigureKey, read_results
from lmdiag.types import DIAGNOSTICS

pytestmark = [pytest.mark.slow, pytest.mark.long]

LOAD = """
import datasets, evaluate, json
rows = datasets.load_dataset("org/lmdiag", "neg136", split="test")
metric = evaluate.load("org/cloze_diagnostics", "neg136")
perfect = [
    {"top_words": row["expected"] or ["no"], "log_prob": 0.0 if row["good"] else -9.0}
    for row in rows
]
print(json.dumps(metric.compute(predictions=perfect, references=list(rows)), default=float))
"""


def add_code(folder):
    """Gives a model code of its own, which must not run."""
    mapped = {"AutoConfig": "code.Config", "AutoModelForMaskedLM": "code.Model"}
    config = json.loads((folder / "config.json").read_text())
    changed = config | {"model_type": "new", "auto_map": mapped}
    (folder / "config.json").write_text(json.dumps(changed))
    (folder / "code.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()")


def test_a_request_is_submitted_merged_run_and_shown(
    hub, api, demo_dir, tmp_path, monkeypatch, capsys
):
    # The owner publishes; a stranger loads data and metric with empty caches.
    assert main(["publish", "data", str(demo_dir), "--repo-id", "org/lmdiag", "--public"]) == 0
    assert main(["publish", "metric", "--repo-id", "org/cloze_diagnostics", "--public"]) == 0
    api.create_repo("org/requests", repo_type="dataset")
    env = client_env(hub.url, tmp_path / "home", token="hf_other")
    program = [sys.executable, "-c", LOAD + LEAVE]
    loaded = subprocess.run(program, env=env, cwd=tmp_path, capture_output=True, check=True,
                            timeout=HANG)  # fmt: skip
    measures = json.loads(loaded.stdout)
    assert measures["accuracy@1"]["value"] == measures["sensitivity@0.01"]["value"] == 1.0
    commits = {}
    honest = families.MASKED[0].make(tmp_path / "honest")
    add_code(coded := shutil.copytree(honest, tmp_path / "coded"))
    for name, folder in (("honest", honest), ("code", coded)):
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
    addresses = ("datasets/org/requests/discussions/1", "org/honest/discussions/1")
    assert capsys.readouterr().out.split() == [f"{hub.url}/{x}" for x in addresses]
    api.merge_pull_request("org/requests", 1, repo_type="dataset")
    api.merge_pull_request("org/honest", 1)
    assert main(submit) == 0
    assert capsys.readouterr().out.count("has all of it already") == 2
    offered = yaml.safe_load(
        Path(api.hf_hub_download("org/honest", ".eval_results/lmdiag.yaml")).read_text()
    )
    by_id = {entry["dataset"]["task_id"]: entry for entry in offered}
    shown = {task_id(place) for place in columns() if place.task in DIAGNOSTICS}
    assert by_id.keys() == shown
    entry, results = by_id["neg136_sensitivity_simp_negative"], read_results(forged)
    place = FigureKey("neg136", "none", "sensitivity", "subset/polarity", "simp/negative")
    assert entry["value"] == results.figure(place).value
    assert entry["dataset"]["revision"] == api.dataset_info("org/lmdiag").sha
    assert results.signature in entry["notes"]

    # Other requests, which the owner merged, too.
    submit = ["submit", "org/honest", "--dtype", "bfloat16", "--results-repo", "org/requests"]
    assert main([*submit, "--dry-run"]) == 0
    head = api.model_info("org/honest").sha
    assert f"commit: {head}\n    dtype: bfloat16" in capsys.readouterr().out
    assert main([*submit, "--note", "please"]) == 0
    api.merge_pull_request("org/requests", 2, repo_type="dataset")
    for name, commit in (("code", commits["code"]), ("nowhere", "a" * 40), ("honest", "e" * 40)):
        write_request(tmp_path / "more", request(f"org/{name}", commit=commit))
    hostile = {"model": "org/<b>x</b>", "commit": "e" * 40, "dtype": "float32"}
    write_request(tmp_path / "more", request("org/hostile"), yaml.safe_dump(hostile))
    api.upload_folder(repo_id="org/requests", repo_type="dataset", folder_path=tmp_path / "more")
    board = ["--data", "org/lmdiag", "--out", str(tmp_path / "board")]

    def site():
        """Dtype -> row, name -> why it was not run, and the published pages of models."""
        record = json.loads((tmp_path / "board/leaderboard.json").read_text())
        assert {row["model"]["id"] for row in record["rows"]} == {"org/honest"}
        rows = {row["model"]["dtype"]: row for row in record["rows"]}
        publish = ["publish", "leaderboard", str(tmp_path / "board"), "--repo-id", "org/board"]
        with monkeypatch.context() as owner:
            owner.setenv("HF_TOKEN", "hf_test")
            assert main(publish) == 0
        files = api.list_repo_files("org/board", repo_type="space")
        reasons = {entry["name"]: entry["reason"] for entry in record["not_run"]}
        return rows, reasons, sum(path.startswith("models/") for path in files)

    assert main(["leaderboard", "org/requests", *board]) == 0
    rows, reasons, pages = site()
    assert pages == 2
    assert sorted(row["rank"] for row in rows.values()) in ([1, 1], [1, 2])
    row = rows["float32"]
    (run,) = (tmp_path / "board-runs").glob("*/float32/org--honest@*/diagnostics-token")
    computed = {key: x.value for key, x in leaderboard_figures(read_results(run)).items()}
    assert {key: figure["value"] for key, figure in row["figures"].items()} == computed
    claimed = {key: x.value for key, x in leaderboard_figures(results).items()}
    assert row["claimed_otherwise"]
    assert row["claimed_otherwise"].items() <= claimed.items()
    assert (tmp_path / "board" / row["page"]).read_bytes() == (run / "report.html").read_bytes()
    told = {  # weights that cannot be read: test_leaderboard.py
        "org/code": "own code",
        "org/nowhere": "not found, or not visible to you",
        "org/honest": "at eeeeeeeeeeee: it has no such revision",
        f"org/requests/{request('org/hostile').path}": "is not a repository id",
    }
    assert reasons.keys() == told.keys()
    for name, text in told.items():
        assert text in reasons[name], (name, reasons[name])
    assert not [*tmp_path.rglob("ran")]

    # What is finished is not run again, and what is gone is not shown.
    write_request(tmp_path / "last", request("org/honest", commit=commits["honest"]))
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "last"), *board]) == 0
    assert "running org/" not in capsys.readouterr().err
    again, reasons, pages = site()
    assert (pages, reasons) == (1, {})
    assert (again["float32"]["figures"], again["float32"]["rank"]) == (row["figures"], 1)


def test_a_killed_leaderboard_leaves_no_run_behind_and_goes_on(demo_dir, tmp_path):
    (tmp_path / "models.txt").write_text("demo:masked\ndemo:causal\n")
    words = ["leaderboard", str(tmp_path / "models.txt"), "--data", str(demo_dir)]
    words += ["--out", str(tmp_path / "board")]
    env = os.environ | {"HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "lmdiag", *words]
    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    first = "board-runs/*/float32/demo--causal/*"
    while not [*tmp_path.glob(first)] or not psutil.Process(process.pid).children():
        time.sleep(0.01)  # until the second run is under way
    children = psutil.Process(process.pid).children()
    process.kill()
    process.wait(HANG)
    _, alive = psutil.wait_procs(children, HANG)
    assert not alive, "the run did not end with the leaderboard"
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("running demo:") == 1
    record = json.loads((tmp_path / "board/leaderboard.json").read_text())
    assert {row["model"]["id"] for row in record["rows"]} == {"demo:masked", "demo:causal"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board", "board-runs", "models.txt"]
