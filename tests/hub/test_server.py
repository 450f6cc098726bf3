"""The loopback Hub as the real clients see it: what it keeps, and what it refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    BadRequestError,
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from leaving import LEAVE

from . import LoopbackHub, client_env, rules, run_client

pytest_plugins = ["hub.fixtures"]

CARD = b"---\nlicense: mit\nlanguage: en\n---\n# A card\n"


def add(path: str, content: bytes) -> CommitOperationAdd:
    return CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)


def status(error: pytest.ExceptionInfo[HfHubHTTPError]) -> int:
    return error.value.response.status_code


def test_what_is_uploaded_comes_back(hub: LoopbackHub, api: HfApi, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "README.md").write_bytes(CARD)
    (folder / "sub" / "rows.parquet").write_bytes(b"PAR1" * 100)
    (folder / "empty.txt").write_bytes(b"")
    api.create_repo("org/data", repo_type="dataset", private=True)
    commit = api.upload_folder(repo_id="org/data", repo_type="dataset", folder_path=folder)

    assert api.dataset_info("org/data").private
    assert api.dataset_info("org/data").sha == commit.oid
    files = api.list_repo_files("org/data", repo_type="dataset")
    assert files == ["README.md", "empty.txt", "sub/rows.parquet"]
    copy = Path(
        api.snapshot_download("org/data", repo_type="dataset", cache_dir=tmp_path / "cache")
    )
    for name in files:
        assert (copy / name).read_bytes() == (folder / name).read_bytes()


def test_large_files_go_by_lfs_and_are_checked(hub: LoopbackHub, api: HfApi) -> None:
    api.create_repo("org/data", repo_type="dataset")
    content = b"PAR1" * 100
    api.create_commit(
        "org/data", [add("rows.parquet", content)], commit_message="rows", repo_type="dataset"
    )
    (entry,) = api.get_paths_info("org/data", "rows.parquet", repo_type="dataset")
    assert entry.lfs.sha256 == hashlib.sha256(content).hexdigest()
    assert ("PUT", f"/lfs/put/{entry.lfs.sha256}", 200) in hub.log
    # git hash-object of the 11 bytes "hello world"
    api.create_commit(
        "org/data", [add("a.txt", b"hello world")], commit_message="a", repo_type="dataset"
    )
    (text,) = api.get_paths_info("org/data", "a.txt", repo_type="dataset")
    assert text.blob_id == "95d09f2b10159347eece71399a7e2e907ea3df4f"


def test_an_unchanged_file_makes_no_commit(api: HfApi) -> None:
    api.create_repo("org/data", repo_type="dataset")
    operations = [("a.txt", b"a"), ("rows.parquet", b"PAR1" * 100)]
    commits = [
        api.create_commit(
            "org/data", [add(*file) for file in operations], commit_message="m", repo_type="dataset"
        )
        for _ in range(2)
    ]
    assert commits[0].oid == commits[1].oid


def test_old_commits_stay_and_files_can_go(api: HfApi, tmp_path: Path) -> None:
    api.create_repo("org/model")
    first = api.create_commit("org/model", [add("a.txt", b"1")], commit_message="one")
    api.create_commit(
        "org/model", [add("b.txt", b"2"), CommitOperationDelete("a.txt")], commit_message="two"
    )
    assert api.list_repo_files("org/model") == ["b.txt"]
    assert api.list_repo_files("org/model", revision=first.oid) == ["a.txt"]
    path = api.hf_hub_download("org/model", "a.txt", revision=first.oid, cache_dir=tmp_path / "c")
    assert Path(path).read_bytes() == b"1"


def test_a_stranger_offers_and_the_owner_merges(api: HfApi, stranger: HfApi) -> None:
    api.create_repo("org/model")
    api.create_commit("org/model", [add("a.txt", b"1")], commit_message="one")
    offer = stranger.create_commit(
        "org/model", [add("b.txt", b"2")], commit_message="offer", create_pr=True
    )
    assert offer.pr_num == 1
    assert api.list_repo_files("org/model") == ["a.txt"]
    assert api.list_repo_files("org/model", revision="refs/pr/1") == ["a.txt", "b.txt"]
    assert api.get_discussion_details("org/model", 1).status == "open"
    api.create_commit("org/model", [add("c.txt", b"3")], commit_message="meanwhile")
    with pytest.raises(HfHubHTTPError) as error:
        stranger.merge_pull_request("org/model", 1)
    assert status(error) == 403
    api.merge_pull_request("org/model", 1)
    assert api.list_repo_files("org/model") == ["a.txt", "b.txt", "c.txt"]
    assert api.get_discussion_details("org/model", 1).status == "merged"
    with pytest.raises(HfHubHTTPError) as error:
        api.merge_pull_request("org/model", 1)
    assert status(error) == 409


def test_conflicting_offers_are_not_merged(api: HfApi, stranger: HfApi) -> None:
    api.create_repo("org/model")
    stranger.create_commit("org/model", [add("a", b"1")], commit_message="m", create_pr=True)
    api.create_commit("org/model", [add("a", b"2")], commit_message="m")
    with pytest.raises(HfHubHTTPError) as error:
        api.merge_pull_request("org/model", 1)
    assert status(error) == 409


def test_what_is_refused(hub: LoopbackHub, api: HfApi, stranger: HfApi) -> None:
    anonymous = HfApi(endpoint=hub.url, token=False)
    impostor = HfApi(endpoint=hub.url, token="hf_wrong")
    api.create_repo("org/model")
    api.create_repo("org/secret", private=True)
    cases = [
        (lambda: anonymous.create_repo("org/other"), 401),
        (lambda: impostor.whoami(), 401),
        (lambda: stranger.create_repo("org/other"), 403),
        (lambda: api.create_repo("org/model"), 409),
        (lambda: stranger.create_commit("org/model", [add("a", b"")], commit_message="m"), 403),
        (lambda: anonymous.create_commit("org/model", [add("a", b"")], commit_message="m"), 401),
    ]
    for attempt, expected in cases:
        with pytest.raises(HfHubHTTPError) as error:
            attempt()
        assert status(error) == expected
    with pytest.raises(RepositoryNotFoundError):
        stranger.model_info("org/secret")
    with pytest.raises(RepositoryNotFoundError):
        anonymous.model_info("org/nothing")
    with pytest.raises(RevisionNotFoundError):
        api.model_info("org/model", revision="v9")
    with pytest.raises(EntryNotFoundError):
        api.hf_hub_download("org/model", "nothing.txt", cache_dir=hub.store.root / "cache")
    assert api.list_repo_files("org/model") == []


def test_a_late_commit_is_refused(api: HfApi) -> None:
    api.create_repo("org/model")
    parent = api.model_info("org/model").sha
    api.create_commit("org/model", [add("a", b"1")], commit_message="m", parent_commit=parent)
    with pytest.raises(HfHubHTTPError) as error:
        api.create_commit("org/model", [add("b", b"1")], commit_message="m", parent_commit=parent)
    assert status(error) == 412


@pytest.mark.parametrize(
    ("kind", "metadata", "complaint"),
    [
        ("dataset", "license: [unclosed", "cannot be read"),
        ("dataset", "- a\n- list", "must be a mapping"),
        ("dataset", "license: my-own", "license"),
        ("dataset", "language: English", "ISO 639"),
        ("dataset", "size_categories: tiny", "size_categories"),
        ("dataset", "configs:\n- config_name: a\n- config_name: a", "twice"),
        ("dataset", "configs:\n- config_name: a", "names no data files"),
        ("space", "title: A space", "sdk"),
        ("space", "title: A\nsdk: static\nemoji: X", "emoji"),
        ("space", "title: A\nsdk: static\ncolorFrom: mauve", "colorFrom"),
    ],
)
def test_malformed_cards_are_refused(api: HfApi, kind: str, metadata: str, complaint: str) -> None:
    api.create_repo("org/thing", repo_type=kind, space_sdk="static" if kind == "space" else None)
    card = f"---\n{metadata}\n---\n".encode()
    with pytest.raises(ValueError, match=complaint):
        api.create_commit("org/thing", [add("README.md", card)], commit_message="m", repo_type=kind)
    assert api.list_repo_files("org/thing", repo_type=kind) == []


def test_a_card_that_skips_the_check_is_refused_at_the_push(api: HfApi, monkeypatch) -> None:
    monkeypatch.setattr(HfApi, "_validate_yaml", lambda *args, **kwargs: None)
    api.create_repo("org/thing")
    bad = b"---\nlicense: none-at-all\n---\n"
    with pytest.raises(BadRequestError, match="license"):
        api.create_commit("org/thing", [add("README.md", bad)], commit_message="m")


RESULT = """- dataset: {{id: {id}, task_id: {task}}}
  value: {value}
  date: "{date}"
