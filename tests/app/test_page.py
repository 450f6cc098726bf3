"""The page in a browser: from a table to its downloads, as a person, by keyboard, at once."""

import runpy
import sys
import time
from contextlib import suppress
from http.client import HTTPConnection
from importlib.util import find_spec
from subprocess import DEVNULL, Popen
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from launched import HANG, environment, free_port
from pandas import DataFrame, read_csv
from pandas.testing import assert_frame_equal

import lmdiag
from lmdiag.app import calls, visits
from lmdiag.files.reading import resource_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("gradio"), reason="make check installs the extra app"),
]

WAIT = 120_000
"""Milliseconds that a run may take on a busy machine."""
NOISE = ("Method not implemented", "fit-x", "Conflicting legend")
"""Beginnings of what gradio and Vega say on the console."""
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The page: its address, and the folder of the temporary files of its program."""
    port = free_port()
    folder = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "lmdiag", "app", "--port", port, "--no-browser"]
    log = folder / "log.txt"
    with log.open("w") as stream:
        program = Popen(command, env=environment(TMPDIR=str(folder)), stdout=DEVNULL, stderr=stream)
    until = time.monotonic() + HANG
    while not _answers(port) and time.monotonic() < until and program.poll() is None:
        time.sleep(0.5)
    yield SimpleNamespace(address=f"http://127.0.0.1:{port}/", folder=folder, log=log)
    program.terminate()
    program.wait(timeout=HANG)
    assert not [*folder.glob("lmdiag-app-*")]


def _answers(port):
    with suppress(OSError):
        connection = HTTPConnection("127.0.0.1", int(port), timeout=5)
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    return False


@pytest.fixture
def open_page(chromium, served):
    """Opens the page in windows of their own, which must not complain or fetch anything else."""
    complaints = []
    contexts = []

    def opened(width=1280, **options):
        contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **options))
        contexts[-1].set_default_timeout(WAIT)
        page = contexts[-1].new_page()
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda r: (
                r.url.startswith((served.address, "data:", "blob:", "about:"))
                or complaints.append(r.url)
            ),
        )
        page.goto(served.address)
        page.wait_for_selector("#example")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, complaints


def give_example(page, name):
    page.get_by_label(name, exact=True).check()


def run(page):
    """The text of the result."""
    page.click("#run")
    page.wait_for_selector("#report iframe")
    return result_of(page)


def result_of(page):
    body = page.frame_locator("#report iframe").locator("h1")
    body.wait_for()
    return page.frame_locator("#report iframe").locator("body").inner_text()


def downloaded(page, name, folder):
    """The file that a button downloads."""
    button = page.get_by_role("button", name=f"Download {name}", exact=True)
    button.wait_for()
    with page.expect_download() as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def violations(page):
    """What axe finds, but in the result, whose page has its own test.

    Nor in what gradio shows, in pale letters, until a part of the page has been loaded.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.wait_for_function("!document.body.innerText.includes('Loading...')")
    found = axe.run(page, options={"iframes": False}).response["violations"]
    return [(x["id"], x["nodes"][0]["html"][:200]) for x in found]


@pytest.mark.long
@pytest.mark.parametrize(("name", "title"), [
    ("2 x 2 design", "attraction: surprisal of the whole sentence"),
    ("Words in context", "demo:causal"),
    ("Cloze responses", "What people say and what models expect"),
    ("Reading times", "rt and surprisal"),
    ("Acceptability ratings", "Rating by island x length"),
])  # fmt: skip
def test_each_example_leads_to_its_result_and_downloads(open_page, tmp_path, name, title):
    page = open_page(accept_downloads=True)
    assert not page.locator("#report").is_visible()
    give_example(page, name)
    assert title in run(page)
    file = downloaded(page, "csv", tmp_path)
    found = lmdiag.check(visits.example_file(name, tmp_path))
    settings = {"response": found.response}
    call = calls.table_call(found, calls.default_function(found), ["demo:causal"], settings)
    call.make(tmp_path).save(tmp_path / "expected.csv")
    assert_frame_equal(read_csv(file), read_csv(tmp_path / "expected.csv"))
    assert page.locator(".cm-content").first.inner_text().replace("\n", "") == call.command()
    assert downloaded(page, "charts", tmp_path).read_bytes()[:2] == b"PK"


