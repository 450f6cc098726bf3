"""The documentation site, as `make docs` builds it: no warnings, no other sites, for a phone."""

import sys

import pytest
from launched import finished

pytest.importorskip("sphinx", reason="`make docs` installs Sphinx")


@pytest.mark.slow
def test_it_is_built_without_a_warning_and_its_pages_fit_a_phone(root, tmp_path, new_page):
    """`new_page` fails if a page requests another address than its own files.

    Sphinx warns of links that lead nowhere; those between pages: test_documentation.py.
    """
    site = tmp_path / "html"
    options = ["-q", "-W", "--keep-going", "-d", tmp_path / "doctrees"]
    finished(sys.executable, "-m", "sphinx", *options, root / "docs", site)
    page, pages = new_page(viewport={"width": 420, "height": 1000}), [*site.rglob("*.html")]
    assert len(pages) > 30
    for path in pages:
        page.goto(path.as_uri())
        excess = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert "_modules" in path.parts or excess <= 0, f"{path.name} is wider than the screen"
