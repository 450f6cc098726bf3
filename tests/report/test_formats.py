"""Tables on a terminal of any width, and as Markdown, LaTeX and csv."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from lmdiag.report.formats import format_names, render_tables
from lmdiag.report.formats.latex import latex_text
from lmdiag.report.formats.markdown import markdown_text
from lmdiag.report.formats.terminal import print_results, print_setting
from lmdiag.report.items import TopWord
from lmdiag.report.qualitative import Chosen
from lmdiag.results import Results, Unscorable

from .handmade import SIGNATURE, cprag102, measure, neg136, results, role88, setting

HOSTILE = r"org/a|b_<script>&%$#{}~^\x"

CHOSEN = [
    Chosen(
        "the camper saw which girl the bear had",
        "",
        [
            ("org/one", (TopWord("fed", 0.5, True), TopWord("|", 0.1, False))),
            ("org/two", (TopWord("50%", 0.25, False),)),
        ],
    )
]


# ---- the terminal --------------------------------------------------------------------------------


def printed(content: Results, width: int) -> list[str]:
    stream = io.StringIO()
    print_results(content, Console(file=stream, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def words(lines: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def four_settings() -> Any:
    task = cprag102()
    return task | {"trunc": task["none"], "shuf_trunc": task["none"]}


def test_a_run_at_a_hundred_columns() -> None:
    lines = words(printed(results({"cprag102": cprag102()}, commit="sha256:0123456789abcdef"), 100))
    for line in (
        "org/model",
        "masked · 110M parameters · float32 · uncased · commit 0123456789ab",
        "CPRAG-102: commonsense and pragmatic inference",
        "accuracy@1 34 23.5 [13.5, 33.5] 11.8 ± 3.1",
        "high constraint 17 29.4 [19.4, 39.4]",
        "unscorable: 1 row (mascara)",
        SIGNATURE,
    ):
        assert line in lines


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_wider_than_the_terminal_or_cut_off(width: int) -> None:
    tasks = {"cprag102": four_settings(), "role88": role88(), "neg136": neg136()}
    lines = [line for line in printed(results(tasks), width) if line != SIGNATURE]
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]


def test_intervals_go_below_where_they_do_not_fit_beside() -> None:
    lines = words(printed(results({"cprag102": four_settings()}), 80))
    at = lines.index("accuracy@1 34 23.5 11.8 ± 3.1 23.5 23.5")
    assert lines[at + 1] == "[13.5, 33.5] [13.5, 33.5] [13.5, 33.5]"


def test_columns_that_do_not_fit_at_all_follow_below() -> None:
    correlation = measure(8, 88, statistic="spearman")
    task = {name: setting({"spearman": correlation}) for name in ("none", "obj", "sub", "both")}
    lines = words(printed(results({"role88": task}), 60))
    headings = ["n Orig -Obj", "n -Sub -Both"]
    assert [line for line in lines if line in headings] == headings
    assert len([line for line in lines if line.startswith("Spearman, log p")]) == 2


def test_signs_of_chance_do_not_shift_figures() -> None:
    lines = printed(results({"neg136": neg136(chance=0.5)}, "bert-base-uncased", rows=136), 100)
    natural = lines[next(i for i, line in enumerate(lines) if "Aff. NT" in line) + 3]
    assert words([natural])[0].count("50.0† [40.0, 60.0]") == 4
    assert words([lines[lines.index(natural) + 1]])[0].startswith("published 62.5 (−12.5)*")


def test_names_that_others_chose_are_not_markup() -> None:
    task = cprag102()
    word = Unscorable("x", "[bold red]w[/nonsense]")
    task["none"] = replace(task["none"], unscorable=[word])
    lines = printed(results({"cprag102": task}, model="[link=x]evil[/]"), 100)
    assert "[link=x]evil[/]" in lines
    assert "unscorable: 1 row ([bold red]w[/nonsense])" in lines


def test_scored_predictions_print_without_a_model() -> None:
    stream = io.StringIO()
    content = setting({"sensitivity": measure(3, 4)}, Unscorable("tense-1", "zzz"))
    print_setting("tense", "none", content, Console(file=stream, width=80))
    lines = words(stream.getvalue().splitlines())
    assert "sensitivity 4 75.0 [65.0, 85.0]" in lines
    assert lines[-2:] == ["unscorable: 1 row (zzz)", SIGNATURE]


# ---- Markdown, LaTeX, csv ------------------------------------------------------------------------


def markdown_rows(text: str) -> list[list[str]]:
    """The cells of all rows of Markdown tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def csv_records(*runs: Results) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_tables("csv", runs))))


def widths(lines: list[str]) -> set[int]:
    """Numbers of cells of the rows of a LaTeX table."""
    return {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines}


def test_every_module_of_the_folder_is_a_format() -> None:
    assert format_names() == ["markdown", "latex", "csv"]


