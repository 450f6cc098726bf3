"""Text from outside does nothing in any format: one list of texts, every format that is written."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hostile import HOSTILE
from markdown_it import MarkdownIt
from parsed import ParsedPage
from report.forms import suite
from rich.console import Console
from runs import make_run

from lmdiag.cli import exits
from lmdiag.files import resource_path
from lmdiag.protocol import Protocol
from lmdiag.report.formats import render_tables
from lmdiag.report.html import render
from lmdiag.report.items import choose
from lmdiag.report.terminal import print_results
from lmdiag.results import Run, load_run
from lmdiag.text import visible

TEXTS = list(HOSTILE.values())
FEW = 8
"""Levels of a column: with more it would not be a break-down."""


@pytest.fixture(scope="module")
def hostile_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs whose model, rows, levels, columns and words are the hostile texts, by their form.

    Each text stands in every column that may hold it, in two rows, a pair, or a suite.
    """
    folder = tmp_path_factory.mktemp("hostile")
    facts = ("id", "commit", "dtype", "architecture", "tokenizer", "revision")
    model: dict[str, Any] = dict(zip(facts, TEXTS, strict=False))
    (folder / "suites").mkdir()
    for i in range(len(TEXTS)):
        (folder / f"suites/{i}.json").write_text(json.dumps(hostile_suite(i)), "utf-8")
    columns = {TEXTS[i]: TEXTS[i : i + FEW] for i in range(0, len(TEXTS), FEW)}
    blanks: list[dict[str, object]] = [
        {
            "id": f"{text}-{good}", "item": text, "condition": TEXTS[i % FEW],
            "context": f"{text} x", "right_context": text, "target": f"{good}{text}x",
            "good": good, "contrast": text, "expected": [one_word(text)] if good else [],
        } | {name: levels[i % len(levels)] for name, levels in columns.items()}
        for i, text in enumerate(TEXTS) for good in (True, False)
    ]  # fmt: skip
    pairs: list[dict[str, object]] = [
        {
            "sentence_good": f"{text} good {text}x", "sentence_bad": f"{text} bad {text}x y",
            "UID": text, "field": text, "linguistics_term": text,
            "pairID": text, TEXTS[0]: TEXTS[i % FEW],
        }
        for i, text in enumerate(TEXTS)
    ]  # fmt: skip
    for name, rows in (("blanks", blanks), ("pairs", pairs)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    made: dict[str, Any] = {"fillers": TEXTS, "unscorable": 3, **model}
    return {
        data.stem: load_run(
            make_run(folder / f"run of {data.stem}", data, Protocol(tasks=(data.stem,)), **made)
        )
        for data in (folder / "blanks.jsonl", folder / "pairs.jsonl", folder / "suites")
    }


def hostile_suite(i: int) -> dict[str, Any]:
    """A suite whose name, regions, conditions and formula are hostile texts."""
    text, other = (one.replace("%", "") for one in (TEXTS[i], TEXTS[i - 1]))
    made = suite(text, f"(1;%{text}%) < (2;%{other}%)", n=1)
    made["region_meta"] = {"1": text, "2": other}
    for condition, name in zip(made["items"][0]["conditions"], (text, other), strict=True):
        contents = enumerate((f"{name}x", f"y {TEXTS[i]}x"), start=1)
        condition["condition_name"] = name
        condition["regions"] = [{"region_number": n, "content": c} for n, c in contents]
    return made


def one_word(text: str) -> str:
    """Returns a text without what `expected` refuses: blanks at its edges and after separators."""
    return re.sub(r"([,;|])\s+", r"\1", text).strip()


def terminal(run: Run) -> str:
    out = io.StringIO()
    print_results(run.results, Console(file=out, width=120, highlight=False))
    return out.getvalue()


def chosen(run: Run) -> Sequence:
    return choose([run], [name for rows in run.stimuli.values() for name in rows.columns()["id"]])


def check_terminal(text: str) -> None:
    """Markup of rich would have been taken out."""
    assert "[bold red]" in text.replace("\n", "")


def check_markdown(text: str) -> None:
    """Rendered with tables and addresses on, it has no elements but those of tables and lists."""
    page = MarkdownIt("commonmark").enable("table").render(text)
    own = {"h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert set(re.findall(r"<(\w+)", page)) <= own
    assert not re.search(r"https?://|www\.", text)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def check_latex(text: str) -> None:
    """Its commands are the tables' own; special characters are escaped."""
    own = {
        "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule",
        "quad", "textbackslash", "textasciitilde", "textasciicircum", "textbar", "le", "pm",
        "linewidth", "usepackage", "dagger", "uparrow", "downarrow",
    }  # fmt: skip
    assert set(re.findall(r"(?<!\\)\\([A-Za-z]+)", text)) <= own
    for line in text.splitlines():
        if not line.startswith(("%", "\\")):
            assert not re.search(r"(?<!\\)[#%_]", line), line


def check_csv(text: str) -> None:
    """Cells that begin as a formula does are numbers."""
    lines = list(csv.reader(io.StringIO(text)))
    assert len({len(line) for line in lines}) == 1
    for cell in (cell for line in lines for cell in line):
        if cell.lstrip().startswith(("=", "+", "-", "@", "＝")):
            float(cell)


def check_html(text: str) -> None:
    """Its elements, scripts and links are the page's own, its pictures are well-formed."""
    page = ParsedPage(text)
    assert page.open == []
    assert page.code["script"] == resource_path("cards", "report.js").read_text()
    assert not {name for _, name, _ in page.attributes if name.startswith("on")}
    assert not [link for link in page.links if not link.startswith(("#", "data:,"))]
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        names = {element.tag.rpartition("}")[2] for element in ET.fromstring(picture).iter()}
        assert not names & {"script", "foreignObject", "image"}


FORMATS: dict[str, tuple[Callable[[Run], str], Callable[[str], None]]] = {
    "terminal": (terminal, check_terminal),
    "markdown": (lambda run: render_tables("markdown", [run.results], chosen(run)), check_markdown),
    "latex": (lambda run: render_tables("latex", [run.results], chosen(run)), check_latex),
    "csv": (lambda run: render_tables("csv", [run.results]), check_csv),
    "csv of items": (lambda run: render_tables("csv", [run.results], chosen(run)), check_csv),
    "html": (lambda run: render([run]), check_html),
}


@pytest.mark.parametrize("form", ["blanks", "pairs", "suites"])
@pytest.mark.parametrize("name", FORMATS)
def test_text_from_outside_does_nothing(name: str, form: str, hostile_runs: dict[str, Run]) -> None:
    made, check = FORMATS[name]
    text = made(hostile_runs[form])
    hidden = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}
    assert hidden == set()
    check(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_is_one_line_without_controls(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.fail(f"no data at {HOSTILE[name]}: build it", 2) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert {c for c in error if unicodedata.category(c) in ("Cc", "Cf", "Cs")} == {"\n"}
    assert visible(" ".join(HOSTILE[name].split())) in error
