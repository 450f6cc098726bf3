"""The whole round on the loopback Hub: what the owner publishes, a stranger runs, everyone sees."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import families
import pytest
from hub import LoopbackHub, client_env, run_client
from huggingface_hub import HfApi
from leaving import LEAVE
from runs import make_run

from lmdiag.cli import main
from lmdiag.hub.benchmark import columns
from lmdiag.hub.submit import EVAL_RESULTS, run_place
from lmdiag.results import read_results

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]

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


@pytest.fixture
def tiny(api: HfApi, tmp_path: Path) -> str:
    """A tiny random BERT on the Hub; returns its commit."""
    folder = families.MASKED[0].make(tmp_path / "tiny")
    api.create_repo("org/tiny")
    commit = api.upload_folder(repo_id="org/tiny", folder_path=folder)
    return str(commit.oid)


@pytest.mark.slow
def test_from_a_build_to_a_place_in_the_table(
    hub: LoopbackHub,
    api: HfApi,
    tiny: str,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    page: Page,
) -> None:
    # The owner publishes.
    assert main(["publish", "data", str(demo_dir), "--repo-id", "org/lmdiag", "--public"]) == 0
    assert main(["publish", "metric", "--repo-id", "org/cloze_diagnostics", "--public"]) == 0
    api.create_repo("org/runs", repo_type="dataset")

    # A stranger loads both from empty caches.
    env = client_env(hub.url, tmp_path / "home", token="hf_other")
    loaded = run_client(["-c", LOAD + LEAVE], env, tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    report = json.loads(loaded.stdout)
    published = json.loads((demo_dir / "provenance.json").read_text())["configs"]["neg136"]
    assert report["rows"] == published["rows"]
    measures = report["found"].get("measures", report["found"])
    assert measures["accuracy@1"]["value"] == measures["sensitivity@0.01"]["value"] == 1.0

    # A stranger runs a model of the Hub on the data of the Hub, with accelerate.
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]
    command = [str(ROOT / "eval/run.py"), "--model", "org/tiny", "--data", "org/lmdiag"]
    ran = run_client([*launch, *command], env, tmp_path)
    assert ran.returncode == 0, ran.stderr
    run = tmp_path / "results/org--tiny/diagnostics-token"
    results = json.loads((run / "results.json").read_text())
    assert results["model"]["commit"] == tiny
    assert results["data"]["revision"] == api.dataset_info("org/lmdiag").sha

    # The run is offered, and the owners take it.
    capsys.readouterr()
    assert main(["submit", str(run), "--results-repo", "org/runs"]) == 0
    assert capsys.readouterr().out.split() == [
        f"{hub.url}/datasets/org/runs/discussions/1",
        f"{hub.url}/org/tiny/discussions/1",
    ]
    api.merge_pull_request("org/runs", 1, repo_type="dataset")
    api.merge_pull_request("org/tiny", 1)
    assert EVAL_RESULTS in api.list_repo_files("org/tiny")
    for name, skill in (("org/strong", 6.0), ("org/none", -6.0)):
        other = make_run(tmp_path / name, demo_dir, id=name, skill=skill)
        place = run_place(read_results(other))
        api.upload_folder(
            repo_id="org/runs", repo_type="dataset", folder_path=other, path_in_repo=place
        )

    # Everyone sees it at its place.
    board = tmp_path / "board"
    assert main(["leaderboard", "org/runs", "--data", "org/lmdiag", "--out", str(board)]) == 0
    assert "3 models, 0 rejected" in capsys.readouterr().out
    assert main(["publish", "leaderboard", str(board), "--repo-id", "org/board"]) == 0
    rows = json.loads((board / "leaderboard.json").read_text())["rows"]
    models = [row for row in rows if row["origin"] == "submitted"]
    overview = [column.task_id for column in columns().values() if column.is_overview][:7]
    keys = [[row["figures"][key]["value"] for key in overview] for row in models]
    assert keys == sorted(keys, reverse=True)
    place = [row["name"] for row in models].index("org/tiny")
    assert models[0]["name"] == "org/strong"
    copy = api.snapshot_download("org/board", repo_type="space", local_dir=tmp_path / "copy")
    look_up(page, Path(copy), "org/tiny", place, results)


def look_up(page: Page, site: Path, name: str, place: int, results: dict[str, Any]) -> None:
    """Finds a model in the published table with a browser, and its own page."""
    page.goto((site / "index.html").as_uri())
    row = page.locator("#board tbody tr[data-origin=submitted]").nth(place)
    assert row.locator("th bdi").inner_text() == name
    shown = row.locator("td.figure:visible .value").first.inner_text()
    measures = results["tasks"]["cprag102"]["none"]["measures"]
    assert shown == f"{100 * measures['accuracy@5']['value']:.1f}"
    row.get_by_role("link").click()
    page.wait_for_url(re.compile(r"/models/org-tiny-[0-9a-f]{10}\.html$"))
    assert page.locator("h1").inner_text() == name
