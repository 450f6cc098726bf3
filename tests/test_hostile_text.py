"""Text from outside does nothing in any format: one list of texts, every format that is written."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
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
from lmdiag.types import BadInput

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


# ---- what each format may contain ----------------------------------------------------------------


def check_terminal(text: str) -> None:
    """Markup of rich would have been taken out."""
    assert "[bold red]" in text.replace("\n", "")


def check_markdown(text: str) -> None:
    """Rendered with tables and addresses on, it has no elements but those of tables and lists."""
    page = MarkdownIt("commonmark").enable("table").render(text)
    allowed = {"h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert set(re.findall(r"<(\w+)", page)) <= allowed
    assert not re.search(r"https?://|www\.", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def check_latex(text: str) -> None:
    """Its commands are the tables' own; special characters are escaped."""
    allowed = (
        "begin end centering caption label toprule midrule bottomrule quad textbackslash pm le "
        "textasciitilde textasciicircum textbar linewidth usepackage dagger uparrow downarrow"
    )
    assert set(re.findall(r"(?<!\\)\\([A-Za-z]+)", text)) <= set(allowed.split())
    for line in text.splitlines():
        assert line.startswith(("%", "\\")) or not re.search(r"(?<!\\)[#%_]", line), line


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


CHECKS: dict[str, Callable[[str], None]] = {
    "terminal": check_terminal, "markdown": check_markdown, "latex": check_latex,
    "csv": check_csv, "html": check_html,
}  # fmt: skip


@pytest.mark.parametrize("form", ["blanks", "pairs", "suites"])
@pytest.mark.parametrize("name", CHECKS)
def test_text_from_outside_does_nothing(name: str, form: str, hostile_runs: dict[str, Run]) -> None:
    run = hostile_runs[form]
    items = choose([run], [x for rows in run.stimuli.values() for x in rows.columns()["id"]])
    if name == "terminal":
        print_results(run.results, Console(file=(out := io.StringIO()), width=120, highlight=False))
        texts = [out.getvalue()]
    elif name == "html":
        texts = [render([run])]
    else:
        texts = [render_tables(name, [run.results], items)]
        texts += [render_tables(name, [run.results])] if name == "csv" else []
    for text in texts:
        hidden = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}
        assert hidden == set()
        CHECKS[name](text)


@pytest.mark.parametrize("name", HOSTILE)
def test_an_error_is_one_line_without_controls(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.end(BadInput(f"no data at {HOSTILE[name]}: build it"), "run", "") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert {c for c in error if unicodedata.category(c) in ("Cc", "Cf", "Cs")} == {"\n"}
    assert visible(" ".join(HOSTILE[name].split())) in error