"""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"value": ".nan"}, "finite"),
        ({"value": "true"}, "finite"),
        ({"value": "'0.5'"}, "finite"),
        ({"id": "no-namespace"}, "id of a data set"),
        ({"task": "'two words'"}, "id of a task"),
        ({"date": "yesterday"}, "ISO 8601"),
        ({}, None),
    ],
)
def test_malformed_results_are_refused(change: dict[str, str], complaint: str | None) -> None:
    good = {"id": "org/data", "task": "acc_1", "value": "0.5", "date": "2024-05-01"}
    complaints = rules.check_results(RESULT.format(**good | change).encode())
    assert bool(complaints) == (complaint is not None)
    assert all(complaint in text for text in complaints)


@pytest.mark.slow
def test_load_dataset_and_evaluate_from_empty_caches(
    hub: LoopbackHub, api: HfApi, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": ["a", "b"], "n": [1, 2]}), tmp_path / "rows.parquet")
    files = "{split: test, path: one/*.parquet}"
    card = f"---\nconfigs:\n- config_name: one\n  data_files:\n  - {files}\n---\n"
    rows = (tmp_path / "rows.parquet").read_bytes()
    api.create_repo("org/data", repo_type="dataset", private=True)
    api.create_commit(
        "org/data",
        [add("README.md", card.encode()), add("one/test.parquet", rows)],
        commit_message="m",
        repo_type="dataset",
    )
    api.create_repo("org/same_letter", repo_type="space", space_sdk="gradio")
    api.create_commit(
        "org/same_letter",
        [add("same_letter.py", METRIC.encode())],
        commit_message="m",
        repo_type="space",
    )
    done = run_client(["-c", CLIENT + LEAVE], client_env(hub.url, tmp_path / "home"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "0.5"]


METRIC = """
import datasets
import evaluate

class SameLetter(evaluate.Metric):
    def _info(self):
        features = datasets.Features(
            {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
        )
        return evaluate.MetricInfo(description="", citation="", features=features)

    def _compute(self, predictions, references):
        same = [a == b for a, b in zip(predictions, references)]
        return {"same": sum(same) / len(same)}
"""

CLIENT = """
import datasets
import evaluate
rows = datasets.load_dataset("org/data", "one", split="test")
metric = evaluate.load("org/same_letter")
print(sum(rows["n"]), metric.compute(predictions=["a", "b"], references=["a", "c"])["same"])
"""
