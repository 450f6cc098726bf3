"""The loopback Hub as the real clients see it: what it keeps, and what it refuses."""

from __future__ import annotations

import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError

from . import LoopbackHub

pytest_plugins = ["hub.fixtures"]


def push(api: HfApi, path: str, content: bytes = b"", **more: object) -> object:
    operations = [CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)]
    return api.create_commit("org/model", operations, commit_message="m", **more)


def test_a_stranger_offers_and_the_owner_merges(api: HfApi, stranger: HfApi) -> None:
    api.create_repo("org/model")
    push(api, "a", b"1")
    assert push(stranger, "b", b"2", create_pr=True).pr_num == 1
    push(api, "c", b"3")
    assert api.list_repo_files("org/model", revision="refs/pr/1") == ["a", "b"]
    api.merge_pull_request("org/model", 1)
    assert api.list_repo_files("org/model") == ["a", "b", "c"]


def test_who_may_not_write_or_read_is_refused(
    hub: LoopbackHub, api: HfApi, stranger: HfApi
) -> None:
    anonymous = HfApi(endpoint=hub.url, token=False)
    api.create_repo("org/model")
    api.create_repo("org/secret", private=True)
    cases = [
        (lambda: anonymous.create_repo("org/other"), 401),
        (lambda: HfApi(endpoint=hub.url, token="hf_wrong").model_info("org/model"), 401),
        (lambda: stranger.create_repo("org/other"), 403),
        (lambda: stranger.merge_pull_request("org/model", 1), 403),
        (lambda: api.create_repo("org/model"), 409),
        (lambda: push(stranger, "a"), 403),
        (lambda: push(anonymous, "a"), 401),
        (lambda: stranger.model_info("org/secret"), 404),
        (lambda: anonymous.model_info("org/nothing"), 401),
        (lambda: api.model_info("org/model", revision="v9"), 404),
        (lambda: api.hf_hub_download("org/model", "nothing.txt"), 404),
    ]
    for attempt, status in cases:
        with pytest.raises(HfHubHTTPError) as error:
            attempt()
        assert error.value.response.status_code == status
    assert api.list_repo_files("org/model") == []


RESULT = "- {{dataset: {{id: {id}, task_id: {task}}}, value: {value}, date: '{date}'}}"
GOOD = {"id": "org/data", "task": "acc_1", "value": "0.5", "date": "2024-05-01"}
MALFORMED = [
    ("README.md", "---\n- a\n- list\n---\n", "is not of type 'object'"),
    ("README.md", "---\nlicense: my-own\n---\n", r"\$\.license"),
    ("README.md", "---\nlanguage: English\n---\n", r"\$\.language"),
    ("README.md", "---\nconfigs:\n- config_name: a\n---\n", r"\$\.configs"),
    *(
        (".eval_results/x.yaml", RESULT.format(**GOOD | wrong), complaint)
        for wrong, complaint in (
            ({"value": ".nan"}, "finite"), ({"id": "no-namespace"}, r"dataset\.id"),
            ({"task": "'two words'"}, r"dataset\.task_id"), ({"date": "yesterday"}, r"\.date"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "complaint"), MALFORMED)
def test_malformed_files_are_refused_at_the_push(
    api: HfApi, path: str, text: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.create_repo("org/model")
    monkeypatch.setattr(HfApi, "_validate_yaml", lambda *args, **kwargs: None)
    with pytest.raises(HfHubHTTPError, match=complaint):
        push(api, path, text.encode())
    push(api, ".eval_results/x.yaml", RESULT.format(**GOOD).encode())
    assert api.list_repo_files("org/model") == [".eval_results/x.yaml"]
