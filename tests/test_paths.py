"""Texts that are no paths, of users and in files: `BadInput` or an answer, never a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hub.boards import edit
from runs import make_run

import lmdiag
from lmdiag import reading, stimuli
from lmdiag.cli.requested import read_models
from lmdiag.hub import publish
from lmdiag.hub.client import is_on_hub
from lmdiag.hub.requests import read_requests
from lmdiag.models.loading.checkpoint import Checkpoint, resolve
from lmdiag.protocol import Protocol
from lmdiag.results import load_run, model_slug
from lmdiag.results.external import read_external
from lmdiag.results.multiverse import Multiverse
from lmdiag.stimuli.building import script
from lmdiag.types import BadInput

ODD = {
    "long name": "x" * 300,
    "long path": "x/" * 3000,
    "long id": f"org/{'x' * 300}",
    "NUL": "a\0b",
    "surrogate": "\ud800.csv",
    "loop": "loop",
    "below a loop": "loop/x.csv",
    "below a closed folder": "closed/x.csv",
    "closed": "closed",
}

ROW = {"id": "a", "context": "A robin is a", "target": "bird"}
ROWS = stimuli.Stimuli.of("own", {name: [value] for name, value in ROW.items()}, "own", None)


def source(text: str) -> None:
    with suppress(script("lines").BadSource):
        script("sources").open_source(text)


ANSWERED: dict[str, Callable[[str], Any]] = {
    "exists": lambda text: reading.exists(Path(text)),
    "is_file": lambda text: reading.is_file(Path(text)),
    "is_folder": lambda text: reading.is_folder(Path(text)),
    "real_path": lambda text: reading.real_path(Path(text)),
    "model_slug": lambda text: model_slug(text, None),
    "repository": is_on_hub,
    "checkpoint": lambda text: Checkpoint("m", "folder", None, None).file(text),
    "source": source,
}
"""What answers whatever the text is."""

REFUSED: dict[str, Callable[[str], Any]] = {
    "data": lambda text: stimuli.load(text, "own"),
    "verbs": stimuli.load_verbs,
    "run": load_run,
    "comparison": lambda text: lmdiag.compare(text, text),
    "multiverse": lambda text: Multiverse.read(Path(text)),
    "predictions": lambda text: read_external(Path(text), ROWS),
    "model": resolve,
    "models": read_models,
    "requests": lambda text: [*read_requests([text])],
    "data to publish": lambda text: publish.plan_data(Path(text), "org/name", benchmark=False),
    "board to publish": lambda text: publish.plan_leaderboard(Path(text), "org/name"),
}
"""What refuses all of them."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a link to itself and a folder that may not be read."""
    tmp_path.chmod(0o755)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "closed").mkdir(mode=0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_test")  # else it is looked for in a file
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    yield tmp_path
    (tmp_path / "closed").chmod(0o700)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, who may read every folder."""
    user = os.geteuid()
    try:
        if not user:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", ANSWERED)
def test_a_question_about_a_path_is_answered(name: str) -> None:
    for rights in (nullcontext, as_nobody):
        for text in ODD.values():
            with rights():
                ANSWERED[name](text)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_path_is_refused(name: str) -> None:
    for rights in (nullcontext, as_nobody):  # in this order: nobody may not import modules
        for text in ODD.values():
            with rights(), pytest.raises(BadInput):
                REFUSED[name](text)


def test_a_folder_that_may_not_be_read_is_named() -> None:
    for read in (load_run, lambda text: Multiverse.read(Path(text)), stimuli.load_verbs, resolve):
        with suppress(BadInput):
            read("closed")
        with as_nobody(), pytest.raises(BadInput, match=r"closed.*(Permission denied|cannot read)"):
            read("closed")


# ---- in files ------------------------------------------------------------------------------------


@pytest.fixture
def run(folder: Path) -> Path:
    """A run on a file of the current folder."""
    (folder / "own.jsonl").write_text(json.dumps(ROW))
    return make_run(folder / "run", "own.jsonl", Protocol(tasks=("own",)))


@pytest.mark.parametrize("kind", ODD)
def test_a_run_may_name_any_text_as_its_data(run: Path, kind: str) -> None:
    edit(run, lambda results: results["data"].update(source=ODD[kind]))
    with pytest.raises(BadInput):
        load_run(run)


def test_a_cache_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMDIAG_CACHE", "~nobody-of-that-name/cache")
    assert script("sources").user_cache() == Path("~nobody-of-that-name/cache")
    monkeypatch.setenv("LMDIAG_CACHE", "x" * 300)
    with pytest.raises(BadInput, match="set LMDIAG_CACHE to a writable directory"):
        stimuli.load("demo", "role88")
