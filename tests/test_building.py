"""`lmdiag build`, and the data sets that are built on first use."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lmdiag
from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.stimuli.building import BUILT, cached, script
from lmdiag.types import BadInput


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an empty folder to work in."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_command_writes_a_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--source", "demo", "--configs", "role88"]) == 0
    assert capsys.readouterr().out == "role88           32 rows\nwritten: lmdiag\n"
    assert stimuli.tasks("lmdiag") == ["role88"]
    assert main(["build", "other", "--source", "nowhere"]) == 2
    assert capsys.readouterr().err == (
        "lmdiag: error: no directory nowhere: --source is upstream, demo or a directory\n"
    )


def test_of_simultaneous_processes_one_builds(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(3) as pool:
        (folder,) = {*pool.map(cached, ["demo"] * 3)}
    said = f"lmdiag: building the demo items in {folder} (only the first time)\n"
    assert capsys.readouterr().err == said
    names = sorted(path.name.partition("-")[0] + path.suffix for path in (cache / "data").iterdir())
    assert names == ["demo", "demo.lock"]


def test_the_demo_items_are_a_data_set_by_name(demo_dir: Path) -> None:
    Path("demo").mkdir()  # `make run` leaves such a folder in a clone, which is not a data set
    rows = stimuli.load("demo", "neg136")
    assert rows.fingerprint == stimuli.load(str(demo_dir), "neg136").fingerprint
    assert rows.source == "demo"


def test_without_data_the_published_items_are_built_once(
    root: Path, demo_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo diagnostics stand for the published items."""
    source = shutil.copytree(root / "datasets/lmdiag/demo/lm-diagnostics", "copy")
    monkeypatch.setitem(BUILT, "lmdiag", str(source))
    Path("lmdiag").mkdir()
    Path("lmdiag/README.md").write_text("# lmdiag\n\nA clone is not a data set.\n")
    for _ in range(2):
        assert main(["run", "--model", "demo:masked", "--quiet", "--tasks", "cprag102"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "building" in line]
    assert len(said) == 1
    assert said[0].startswith("lmdiag: building the published items in ")
    (run,) = Path("results").glob("*/*")
    assert main(["score", "--task", "cprag102", "--predictions", f"{run}/predictions.parquet"]) == 0
    fingerprint = lmdiag.load_stimuli(task="cprag102").fingerprint
    assert fingerprint == stimuli.load(str(demo_dir), "cprag102").fingerprint


def test_a_data_set_in_the_folder_comes_first(demo_dir: Path, cache: Path) -> None:
    shutil.copytree(demo_dir, "lmdiag")
    assert "agreement" in stimuli.tasks("lmdiag")
    assert not cache.exists()


def test_without_a_network_one_line_names_both_remedies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["run", "--model", "demo:masked"]) == 2
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "error" in line)
    for words in ("is not fetched", "`lmdiag build --source DIR`", "`--data demo`"):
        assert words in line


def test_a_cache_that_cannot_be_written_is_named(cache: Path) -> None:
    cache.write_text("not a directory")
    with pytest.raises(BadInput, match=r"cannot write the data set demo to .* set LMDIAG_CACHE to"):
        cached("demo")


@pytest.mark.slow
def test_the_published_items_are_those_of_the_repositories(
    upstream: Path, data_dir: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the source files in the cache, as a download leaves them."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for folder, repository in script("sources").pinned().items():
        shutil.copytree(upstream / folder, cache / "sources" / folder / repository["commit"])
    for task in ("cprag102", "role88", "neg136"):
        built, expected = stimuli.load(task=task), stimuli.load(str(data_dir), task)
        assert (built.fingerprint, built.revision) == (expected.fingerprint, expected.revision)
    assert len(stimuli.load(task="agreement")) == 250_440
