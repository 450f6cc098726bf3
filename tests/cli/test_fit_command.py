"""`lmdiag fit`: what it prints and writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import NewPage
from commands import Commands

from lmdiag.cli import main
from lmdiag.results import load_run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two texts of 30 words; the second model's name and a word hold markup."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1, 9, (60, 2)), columns=["good", "<b>"])
    frame = frame.assign(text=np.repeat(["a", "b"], 30), position=[*range(30)] * 2)
    frame = frame.assign(word="<i>word</i>", log_frequency=rng.normal(0, 1, 60))
    frame.loc[::7, "word"] = "other"
    frame["rt"] = 300 + 4 * frame["good"] + rng.normal(0, 5, 60)
    frame.to_csv(tmp_path / "human.csv", index=False)
    return tmp_path / "human.csv"


def test_tables_and_files(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["fit", "--human", str(table), "--response", "rt", "--surprisal", "good", "<b>"]
    page, words = tmp_path / "fit.html", tmp_path / "words.csv"
    assert main([*command, "--report", str(page), "--residuals", str(words)]) == 0
    out = capsys.readouterr().out
    assert "good minus <b>" in out
    assert "rows left out: surprisal_prev_1 is missing 2, surprisal_prev_2 is missing 2" in out
    with words.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["model"] for row in rows[::56]] == ["good", "<b>"]
    assert {"row", "position", "word", "response", "residual", "delta"} <= rows[0].keys()
    assert (rows[0]["row"], rows[0]["position"]) == ("4", "2")  # line 4 of the file, the third word
    deltas = [float(row["delta"]) for row in rows[:56]]
    assert main([*command, "--format", "csv"]) == 0
    first = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert float(first["delta_log_likelihood"]) == pytest.approx(sum(deltas))
    assert main([*command, "--format", "latex"]) == 0
    assert r"$<$b$>$ & 56 &" in capsys.readouterr().out
    assert main([*command, "--format", "markdown"]) == 0
    assert r"| \<b\> | 56 |" in capsys.readouterr().out
    text = page.read_text("utf-8")
    assert "&lt;b&gt;</th>" in text
    assert "<i>word" not in text
    assert main([*command, "--report", str(page)]) == 2


def test_a_table_of_lmdiag_surprisal_is_a_source(tmp_path: Path, command: Commands) -> None:
    """Joined by number of the line, position and word, under the names of the human table."""
    words = ["the", "robin", "is", "a", "bird", "and", "the", "hammer", "is", "a", "tool"] * 4
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join([" ".join(words), " ".join(words[::-1])]))
    made = tmp_path / "demo.csv"
    assert command("surprisal", texts, "--model", "demo:causal", "--output", made)[0] == 0
    frame = pd.DataFrame({"story": [1] * 44 + [2] * 44, "zone": [*range(1, 45)] * 2})
    frame = frame.assign(token=words + words[::-1], log_frequency=1.0)
    frame["rt"] = 250 + 9 * frame["token"].str.len() + np.arange(88) % 7
    human = tmp_path / "human.csv"
    frame.sample(frac=1, random_state=0).to_csv(human, index=False)
    arguments = (
        "fit", "--human", human, "--response", "rt", "--text", "story", "--position", "zone",
        "--word", "token", "--controls", "length", "--json",
    )  # fmt: skip
    read, asked = (
        json.loads(command(*arguments, *source, "--output", tmp_path / "answers")[1])["models"][0]
        for source in (("--surprisal", made), ("--model", "demo:causal"))
    )
    assert read["n"] == asked["n"] == 84
    assert read["coefficients"] == pytest.approx(asked["coefficients"], abs=1e-3)


def test_a_column_of_a_runs_items_is_a_human_measure(
    finished_runs: list[Path], tmp_path: Path, command: Commands
) -> None:
    """Cloze of ROLE-88: the correlation is the one that the run reports, with log-probability."""
    run = load_run(finished_runs[0])
    words = tmp_path / "words.csv"
    code, out, err = command(
        "fit", "--human", run.path, "--formula", "target_cloze ~ surprisal", "--filter",
        "task=role88", "--json", "--residuals", words,
    )  # fmt: skip
    assert code == 0, err
    printed = json.loads(out)
    (model,) = printed["models"]
    assert {"signature", "models", "full", "baseline", "units", "comparisons"} <= printed.keys()
    assert {"name", "n", "aic", "ci_low", "ci_high", "coefficients", "left_out"} <= model.keys()
    for name in ("pearson", "spearman"):
        measure = run.results.measure("role88", "none", name)
        assert model[name]["value"] == pytest.approx(-measure.value)
        assert model[name]["ci_low"] == pytest.approx(-measure.ci_high)
    frame = pd.read_csv(words)
    slope, intercept = np.polyfit(frame["surprisal"], frame["response"], 1)
    fitted = intercept + slope * frame["surprisal"]
    assert frame["residual"].to_numpy() == pytest.approx((frame["response"] - fitted).to_numpy())
    assert model["per_bit"] == pytest.approx(slope)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 420])
def test_the_page_draws_its_charts_and_fits_the_screen(
    width: int, table: Path, tmp_path: Path, command: Commands, new_page: NewPage
) -> None:
    file = tmp_path / "fit.html"
    arguments = ("--human", table, "--response", "rt", "--surprisal", "good", "<b>")
    assert command("fit", *arguments, "--report", file)[0] == 0
    page = new_page(viewport={"width": width, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_function("document.documentElement.dataset.drawn")
    assert page.locator("figure svg").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == width
