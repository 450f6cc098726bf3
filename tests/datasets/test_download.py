"""Downloads from a real server on the loopback: kept, checked, tried again, refused clearly."""

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

CONTENT = b"item\tcontext\n"
FILE = {"a file.tsv": hashlib.sha256(CONTENT).hexdigest()}


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
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with one file."""
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "a file.tsv").write_bytes(CONTENT)
    with Server(tmp_path / "www") as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def fetch(server: Server, folder: Path, sums: dict[str, str] = FILE, attempts: int = 5) -> None:
    Download(server.address, folder / "kept", "test", attempts=attempts, pause=0.0).all(sums)


def test_a_file_is_fetched_once_unless_its_copy_is_damaged(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch(server, tmp_path)
    assert server.paths == ["/a%20file.tsv"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a file.tsv"]
    (tmp_path / "kept" / "a file.tsv").write_text("damaged")
    fetch(server, tmp_path)
    assert (tmp_path / "kept" / "a file.tsv").read_bytes() == CONTENT


def test_temporary_failures_are_tried_again(server: Server, tmp_path: Path) -> None:
    server.failures = [503, 429, 500]
    fetch(server, tmp_path)
    assert len(server.paths) == 4


@pytest.mark.parametrize(
    ("failures", "sums", "requests", "message"),
    [
        ([503] * 9, FILE, 3, r"cannot be fetched \(the server said 503.*--source demo"),
        ([], {"nothing.tsv": "0" * 64}, 1, "the server said 404"),
        ([], {"a file.tsv": "0" * 64}, 1, r"checksum of http.*/a file.tsv differs: expected 00000"),
    ],
)
def test_lasting_failures_are_named_and_nothing_is_kept(
    server: Server,
    tmp_path: Path,
    failures: list[int],
    sums: dict[str, str],
    requests: int,
    message: str,
) -> None:
    server.failures = failures
    with pytest.raises(BadSource, match=message):
        fetch(server, tmp_path, sums, attempts=3)
    assert len(server.paths) == requests
    assert not (tmp_path / "kept").exists()


def test_no_network_says_what_to_do(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as closed:
        address = f"http://127.0.0.1:{closed.server_address[1]}"
    with pytest.raises(BadSource, match="--source demo, or --source DIR"):
        Download(address, tmp_path, "test", attempts=2, pause=0).all({"a": "0"})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadSource, match="HF_HUB_OFFLINE is set"):
        fetch(server, tmp_path)
    assert server.paths == []


def test_upstream_fetches_the_pinned_files(server: Server, tmp_path: Path, upstream: Path) -> None:
    """The addresses are repository/commit/path, and the pinned checksums are those of the files."""
    commits = {}
    for folder, entry in sources.pinned().items():
        commits[entry["repository"]] = entry["commit"]
        place = tmp_path / "www" / entry["repository"] / entry["commit"]
        shutil.copytree(upstream / folder, place)
    assert commits == {
        "aetting/lm-diagnostics": "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c",
        "bnewm0609/refining-tse": "db423f80246ba2d7c2fc602fc514943949cfaf71",
    }
    source, tree = sources.Upstream(server.address, tmp_path / "kept"), sources.Tree(upstream)
    assert source.configs() == list(sources.CONFIGS)
    for config in sources.CONFIGS:
        fetched, copied = source.files(config), tree.files(config)
        assert [file.path for file in fetched] == [file.path for file in copied]
        assert all(file.pinned for file in fetched + copied)
        assert source.digest(config) == tree.digest(config)
        for one, other in zip(fetched, copied, strict=True):
            assert one.location.read_bytes() == other.location.read_bytes()
    notice = source.notice("refining-tse")
    assert notice is not None
    assert "MIT License" in notice.location.read_text()
