"""Publishing and submitting, against the loopback Hub with the real clients."""

import shutil
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from invented_runs import ONE_TASK, PERTURBED, make_run

from lmdiag.hub import publish
from lmdiag.types import BadInput

SECRET = "hf_" + "Q" * 34
PARQUET = "role88/test-00000-of-00001.parquet"


@pytest.fixture
def data(demo_dir, tmp_path):
    """A built data set that the test may change."""
    return Path(shutil.copytree(demo_dir, tmp_path / "lmdiag"))


def test_data_is_published_as_it_was_built(api, data):
    built = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    (data / "draft.txt").write_text("not built")
    (data / ".env").write_text(f"token {SECRET}")
    address, private = publish.plan_data(data, "org/lmdiag").publish(api, private=True)
    info = api.dataset_info("org/lmdiag")
    assert private
    assert info.private
    assert address.endswith(f"/datasets/org/lmdiag/commit/{info.sha}")
    assert {file.rfilename for file in info.siblings} == built - {"eval.yaml"}
    # eval.yaml is sent only on request, and stays; a Parquet file that is not built any more goes
    api.upload_file(path_or_fileobj=b"PAR1", path_in_repo="old.parquet", repo_id="org/lmdiag",
                    repo_type="dataset")  # fmt: skip
    publish.plan_data(data, "org/lmdiag", benchmark=True).publish(api, private=True)
    _, private = publish.plan_data(data, "org/lmdiag").publish(api, private=False)
    assert set(api.list_repo_files("org/lmdiag", repo_type="dataset")) == built
    assert private, "an existing repository keeps its visibility"


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda d: (d / "provenance.json").write_text("[]"), "is not a built data set"),
        (lambda d: (d / PARQUET).write_bytes(b"PAR1"), "is not the file that was built"),
        (lambda d: (d / "link").symlink_to(d / "README.md"), "is a link"),
        (lambda d: publish.plan_data(d / "nothing", "org/lmdiag"), "is not a directory"),
        (lambda d: publish.plan_metric("org/metric"), "name it org/cloze_diagnostics"),
        (lambda d: publish.plan_leaderboard(d, "org/board"), "is not a leaderboard"),
        (lambda d: (d / "leaderboard.json").write_text(f"token {SECRET}")
         and publish.plan_leaderboard(d, "org/board"), "contains a token"),
        *((lambda d, name=name: publish.plan_data(d, name), "write namespace/name")
          for name in ("lmdiag", "org/a/b", "../x", "org/..", "https://x/y")),
    ],
)  # fmt: skip
def test_what_is_not_published(data, plan, message):
    """Damaged data, other folders, other names, a token in a file."""
    with pytest.raises(BadInput, match=message) as error:  # noqa: PT012
        plan(data)
        publish.plan_data(data, "org/lmdiag")
    assert SECRET not in str(error.value)


def test_a_dry_run_and_refusals_of_the_hub(hub, data, monkeypatch, command):
    asked = ["publish", "data", data, "--repo-id", "elsewhere/lmdiag"]
    code, out, _ = command(*asked, "--dry-run", "--benchmark", "--public")
    assert code == 0
    assert out.startswith("elsewhere/lmdiag (dataset, public): ")
    assert {"*.parquet", "eval.yaml"} <= set(out.split())
    assert len(out.splitlines()) <= 15
    assert not hub.log
    for token, message in (
        ("hf_test", "your token does not allow this"),
        ("hf_wrongwrong", "the Hub does not accept the token; log in again"),
        ("", "no token; log in with `hf auth login`, or set HF_TOKEN"),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        line = command(*asked)[2].splitlines()[-1]
        assert line.startswith(f"lmdiag: error: cannot publish to elsewhere/lmdiag: {message}")
        assert "hf_" not in line
    with pytest.raises(BadInput, match="the Hub cannot be reached; check the network"):
        publish.plan_data(data, "org/x").publish(HfApi("http://127.0.0.1:9"), private=True)


@pytest.mark.parametrize(
    ("subject", "options", "message"),
    [
        ("org/nothing", ["--results-repo", "org/x"], "cannot find model org/nothing: not found"),
        ("org/model", ["--results-repo", "org/x", "--revision", "v2"], "at v2: it has no such"),
        ("org/model", [], "--results-repo ORG/NAME is needed"),
        ("org/model", ["--results-repo", "org/x", "--note", "x" * 201],
         "note: string should have at most 200 characters"),
        ({}, [], "which is not a data set of the Hub"),
        (".", [], "is a folder without a finished run: a Hub id is needed"),
        ({}, ["--data", "nonsense"], "write namespace/name"),
        ({"protocol": ONE_TASK}, [], "it lacks cprag102, neg136, which the leaderboard shows"),
        ({"protocol": PERTURBED}, [], "it was not made with the default perturb, shuffles, as the"),
        ({}, ["--dtype", "float16"], "--revision and --dtype are those of the run"),
        ({"commit": "sha256:0123456789abcdef"}, ["--data", "org/lmdiag"], "is not a commit"),
        ({}, ["--data", "org/lmdiag"], "cannot find model org/model at aaaaaa"),
    ],
)  # fmt: skip
def test_what_is_not_submitted(subject, options, message, api, demo_dir, command):
    """Models, and runs (their facts and protocols), that cannot be requested."""
    publish.plan_data(demo_dir, "org/lmdiag").publish(api, private=True)
    api.create_repo("org/model")
    if isinstance(subject, dict):
        subject = make_run(command.folder / "run", demo_dir, **subject)
    code, out, err = command("submit", subject, *options)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
