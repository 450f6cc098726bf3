"""Publishing and submitting, against the loopback Hub with the real clients."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hub import LoopbackHub
from huggingface_hub import HfApi
from runs import make_run

from lmdiag.cli import main
from lmdiag.hub import publish
from lmdiag.hub.benchmark import columns, leaderboard_figures
from lmdiag.hub.requests import RunRequest, read_requests
from lmdiag.hub.submit import EVAL_RESULTS
from lmdiag.results import Place, read_results
from lmdiag.types import DIAGNOSTICS, BadInput

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
SECRET = "hf_" + "Q" * 34
PARQUET = "role88/test-00000-of-00001.parquet"


@pytest.fixture
def data(demo_dir: Path, tmp_path: Path) -> Path:
    """A built data set of the test's own."""
    return Path(shutil.copytree(demo_dir, tmp_path / "lmdiag"))


@pytest.fixture
def published(api: HfApi, demo_dir: Path) -> str:
    """The data set on the Hub."""
    publish.plan_data(demo_dir, "org/lmdiag").publish(api, private=True)
    return "org/lmdiag"


# ---- publishing ---------------------------------------------------------------------------------


def test_data_is_published_whole_and_private(api: HfApi, data: Path) -> None:
    address, private = publish.plan_data(data, "org/lmdiag").publish(api, private=True)
    info = api.dataset_info("org/lmdiag")
    assert private
    assert info.private
    assert address.endswith(f"/datasets/org/lmdiag/commit/{info.sha}")
    local = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert {each.rfilename for each in info.siblings} == local - {"eval.yaml"}


def test_the_benchmark_file_is_sent_only_on_request(api: HfApi, data: Path) -> None:
    def files() -> list[str]:
        return list(api.list_repo_files("org/lmdiag", repo_type="dataset"))

    publish.plan_data(data, "org/lmdiag", benchmark=True).publish(api, private=False)
    assert not api.dataset_info("org/lmdiag").private
    assert "eval.yaml" in files()
    # The next publication keeps it, and removes a Parquet file that is gone.
    extra = data / "old/test.parquet"
    extra.parent.mkdir()
    extra.write_bytes(b"PAR1")
    note_output(data, "old/test.parquet", hashlib.sha256(b"PAR1").hexdigest())
    publish.plan_data(data, "org/lmdiag").publish(api, private=True)
    assert "old/test.parquet" in files()
    note_output(data, "old/test.parquet", None)
    _, private = publish.plan_data(data, "org/lmdiag").publish(api, private=True)
    assert "eval.yaml" in files()
    assert "old/test.parquet" not in files()
    assert not private, "an existing repository keeps its visibility"


def note_output(data: Path, path: str, digest: str | None) -> None:
    """Enters a file of a built data set into its provenance, or removes it."""
    provenance = json.loads((data / "provenance.json").read_text())
    provenance["outputs"][path] = digest
    if digest is None:
        del provenance["outputs"][path]
    (data / "provenance.json").write_text(json.dumps(provenance))


