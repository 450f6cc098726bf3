"""Your own rows from a file to the report: data without contrasts, and samples."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow.parquet as pq
import pytest

import lmdiag
from lmdiag import cli
from lmdiag.analysis.designs import analyse_table

WORDS = ("bird", "tree", "hammer", "robin", "trout", "fish", "bird", "tree")
NOTHING = "the rows have no columns good and contrast"
FRAME = pd.DataFrame(
    {"context": [f"A {word} is a" for word in WORDS], "target": WORDS[::-1], "number": [1, 2] * 4}
)
"""Eight rows with the two columns that are needed, and a break-down by whole numbers."""


@pytest.fixture(scope="module")
def models(tiny_models: dict[str, Path]) -> list[str]:
    return [str(folder) for folder in tiny_models.values()]


@pytest.fixture(scope="module")
def runs(models: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("results")
    FRAME.to_csv(folder / "mine.csv")  # with the index, which is the default
    run(models, folder / "mine.csv", folder)
    return [folder / Path(model).name / "mine-token" for model in models]


def run(models: list[str], data: Path, output: Path, *options: str) -> None:
    arguments = ["run", "--model", *models, "--data", str(data), "--output", str(output)]
    assert cli.main([*arguments, "--quiet", *options]) == 0


def measures(run: Path) -> dict[str, Any]:
    results = json.loads((run / "results.json").read_text())
    return dict(results["tasks"]["mine"]["none"]["measures"])


def headline(page: Path) -> str:
    return page.read_text().partition('id="section-1"')[0]


def test_a_run_without_contrasts_has_surprisals_and_ranks(runs: list[Path]) -> None:
    computed = measures(runs[0])
    assert set(computed) == {"surprisal", "rank"}
    table = pq.read_table(runs[0] / "predictions.parquet").to_pydict()
    assert table["id"] == [f"mine-{number}" for number in range(1, 9)]
    known = [value for value in table["log_prob"] if value is not None]
    assert computed["surprisal"]["value"] == pytest.approx(-sum(known) / len(known) / math.log(2))
    assert computed["surprisal"]["n"] == len(known)
    assert list(computed["surprisal"]["by"]["number"]) == ["1", "2"]
    assert computed["rank"]["value"] >= 1


def test_tables_page_and_score_say_that_nothing_was_compared(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("markdown", "latex", "csv"):
        assert cli.main(["report", str(runs[0]), "--format", form]) == 0
        text = capsys.readouterr().out
        assert "surprisal" in text
        assert (NOTHING in text) == (form == "markdown")
    page = (runs[0] / "report.html").read_text()
    assert "mean surprisal, bits" in headline(runs[0] / "report.html")
    assert " bits</span>" in page  # of each word
    assert 'data-filter="outcome"' not in page
    both = [str(run) for run in runs]
    assert cli.main(["report", *both, "--out", str(tmp_path / "both.html")]) == 0
    assert NOTHING in page
    assert NOTHING in (tmp_path / "both.html").read_text()
    capsys.readouterr()
    assert cli.main(["compare", *both, "--json"]) == 0
    text = capsys.readouterr().out
    assert '"surprisal"' in text
    assert '"rank"' in text
    assert cli.main(["score", "--task", "mine", "--predictions", both[0], "--json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out)["measures"] == measures(runs[0])
    assert f"not computed: sensitivity: {NOTHING}" in error


def test_the_terminal_begins_with_the_conditions_which_are_computed_once(
    models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FRAME.assign(item=[1, 1, 2, 2, 3, 3, 4, 4]).to_csv(tmp_path / "mine.csv")
    with mock.patch("lmdiag.report.designs.analyse_table", wraps=analyse_table) as analysed:
        run(models[:1], tmp_path / "mine.csv", tmp_path)
    assert analysed.call_count == 1
    text = capsys.readouterr().out
    assert 0 < text.index("Effects on surprisal over items") < text.index("All measures")
    (page,) = tmp_path.rglob("report.html")
    assert "Effects on surprisal over items" in page.read_text()


def test_a_file_may_have_the_name_of_a_diagnostic(
    models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FRAME.to_csv(tmp_path / "neg136.csv", index=False)
    run(models[:1], tmp_path / "neg136.csv", tmp_path / "out", "--json")
    out, error = capsys.readouterr()
    (setting,) = json.loads(out)["tasks"]["neg136.csv"].values()
    assert set(setting["measures"]) == {"surprisal", "rank"}
    assert error == "lmdiag: nothing was compared in neg136.csv: no columns good and contrast\n"


@pytest.mark.slow
def test_the_report_of_a_sample_says_so_and_has_a_headline(
    models: list[str], demo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(models[:1], demo_dir, tmp_path, "--limit", "12")
    text = capsys.readouterr().out
    sample = "a sample of 12 rows, drawn evenly over the break-downs (--limit 12)"
    assert text.count(sample) == 3  # each of the three diagnostics
    assert "|limit:sample12" in text
    (page,) = tmp_path.rglob("report.html")
    assert headline(page).count("a sample of 12 rows") == 3
    assert "sensitivity, SIMP negative" in headline(page)
    comparison = lmdiag.compare(page.parent, page.parent)  # the same sample is read again
    assert {test.task for test in comparison} == {"cprag102", "role88", "neg136"}
    options = ("--tasks", "neg136", "--limit", "2", "--seed", "1")  # without the usual levels
    run(models[:1], demo_dir, tmp_path / "few", *options)
    (page,) = (tmp_path / "few").rglob("report.html")
    assert '<th scope="row">' in headline(page)
