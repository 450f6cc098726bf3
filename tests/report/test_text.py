"""Tables as Markdown, LaTeX and csv, and the top words of chosen items."""

from __future__ import annotations

import csv
import io
import re

import pytest
from lmdiag.report.text import chosen_csv, latex, latex_text, markdown, markdown_text, table_csv

from lmdiag.report.items import TopWord
from lmdiag.report.qualitative import Chosen

from .conftest import SIGNATURE, Json, measure, results, setting

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


def rows(text: str) -> list[list[str]]:
    """The cells of all rows of Markdown tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_markdown_has_every_table_with_rows_of_one_width(cprag102: Json, role88: Json) -> None:
    text = markdown([results({"cprag102": cprag102, "role88": role88})])
    assert ["accuracy@1", "34", "23.5 [13.5, 33.5]", "11.8 ± 3.1"] in rows(text)
    assert ["&emsp;high constraint", "17", "29.4 [19.4, 39.4]", ""] in rows(text)
    assert "**Accuracy, percent with 95% interval (Ettinger 2020, table 4)**" in text
    assert text.count(SIGNATURE) == 2
    blocks = [rows(block) for block in re.split(r"\n\n", text) if block.startswith("|")]
    assert len(blocks) == 6
    assert all(len({len(row) for row in block}) == 1 for block in blocks)


def test_latex_has_booktabs_and_rows_of_one_width(cprag102: Json, neg136: Json) -> None:
    text = latex([results({"cprag102": cprag102, "neg136": neg136})])
    tables = re.findall(
        r"\\begin\{tabular\}\{(l+)(r+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL
    )
    assert len(tables) == text.count(r"\begin{table}") == text.count(r"\end{table}") == 8
    for left, right, body in tables:
        lines = [line for line in body.splitlines() if line != r"\midrule"]
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(left + right)}
        assert all(line.endswith(r" \\") for line in lines)
    assert r"accuracy@1 & 34 & 23.5 [13.5, 33.5] & 11.8 $\pm$ 3.1 \\" in text
    assert len(set(re.findall(r"\\label\{.*?\}", text))) == 8


def test_published_figures_have_a_row_of_their_own(neg136: Json) -> None:
    run = results({"neg136": neg136}, "bert-base-uncased")
    run["data"]["tasks"]["neg136"]["n"] = 136
    assert ["&emsp;published", "", "100.0 (0.0)", "0.0 (0.0)"] in rows(markdown([run]))
    assert r"\quad published &  & 100.0 (0.0) & 0.0 (0.0) \\" in latex([run])
    figures = list(csv.DictReader(io.StringIO(table_csv([run]))))
    published = [f for f in figures if f["level"] == "simp/affirmative"]
    assert [f["published"] for f in published] == ["100.0"]


def test_several_runs_have_a_column_of_models(cprag102: Json) -> None:
    runs = [results({"cprag102": cprag102}, name) for name in ("org/one", "org/two")]
    row = ["accuracy@1", "org/two", "34", "23.5 [13.5, 33.5]", "11.8 ± 3.1"]
    assert row in rows(markdown(runs))
    assert r"accuracy@1 & org/two & 34 & 23.5 [13.5, 33.5] & 11.8 $\pm$ 3.1 \\" in latex(runs)


def test_csv_holds_every_figure_at_full_precision(cprag102: Json, role88: Json) -> None:
    run = results({"cprag102": cprag102, "role88": role88})
    figures = list(csv.DictReader(io.StringIO(table_csv([run]))))
    # cprag102: 5 measures, each whole, high and low; shuf: 1; role88: 5, and 4 bins
    assert len(figures) == 5 * 3 + 1 + 5 + 4
    (third,) = [f for f in figures if f["measure"] == "accuracy@1" and f["level"] == "high"]
    assert float(third["value"]) == 5 / 17
    assert third["signature"] == SIGNATURE
    (shuffled,) = [f for f in figures if f["setting"] == "shuf"]
    assert (shuffled["sd"], shuffled["runs"]) == ("0.031", "100")


def test_chosen_items_are_a_table_with_a_column_per_model(cprag102: Json) -> None:
    run = results({"cprag102": cprag102})
    assert rows(markdown([run], CHOSEN))[-1] == [
        r"the camper saw which girl the bear had \_\_\_\_", r"fed, \|", "50%",
    ]  # fmt: skip
    assert r"had \_\_\_\_ & fed, \textbar{} & 50\% \\" in latex([run], CHOSEN)
    lines = list(csv.reader(io.StringIO(chosen_csv(CHOSEN))))
    assert lines[1][2:] == ["org/one", "1", "fed", "0.5", "True"]
    assert len(lines) == 4


def test_text_of_strangers_stays_in_its_cell() -> None:
    run = results({"own": {"none": setting({"sensitivity": measure(1, 2)})}}, HOSTILE)
    runs = [run, results(run["tasks"], "org/other")]
    assert {len(row) for row in rows(markdown(runs))} == {4}
    assert "<script>" not in markdown(runs).replace("\\<script\\>", "")
    body = [line for line in latex(runs).splitlines() if line.endswith(r" \\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {3}


@pytest.mark.parametrize(
    ("text", "markdown_form", "latex_form"),
    [
        ("a_b", r"a\_b", r"a\_b"),
        ("50 %", "50 %", r"50 \%"),
        ("[x](y)", r"\[x\](y)", "[x](y)"),
        ("two\nlines", "two lines", "two lines"),
        ("a\\b", r"a\\b", r"a\textbackslash{}b"),
    ],
)
def test_escapes(text: str, markdown_form: str, latex_form: str) -> None:
    assert markdown_text(text) == markdown_form
    assert latex_text(text) == latex_form


def test_chance_is_in_every_format(neg136: Json) -> None:
    for levels in neg136["none"]["measures"]["sensitivity"]["by"].values():
        for figure in levels.values():
            figure["chance"] = 0.5
    run = results({"neg136": neg136})
    assert ["", "n", "Affirmative (chance 50.0)", "Negative (chance 50.0)"] in rows(markdown([run]))
    assert "50.0† [40.0, 60.0]" in markdown([run])
    assert "not distinguishable from chance" in markdown([run])
    text = latex([run])
    assert r"50.0$\dagger$ [40.0, 60.0]" in text
    assert r"$\dagger$ not distinguishable from chance" in text
    figures = list(csv.DictReader(io.StringIO(table_csv([run]))))
    levels = {f["chance"] for f in figures if f["measure"] == "sensitivity" and f["by"]}
    assert levels == {"0.5"}
