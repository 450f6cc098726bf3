"""`lmdiag items` and `lmdiag analyse`: from a finished run to a table, effects and a figure."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from runs import make_run

import lmdiag
from lmdiag.cli import main
from lmdiag.protocol import Protocol

ROWS = "item,a,region_1,region_2\n" + "".join(
    f"{item},{a},The cook {item},{verb} the soup.\n"
    for item in range(1, 7)
    for a, verb in (("x", "stirred"), ("y", "ate"))
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "mine.csv").write_text(ROWS)
    protocol = Protocol(tasks=("mine",))
    return [
        str(make_run(folder / name, folder / "mine.csv", protocol, seed=seed, id=name))
        for seed, name in enumerate(("A", "B"))
    ]


def test_the_json_of_a_region_has_cells_effects_and_mixed(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    formula = "surprisal ~ a + (1 | item)"
    assert main(["analyse", runs[0], "--region", "2", "--json", "--formula", formula]) == 0
    printed = json.loads(capsys.readouterr().out)
    table = lmdiag.load_run(runs[0]).items("region")
    means = table[table["number"] == 2].groupby("a")["surprisal"].mean()
    assert [cell["mean"] for cell in printed["cells"]] == pytest.approx(list(means))
    assert printed["cells"][0].keys() == {"a", "n", "mean", "ci_low", "ci_high"}
    (effect,) = printed["effects"]
    assert effect.keys() - {"p_sign_flip"} == {
        "effect", "n", "estimate", "ci_low", "ci_high", "t", "df", "p", "d_z"
    }  # fmt: skip
    assert effect["estimate"] == pytest.approx(means["y"] - means["x"])
    assert [term["term"] for term in printed["mixed"]] == ["(Intercept)", "a"]
    assert printed["mixed"][1].keys() == {"term", "estimate", "se", "df", "t", "p"}
    assert printed["mixed"][1]["estimate"] == pytest.approx(effect["estimate"])  # it is balanced


def test_the_items_of_two_runs_in_one_file_give_what_the_runs_give(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, chart = tmp_path / "items.csv", tmp_path / "conditions.svg"
    assert main(["items", *runs, "--per", "region", "--out", str(out)]) == 0
    assert "48 rows and 15 columns" in capsys.readouterr().out
    assert main(["items", *runs, "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    printed = []
    for sources in (runs, [str(out)]):
        assert main(["analyse", *sources, "--region", "1", "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0]["effects"] == [pytest.approx(effect) for effect in printed[1]["effects"]]
    assert main(["analyse", *runs, "--chart", str(chart)]) == 0
    text = capsys.readouterr().out
    assert "Effects on surprisal over items" in text
    assert "a: A - B" in text
    assert chart.read_text().startswith("<svg")


def test_a_singular_fit_is_named_in_the_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.DataFrame({"item": [1, 1, 2, 2, 3, 3], "a": list("xyxyxy")})
    table["surprisal"] = [1.0, 4, 2, 3, 1.5, 3.5]  # all items have the same mean
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["analyse", str(tmp_path / "t.csv"), "--formula", "surprisal ~ a + (1 | item)"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith("mixed model: singular fit: ")
    assert out.count("singular fit") == 1
