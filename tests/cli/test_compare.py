"""`lmdiag compare` as typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import make_run

from lmdiag.results import Place, Results, read_results
from lmdiag.schema import Protocol

Compare = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compare(typed: Compare) -> Compare:
    return lambda *arguments: typed("compare", *arguments)


def value(results: Results, one: dict[str, str]) -> float | None:
    """The figure that a comparison is of, as results.json has it."""
    figure = results.figure(Place(one["task"], "none", one["measure"], one["by"], one["level"]))
    assert figure is not None
    return figure.value


def test_json(compare: Compare, finished_runs: list[Path]) -> None:
    arguments = [*finished_runs, "--json", "--resamples", 200, "--seed", 3]
    code, out, err = compare(*arguments)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["a"]["model"], document["b"]["model"]) == ("org/[b]first", "org/second")
    assert (document["seed"], document["resamples"]) == (3, 200)
    first, second = map(read_results, finished_runs)
    assert document["signature"] == first.signature
    assert {one["task"] for one in document["comparisons"]} == {"cprag102", "role88", "neg136"}
    for one in document["comparisons"]:
        a, b = value(first, one), value(second, one)
        assert (one["a"], one["b"]) == pytest.approx((a, b))
        assert one["difference"] == pytest.approx(one["a"] - one["b"])
        assert "pair" not in one
        assert "second" not in one
        if one["test"] == "none":
            assert one["p"] is one["p_adjusted"] is one["ci_low"] is one["ci_high"] is None
        else:
            assert one["p"] <= one["p_adjusted"] <= 1
    assert compare(*arguments)[1] == out


def test_several_runs_are_compared_with_the_first(
    compare: Compare, finished_runs: list[Path], demo_dir: Path, tmp_path: Path
) -> None:
    runs = [*finished_runs, make_run(tmp_path / "third", demo_dir, id="org/third", seed=3)]
    code, out, err = compare(*runs, "--json", "--resamples", 100)
    document = json.loads(out)
    assert (code, err) == (0, "")
    names = [document[name]["model"] for name in "abc"]
    assert names == ["org/[b]first", "org/second", "org/third"]
    told = dict(zip("abc", map(read_results, runs), strict=True))
    pairs = [one["pair"] for one in document["comparisons"]]
    half = len(pairs) // 2
    assert pairs == [["a", "b"]] * half + [["a", "c"]] * half
    for one in document["comparisons"]:
        first, second = one["pair"]
        assert (one["a"], one["b"]) == pytest.approx(
            (value(told[first], one), value(told[second], one))
        )
    tested = [one for one in document["comparisons"] if one["p"] is not None]
    smallest = min(tested, key=lambda one: one["p"])
    assert smallest["p_adjusted"] == pytest.approx(min(1, smallest["p"] * len(tested)))

    _, out, _ = compare(*runs, "--resamples", 100)
    for words in ("C  org/third", "A and B, role88", "A and C, role88", "A - C"):
        assert words in out
    assert f"over the {len(tested)} tests above" in out


def test_tables(compare: Compare, finished_runs: list[Path]) -> None:
    code, out, _ = compare(*finished_runs, "--resamples", 20)
    assert code == 0
    assert "A  org/[b]first" in out  # markup in the name of a model has no effect
    for words in ("probability_difference", "Holm"):
        assert words in out
    role88, neg136 = out.split("\nrole88\n")[1].split("\nneg136\n")
    row = next(line for line in role88.splitlines() if line.startswith("sensitivity "))
    figure = read_results(finished_runs[0]).figure(Place("role88", "none", "sensitivity"))
    assert figure is not None
    assert figure.value is not None
    assert f" {100 * figure.value:.1f} " in row
    for words in ("accuracy@1, simp ", "sensitivity, simp, negative ", "sensitivity, nat, negat"):
        assert words in neg136.lower()  # by the levels of its break-downs


def test_runs_that_differ_are_refused_by_the_part_that_does(
    refused: Callable[..., str], finished_runs: list[Path], demo_dir: Path, tmp_path: Path
) -> None:
    other = make_run(tmp_path / "other", demo_dir, Protocol(k=(1, 3), threshold=0.05))
    error = refused("compare", *finished_runs, other)
    assert f"{finished_runs[0]} and {other} cannot be compared: their signatures differ" in error
    assert "differ in k (1,5 and 1,3); t (0.01 and 0.05)" in error
    less = make_run(tmp_path / "less", demo_dir, Protocol(tasks=("role88",)))
    assert "differ in data (" in refused("compare", finished_runs[0], less)
    assert "not a finished run" in refused("compare", finished_runs[0], tmp_path)
