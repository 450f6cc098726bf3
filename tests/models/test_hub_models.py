"""Models from the Hub: pinned to a commit, read again without a network, refused in one line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hub import LoopbackHub

from lmdiag.models.loading.load import LoadOptions, load_parts
from models.toys import refusal


@pytest.fixture
def published(hub: LoopbackHub, family_dir: Callable[[str], Path]) -> str:
    """A small GPT-2 on the Hub."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.url, token="hf_test")
    api.create_repo("org/tiny-gpt2")
    api.upload_folder(repo_id="org/tiny-gpt2", folder_path=family_dir("gpt2"))
    return "org/tiny-gpt2"


def test_a_model_is_pinned_to_its_commit(hub: LoopbackHub, published: str) -> None:
    from huggingface_hub import HfApi

    commit = HfApi(endpoint=hub.url, token="hf_test").model_info(published).sha
    assert commit is not None
    parts = load_parts(published)
    assert (parts.commit, parts.kind, parts.training_step) == (commit, "causal", None)
    assert load_parts(published, LoadOptions(revision=commit)).commit == commit
    assert load_parts(published, LoadOptions(revision="main")).commit == commit


def test_once_read_no_network_is_needed(published: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = load_parts(published).commit
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load_parts(published).commit == commit


ANSWERS: dict[str, tuple[int, str, str | None, str]] = {
    "missing": (401, "RepoNotFound", None, "check the spelling"),
    "gated": (403, "GatedRepo", None, "ask for access"),
    "old": (404, "RevisionNotFound", "step1000", "has no revision step1000"),
    "empty": (404, "EntryNotFound", None, "has no config.json"),
    "down": (500, "", None, "the Hub answers 500"),
    "no-entry": (403, "", None, "the Hub answers 403"),
    "stale": (401, "", None, "does not accept the token"),
}
"""Repository -> status and error code of the Hub, revision, and a part of the line."""


class Refusing(BaseHTTPRequestHandler):
    """A Hub that refuses everything, each repository in a way of its own."""

    def do_GET(self) -> None:
        status, code, *_ = ANSWERS[self.path.split("/")[2]]
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if status == 401 and not code:
            self.send_header("X-Error-Message", "Invalid credentials in Authorization header")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Keeps quiet."""


@pytest.fixture
def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process set to speak to a Hub that refuses everything."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        point_to(f"http://127.0.0.1:{server.server_port}", tmp_path, monkeypatch)
        yield
        server.shutdown()


def point_to(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache / "empty-cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    # Between its five tries the client waits, longer each time.
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("name", ANSWERS)
def test_the_hub_refuses(name: str) -> None:
    *_, revision, told = ANSWERS[name]
    assert told in refusal(f"org/{name}", revision=revision)


@pytest.mark.parametrize(
    ("offline", "told"), [(False, "cannot be reached"), (True, "in the cache")]
)
def test_no_network(
    offline: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_to("http://127.0.0.1:9", tmp_path, monkeypatch)  # the discard port: nobody answers
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    assert told in refusal("org/some-model")
