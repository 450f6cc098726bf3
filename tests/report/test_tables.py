"""The tables of runs: whole, in every format, and what decides their shape.

The expected texts are in `tests/data/tables`. After an intended change, write them again with
`ACCEPT_TABLES=1 pytest tests/report/test_tables.py` and read the difference.
"""

from __future__ import annotations

import io
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lmdiag.report import numbers
from lmdiag.report.formats import render_tables
from lmdiag.report.items import Choice
from lmdiag.report.labels import run_labels
from lmdiag.report.tables import sections
from lmdiag.report.terminal import print_results
from lmdiag.results import Results
from lmdiag.types import WordSpan

from .handmade import (
    cprag102,
    measure,
    neg136,
    published_run,
    results,
    role88,
    sentence_runs,
    setting,
    several_runs,
)

EXPECTED = Path(__file__).parents[1] / "data" / "tables"

FIRST = Choice(
    "x", "the camper saw which girl the bear had", expected=("fed",), words=("fed", "|"),
    word_log_probs=(math.log(0.5), math.log(0.25)),
)  # fmt: skip
SECOND = FIRST._replace(words=("50%",), word_log_probs=(math.log(0.25),))
SPANS = tuple(
    WordSpan(start, end, bits and -bits * math.log(2), 1)
    for start, end, bits in ((0, 3, None), (4, 7, 8.25), (8, 11, 0.034), (14, 19, 4.2))
)
SENTENCE = Choice("x-good", "Who fed the | bear?", good=True, log_prob=-8.0, spans=SPANS)
TABLES: dict[str, tuple[Any, ...]] = {
    "run": ([published_run()],),
    "runs": (several_runs(), [(FIRST, {"org/one": FIRST, "org/two": SECOND})]),
    "sentences": (sentence_runs()[:1],),
    "two-sentences": (
        sentence_runs(),
        [(SENTENCE, {"org/one": SENTENCE, "org/two": SENTENCE._replace(spans=SPANS[:2])})],
    ),
}
"""Beginning of the names of expected texts -> runs, and chosen items."""


def printed(content: Results, width: int) -> str:
    print_results(content, Console(file=(stream := io.StringIO()), width=width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("name", [file.name for file in sorted(EXPECTED.iterdir())])
def test_tables_are_the_expected_ones(name: str) -> None:
    """Shapes of the papers, levels in order, n, chance, signs, published rows, remarks."""
    what, _, form = name.partition(".")
    kind, _, width = form.partition("-")
    content, file = TABLES[what], EXPECTED / name
    text = printed(content[0][0], int(width)) if width else render_tables(kind, *content)
    if os.environ.get("ACCEPT_TABLES"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_table_is_wider_than_the_terminal_or_cut_off(width: int) -> None:
    task = cprag102()
    run = results({"cprag102": task | {"trunc": task["none"], "shuf_trunc": task["none"]}})
    for content in (run, published_run()):
        blocks = printed(content, width).split("\n\n")
        tables = [line for block in blocks if "────" in block for line in block.splitlines()]
        assert max(map(len, tables)) <= width
        assert not [line for line in tables if "…" in line]


def test_every_figure_is_in_some_table() -> None:
    run = results({"cprag102": cprag102(), "role88": role88(), "neg136": neg136()})
    for section in sections([run]):
        rows = [row for table in section.tables + section.further for row in table.rows]
        shown = {(cell.value, cell.n) for row in rows for cell in row.cells}
        figures = [figure for place, figure in run.figures() if place.task == section.task]
        assert {(numbers.value(figure), figure.n) for figure in figures} <= shown


def test_remarks_count_what_is_left_out_and_name_a_sample() -> None:
    content = replace(cprag102()["none"], equal_contrasts=3)
    assert (
        "not compared: 3 contrasts whose good and bad rows have the same text or the same tokens"
    ) in sections([results({"cprag102": {"none": content}})])[0].remarks
    task = cprag102() | {"shuf": setting({"accuracy@1": measure(4, 31, sd=0.031, runs=100)})}
    run = results({"cprag102": task})
    (section,) = sections([replace(run, protocol=replace(run.protocol, limit=8))])
    assert section.remarks[0].startswith("a sample of 10 rows")
    # n shows where figures differ in it
    assert [row.cells[0].value for row in section.tables[0].rows[:2]] == ["31–34", "17"]


def test_other_rows_and_other_models_have_nothing_published() -> None:
    for model, n in (("bert-base-uncased", 104), ("org/model", 136)):
        (section,) = sections([results({"neg136": neg136()}, model, neg136=n)])
        assert not any(row.is_published for table in section.tables for row in table.rows)
    # bounds of quartiles, too, are those of the published rows
    bins = {"cloze_quartile": {str(i + 1): (1, 8) for i in range(4)}}
    task = {"none": setting({"accuracy@1": measure(4, 32, bins)})}
    headings = sections([results({"role88": task})])[0].tables[1].headings
    labels = [heading.label for heading in headings if heading.is_figure]
    assert labels == ["lowest quartile", "second", "third", "highest"]


def test_runs_of_one_name_are_told_apart_by_what_differs() -> None:
    run = results({"neg136": neg136()})
    other = replace(run, model=replace(run.model, dtype="bfloat16"))
    assert run_labels([run, other]) == ["org/model (float32)", "org/model (bfloat16)"]
    later = replace(run, model=replace(run.model, commit="f" * 40))
    names = ["org/model (86b5e0934494) #1", "org/model (ffffffffffff)"]
    assert run_labels([run, later, run]) == [*names, "org/model (86b5e0934494) #3"]


def test_numbers_as_readers_see_them() -> None:
    for function, statistic, values, texts in (
        (numbers.signed, "share", (-0.0001, 0.0567, math.nan), "0.0 +5.7 –"),
        # a tie goes away from zero, as in charts: Python's own format would give 6.2
        (numbers.signed, "proportion", (0.0625, -0.0625), "+6.3 −6.3"),
        # a rank, the median of two ranks, a mean over shuffles
        (numbers.number, "median", (12.0, 3.5, 7.333, -0.0), "12 3.5 7.3 0"),
        (numbers.number, "mean", (12.0, -0.5, 1e15), f"12.000 −0.500 1{15 * '0'}.000"),
    ):
        assert " ".join(function(value, statistic) for value in values) == texts
    counts = [numbers.count(n) for n in (950, 4_385_920, 109_514_298, 6_738_415_616)]
    assert counts == ["950", "4.4M", "110M", "6.7B"]
    assert [*map(numbers.span, (["33.3", "40.0", "50.0"], ["5"]))] == ["33.3–50.0", "5"]
