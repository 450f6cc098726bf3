"""Text from outside does nothing in any format: one list of texts, every format that is written."""

import csv
import io
import json
import re
import unicodedata
from itertools import product

import pytest
from hostile import FEW, TEXTS, hostile_rows, without_markup
from invented_runs import make_run
from markdown_it import MarkdownIt
from pandas import DataFrame
from parsed import ParsedPage
from rich.console import Console
from sentence_files import suite_of
from shown import page_of, print_tables, shown_as

from lmdiag import cli
from lmdiag.files.reading import resource_path
from lmdiag.report.run_report import Report
from lmdiag.results import load_run
from lmdiag.tables.table_files import write_table
from lmdiag.text import visible
from lmdiag.types import BadInput


@pytest.fixture(scope="module")
def hostile_runs(tmp_path_factory):
    """Runs whose model, rows, levels, columns and words are the hostile texts, by their form.

    Each text stands in every column that may hold it, in two rows, a pair, or a suite.
    """
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "suites").mkdir()
    pairs = []
    for i, text in enumerate(TEXTS):
        (folder / f"suites/{i}.json").write_text(json.dumps(hostile_suite(i)), "utf-8")
        asked = without_markup(text)
        sentences = {f"sentence_{kind}": f"{asked} {kind} {asked}x" for kind in ("good", "bad")}
        names = dict.fromkeys(("UID", "field", "linguistics_term", "pairID"), text)
        pairs.append(json.dumps(sentences | names | {TEXTS[0]: TEXTS[i % FEW]}))
    (folder / "pairs.jsonl").write_text("\n".join(pairs), "utf-8")
    made = {"fillers": [*TEXTS, "a\0b"], "unscorable": 3}
    facts = ("id", "commit", "dtype", "architecture", "tokenizer", "revision")
    made |= zip(facts, TEXTS, strict=False)
    runs = {}
    for data in (hostile_rows(folder / "blanks.jsonl"), folder / "pairs.jsonl", folder / "suites"):
        run = make_run(folder / f"run of {data.stem}", data, **made)
        runs[data.stem] = load_run(run)
    return runs


def hostile_suite(i):
    """A suite whose name, regions, conditions and formula are hostile texts."""
    names = [text.replace("%", "") for text in (TEXTS[i], TEXTS[i - 1])]
    contents = {name: [without_markup(x) for x in (f"{name}x", f"y {TEXTS[i]}x")] for name in names}
    return suite_of(names[0], names, [contents], ["(1;%{}%) < (2;%{}%)".format(*names)])


def hidden(text):
    """Characters that a reader does not see."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}


def check_markdown(text):
    """Rendered with tables and addresses on, it has no elements but those of tables and lists."""
    page = MarkdownIt("commonmark").enable("table").render(text)
    allowed = {
        *[
            "h1",
            "h2",
            "p",
            "strong",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "ul",
            "li",
            "code",
        ]
    }
    assert set(re.findall(r"<(\w+)", page)) <= allowed
    assert not re.search(r"https?://|www\.", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def check_latex(text):
    """Its commands are the tables' own; special characters are escaped."""
    allowed = (
        "begin end centering scalebox hyphenpenalty caption label toprule midrule bottomrule quad "
        "textbackslash pm le "
        "textasciitilde textasciicircum textbar linewidth usepackage dagger uparrow downarrow "
        "allowbreak footnotesize scriptsize raggedright smallskip setlength tabcolsep shortstack "
        "parbox bullet ldots hangindent approx textit resizebox ifdim width else fi sim"
    )
    assert set(re.findall(r"(?<!\\)\\([A-Za-z]+)", text)) <= set(allowed.split())
    for line in text.splitlines():
        outside = line.replace("$d_z$", "")  # a symbol in math mode
        assert line.startswith(("%", "\\")) or not re.search(r"(?<!\\)[#%_]", outside), line


def check_csv(text):
    """Cells that begin as a formula does are numbers."""
    lines = list(csv.reader(io.StringIO(text)))
    assert len({len(line) for line in lines}) == 1
    for cell in (cell for line in lines for cell in line):
        if cell.lstrip().startswith(("=", "+", "-", "@", "＝")):
            float(cell)


def check_html(text):
    """Its elements, scripts and links are the page's own."""
    page = ParsedPage(text)
    assert page.open == []
    assert page.code["script"] == resource_path("cards", "report.js").read_text()
    assert not {name for _, name, _ in page.attributes if name.startswith("on")}
    assert not [link for link in page.links if not link.startswith(("#", "data:,"))]


CHECKS = {
    "markdown": check_markdown, "latex": check_latex, "csv": check_csv, "html": check_html,
    "terminal": lambda text: None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form) if form == "pairs" else pytest.param(name, form, marks=pytest.mark.slow)
        for name, form in product(CHECKS, ("blanks", "pairs", "suites"))
    ],
)
def test_text_from_outside_does_nothing(name, form, hostile_runs):
    run = hostile_runs[form]
    if name == "terminal":
        print_tables(run.results, Console(file=(out := io.StringIO()), width=120, highlight=False))
        texts = [out.getvalue()]
        assert "[bold red]" in texts[0].replace("\n", "")  # rich would have taken out its markup
    elif name == "html":
        texts = [page_of([run])]
    elif name == "csv":
        texts = [shown_as("csv", [run.results])]
    else:
        ids = [x for rows in run.stimuli.values() for x in rows.columns()["id"]]
        texts = [shown_as(name, run), shown_as(name, Report(run, items=ids))]
    for text in texts:
        assert hidden(text) == set()
        CHECKS[name](text)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["blanks", "pairs", "suites"])
def test_text_from_outside_is_shown_as_text_by_a_browser(form, new_page, hostile_runs, tmp_path):
    """`new_page` fails if the page does anything, or loads something from outside."""
    page, path = new_page(), tmp_path / "page.html"
    path.write_text(page_of(hostile_runs[form]))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    for summary in page.locator("details > summary").all():
        summary.click()
    for mark in page.locator("figure .plot path[role=link]").all():
        mark.focus()
    assert "owned" not in page.title()[:5]
    assert page.locator("img").count() == 0
    assert page.locator("script:not([type])").count() == 2  # the page's own, and the library
    assert page.get_by_text("onerror").locator("visible=true").first.is_visible()


def test_an_error_is_one_line_without_controls(capsys):
    for text in TEXTS:
        assert cli.report_error(BadInput(f"no data at {text}: build it"), "run", "") == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert hidden(error) == set()
        assert visible(" ".join(text.split())) in error


def test_a_table_of_items_has_no_control_characters(tmp_path):
    write_table(DataFrame({"\x1b[31m": ["\u202e", "=1", "a\u200db"]}), tmp_path / "items.csv")
    text = (tmp_path / "items.csv").read_text("utf-8-sig")
    assert text == "⟨U+001B⟩[31m\n⟨U+202E⟩\n'=1\na\u200db\n"