@pytest.mark.long
def test_a_wide_excel_table_is_read_by_a_button_on_a_small_screen(open_page, tmp_path):
    rows = [
        {"Nr": n, "Match": f"The {noun} is here.", "Mismatch": f"The {noun} are here."}
        for n, noun in enumerate(("key", "cup", "hat", "door"), start=1)
    ]
    DataFrame(rows).to_excel(tmp_path / "my items.xlsx", index=False)
    page = open_page(420, color_scheme="dark")
    page.set_input_files("#upload input[type=file]", tmp_path / "my items.xlsx")
    page.locator(".remedy").first.click()
    page.get_by_text("The model reads").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert violations(page) == []
    assert "my items" in run(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


@pytest.mark.long
def test_the_keyboard_alone_leads_to_a_result(open_page):
    page = open_page()
    assert violations(page) == []
    page.get_by_label("Acceptability ratings").focus()
    page.keyboard.press("Space")
    menu = page.get_by_label("use of length")
    menu.focus()
    for _ in ("response", "text", "position", "word", "not used"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("!document.body.innerText.includes('island x length')")
    page.get_by_text("design: island", exact=False).wait_for()
    page.locator("#run").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#report iframe")
    assert "Rating" in result_of(page)
    assert violations(page) == []


def test_a_hostile_table_is_shown_as_text(open_page, tmp_path):
    table = DataFrame({HOSTILE: [HOSTILE, "b"] * 2, "item": [1, 1, 2, 2]})
    table["sentence"] = [f"{HOSTILE} is {n}." for n in range(4)]
    table.to_csv(tmp_path / "x'\"&.csv", index=False)
    page = open_page()
    page.set_input_files("#upload input[type=file]", tmp_path / "x'\"&.csv")
    page.wait_for_selector(".use")
    assert page.locator("img").count() == 0
    page.locator(".problem").first.wait_for()  # markup in a sentence
    assert not page.locator("#run").is_visible()


@pytest.mark.long
def test_two_persons_do_not_see_each_other_and_leave_nothing(open_page, served):
    first, second = open_page(), open_page()
    give_example(first, "Reading times")
    give_example(second, "Acceptability ratings")
    first.click("#run")
    second.click("#run")
    assert "rt and surprisal" in result_of(first)
    assert "Rating by" in result_of(second)
    assert len([*served.folder.glob("lmdiag-app-*/*/times.csv")]) == 1
    first.context.close()
    until = time.monotonic() + HANG
    while [*served.folder.glob("lmdiag-app-*/*/times.csv")] and time.monotonic() < until:
        time.sleep(0.5)
    assert not [*served.folder.glob("lmdiag-app-*/*/times.csv")]


def test_the_address_is_written_into_a_file(served):
    until = time.monotonic() + HANG
    while served.address not in served.log.read_text() and time.monotonic() < until:
        time.sleep(0.5)
    assert f"lmdiag: the page is at {served.address};" in served.log.read_text()


@pytest.mark.long
def test_published_diagnostics_need_no_table(open_page):
    page = open_page()
    page.get_by_label("Published diagnostics").first.check()
    page.get_by_label("small demo items").check()
    assert "NEG-136" in run(page)


def test_a_space_calls_the_page_with_all_arguments(monkeypatch):
    from lmdiag.app import page

    serve = create_autospec(page.serve)
    monkeypatch.setattr(page, "serve", serve)
    runpy.run_path(str(resource_path("cards", "space.py")))
    serve.assert_called_once()


def test_run_is_clicked_at_once_after_another_table_is_chosen(open_page):
    page = open_page()
    give_example(page, "Reading times")
    page.wait_for_selector(".use")
    give_example(page, "Acceptability ratings")
    assert "Rating by island x length" in run(page)
