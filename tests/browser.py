"""Fixtures of a headless Chromium for tests of pages.

A test whose page complains of anything (console, exceptions, dialogs) or fetches something fails.
"""

import os
import shutil

import pytest
from launched import HANG

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
FILES = ("file:", "data:", "blob:")


@pytest.fixture(scope="session")
def chromium():
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


@pytest.fixture
def new_page(chromium):
    """Opens pages, with options of playwright's contexts; none of them may complain."""
    complaints, contexts = [], []

    def dismiss(dialog):
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def opened(**options):
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(120_000)  # in ms; playwright's are 30 s
        page = contexts[-1].new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", dismiss)
        page.on("request", lambda r: r.url.startswith(FILES) or complaints.append(r.url))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, complaints


@pytest.fixture
def page(new_page):
    return new_page(viewport={"width": 1280, "height": 900})


def colors_of(page, *selectors):
    """The colours of the paper of a page, then of the first text that each selector matches."""
    colors = """selectors => selectors.map(name => {
        const style = getComputedStyle(document.querySelector(name));
        return name.includes("svg") ? style.fill : style.color;
    })"""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [paper, *page.evaluate(colors, selectors)]


def brightness(color):
    """Of `rgb(r, g, b)`, from 0 to 765."""
    return sum(map(int, color.strip("rgb()").split(",")))
