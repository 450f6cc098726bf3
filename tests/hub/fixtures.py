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
    """An empty Hub, and this process set to speak plain HTTP to it, with its owner's token.

    The settings are those that the environment would give a fresh process (see `client_env`).
    """
    with LoopbackHub(tmp_path / "hub") as server:
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        settings = {
            "ENDPOINT": server.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": template,
            "HF_HUB_CACHE": str(tmp_path / "hub-cache"),
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, value in settings.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        monkeypatch.setenv("HF_TOKEN", "hf_test")
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
