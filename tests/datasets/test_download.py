"""Downloads of the pinned files; the transport answers in place of the network."""

from types import SimpleNamespace

import httpx2
import pytest

from lmdiag.stimuli.dataset import script
from lmdiag.types import BadInput

sources = script("sources")
SERVER = "https://server.example"
COMMITS = {
    "/aetting/lm-diagnostics": "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c",
    "/bnewm0609/refining-tse": "db423f80246ba2d7c2fc602fc514943949cfaf71",
}
REFUSED = httpx2.ConnectError("[Errno 111] Connection refused")


@pytest.fixture
def server(upstream, monkeypatch):
    """Serves the pinned commits; the first requests fail by a status, an exception or bytes."""
    state = SimpleNamespace(paths=[], failures=[])

    def answer(transport, request):
        state.paths.append(request.url.path)
        match state.failures.pop(0) if state.failures else None:
            case Exception() as error:
                raise error
            case int(status):
                return httpx2.Response(status)
            case bytes(content):
                return httpx2.Response(200, content=content)
        for start, commit in COMMITS.items():
            before, _, path = request.url.path.partition(f"/{commit}/")
            if before == start:
                file = upstream / start.split("/")[2] / path
                return httpx2.Response(200, content=file.read_bytes())
        raise AssertionError(request.url)

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", answer)
    monkeypatch.setattr(sources, "PAUSE", 0.0)
    return state


def test_the_pinned_files_are_fetched_once(server, tmp_path, upstream):
    remote = sources.Source("upstream", tmp_path / "kept", SERVER)
    copies = sources.Source("directory", upstream)
    assert remote.configs() == copies.configs()
    for config in remote.configs():
        fetched, copied = remote.files(config), copies.files(config)
        assert [*fetched] == [*copied] == [*sources.CONFIGS[config]["files"]]
        for path, local in fetched.items():
            assert local.read_bytes() == copied[path].read_bytes()
    assert "MIT License" in remote.notice("refining-tse").read_text()
    count = len(server.paths)
    (damaged,) = remote.files("role88").values()
    content = damaged.read_bytes()
    damaged.write_text("damaged")
    assert [path.read_bytes() for path in remote.files("role88").values()] == [content]
    assert len(server.paths) == count + 1


@pytest.mark.parametrize(
    ("failures", "requests", "message"),
    [
        ([503, 429, 500], 4, ""),  # tried again
        ([503] * 9, 5, r"ROLE-88.tsv cannot be fetched \(.*503.*--source demo, or --source DIR"),
        ([404], 1, "cannot be fetched .*404"),
        ([b"other"], 1, r"checksum of http.*ROLE-88.tsv differs: expected 06a3dfdfbeb3"),
        ([REFUSED] * 9, 5, "refused.*--source demo, or --source DIR"),
        ([], 0, "HF_HUB_OFFLINE"),
    ],
)
def test_lasting_failures_are_named_and_nothing_is_kept(
    server, tmp_path, monkeypatch, failures, requests, message
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", not requests)
    server.failures = list(failures)
    remote = sources.Source("upstream", tmp_path / "kept", SERVER)
    if message:
        with pytest.raises(BadInput, match=message):
            remote.files("role88")
        assert not (tmp_path / "kept").exists()
    else:
        assert remote.files("role88")
    assert len(server.paths) == requests
