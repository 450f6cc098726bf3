"""Downloads of the pinned files from a real server on the loopback."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmdiag.stimuli.building import script
from lmdiag.types import BadInput

sources: Any = script("sources")


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; the first requests can be made to fail."""

    def __init__(self, folder: Path) -> None:
        self.failures: list[int] = []
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if self.server.failures:
            self.send_error(self.server.failures.pop(0))
        else:
            super().do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def folder(upstream: Path, tmp_path: Path) -> Path:
    """What the server serves: both repositories at their pinned commits."""
    for place in (
        "aetting/lm-diagnostics/080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c",
        "bnewm0609/refining-tse/db423f80246ba2d7c2fc602fc514943949cfaf71",
    ):
        source = upstream / place.split("/")[1]
        shutil.copytree(source, tmp_path / "www" / place, copy_function=shutil.copyfile)
    return tmp_path / "www"


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(sources, "PAUSE", 0.0)
    with Server(folder) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_the_pinned_files_are_fetched_once(server: Server, tmp_path: Path, upstream: Path) -> None:
    remote = sources.Source("upstream", tmp_path / "kept", server.address)
    copies = sources.Source("directory", upstream)
    assert remote.configs() == copies.configs()
    for config in remote.configs():
        fetched, copied = remote.files(config), copies.files(config)
        assert [file.path for file in fetched] == [file.path for file in copied]
        assert all(file.pinned for file in fetched + copied)
    assert "MIT License" in remote.notice("refining-tse").read_text()
    count = len(server.paths)
    (damaged,) = remote.files("role88")
    damaged.location.write_text("damaged")
    assert remote.files("role88") == [damaged]  # fetched again: the same bytes
    assert len(server.paths) == count + 1


def test_temporary_failures_are_tried_again(server: Server, tmp_path: Path) -> None:
    server.failures = [503, 429, 500]
    sources.Source("upstream", tmp_path / "kept", server.address).files("role88")
    assert len(server.paths) == 4


@pytest.mark.parametrize(
    ("failures", "content", "requests", "message"),
    [
        ([503] * 9, b"", 5, r"ROLE-88.tsv cannot be fetched \(.*503.*--source demo, or --source D"),
        ([404], b"", 1, "cannot be fetched .*404"),
        ([], b"other bytes", 1, r"checksum of http.*ROLE-88.tsv differs: expected 06a3dfdfbeb3"),
    ],
)
def test_lasting_failures_are_named_and_nothing_is_kept(
    server: Server, folder: Path, tmp_path: Path, failures: list[int], content: bytes,
    requests: int, message: str,
) -> None:  # fmt: skip
    (file,) = folder.rglob("ROLE-88.tsv")
    file.write_bytes(content)
    server.failures = failures
    with pytest.raises(BadInput, match=message):
        sources.Source("upstream", tmp_path / "kept", server.address).files("role88")
    assert len(server.paths) == requests
    assert not (tmp_path / "kept").exists()


def test_no_network_says_what_to_do(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as closed:
        address = f"http://127.0.0.1:{closed.server_address[1]}"
    with pytest.raises(BadInput, match=r"refused.*--source demo, or --source DIR"):
        sources.Source("upstream", tmp_path / "kept", address).files("role88")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match="HF_HUB_OFFLINE"):
        sources.Source("upstream", tmp_path / "kept", server.address).files("role88")
    assert server.paths == []
