"""`lmdiag compare` and `lmdiag report` as typed."""

import json
import re
import shutil

import pytest
from invented_runs import make_run

import lmdiag
from lmdiag.asking.protocol import Protocol
from lmdiag.results import FigureKey, read_results


def test_runs_are_compared_with_the_first(command):
    """As JSON and as tables; figures are those of results.json."""
    runs = [*command.runs, make_run(command.folder / "third", command.data, id="org/third", seed=3)]
    arguments = [*runs, "--seed", 3]
    code, out, err = command("compare", *arguments, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert command("compare", *arguments, "--json")[1] == out
    names = ["[b]first", "second", "third"]
    assert [model["name"] for model in document["models"]] == names
    assert document["seed"] == 3
    assert document["direction"] == "new minus base"
    results = dict(zip(names, map(read_results, runs), strict=True))
    base, *others = names
    assert document["signature"] == results[base].signature
    pairs = [(x["base_model"], x["new_model"]) for x in document["comparisons"]]
    assert pairs == [(base, other) for other in others for _ in range(len(pairs) // 2)]
    tested = [x for x in document["comparisons"] if x["test"] != "none"]
    for x in document["comparisons"]:
        place = FigureKey(x["task"], "none", x["measure"], x["by"], x["level"])
        for side in ("base", "new"):
            value = results[x[f"{side}_model"]].figure(place)["value"]
            assert x[side] == pytest.approx(value)
        assert x["difference"] == pytest.approx(x["new"] - x["base"])
        undefined = {name for name in x if x[name] is None}
        assert undefined >= ({"p", "p_adjusted"} if x not in tested else set())

    out = command("compare", *arguments)[1]
    shown = (f"\n{base}\n", *(f"{name} − {base}\n" for name in others), "Holm")
    assert all(text in out for text in shown)  # markup in the name of a model has no effect
    assert f"over the {len(tested)} distinct tests" in out
    lines = out.split("\nROLE-88")[1].splitlines()
    row = next(line for line in lines if line.startswith("  sensitivity "))
    value = results[base].figure(FigureKey("role88", "none", "sensitivity"))["value"]
    assert f" {100 * value:.1f} " in row


@pytest.mark.parametrize("columns", [None, 60, 120])
def test_no_table_is_cut(command, monkeypatch, columns):
    """Redirected output is as wide as it needs to be; within COLUMNS, tables are laid out again."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    skilled = make_run(command.folder / "skilled", command.data, id="org/skilled", skill=9.0)
    unskilled = make_run(command.folder / "unskilled", command.data, id="org/weak", skill=0.0)
    out = command("compare", skilled, unskilled, "--tasks", "neg136")[1]
    tables = out[: out.index("95% intervals have")]
    assert "…" not in tables
    assert max(map(len, tables.splitlines())) <= (columns or 10_000)
    for text in ("p adj.", "difference", "< .001 ", "sensitivity, natural affirmative "):
        assert text in tables
    assert re.search(r"< \.001 +● < \.001$", tables, re.MULTILINE)
    is_one_table = tables.count("───\n") == 1
    assert is_one_table == (columns != 60)


def test_folders_and_names_of_runs(command):
    """A folder of a model with one run, or that of all models, stands for its runs."""
    named = make_run(command.folder / "named", command.data, id="org/second", name="second try")
    output = command.folder / "results"
    folders = {"a": command.runs[0], "b": named}
    copies = [shutil.copytree(run, output / x / "token") for x, run in folders.items()]
    options = ("--tasks", "role88", "--measures", "accuracy")
    assert "\nsecond try\norg/second, float32, commit" in command("compare", *copies, *options)[1]
    expected = command("compare", *copies, *options, "--json")[1]
    document = json.loads(expected)
    assert document["models"][1]["name"] == "second try"
    tested = {x["measure"]: x for x in document["comparisons"]}
    assert [*tested] == ["accuracy@1", "accuracy@5"]
    first, second = sorted(tested.values(), key=lambda x: x["p"])
    assert first["p_adjusted"] == pytest.approx(min(1, 2 * first["p"]))
    assert second["p_adjusted"] == max(first["p_adjusted"], second["p"])
    for paths in ([output], [copies[0], output / "b"]):
        assert command("compare", *paths, *options, "--json") == (0, expected, "")
    assert "name another one" in command.refused("compare", output / "a")
    assert "\nsecond try," in command("report", output, "--format", "csv")[1]
    assert command("report", output / "a")[1] == f"Saved in {copies[0] / 'report.html'}\n"
    assert lmdiag.load_run(output / "a").path == copies[0]
    error = command.refused("score", "--task", "role88", "--predictions", output)
    assert f"results has several runs: name one of them, as {copies[0]}" in error


def test_runs_on_other_rows_are_reported_side_by_side_without_differences(command):
    runs = [
        make_run(command.folder / f"run{limit}", command.data, Protocol(limit=limit))
        for limit in (None, 6)
    ]
    why = f"{runs[0]} and {runs[1]} cannot be compared: their signatures differ in data"
    code, out, err = command("report", *runs, "--format", "text")
    assert (code, err) == (0, "")
    assert f"no differences: {why}" in " ".join(out.split())
    assert why in command.refused("report", *runs)


def test_across_options(command):
    prompted = Protocol(prompt="Go on: {context}", unit="word")
    plain, other = (
        make_run(command.folder / f"run{seed}", command.data, protocol, seed=seed)
        for seed, protocol in enumerate((Protocol(), prompted))
    )
    error = command.refused("compare", plain, other, "--across", "prompt")
    assert f"{plain} and {other} cannot be compared: their signatures differ in unit" in error
    assert error.endswith("or compare them with --across unit,prompt\n")
    options = ["--across", "unit,prompt"]
    code, out, err = command("compare", plain, other, *options)
    assert (code, err) == (0, "")
    knobs = "unit (token and word); prompt (none and Go on: {context})"
    assert out.index(f" were asked differently: {knobs}") < out.index("CPRAG-102")
    document = json.loads(command("compare", plain, other, *options, "--json")[1])
    signatures = [read_results(run).signature for run in (plain, other)]
    assert (document["across"], document["signatures"]) == (["unit", "prompt"], signatures)
    assert "--across unit,prompt" in command.refused("report", plain, other)
    page = command.folder / "page.html"
    assert command("report", plain, other, *options, "--out", page)[0] == 0
    text = page.read_text()
    assert "(word, Go on: {context})" in text
    assert all(f"<code>{signature}</code>" in text for signature in signatures)


def test_tables_go_to_standard_output_and_need_no_data_set(command):
    table = ("--tasks", "role88", "--format")
    code, out, err = command("report", *command.runs, *table, "markdown")
    assert (code, err) == (0, "")
    assert "| second |" in out
    data = shutil.copytree(command.data, command.folder / "gone")
    run = make_run(command.folder / "run", data)
    shutil.rmtree(data)
    assert r"\toprule" in command("report", run, *table, "latex")[1]
    # chosen items come with their words; csv is the table of figures
    file = command.folder / "items.md"
    arguments = ["--items", "role88-1", "--tasks", "role88"]
    saved = command("report", *command.runs, *arguments, "--out", file)[:2]
    assert saved == (0, f"Saved in {file}\n")
    table = file.read_text().partition("Predictions for chosen items")[2]
    assert "second" in table
    refused = command.refused("report", *command.runs, *arguments, "--format", "csv")
    assert "`lmdiag items RUNS --out FILE` writes the items" in refused


def test_figures_go_into_a_directory_with_their_captions(command):
    folder = command.folder / "figures"
    options = ["--tasks", "role88", "--width", 17, "--out", folder, command.folder / "all.pdf"]
    code, out, err = command("report", command.runs[0], *options)
    figures = sorted(folder.glob("*.svg"))
    assert (code, err) == (0, "")
    assert f"Saved {len(figures)} charts in {folder}\n" in out
    assert "role88-cloze" in {path.stem for path in figures}
    assert all(path.with_suffix(".txt").read_text().strip() for path in figures)
    assert {path.stem[4:] for path in command.folder.glob("all-*.pdf")} == {x.stem for x in figures}
    error = command.refused("report", command.runs[0], "--out", folder / "x.dox")
    assert "the ending is the format: choose from .txt, .html" in error
    error = command.refused("report", command.runs[0], "--figures", folder)
    assert "--out FILE" in error


def test_pages_and_tables_refuse_items_that_there_are_not(command):
    for arguments in ([], ["--format", "markdown"]):
        error = command.refused("report", command.runs[0], "--items", "robin", *arguments)
        assert "no item 'robin'" in error
    text = command("report", command.runs[0], "--format", "text", "--tasks", "role88")[1]
    assert "ROLE-88" in text
    assert "CPRAG-102" not in text
    assert "no measure" in command.refused("report", command.runs[0], "--measures", "accurcy")
    table = command("compare", *command.runs, "--format", "csv", "--measures", "accuracy")[1]
    assert {line.split(",")[4] for line in table.splitlines()[1:]} == {"accuracy@1", "accuracy@5"}
    latex = command("compare", *command.runs, "--format", "latex")[1]
    assert latex.count(r"\toprule") == 1


def test_a_loss_fails_the_command(command):
    """By points, or by the adjusted p; nothing lower is no loss."""
    good = make_run(command.folder / "good", command.data, id="org/good", skill=9.0)
    bad = make_run(command.folder / "bad", command.data, id="org/bad", skill=0.0)
    compared = [x for x in lmdiag.compare(good, bad) if x.statistic == "proportion"]
    largest = max(-100 * x.difference for x in compared)
    rejected = [x for x in compared if x.difference < 0 and x.p_adjusted < 0.05]
    code, out, err = command("compare", good, bad, "--fail-on-loss")
    assert (code, err.count("lmdiag: loss: ")) == (1, len(rejected))
    assert out == command("compare", good, bad)[1]
    document = json.loads(command("compare", good, bad, "--json", "--fail-on-loss", 10)[1])
    for x in document["comparisons"]:
        in_percent = x["statistic"] in ("proportion", "share")
        assert x["loss"] == (in_percent and x["difference"] < -0.1)
    document = json.loads(command("compare", good, bad, "--json")[1])["comparisons"]
    assert sum(x["loss"] for x in document) == len(rejected)
    assert [x["label"] for x in document if x["loss"]] == [x.label for x in rejected]
    verdicts = {x["verdict"]: x["p_adjusted"] for x in document}
    assert verdicts["lower"] < 0.05 <= verdicts["not distinguishable"]
    assert {x["verdict"] for x in document if x["p_adjusted"] is None} <= {None}
    assert command("compare", good, bad, "--fail-on-loss", largest - 1)[0] == 1
    assert command("compare", good, bad, "--fail-on-loss", largest)[::2] == (0, "")
    assert command("compare", bad, good, "--fail-on-loss", 0)[::2] == (0, "")
    assert "give a number from 0 to 100" in command.refused(
        "compare", good, bad, "--fail-on-loss=-1"
    )


def test_unfinished_runs_are_named(command):
    """By every command on a folder of runs; a folder that has no other is refused."""
    output = command.folder / "jobs"
    for name in ("a", "b"):
        make_run(output / name / "diagnostics-token", command.data, id=f"org/{name}")
    begun = output / "c" / "diagnostics-token"
    begun.mkdir(parents=True)
    (begun / "run.json").write_text("{}")
    for arguments in (
        ("compare", output), ("report", output, "--format", "csv"),
        ("report", output, "--out", command.folder / "jobs.html"),
        ("items", output, "--out", command.folder / "jobs.csv"),
    ):  # fmt: skip
        code, _, err = command(*arguments)
        assert (code, err.count("not finished")) == (0, 1)
        assert f"left out, not finished: {begun}; repeat the command that began it" in err
    for folder in (begun, begun.parent):
        assert "is finished" in command.refused("report", folder)
