"""The documentation site, as `make docs` builds it: no warnings, no dead links, no other sites."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from browser import NewPage, new_context
from limits import HANG

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("sphinx", reason="`make docs` installs Sphinx")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-d", folder / "doctrees"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ROOT / "docs", folder / "html"],
        capture_output=True, text=True, timeout=2 * HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """What a page refers to, and the places in it that can be referred to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.anchors |= {value for name, value in attrs if name == "id" and value}
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def test_every_link_leads_to_a_place_of_the_site(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 30
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path}: {link}"
            # Sphinx links the source of a function by the name of its module, not of the package.
            if parts.fragment and target in pages and "_modules" not in path.parts:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path}: {link}"


@pytest.mark.parametrize("width", [1400, 420])
def test_pages_fit_the_screen_and_load_nothing_from_outside(
    site: Path, new_page: NewPage, width: int
) -> None:
    """`new_page` fails if a page requests another address than its own files."""
    page = new_page(viewport={"width": width, "height": 1000})
    for path in site.rglob("*.html"):
        if "_modules" not in path.parts:
            page.goto(path.as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{path.name} is {wide} pixels too wide"


def test_the_search_works_without_a_server(site: Path, chromium: Browser) -> None:
    """Its results lack the lines of text around the word, which a browser reads from a server."""
    context = new_context(chromium)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{(site / 'search.html').as_uri()}?q=sensitivity")
    page.wait_for_selector("#search-results li")
    context.close()
    assert not [url for url in requests if not url.startswith("file:")]