def test_markdown_has_every_table_with_rows_of_one_width() -> None:
    text = render_tables("markdown", [results({"cprag102": cprag102(), "role88": role88()})])
    rows = markdown_rows(text)
    assert ["accuracy@1", "34", "23.5 [13.5, 33.5]", "11.8 ± 3.1"] in rows
    assert ["&emsp;high constraint", "17", "29.4 [19.4, 39.4]", ""] in rows
    assert "**Accuracy, percent with 95% interval (Ettinger 2020, table 4)**" in text
    assert text.count(SIGNATURE) == 2
    blocks = [markdown_rows(block) for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 6
    assert all(len({len(row) for row in block}) == 1 for block in blocks)


def test_latex_has_booktabs_and_rows_of_one_width() -> None:
    text = render_tables("latex", [results({"cprag102": cprag102(), "neg136": neg136()})])
    tables = re.findall(
        r"\\begin\{tabular\}\{(l+)(r+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL
    )
    assert len(tables) == text.count(r"\begin{table}") == text.count(r"\end{table}") == 8
    for left, right, body in tables:
        lines = [line for line in body.splitlines() if line != r"\midrule"]
        assert widths(lines) == {len(left + right)}
        assert all(line.endswith(r" \\") for line in lines)
    assert r"accuracy@1 & 34 & 23.5 [13.5, 33.5] & 11.8 $\pm$ 3.1 \\" in text
    assert len(set(re.findall(r"\\label\{.*?\}", text))) == 8


def test_csv_holds_every_figure_at_full_precision() -> None:
    records = csv_records(results({"cprag102": cprag102(), "role88": role88()}))
    # cprag102: 5 measures, each whole, high and low; shuf: 1; role88: 5, and 4 bins
    assert len(records) == 5 * 3 + 1 + 5 + 4
    (one,) = [f for f in records if (f["measure"], f["level"]) == ("accuracy@1", "high")]
    assert (float(one["value"]), one["signature"]) == (5 / 17, SIGNATURE)
    (shuffled,) = [f for f in records if f["setting"] == "shuf"]
    assert (shuffled["sd"], shuffled["runs"]) == ("0.031", "100")


def test_published_figures_have_a_row_of_their_own() -> None:
    run = results({"neg136": neg136()}, "bert-base-uncased", rows=136)
    row = ["&emsp;published", "", "100.0 (0.0)", "0.0 (0.0)"]
    assert row in markdown_rows(render_tables("markdown", [run]))
    assert r"\quad published &  & 100.0 (0.0) & 0.0 (0.0) \\" in render_tables("latex", [run])
    published = [f["published"] for f in csv_records(run) if f["level"] == "simp/affirmative"]
    assert published == ["100.0"]


def test_several_runs_have_a_column_of_models() -> None:
    runs = [results({"cprag102": cprag102()}, name) for name in ("org/one", "org/two")]
    row = ["accuracy@1", "org/two", "34", "23.5 [13.5, 33.5]", "11.8 ± 3.1"]
    assert row in markdown_rows(render_tables("markdown", runs))
    line = r"accuracy@1 & org/two & 34 & 23.5 [13.5, 33.5] & 11.8 $\pm$ 3.1 \\"
    assert line in render_tables("latex", runs)


def test_chance_is_in_every_format() -> None:
    run = results({"neg136": neg136(chance=0.5)})
    text = render_tables("markdown", [run])
    headings = ["", "n", "Affirmative (chance 50.0)", "Negative (chance 50.0)"]
    assert headings in markdown_rows(text)
    assert "50.0† [40.0, 60.0]" in text
    assert "not distinguishable from chance" in text
    text = render_tables("latex", [run])
    assert r"50.0$\dagger$ [40.0, 60.0]" in text
    assert r"$\dagger$ not distinguishable from chance" in text
    levels = [f["chance"] for f in csv_records(run) if f["measure"] == "sensitivity"]
    assert set(levels) == {"0.5"}


def test_chosen_items_are_a_table_with_a_column_per_model() -> None:
    run = results({"cprag102": cprag102()})
    assert markdown_rows(render_tables("markdown", [run], CHOSEN))[-1] == [
        r"the camper saw which girl the bear had \_\_\_\_", r"fed, \|", "50%",
    ]  # fmt: skip
    row = r"had \_\_\_\_ & fed, \textbar{} & 50\% \\"
    assert row in render_tables("latex", [run], CHOSEN)
    lines = list(csv.reader(io.StringIO(render_tables("csv", [run], CHOSEN))))
    assert lines[1][2:] == ["org/one", "1", "fed", "0.5", "True"]
    assert len(lines) == 4


def test_text_that_others_wrote_stays_in_its_cell() -> None:
    task = {"none": setting({"sensitivity": measure(1, 2)})}
    runs = [results({"own": task}, model) for model in (HOSTILE, "org/other")]
    text = render_tables("markdown", runs)
    assert {len(row) for row in markdown_rows(text)} == {4}
    assert "<script>" not in text.replace("\\<script\\>", "")
    lines = render_tables("latex", runs).splitlines()
    assert widths([line for line in lines if line.endswith(r" \\")]) == {4}


@pytest.mark.parametrize(
    ("text", "markdown", "latex"),
    [
        ("a_b", r"a\_b", r"a\_b"),
        ("50 %", "50 %", r"50 \%"),
        ("[x](y)", r"\[x\](y)", "[x](y)"),
        ("two\nlines", "two lines", "two lines"),
        ("a\\b", r"a\\b", r"a\textbackslash{}b"),
    ],
)
def test_escapes(text: str, markdown: str, latex: str) -> None:
    assert markdown_text(text) == markdown
    assert latex_text(text) == latex
