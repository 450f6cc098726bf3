"""Fetching from a real server on the loopback: kept, checked, tried again, given up clearly."""

from __future__ import annotations

import functools
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from loading import sources
from loading.download import Download
from loading.lines import BadSource


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; the first requests can be made to fail."""

    def __init__(self, folder: Path) -> None:
        self.failures: list[int] = []
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


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
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "www").mkdir()
    with Server(tmp_path / "www") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def file(tmp_path: Path, server: Server) -> dict[str, str]:
    """A file on the server: its path and SHA-256."""
    content = b"item\tcontext\n"
    (tmp_path / "www" / "a file.tsv").write_bytes(content)
    return {"a file.tsv": hashlib.sha256(content).hexdigest()}


def download(server: Server, tmp_path: Path, **options: float) -> Download:
    return Download(server.address, tmp_path / "kept", "test", **{"pause": 0.0, **options})


def test_a_file_is_fetched_once(server: Server, tmp_path: Path, file: dict[str, str]) -> None:
    for _ in range(2):
        download(server, tmp_path).all(file)
    assert server.paths == ["/a%20file.tsv"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a file.tsv"]


def test_a_spoiled_copy_is_fetched_again(
    server: Server, tmp_path: Path, file: dict[str, str]
) -> None:
    download(server, tmp_path).all(file)
    (tmp_path / "kept" / "a file.tsv").write_text("spoiled")
    download(server, tmp_path).all(file)
    assert (tmp_path / "kept" / "a file.tsv").read_bytes() == b"item\tcontext\n"


def test_passing_failures_are_tried_again(
    server: Server, tmp_path: Path, file: dict[str, str]
) -> None:
    server.failures = [503, 429, 500]
    download(server, tmp_path).all(file)
    assert len(server.paths) == 4


def test_lasting_failures_are_given_up(
    server: Server, tmp_path: Path, file: dict[str, str]
) -> None:
    server.failures = [503] * 9
    with pytest.raises(BadSource, match=r"cannot be fetched \(the server said 503.*--source demo"):
        download(server, tmp_path, attempts=3).all(file)
    assert len(server.paths) == 3


def test_a_missing_file_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="the server said 404"):
        download(server, tmp_path).all({"nothing.tsv": "0" * 64})
    assert len(server.paths) == 1


def test_another_checksum_is_refused_and_not_kept(
    server: Server, tmp_path: Path, file: dict[str, str]
) -> None:
    with pytest.raises(
        BadSource, match=r"checksum of http.*/a file.tsv differs: 000000000000\.\.\."
    ):
        download(server, tmp_path).all({"a file.tsv": "0" * 64})
    assert not (tmp_path / "kept").exists()


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_address[1]
    with pytest.raises(BadSource, match="--source demo, or --source DIR"):
        Download(f"http://127.0.0.1:{port}", tmp_path, "test", attempts=2, pause=0).all({"a": "0"})


def test_offline_mode_asks_nobody(
    server: Server, tmp_path: Path, file: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadSource, match="HF_HUB_OFFLINE is set"):
        download(server, tmp_path).all(file)
    assert server.paths == []


def test_upstream_fetches_the_pinned_files(server: Server, tmp_path: Path, upstream: Path) -> None:
    """The addresses are repository/commit/path, and the pinned checksums are those of the files."""
    for folder, entry in sources.pinned().items():
        place = tmp_path / "www" / entry["repository"] / entry["commit"]
        shutil.copytree(upstream / folder, place)
    source = sources.Upstream(server.address, tmp_path / "kept")
    assert source.configs() == list(sources.CONFIGS)
    for config in sources.CONFIGS:
        tree = sources.Tree(upstream)
        fetched, copied = source.files(config), tree.files(config)
        assert [file.path for file in fetched] == [file.path for file in copied]
        assert all(file.pinned for file in fetched + copied)
        assert source.digest(config) == tree.digest(config)
        for ours, theirs in zip(fetched, copied, strict=True):
            assert ours.location.read_bytes() == theirs.location.read_bytes()
    notice = source.notice("refining-tse")
    assert notice is not None
    assert "MIT License" in notice.location.read_text()


def test_upstream_is_the_repositories_at_their_commits() -> None:
    commits = {entry["repository"]: entry["commit"] for entry in sources.pinned().values()}
    assert commits == {  # SPEC, "Sources"
        "aetting/lm-diagnostics": "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c",
        "bnewm0609/refining-tse": "db423f80246ba2d7c2fc602fc514943949cfaf71",
    }
