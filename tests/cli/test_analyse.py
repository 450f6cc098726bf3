"""`lmdiag items`, `lmdiag analyse` and `lmdiag fit`: what they print and write."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from invented_runs import make_run
from parsed import ParsedPage

import lmdiag

ROWS = "item,a,region_1,region_2\n" + "".join(
    f"{item},{a},The cook {item},{verb} the soup.\n"
    for item in range(1, 7)
    for a, verb in (("x", "stirred"), ("y", "ate"))
)


@pytest.fixture
def runs(command):
    """Runs of two models on sentences with two regions."""
    (command.folder / "mine.csv").write_text(ROWS)
    return [make_run(command.folder / id, command.folder / "mine.csv", id=id) for id in ("A", "B")]


def test_the_json_of_a_region_has_cells_effects_and_mixed(runs, command):
    formula = "surprisal ~ a + (1 | item)"
    asked = ("analyse", runs[0], "--region", "2", "--json", "--formula", formula)
    printed = json.loads(command(*asked)[1])
    table = lmdiag.load_run(runs[0]).items("region")
    means = table[table["number"] == 2].groupby("a")["surprisal"].mean()
    assert [cell["mean"] for cell in printed["cells"]] == pytest.approx(list(means))
    assert printed["cells"][0].keys() == {"a", "n", "mean", "ci_low", "ci_high"}
    (effect,) = printed["effects"]
    assert effect.keys() >= {"effect", "n", "ci_low", "ci_high", "t", "df", "p", "d_z"}
    assert effect["estimate"] == pytest.approx(means["y"] - means["x"])
    assert [term["term"] for term in printed["mixed"]] == ["(Intercept)", "a"]
    assert printed["mixed"][1].keys() == {"term", "estimate", "se", "df", "t", "p"}
    assert printed["mixed"][1]["estimate"] == pytest.approx(effect["estimate"])  # it is balanced


def test_the_items_of_two_runs_in_one_file_give_what_the_runs_give(runs, command):
    out, chart = command.folder / "items.csv", command.folder / "conditions.svg"
    asked = ("items", *runs, "--per", "region", "--out", out)
    assert "48 rows and 16 columns" in command(*asked)[1]
    assert "exists already" in command.refused(*asked)
    of_runs, of_file = (
        json.loads(command("analyse", *sources, "--region", "1", "--json")[1])["effects"]
        for sources in (runs, [out])
    )
    assert of_runs == [pytest.approx(effect) for effect in of_file]
    text = command("analyse", *runs, "--out", chart)[1]
    assert "Effects on surprisal of the whole sentence over items" in text
    assert "a[y - x]" in text
    assert "B - A" in text
    assert chart.read_text().startswith("<svg")


def test_a_singular_fit_is_named_in_the_first_line(command):
    table = pd.DataFrame({"item": [1, 1, 2, 2, 3, 3], "a": list("xyxyxy")})
    table["surprisal"] = [1.0, 4, 2, 3, 1.5, 3.5]  # all items have the same mean
    table.to_csv(command.folder / "t.csv", index=False)
    formula = "surprisal ~ a + (1 | item)"
    out = command("analyse", command.folder / "t.csv", "--formula", formula)[1]
    assert out.startswith("mixed model: singular fit: ")
    assert out.count("singular fit") == 1


@pytest.fixture
def fit(command):
    """A command on two texts; the second model's name and a word hold markup."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1, 9, (60, 2)), columns=["good", "<b>"])
    frame = frame.assign(story=np.repeat(["a", "b"], 30), number=[*range(30)] * 2)
    frame = frame.assign(token="<i>word</i>", log_frequency=rng.normal(0, 1, 60))
    frame.loc[::7, "token"] = "other"
    frame["rt"] = 300 + 4 * frame["good"] + rng.normal(0, 5, 60)
    file = command.folder / "human.csv"
    frame.to_csv(file, index=False)
    columns = ("--text", "story", "--position", "number", "--word", "token", "--response", "rt")
    return "fit", "--human", file, *columns, "--surprisal", "good", "<b>"


def test_tables_and_files(fit, command):
    page, words = command.folder / "fit.html", command.folder / "words.csv"
    out = command(*fit, "--out", page, "--residuals", words)[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["<b>", "−", "good"] in [row[:3] for row in rows]
    assert ["surprisal_prev_1", "is", "missing", "2", "2"] in rows
    with words.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["model"] for row in rows[::56]] == ["good", "<b>"]
    assert (rows[0]["row"], rows[0]["position"]) == ("4", "2")  # line 4 of the file, the third word
    deltas = [float(row["delta"]) for row in rows[:56]]
    first = next(csv.DictReader(command(*fit, "--format", "csv")[1].splitlines()))
    assert float(first["delta_log_likelihood"]) == pytest.approx(sum(deltas))
    assert r"$<$b$>$ & 56 &" in command(*fit, "--format", "latex")[1]
    assert r"| \<b\> | 56 |" in command(*fit, "--format", "markdown")[1]
    text = page.read_text("utf-8")
    assert "&lt;b&gt;</th>" in text
    assert "<i>word" not in text
    power = ParsedPage(text).charts["power"]["data"]["values"][0]
    assert power["surprisal"] == pytest.approx(float(first["mean_surprisal"]))
    assert power["value"] == pytest.approx(float(first["per_word"]))
    assert "exists already" in command.refused(*fit, "--out", page)
    human = command.folder / "human.csv"
    human.write_text(human.read_text().replace("<b>", "\u202e\x9b"))
    assert command(*fit[:-1], "\u202e\x9b", "--json")[1].isascii()


def test_a_column_of_a_runs_items_is_a_human_measure(command):
    """Cloze of ROLE-88: the correlation is the one that the run reports, with log-probability."""
    run, words = lmdiag.load_run(command.runs[0]), command.folder / "words.csv"
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
    fitted = frame["response"] - frame["residual"]
    assert fitted.tolist() == pytest.approx((intercept + slope * frame["surprisal"]).tolist())
    assert model["per_bit"] == pytest.approx(slope)
