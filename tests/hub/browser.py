"""A headless browser for tests that look at pages as people do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from limits import HANG

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Page,
        Request,
    )

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
        started = playwright.chromium.launch(
            executable_path=path, args=list(FLAGS), timeout=HANG * 1000
        )
        try:
            yield started
        finally:
            started.close()


def new_context(started: Browser, **options: Any) -> BrowserContext:
    """Opens a context of pages whose time limits only end a hang; playwright's are 30 s."""
    context = started.new_context(**options)
    context.set_default_timeout(HANG * 1000)
    return context


class Complaints(list[str]):
    """What a page did that it should not: console errors, exceptions, dialogs, requests."""

    def watch(self, page: Page) -> None:
        """Collects them from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.append(request.url)
