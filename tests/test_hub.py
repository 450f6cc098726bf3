"""Publishing and submitting, against the loopback Hub with the real clients."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hub import LoopbackHub, client_env, run_lmdiag
from hub.runs import make_run, model_info
from huggingface_hub import HfApi

from lmdiag.cli import main
from lmdiag.hub import client, publish, submit
from lmdiag.hub.headline import HEADLINES
from lmdiag.schema import BadInput

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
SECRET = "hf_" + "Q" * 34


@pytest.fixture
def data(demo_dir: Path, tmp_path: Path) -> Path:
    """A built data set of the test's own."""
    return Path(shutil.copytree(demo_dir, tmp_path / "lmdiag"))


@pytest.fixture
def published(api: HfApi, demo_dir: Path) -> str:
    """The data set on the Hub."""
    publish.plan_data(demo_dir, "org/lmdiag").send(api, private=True)
    return "org/lmdiag"


# ---- publishing ---------------------------------------------------------------------------------


def test_data_is_published_whole_and_private(api: HfApi, data: Path) -> None:
    address, private = publish.plan_data(data, "org/lmdiag").send(api, private=True)
    info = api.dataset_info("org/lmdiag")
    assert private
    assert info.private
    assert address.endswith(f"/datasets/org/lmdiag/commit/{info.sha}")
    local = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert {each.rfilename for each in info.siblings} == local - {"eval.yaml"}


def test_the_benchmark_file_goes_only_when_asked(api: HfApi, data: Path) -> None:
    plan = publish.plan_data(data, "org/lmdiag", benchmark=True)
    plan.send(api, private=False)
    assert not api.dataset_info("org/lmdiag").private
    assert "eval.yaml" in api.list_repo_files("org/lmdiag", repo_type="dataset")
    # The next publication leaves it alone, and removes a Parquet file that is gone.
    extra = data / "old/test.parquet"
    extra.parent.mkdir()
    extra.write_bytes(b"PAR1")
    note_output(data, "old/test.parquet", hashlib.sha256(b"PAR1").hexdigest())
    publish.plan_data(data, "org/lmdiag").send(api, private=True)
    assert "old/test.parquet" in api.list_repo_files("org/lmdiag", repo_type="dataset")
    note_output(data, "old/test.parquet", None)
    _, private = publish.plan_data(data, "org/lmdiag").send(api, private=True)
    files = api.list_repo_files("org/lmdiag", repo_type="dataset")
    assert "eval.yaml" in files
    assert "old/test.parquet" not in files
    assert not private, "a repository that was there keeps its visibility"


def note_output(data: Path, path: str, digest: str | None) -> None:
    """Enters a file of a built data set into its provenance, or strikes it out."""
    provenance = json.loads((data / "provenance.json").read_text())
    provenance["outputs"][path] = digest
    if digest is None:
        del provenance["outputs"][path]
    (data / "provenance.json").write_text(json.dumps(provenance))


def test_hidden_files_and_bytecode_stay_here(data: Path) -> None:
    files = publish.plan_data(data, "org/lmdiag").files
    for litter in (".mypy_cache/3.11/cache.db", ".env", "loading/__pycache__/lines.cpython.pyc"):
        (data / litter).parent.mkdir(parents=True, exist_ok=True)
        (data / litter).write_text(f"token {SECRET}")
    assert publish.plan_data(data, "org/lmdiag").files == files


def test_what_was_not_built_stays_here(data: Path) -> None:
    (data / "draft.txt").write_text("not for everyone")
    assert "draft.txt" not in publish.plan_data(data, "org/lmdiag").files


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: (data / "provenance.json").unlink(), "no built data set"),
        (lambda data: (data / "provenance.json").write_text("[]"), "no built data set"),
        (
            lambda data: (data / "role88/test-00000-of-00001.parquet").write_bytes(b"PAR1"),
            "is not the file that was built",
        ),
        (
            lambda data: (data / "cprag102/test-00000-of-00001.parquet").unlink(),
            "not the file that",
        ),
        (lambda data: (data / "notes.txt").write_text(f"token {SECRET}"), "holds a token"),
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
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("# No metadata\n", "no YAML metadata"),
        ("---\nlicense: [\n---\n", "metadata cannot be read"),
        (
            "---\nconfigs:\n- {config_name: a, data_files: [{path: a.parquet}]}\n---\n",
            "config a names a.parquet, which is not there",
        ),
    ],
)
def test_a_card_that_leads_nowhere_is_not_published(data: Path, card: str, message: str) -> None:
    (data / "README.md").write_text(card)
    note_output(data, "README.md", hashlib.sha256(card.encode()).hexdigest())
    with pytest.raises(BadInput, match=message):
        publish.plan_data(data, "org/lmdiag")


