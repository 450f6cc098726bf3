"""Fixtures for tests that talk to the loopback Hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .server import LoopbackHub

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """An empty Hub, and this process set to speak plain HTTP to it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with LoopbackHub(tmp_path / "hub") as server:
        yield server


@pytest.fixture
def api(hub: LoopbackHub) -> HfApi:
    """The client of an owner of `tester` and `org`."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.url, token="hf_test")


@pytest.fixture
def stranger(hub: LoopbackHub) -> HfApi:
    """The client of someone who owns neither."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.url, token="hf_other")
