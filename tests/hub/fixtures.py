"""Fixtures for tests that talk to the loopback Hub."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from .server import LoopbackHub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """An empty Hub, and this process set to speak plain HTTP to it, with its owner's token."""
    with LoopbackHub() as server:
        settings = {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_CACHE": str(tmp_path / "hub-cache"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, value in settings.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        if loaded := sys.modules.get("transformers.utils.hub"):
            monkeypatch.setattr(loaded, "_hf_api", None)  # its client of the Hub of another test
        monkeypatch.setenv("HF_TOKEN", "hf_test")
        yield server


@pytest.fixture
def api(hub: LoopbackHub) -> HfApi:
    """The client of an owner of `org`."""
    return HfApi(endpoint=hub.url, token="hf_test")
