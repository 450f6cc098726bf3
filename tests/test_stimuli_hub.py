"""Stimuli from the Hub, by its real client against a Hub on the loopback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi


pytest_plugins = ["hub.fixtures"]


@pytest.fixture
def published(api: HfApi, demo_dir: Path) -> str:
    """The commit of the demo data set, pushed as org/lmdiag."""
    api.create_repo("org/lmdiag", repo_type="dataset")
    return api.upload_folder(repo_id="org/lmdiag", repo_type="dataset", folder_path=demo_dir).oid


def test_a_hub_data_set_is_its_directory(published: str, demo_dir: Path) -> None:
    assert stimuli.tasks("org/lmdiag") == stimuli.tasks(str(demo_dir))
    for task in ("role88", "agreement"):
        there, here = stimuli.load("org/lmdiag", task), stimuli.load(str(demo_dir), task)
        assert there.fingerprint == here.fingerprint
        assert there.columns() == here.columns()
        assert (there.source, there.revision) == ("org/lmdiag", published)
    assert stimuli.load_verbs("org/lmdiag") == stimuli.load_verbs(str(demo_dir))


def test_revisions_are_resolved_to_commits(published: str, api: HfApi) -> None:
    api.upload_file(
        path_or_fileobj=b"later", path_in_repo="note.txt", repo_id="org/lmdiag", repo_type="dataset"
    )
    assert stimuli.load("org/lmdiag", "neg136").revision != published
    assert stimuli.load("org/lmdiag", "neg136", revision=published).revision == published
    assert stimuli.load("org/lmdiag", "neg136", revision="main").revision != published
    with pytest.raises(BadInput, match="the data set org/lmdiag has no revision v9"):
        stimuli.load("org/lmdiag", "neg136", revision="v9")


def test_what_was_loaded_is_there_without_a_network(
    published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stimuli.load("org/lmdiag", "neg136")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    again = stimuli.load("org/lmdiag", "neg136")
    assert (again.fingerprint, again.revision) == (first.fingerprint, published)
    with pytest.raises(BadInput, match=r"no network, and org/lmdiag is neither here nor in the"):
        stimuli.load("org/lmdiag", "role88")


def test_a_data_set_without_a_card_is_read_by_datasets(api: HfApi, tmp_path: Path) -> None:
    assert main(["template", str(tmp_path / "starter.csv")]) == 0
    api.create_repo("org/starter", repo_type="dataset")
    api.upload_file(
        path_or_fileobj=tmp_path / "starter.csv", path_in_repo="starter.csv",
        repo_id="org/starter", repo_type="dataset",
    )  # fmt: skip
    assert stimuli.tasks("org/starter") == ["default"]
    there = stimuli.load("org/starter", "default")
    assert there.columns() == stimuli.load(str(tmp_path / "starter.csv"), "starter").columns()


def test_unknown_data_sets_are_named(hub: object) -> None:
    with pytest.raises(BadInput, match="no data set org/nothing here or on the Hub, or no access"):
        stimuli.tasks("org/nothing")
    with pytest.raises(BadInput, match=r"no data set \.\./x"):
        stimuli.tasks("../x")
