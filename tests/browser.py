"""A headless Chromium for tests of pages; `conftest.py` has its fixtures.

A test whose page complains of anything (console, exceptions, dialogs) or fetches something fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from limits import HANG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
PHONE = {"width": 390, "height": 844}

NewPage = Callable[..., "Page"]


class Complaints(list[str]):
    """What a page did that it should not: console errors, exceptions, dialogs, requests."""

    def watch(self, page: Page) -> None:
        """Collects them from now on."""

        def dismiss(dialog: Dialog) -> None:
            self.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def add(text: str, *, is_fine: bool = False) -> None:
            if not is_fine:
                self.append(text)

        files = ("file:", "data:", "blob:")
        page.on("console", lambda m: add(m.text, is_fine=m.type not in ("error", "warning")))
        page.on("pageerror", lambda error: add(str(error)))
        page.on("dialog", dismiss)
        page.on("request", lambda request: add(request.url, is_fine=request.url.startswith(files)))


@contextmanager
def started_browser() -> Iterator[Browser]:
    """The browser that `LMDIAG_CHROMIUM` names, or the one of the system; skips without one."""
    names = filter(None, map(shutil.which, NAMES))
    path = os.environ.get("LMDIAG_CHROMIUM") or next(names, None)
    if path is None:
        pytest.skip("no Chromium: install the system's, or name one by LMDIAG_CHROMIUM")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        launch = playwright.chromium.launch
        browser = launch(executable_path=path, args=list(FLAGS), timeout=HANG * 1000)
        yield browser
        browser.close()


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Opens a context of pages whose time limits only end a hang; playwright's are 30 s."""
    context = browser.new_context(**options)
    context.set_default_timeout(HANG * 1000)
    return context


@contextmanager
def without_complaints(browser: Browser) -> Iterator[NewPage]:
    """Opens pages, with options of playwright's contexts; none of them may complain."""
    complaints, contexts = Complaints(), []

    def opened(**options: Any) -> Page:
        contexts.append(new_context(browser, **options))
        page = contexts[-1].new_page()
        complaints.watch(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, complaints


def luminance(color: str) -> float:
    """Relative luminance of `rgb(r, g, b)` by the definition of WCAG 2."""
    shares = [int(part) / 255 for part in color.strip("rgb()").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio by the definition of WCAG 2."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
