"""A headless browser for tests that look at pages as people do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find_chromium() -> str | None:
    """The browser that `LMDIAG_CHROMIUM` names, or the one of the system."""
    return os.environ.get("LMDIAG_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium; skips the test where there is none."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: install the system's, or name one by LMDIAG_CHROMIUM")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


class Complaints(list[str]):
    """What a page did that it should not: console errors, exceptions, dialogs, requests."""

    def watch(self, page: Page) -> None:
        """Collects them from now on."""
        page.on(
            "console",
            lambda message: (
                self.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("dialog", lambda dialog: (self.append("dialog"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else self.append(request.url)
            ),
        )
