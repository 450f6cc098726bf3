"""The documentation site, as `make docs` builds it: no warnings, no dead links, no other sites."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser import NewPage
from launched import HANG

pytest.importorskip("sphinx", reason="`make docs` installs Sphinx")

READ = """() => ({
    ids: [...document.querySelectorAll("[id]")].map(part => part.id),
    links: [...document.querySelectorAll("a[href]")].map(link => link.href),
    excess: document.documentElement.scrollWidth - window.innerWidth,
})"""


@pytest.mark.slow
def test_every_link_leads_to_a_place_and_pages_fit_a_phone(
    root: Path, tmp_path: Path, new_page: NewPage
) -> None:
    """`new_page` fails if a page requests another address than its own files."""
    site = tmp_path / "html"
    options = ["-q", "-W", "--keep-going", "-d", tmp_path / "doctrees"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, root / "docs", site],
        capture_output=True, text=True, timeout=2 * HANG, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    page, read = new_page(viewport={"width": 420, "height": 1000}), {}
    for path in site.rglob("*.html"):
        page.goto(path.as_uri())
        read[path] = page.evaluate(READ)
    assert len(read) > 30
    for path, content in read.items():
        is_source = "_modules" in path.parts
        assert is_source or content["excess"] <= 0, f"{path.name} is wider than the screen"
        for link in filter(lambda link: link.startswith("file:"), content["links"]):
            parts = urlsplit(link)
            target = Path(unquote(parts.path))
            assert target.exists(), f"{path}: {link}"
            # Sphinx links the source of a function by the name of its module, not of the package.
            if parts.fragment and target in read and not is_source:
                assert unquote(parts.fragment) in read[target]["ids"], f"{path}: {link}"
