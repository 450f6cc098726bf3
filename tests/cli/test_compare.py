"""`lmdiag compare` as typed."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256

import pytest
from commands import Commands
from runs import make_run

import lmdiag
from lmdiag.protocol import Protocol
from lmdiag.results import Place, Results, read_results


def value(results: Results, one: dict[str, str]) -> float | None:
    """The figure that a comparison is of, as results.json has it."""
    figure = results.figure(Place(one["task"], "none", one["measure"], one["by"], one["level"]))
    assert figure is not None
    return figure.value


def test_runs_are_compared_with_the_first(command: Commands) -> None:
    """As JSON and as tables; figures are those of results.json."""
    runs = [*command.runs, make_run(command.folder / "third", command.data, id="org/third", seed=3)]
    arguments = [*runs, "--resamples", 100, "--seed", 3]
    code, out, err = command("compare", *arguments, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert command("compare", *arguments, "--json")[1] == out
    names = [document[name]["model"] for name in "abc"]
    assert names == ["org/[b]first", "org/second", "org/third"]
    assert (document["seed"], document["resamples"]) == (3, 100)
    results = dict(zip("abc", map(read_results, runs), strict=True))
    assert document["signature"] == results["a"].signature
    pairs = [record["pair"] for record in document["comparisons"]]
    half = len(pairs) // 2
    assert pairs == [["a", "b"]] * half + [["a", "c"]] * half
    tested = [record for record in document["comparisons"] if record["test"] != "none"]
    for record in document["comparisons"]:
        a, b = (value(results[name], record) for name in record["pair"])
        assert (record["a"], record["b"]) == pytest.approx((a, b))
        assert record["difference"] == pytest.approx(record["a"] - record["b"])
        names_of_undefined = {name for name in record if record[name] is None}
        assert names_of_undefined >= ({"p", "ci_low"} if record not in tested else set())
    smallest = min(tested, key=lambda record: record["p"])
    assert smallest["p_adjusted"] == pytest.approx(min(1, smallest["p"] * len(tested)))

    out = command("compare", *arguments)[1]
    for words in ("A  org/[b]first", "C  org/third", "A and B, role88", "A and C, role88", "Holm"):
        assert words in out  # markup in the name of a model has no effect
    assert f"over the {len(tested)} distinct tests" in out
    role88 = out.split("A and B, role88")[1]
    row = next(line for line in role88.splitlines() if line.startswith("sensitivity "))
    figure = read_results(runs[0]).figure(Place("role88", "none", "sensitivity"))
    assert figure is not None
    assert f" {100 * (figure.value or 0):.1f} " in row
    two = json.loads(command("compare", *runs[:2], "--json", "--resamples", 10)[1])
    assert not {"pair", "second"} & {*two["comparisons"][0]}


@pytest.mark.parametrize("columns", [None, 60, 120])
def test_no_table_is_cut(
    command: Commands, monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    """Redirected output is as wide as it needs to be; within COLUMNS, tables are laid out again."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    skilled = make_run(command.folder / "skilled", command.data, id="org/skilled", skill=9.0)
    unskilled = make_run(command.folder / "unskilled", command.data, id="org/weak", skill=0.0)
    out = command("compare", skilled, unskilled, "--resamples", 50, "--tasks", "neg136")[1]
    tables = out[out.index("neg136\n") : out.index("95% intervals of")]
    assert "…" not in tables
    assert max(map(len, tables.splitlines())) <= (columns or 10_000)
    for text in ("p adj.", "A − B", "< .001 m", "sensitivity, NAT, negative "):
        assert text in tables
    assert re.search(r"< \.001 m +< \.001$", tables, re.MULTILINE)
    is_one_table = tables.count("───\n") == 1
    assert is_one_table == (columns != 60)


def test_a_run_goes_by_its_name(command: Commands) -> None:
    named = make_run(command.folder / "named", command.data, id="org/second", name="second try")
    options = ["--tasks", "role88", "--measures", "accuracy"]
    out = command("compare", command.runs[0], named, *options)[1]
    assert "B  second try  org/second, commit" in out
    assert "over the 2 distinct tests" in out
    document = json.loads(command("compare", command.runs[0], named, *options, "--json")[1])
    assert document["b"]["name"] == "second try"
    assert document["direction"] == "first minus second"
    assert [one["measure"] for one in document["comparisons"]] == ["accuracy@1", "accuracy@5"]
    assert command("report", named, "--format", "csv")[1].splitlines()[1].startswith("second try,")


def test_a_folder_of_runs_stands_for_them(command: Commands) -> None:
    """The folder of a model with one run, or that of all models."""
    output = command.folder / "results"
    copies = [
        shutil.copytree(run, output / name / "diagnostics-token")
        for name, run in zip(("a", "b"), command.runs, strict=True)
    ]
    options = ("--tasks", "role88", "--resamples", 20, "--json")
    expected = command("compare", *copies, *options)[1]
    for folders in ([output], [output / "a", output / "b"], [copies[0], output / "b"]):
        assert command("compare", *folders, *options) == (0, expected, "")
    assert "two or more" in command.refused("compare", output / "a")
    tables = command("report", *copies, "--format", "csv")
    assert command("report", output, "--format", "csv") == tables
    assert command("report", output / "a")[1] == f"Saved in {copies[0] / 'report.html'}\n"
    assert lmdiag.load_run(output / "a").path == copies[0]
    asked = ("score", "--task", "role88", "--predictions")
    assert command(*asked, output / "a") == command(*asked, copies[0])
    error = command.refused(*asked, output)
    assert f"results has several runs: name one of them, as {copies[0]}" in error


def test_across_options(command: Commands) -> None:
    """Runs of one model that were asked differently, as a base and a chat protocol are."""
    plain, other = (
        make_run(command.folder / f"run{seed}", command.data, protocol, seed=seed)
        for seed, protocol in enumerate(
            (Protocol(), Protocol(prompt="Go on: {context}", unit="word"))
        )
    )
    error = command.refused("compare", plain, other, "--across", "prompt")
    assert f"{plain} and {other} cannot be compared: their signatures differ in unit" in error
    assert error.endswith("or lmdiag compare --across unit,prompt\n")
    options = ["--resamples", 20, "--across", "unit,prompt"]
    code, out, err = command("compare", plain, other, *options)
    assert (code, err) == (0, "")
    digest = sha256(b"Go on: {context}").hexdigest()[:8]
    line = f"A and B were asked differently: unit (token and word); prompt (none and {digest})"
    assert out.index(line) < out.index("cprag102")
    document = json.loads(command("compare", plain, other, *options, "--json")[1])
    signatures = [read_results(run).signature for run in (plain, other)]
    assert (document["across"], document["signatures"]) == (["unit", "prompt"], signatures)