def test_only_built_files_are_published(data: Path) -> None:
    files = publish.plan_data(data, "org/lmdiag").files
    hidden = (".mypy_cache/3.11/cache.db", ".env", "loading/__pycache__/lines.cpython.pyc")
    for path in (*hidden, "draft.txt"):
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        (data / path).write_text("draft" if path == "draft.txt" else f"token {SECRET}")
    assert publish.plan_data(data, "org/lmdiag").files == files


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: (data / "provenance.json").unlink(), "is not a built data set"),
        (lambda data: (data / "provenance.json").write_text("[]"), "is not a built data set"),
        (lambda data: (data / PARQUET).write_bytes(b"PAR1"), "is not the file that was built"),
        (lambda data: (data / PARQUET).unlink(), "is not the file that was built"),
        (lambda data: (data / "link").symlink_to(data / "README.md"), "is a link"),
    ],
)
def test_damaged_data_is_not_published(
    data: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(data)
    with pytest.raises(BadInput, match=message) as error:
        publish.plan_data(data, "org/lmdiag")
    assert "\n" not in str(error.value)


def test_a_token_is_never_sent(tmp_path: Path) -> None:
    (tmp_path / "leaderboard.json").write_text(f"token {SECRET}")
    with pytest.raises(BadInput, match="contains a token") as error:
        publish.plan_leaderboard(tmp_path, "org/board")
    assert SECRET not in str(error.value)


def test_other_folders_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a leaderboard"):
        publish.plan_leaderboard(tmp_path, "org/board")
    with pytest.raises(BadInput, match="name it org/cloze_diagnostics"):
        publish.plan_metric("org/metric")
    with pytest.raises(BadInput, match="is not a directory"):
        publish.plan_data(tmp_path / "nothing", "org/lmdiag")
    for repo_id in ("lmdiag", "org/a/b", "../x", "org/..", "https://x/y"):
        with pytest.raises(BadInput, match="write namespace/name"):
            publish.plan_data(tmp_path, repo_id)


def test_a_dry_run_needs_no_hub(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["publish", "data", str(data), "--repo-id", "org/lmdiag", "--dry-run"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.startswith("org/lmdiag (dataset, private): ")
    assert PARQUET in out
    assert "eval.yaml" not in out
    assert err == ""
    assert main([*command, "--benchmark", "--public"]) == 0
    out = capsys.readouterr().out
    assert "(dataset, public)" in out
    assert "eval.yaml" in out


def test_refusals_of_the_hub_are_one_line(
    hub: LoopbackHub, api: HfApi, data: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    plan = publish.plan_data(data, "elsewhere/lmdiag")
    cases = [
        (api, "your token may not write there"),
        (HfApi(endpoint=hub.url, token="hf_wrongwrong"), "not visible to you"),
        (HfApi(endpoint="http://127.0.0.1:9", token="hf_test"), "the Hub cannot be reached"),
    ]
    for each, message in cases:
        with pytest.raises(BadInput, match=f"cannot publish to elsewhere/lmdiag: .*{message}") as e:
            plan.publish(each, private=True)
        assert "\n" not in str(e.value)
        assert "hf_" not in str(e.value)
    monkeypatch.delenv("HF_TOKEN")
    assert main(["publish", "data", str(data), "--repo-id", "org/lmdiag"]) == 2
    said = "cannot publish to org/lmdiag: no token; log in with `hf auth login`, or set HF_TOKEN"
    assert capsys.readouterr().err.splitlines()[-1] == f"lmdiag: error: {said}"


# ---- submitting ---------------------------------------------------------------------------------


@pytest.fixture
def commit(api: HfApi) -> str:
    """A model on the Hub; there is a results repository, too."""
    api.create_repo("org/model")
    api.create_repo("org/results", repo_type="dataset")
    return str(api.model_info("org/model").sha)


def test_a_model_is_requested(
    hub: LoopbackHub, api: HfApi, commit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["submit", "org/model", "--results-repo", "org/results", "--dtype", "bfloat16"]
    assert main([*command, "--note", "please", "--dry-run"]) == 0
    assert f"commit: {commit}" in capsys.readouterr().out
    assert not hub.store.find(None, "datasets", "org/results").pulls
    assert main(command) == 0
    assert capsys.readouterr().out.strip() == f"{hub.url}/datasets/org/results/discussions/1"
    api.merge_pull_request("org/results", 1, repo_type="dataset")
    (entry,) = read_requests(["org/results"])
    assert entry.request == RunRequest(model="org/model", commit=commit, dtype="bfloat16")
    for arguments, message in (
        (["org/nothing", "--results-repo", "org/results"], "cannot find model org/nothing: not f"),
        (["org/model"], "--results-repo ORG/NAME is needed"),
        ([*command[1:], "--note", "x" * 201], "note: string should have at most 200 characters"),
    ):
        assert main(["submit", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_run_is_offered_to_model_and_leaderboard(
    hub: LoopbackHub,
    api: HfApi,
    published: str,
    commit: str,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run", demo_dir, commit=commit)
    command = ["submit", str(run), "--data", published, "--results-repo", "org/results"]
    assert main([*command, "--dry-run"]) == 0
    assert "task_id: role88_sensitivity" in capsys.readouterr().out

    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.split() == [
        f"{hub.url}/datasets/org/results/discussions/1",
        f"{hub.url}/org/model/discussions/1",
    ]
    assert "hf_test" not in out + err
    api.merge_pull_request("org/results", 1, repo_type="dataset")
    api.merge_pull_request("org/model", 1)
    results = read_results(run)
    (entry,) = read_requests(["org/results"])
    assert entry.claimed == {k: x.value for k, x in leaderboard_figures(results).items()}
    path = api.hf_hub_download("org/model", EVAL_RESULTS, cache_dir=tmp_path / "cache")
    by_id = {x["dataset"]["task_id"]: x for x in yaml.safe_load(Path(path).read_text())}
    assert by_id.keys() == {
        c.task_id for place, c in columns().items() if place.task in DIAGNOSTICS
    }
    figure = by_id["neg136_sensitivity_simp_negative"]
    place = Place("neg136", "none", "sensitivity", "subset/polarity", "simp/negative")
    assert figure["value"] == results.figure(place).value
    revision = api.dataset_info(published).sha
    assert figure["dataset"] == {"id": published, "task_id": "neg136_sensitivity_simp_negative",
                                 "revision": revision}  # fmt: skip
    assert results.signature in figure["notes"]
    assert main(command) == 0
    assert capsys.readouterr().out.count("has all of it already") == 2


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ({}, [], "which is not a data set of the Hub"),
        ({}, ["--data", "nonsense"], "write namespace/name"),
        ({}, ["--dtype", "float16"], "--revision and --dtype are those of the run"),
        (
            {"commit": "sha256:0123456789abcdef"},
            ["--data", "org/lmdiag"],
            "is not a commit",
        ),
        ({}, ["--data", "org/lmdiag"], "cannot find model org/model at aaaaaa"),
    ],
)
def test_unfit_runs_are_not_offered(
    model: dict[str, str], options: list[str], message: str, published: str, demo_dir: Path,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    run = make_run(tmp_path / "run", demo_dir, **model)
    assert main(["submit", str(run), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]