def test_other_folders_are_no_leaderboard_or_metric(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no leaderboard"):
        publish.plan_leaderboard(tmp_path, "org/board")
    with pytest.raises(BadInput, match="name it org/cloze_diagnostics"):
        publish.plan_metric("org/metric")
    with pytest.raises(BadInput, match="is no directory"):
        publish.plan_data(tmp_path / "nothing", "org/lmdiag")
    for repo_id in ("lmdiag", "org/a/b", "../x", "org/..", "https://x/y"):
        with pytest.raises(BadInput, match="write namespace/name"):
            publish.plan_data(tmp_path, repo_id)


def test_a_dry_run_needs_no_hub(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish", "data", str(data), "--repo-id", "org/lmdiag", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("org/lmdiag (dataset, private): ")
    assert "neg136/test-00000-of-00001.parquet" in out
    assert "eval.yaml" not in out
    assert err == ""
    command = ["publish", "data", str(data), "--repo-id", "org/lmdiag", "--benchmark", "--public"]
    assert main([*command, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "(dataset, public)" in out
    assert "eval.yaml" in out


def test_refusals_of_the_hub_are_one_line(hub: LoopbackHub, api: HfApi, data: Path) -> None:
    plan = publish.plan_data(data, "elsewhere/lmdiag")
    cases = [
        (api, "your token may not write there"),
        (HfApi(endpoint=hub.url, token="hf_wrongwrong"), "not yours to see"),
        (HfApi(endpoint="http://127.0.0.1:9", token="hf_test"), "the Hub cannot be reached"),
    ]
    for each, message in cases:
        with pytest.raises(BadInput, match=f"cannot publish to elsewhere/lmdiag: .*{message}") as e:
            plan.send(each, private=True)
        assert "\n" not in str(e.value)
        assert "hf_" not in str(e.value)


def test_without_a_token_the_message_says_so(hub: LoopbackHub, data: Path, tmp_path: Path) -> None:
    env = client_env(hub.url, tmp_path / "home", token=None)
    done = run_lmdiag(["publish", "data", str(data), "--repo-id", "org/lmdiag"], env, tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "lmdiag: error: cannot publish to org/lmdiag: "
        "no token; log in with `hf auth login`, or set HF_TOKEN"
    )


def test_tokens_are_blotted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "my-own-kind-of-token")
    text = client.without_secrets(f"a {SECRET} b my-own-kind-of-token c")
    assert text == "a hf_*** b hf_*** c"
    assert client.find_secret(b"\xff my-own-kind-of-token")
    assert not client.find_secret(b"hf_hub_download is a function, hf_test a word")


# ---- headline figures ---------------------------------------------------------------------------


def test_task_ids_are_those_of_the_benchmark() -> None:
    benchmark = yaml.safe_load((ROOT / "datasets/lmdiag/eval.yaml").read_text())
    assert [(each["id"], each["config"]) for each in benchmark["tasks"]] == [
        (headline.id, headline.task) for headline in HEADLINES
    ]


def test_task_ids_spell_the_measure(demo_dir: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", demo_dir)
    results = json.loads((run / "results.json").read_text())
    for headline in HEADLINES:
        name = headline.measure.replace("@", "_at_").replace(".", "_")
        level = "" if headline.level is None else "_" + headline.level.replace("/", "_")
        assert headline.id == f"{headline.task}_{name}{level}"
        figure = headline.find(results)
        assert (figure is None) == (headline.task == "agreement")
        assert figure is None or 0 <= figure["ci_low"] <= figure["value"] <= figure["ci_high"]


# ---- submitting ---------------------------------------------------------------------------------


@pytest.fixture
def commit(api: HfApi) -> str:
    """A model on the Hub."""
    api.create_repo("org/model")
    return str(api.model_info("org/model").sha)


def test_a_run_is_offered_to_model_and_leaderboard(
    hub: LoopbackHub,
    api: HfApi,
    published: str,
    commit: str,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run", demo_dir, info=model_info(commit=commit))
    api.create_repo("org/runs", repo_type="dataset")
    env = client_env(hub.url, tmp_path / "home")
    command = ["submit", str(run), "--data", published, "--results-repo", "org/runs"]

    dry = run_lmdiag([*command, "--dry-run"], env, tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "task_id: role88_sensitivity" in dry.stdout
    assert not hub.store.find(None, "datasets", "org/runs").pulls

    done = run_lmdiag(command, env, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        f"{hub.url}/datasets/org/runs/discussions/1",
        f"{hub.url}/org/model/discussions/1",
    ]
    assert "hf_test" not in dry.stdout + dry.stderr + done.stdout + done.stderr
    api.merge_pull_request("org/runs", 1, repo_type="dataset")
    place = f"runs/org--model/{commit[:12]}-float32/diagnostics-token"
    assert api.list_repo_files("org/runs", repo_type="dataset") == [
        f"{place}/predictions.parquet",
        f"{place}/results.json",
    ]
    api.merge_pull_request("org/model", 1)
    path = api.hf_hub_download("org/model", submit.EVAL_RESULTS, cache_dir=tmp_path / "cache")
    entries = yaml.safe_load(Path(path).read_text())
    results = json.loads((run / "results.json").read_text())
    by_id = {entry["dataset"]["task_id"]: entry for entry in entries}
    assert set(by_id) == {each.id for each in HEADLINES if each.task != "agreement"}
    entry = by_id["neg136_sensitivity_simp_negative"]
    figure = results["tasks"]["neg136"]["none"]["measures"]["sensitivity"]
    assert entry["value"] == figure["by"]["subset/polarity"]["simp/negative"]["value"]
    assert entry["dataset"]["id"] == published
    assert entry["dataset"]["revision"] == api.dataset_info(published).sha
    assert entry["date"] == results["finished"]
    assert entry["source"]["url"] == f"{hub.url}/datasets/org/runs"
    assert results["signature"] in entry["notes"]

    assert main(command) == 0
    assert capsys.readouterr().out.count("has all of it already") == 2


def test_what_is_not_offered(api: HfApi, published: str, demo_dir: Path, tmp_path: Path) -> None:
    cases = [
        ({"id": "demo:masked"}, None, "is no data set of the Hub"),
        ({}, "nonsense", "write namespace/name"),
        ({"commit": "sha256:0123456789abcdef"}, published, "is not a commit of a model on the Hub"),
    ]
    for changes, data, message in cases:
        run = make_run(tmp_path / "run", demo_dir, info=model_info(**changes))
        with pytest.raises(BadInput, match=message):
            submit.prepare(run, data, None, "http://hub")


def test_a_tampered_run_is_not_sent(
    published: str,
    commit: str,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run", demo_dir, info=model_info(commit=commit))
    path = run / "results.json"
    results = json.loads(path.read_text())
    results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"] = 1.0
    path.write_text(json.dumps(results))
    assert main(["submit", str(run), "--data", published]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    line = err.splitlines()[-1]
    assert "is not fit to submit: " in line
    assert "role88 none measures sensitivity value: is 1, its predictions give" in line


def test_a_commit_that_the_model_does_not_have(
    published: str,
    commit: str,
    demo_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run", demo_dir, info=model_info(commit="b" * 40))
    assert main(["submit", str(run), "--data", published]) == 2
    assert "cannot find commit bbbbbbbbbbbb in org/model: " in capsys.readouterr().err


def test_figures_are_checked_before_they_are_written(demo_dir: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", demo_dir)
    results = json.loads((run / "results.json").read_text())
    for wrong in (float("nan"), 50, -0.1, "0.5", True):
        results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"] = wrong
        with pytest.raises(BadInput, match="is no proportion"):
            submit.eval_results(results, "org/lmdiag", "c" * 40, None, "http://hub")
