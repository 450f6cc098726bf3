"""`lmdiag compare` as typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import make_run

from lmdiag.cli import main
from lmdiag.schema import Protocol


@pytest.fixture(scope="module")
def runs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two finished runs, the first of a better model."""
    folder = tmp_path_factory.mktemp("runs")
    first = make_run(folder / "a", demo_dir, id="org/[b]first", skill=3.0, seed=1)
    second = make_run(folder / "b", demo_dir, id="org/second", skill=0.0, seed=2)
    return first, second


def compare(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main(["compare", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json(capsys: Any, runs: tuple[Path, Path]) -> None:
    code, out, err = compare(capsys, *runs, "--json", "--resamples", 200, "--seed", 3)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["a"]["model"], document["b"]["model"]) == ("org/[b]first", "org/second")
    assert (document["seed"], document["resamples"]) == (3, 200)
    told = [json.loads((run / "results.json").read_text()) for run in runs]
    assert document["signature"] == told[0]["signature"]
    assert {one["task"] for one in document["comparisons"]} == {"cprag102", "role88", "neg136"}
    for one in document["comparisons"]:
        a, b = (value(results, one) for results in told)
        assert (one["a"], one["b"]) == pytest.approx((a, b))
        assert one["difference"] == pytest.approx(a - b)
        if one["test"] == "none":
            assert one["p"] is one["p_adjusted"] is one["ci_low"] is one["ci_high"] is None
        else:
            assert one["p"] <= one["p_adjusted"] <= 1
    again = compare(capsys, *runs, "--json", "--resamples", 200, "--seed", 3)[1]
    assert again == out


def value(results: dict[str, Any], one: dict[str, Any]) -> float:
    """The figure that a comparison is of, as results.json has it."""
    measure = results["tasks"][one["task"]]["none"]["measures"][one["measure"]]
    cell = measure["by"][one["by"]][one["level"]] if one["by"] else measure
    return float(cell["value"])


def test_several_runs_are_compared_with_the_first(
    capsys: Any, runs: tuple[Path, Path], demo_dir: Path, tmp_path: Path
) -> None:
    third = make_run(tmp_path / "third", demo_dir, id="org/third", skill=1.0, seed=3)
    code, out, err = compare(capsys, *runs, third, "--json", "--resamples", 100)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert [document[name]["model"] for name in "abc"] == [
        "org/[b]first", "org/second", "org/third",
    ]  # fmt: skip
    told = [json.loads((run / "results.json").read_text()) for run in (*runs, third)]
    pairs = [one["pair"] for one in document["comparisons"]]
    half = len(pairs) // 2
    assert pairs == [["a", "b"]] * half + [["a", "c"]] * half
    for one in document["comparisons"]:
        first, second = (told["abc".index(name)] for name in one["pair"])
        assert (one["a"], one["b"]) == pytest.approx((value(first, one), value(second, one)))
    tested = [one for one in document["comparisons"] if one["p"] is not None]
    smallest = min(tested, key=lambda one: one["p"])
    assert smallest["p_adjusted"] == pytest.approx(min(1, smallest["p"] * len(tested)))

    _, out, _ = compare(capsys, *runs, third, "--resamples", 100)
    for words in ("C  org/third", "A and B, role88", "A and C, role88", "A - C"):
        assert words in out
    assert f"over the {len(tested)} tests above" in out

    other = make_run(tmp_path / "other", demo_dir, protocol=Protocol(k=(1, 3)))
    code, out, err = compare(capsys, *runs, other)
    assert (code, out) == (2, "")
    assert f"{runs[0]} and {other} cannot be compared: their signatures differ in k" in err


def test_levels_of_neg136_are_named(capsys: Any, runs: tuple[Path, Path]) -> None:
    _, out, _ = compare(capsys, *runs, "--resamples", 20)
    of_neg136 = out.split("\nneg136\n")[1]
    for words in (
        "accuracy@1, simp ",
        "sensitivity, simp, negative ",
        "sensitivity, nat, negative ",
    ):
        assert words in of_neg136


def test_tables(capsys: Any, runs: tuple[Path, Path]) -> None:
    code, out, _ = compare(capsys, *runs, "--resamples", 100)
    assert code == 0
    assert "A  org/[b]first" in out  # no markup of a stranger's name is obeyed
    assert "probability_difference" in out
    assert "Holm" in out
    of_role88 = out.split("role88")[1].splitlines()
    row = next(line for line in of_role88 if line.startswith("sensitivity "))
    told = json.loads((runs[0] / "results.json").read_text())
    value = told["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"]
    assert f" {100 * value:.1f} " in row


def test_runs_that_differ_are_refused_by_the_part_that_does(
    capsys: Any, runs: tuple[Path, Path], demo_dir: Path, tmp_path: Path
) -> None:
    other = make_run(tmp_path / "other", demo_dir, protocol=Protocol(k=(1, 3), threshold=0.05))
    code, out, err = compare(capsys, runs[0], other)
    assert (code, out) == (2, "")
    assert "signatures differ in k (1,5 and 1,3); t (0.01 and 0.05)" in err
    less = make_run(tmp_path / "less", demo_dir, protocol=Protocol(tasks=("role88",)))
    assert "differ in data (" in compare(capsys, runs[0], less)[2]


def test_what_is_no_run_is_refused(capsys: Any, runs: tuple[Path, Path], tmp_path: Path) -> None:
    code, out, err = compare(capsys, runs[0], tmp_path)
    assert (code, out) == (2, "")
    assert "not a finished run" in err
    assert err.count("\n") == 1


def test_nothing_heavy_is_imported(runs: tuple[Path, Path]) -> None:
    code = (
        "import sys; from lmdiag.cli import main; main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'evaluate', 'datasets'};"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", *map(str, runs), "--resamples", "9", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == "set()\n"
