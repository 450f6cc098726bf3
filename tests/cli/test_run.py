"""`lmdiag run` as typed: results, and which models a command runs, by lists and revisions."""

import json
import re
import shlex
import shutil
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from invented_runs import make_run
from launched import finished

from lmdiag.asking.protocol import Protocol
from lmdiag.asking.training_steps import trained_model, training_step
from lmdiag.cli.command_options import matching_revisions, named_models
from lmdiag.cli.run_command import _comparison_pages, _finish_run, _write_comparison
from lmdiag.results import load_run
from lmdiag.results.figures import figures
from lmdiag.types import BadInput


@pytest.fixture
def run(command):
    """Runs models on one diagnostic; `refused=True` for a run that must fail."""

    def run(*models, refused=False):
        options = ["--data", command.data, "--output", command.folder / "out", "--quiet"]
        call = command.refused if refused else command
        return call("run", *options, "--tasks", "neg136", "--model", *models)

    return run


def results(folder):
    (path,) = folder.rglob("results.json")
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_leaves_the_files_of_the_specification(command):
    """And is not asked again."""
    output = command.folder / "out"
    arguments = ["--model", command.models["bert"], "--data", command.data, "--output", output]
    arguments += ["--limit", "12"]
    code, out, err = command("run", *arguments, "--quiet")
    assert (code, err) == (0, "")
    assert "Main figures, percent" in out
    assert "lmdiag:0.2|data:" in out
    folder = output / "bert" / "diagnostics-token-limit12"
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"results.json", "predictions.parquet", "report.html"}
    document = results(folder)
    del document["sha256"]
    assert document["model"]["kind"] == "masked"
    assert document["protocol"]["match"] == "without case and accents"
    assert document["tasks"]["neg136"]["none"]["measures"]["accuracy@1"]["n"] > 0
    written = (folder / "results.json").read_bytes()
    assert command("run", *arguments, "--quiet")[:2] == (0, out)
    code, out, _ = command("run", *arguments, "--quiet", "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (folder / "results.json").read_bytes() == written
    command("run", *arguments, "--quiet", "--overwrite")
    assert (folder / "results.json").read_bytes() != written  # another time, other seconds


@pytest.mark.parametrize("unit", ["token", pytest.param("word", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_predictions_of_a_diagnostic_do_not_depend_on_what_else_is_asked(command, name, unit):
    def asked(folder, *options):
        output = command.folder / folder
        arguments = ["--model", command.models[name], "--data", command.data, "--output", output]
        assert command("run", *arguments, "--unit", unit, "--quiet", *options)[0] == 0
        (path,) = output.rglob("predictions.parquet")
        return pq.read_table(path)

    alone = asked("alone", "--tasks", "neg136")
    among = asked("among", "--tasks", "role88", "neg136", "--perturb", "obj")
    is_same_row = pc.is_in(among["id"], alone["id"].combine_chunks())
    is_plain = pc.equal(among["perturbation"], "none")
    assert 0 < alone.num_rows < among.num_rows
    assert among.filter(pc.and_(is_same_row, is_plain)).equals(alone)


@pytest.mark.slow
def test_a_failure_of_one_model_does_not_stop_the_rest(run, command):
    code, out, err = run(command.folder / "absent", *command.models.values())
    assert code == 2
    assert "1 of 3 runs failed" in err
    assert "absent" in err
    files = (command.folder / "out").rglob("results.json")
    assert {path.parts[-3] for path in files} == {"bert", "gpt2"}
    code, _, err = command("report", command.folder / "out", "--format", "csv")
    assert code == 0
    assert err.startswith(f"lmdiag: left out, failed: {command.folder / 'absent'}: ")
    code, again, _ = run(*command.models.values())
    assert code == 0
    assert again in out


def test_models_of_one_name_need_names_of_their_own(run, command):
    """They are refused before any is run."""
    output = command.folder / "out"
    models = [
        shutil.copytree(model, command.folder / name / "final")
        for name, model in command.models.items()
    ]
    error = run(*models, refused=True)
    assert f"{models[0]} and {models[1]} would share the folder" in error
    assert "has 10,000 characters; give at most 100" in run(
        *models, "--name", "a", "x" * 10_000, refused=True
    )
    assert not output.exists()
    names = ["masked one", "causal"]
    code, out, _ = run(*models, "--name", *names)
    assert code == 0
    assert all(name in out for name in names)
    for folder, name, model in zip(("masked--one", "causal"), names, models, strict=True):
        facts = results(output / folder)["model"]
        assert (facts["name"], facts["id"]) == (name, str(model))


def test_three_models_fill_one_screen(data_dir, tmp_path, monkeypatch, capsys):
    """On the three diagnostics, at most 60 lines, with names of 35 letters, too."""
    names = ("gemma-3-270m-instruct-base-version1", 35 * "b", f"org/{35 * 'c'}")
    folders = [make_run(tmp_path / x[:3], data_dir, id=x, seed=len(x)) for x in names]
    runs = [load_run(folder) for folder in folders]
    for columns in (80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        for made in runs:
            _finish_run(made, is_shown=False, as_json=False)
        _write_comparison(runs, tmp_path, (), as_json=False)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 60
        interval = r"\d–\d" if columns == 80 else r"\["  # whole percent where there is no room
        assert len(re.findall(interval, "\n".join(lines))) == 3 * 16
        assert max(map(len, lines[4:-9])) <= columns
        assert any("BERT large" in line for line in lines) == (columns == 200)


def test_checkpoints_are_shown_in_the_order_of_training(demo_dir, tmp_path, capsys):
    made = {
        step: make_run(tmp_path / f"s{step}", demo_dir, id="org/m", revision=f"step{step}",
                       training_step=step, commit=f"{step:040}", seed=step)
        for step in (1000, 2000, 500)  # the order of names
    }  # fmt: skip
    _write_comparison([load_run(folder) for folder in made.values()], tmp_path, (), as_json=False)
    out = capsys.readouterr().out
    table = out[out.index("m: 3 checkpoints") :]
    assert table.index("step 500") < table.index("step 1000") < table.index("step 2000")
    assert f"Differences: lmdiag compare {made[500]} {made[2000]}\n" in out
    every = " ".join(str(made[step]) for step in (500, 1000, 2000))
    assert f"All tables: lmdiag report {every} --format text\n" in out


def test_a_finished_run_answers_rows_that_are_read_in_another_way(command, monkeypatch):
    """With the option that a warning names, no model is asked, and all is as in a run made anew.

    That run finds its table from any folder, too. Other sentences are refused.
    """

    def end_process(*_):
        raise KeyboardInterrupt

    data = command.folder / "own.csv"
    rows = ["1,sg,The key to the door is old,is", "1,pl,The key to the doors are old,are"]
    rows += ["2,sg,The dog was here,was", "2,pl,The dogs were here,were"]
    data.write_text("item,cond,sentence,Critical verb\n" + "\n".join(rows))
    asked = ["--model", command.models["gpt2"], "--quiet", "--output"]
    kept_in = [data, *asked, command.folder / "kept"]
    code, _, err = command("run", *kept_in)
    assert code == 0
    option = re.search(r"(--critical '[\w ]+') gives its surprisal", err)[1]
    critical = shlex.split(option)
    elsewhere = command.folder.parent / f"{command.folder.name}-runs"
    monkeypatch.chdir(command.folder)
    assert command("run", "own.csv", *asked, elsewhere, *critical)[0] == 0
    monkeypatch.chdir("/")
    assert command("analyse", elsewhere)[0] == 0
    with monkeypatch.context() as patches:
        patches.setattr("lmdiag.runs.run_model._ask", None)
        with patches.context() as killed:
            killed.setattr("lmdiag.results.RunDirectory.finish", end_process)
            assert command("run", *kept_in, *critical)[0] == 130
        # of a process that ends before the results are written, the earlier run stays
        assert len(load_run(command.folder / "kept/gpt2").items()) == len(rows)
        code, _, err = command("run", *kept_in, *critical)
    assert code == 0
    assert "has the answers to the same questions: figures are computed from them" in err
    kept, anew = (load_run(folder / "gpt2") for folder in (command.folder / "kept", elsewhere))
    assert kept.items().equals(anew.items())
    assert kept.results.signature == anew.results.signature
    assert kept.results.tasks == anew.results.tasks
    with monkeypatch.context() as patches:  # other texts are refused before a model is loaded
        patches.setattr("lmdiag.runs.run_model.load_everywhere", None)
        of_another_column = command("run", *kept_in, "--columns", "sentence=Critical verb")
        data.write_text(data.read_text().replace("old", "new"))
        for code, _, err in (of_another_column, command("run", *kept_in)):
            assert code == 2
            error = err.splitlines()[-1]  # after the warning
            assert "the data, or how they are read, changed since the run in " in error
            assert "add --overwrite to make it anew, or choose another --output or --n" in error
    assert command("run", *kept_in, "--overwrite")[0] == 0


def test_changed_rows_of_a_chat_are_refused_before_a_model_is_loaded(command, monkeypatch):
    """Of a run without the chat template, changed rows are no reason to refuse a chat."""
    data = command.folder / "own.csv"
    data.write_text("item,context,target\n1,A robin is a,bird\n2,A trout is a,fish\n")
    asked = ["run", data, "--model", command.models["gpt2"], "--quiet"]
    asked += ["--output", command.folder / "out"]
    assert command(*asked)[0] == 0
    data.write_text(data.read_text().replace("robin", "sparrow"))
    assert command(*asked, "--chat")[0] == 0
    data.write_text(data.read_text().replace("sparrow", "crow"))
    monkeypatch.setattr("lmdiag.runs.run_model.load_everywhere", None)
    for options in [], ["--chat"]:
        code, _, err = command(*asked, *options)
        assert code == 2
        assert "the data, or how they are read, changed since the run in " in err


def test_a_list_of_models_is_read_or_the_line_is_named(tmp_path):
    file = tmp_path / "models.txt"
    lines = ("\ufeff# checkpoints", "org/one", "  org/two\tstep1  # a", "\r", "org/two main", "a#4")
    file.write_text("\n".join(lines), "utf-8")
    expected = [("org/one", None), ("org/two", "step1"), ("org/two", "main"), ("a#4", None)]
    assert named_models(["a/b", f"@{file}"]) == [("a/b", None), *expected]
    with pytest.raises(BadInput, match="revisions of its own: leave --revision out"):
        named_models([f"@{file}"], ["main"])
    for text, message in {
        "org/one\norg/two step1 step2\n": "models.txt:2: expected a model and optionally",
        "org/one a\norg/one\n\norg/one a\n": "models.txt:4: repeats line 1",
        "# org/one\n\n": "models.txt names no model",
    }.items():
        file.write_text(text)
        with pytest.raises(BadInput, match=message):
            named_models([f"@{file}"])


def test_training_steps_in_the_names_of_checkpoints():
    forms = {
        "step-1000": 1000, "checkpoint-500": 500, "1000-steps": 1000, "100k-steps": 100_000,
        "stage1-step140000-tokens294B": 140_000, "iter_0010000": 10_000, "step1M": 1_000_000,
        "step0": 0, "main": None, "v1.0": None, "step3b2f": None, "0123456789abcdef": None,
        "footstep-12": None,
    }  # fmt: skip
    assert {name: training_step(name) for name in forms} == forms
    for checkpoint, revision, model in [
        ("runs/tiny/step1", None, "runs/tiny"),
        ("./runs/tiny/global_step20/", None, "runs/tiny"),
        ("runs/tiny-step20k-hf", None, "runs/tiny-hf"),
        ("EleutherAI/pythia-70m", "step1000", "EleutherAI/pythia-70m"),
        ("org/footstep-12", None, "org/footstep-12"),
    ]:
        assert trained_model(checkpoint, revision) == model


STEPS = ("step10", "step9", "step1k", "step_20", "step1", "step-final")


@pytest.fixture
def published(hub, api, command):
    api.create_repo("org/tiny")
    api.upload_folder(repo_id="org/tiny", folder_path=command.models["gpt2"])
    refs = hub.repositories["models", "org/tiny"].refs
    refs |= dict.fromkeys([*STEPS, "refs/tags/step200", "refs/pr/1"], refs["main"])
    return "org/tiny"


def test_revisions_are_in_the_order_of_their_steps(published, command):
    steps = ["step1", "step9", "step10", "step_20", "step200", "step1k"]
    assert matching_revisions(published, "*") == ["main", "step-final", *steps]
    assert matching_revisions(published, "step1*") == ["step1", "step10", "step1k"]
    error = command.refused("run", "--model", "org/none", "--revision", "*", "--data", "demo")
    assert "cannot list the revisions of model org/none: not found" in error


def test_pages_of_several_runs_stand_with_the_model_they_are_of(tmp_path, demo_dir):
    def runs_of(name, *layers):
        folder = tmp_path / name
        made = []
        for layer in layers:
            protocol = Protocol(tasks=("role88",), layer=layer)
            path = folder / f"role88-layer{layer}"
            made.append(load_run(make_run(path, demo_dir, protocol, id=f"org/{name}", n_layers=9)))
        return made

    one, other = runs_of("one", 0, 1, None), runs_of("other", 0, None)
    assert [*_comparison_pages(one, tmp_path, ("layer",))] == [
        tmp_path / "one" / "layers-role88-layerNone.html"
    ]
    pages = _comparison_pages([*one, *other], tmp_path, ("layer",))
    assert [(str(page.relative_to(tmp_path)), len(runs)) for page, runs in pages.items()] == [
        ("one/layers-role88-layerNone.html", 3), ("other/layers-role88-layerNone.html", 2),
        ("comparison-role88-layer0.html", 5),
    ]  # fmt: skip
    table = figures([run.results for run in one])
    assert table["layer"].unique().tolist() == [0, 1, 9]
    assert figures([one[-1].results])["layer"].isna().all()


def test_a_layer_that_reads_the_last_word_alone_has_no_preference(command):
    """Layer 0 of contexts that end in the same word: one layer is shown as any run is."""
    rows = ["item,context,target,good,contrast"]
    for item, (one, other) in enumerate([("dog", "cat"), ("boy", "girl"), ("king", "queen")]):
        rows.append(f"{item},The {one} saw the {other} and the,bird,1,{item}")
        rows.append(f"{item},The {other} saw the {one} and the,bird,0,{item}")
    file = command.folder / "ends.csv"
    file.write_text("\n".join(rows))
    output = command.folder / "out"
    run = ("run", file, "--model", "demo:causal", "--layers", "0", "--output", output, "--quiet")
    _, out, _ = command(*run)
    assert "has no preference in any of the 3 contrasts on ends" in out
    assert "3 of 3 tied" in out
    assert "chance (exact" not in out
    assert [*output.glob("*/ends-token-layer0/report.html")]


@pytest.mark.slow
def test_all_checkpoints_are_run_and_shown_as_steps(command, published):
    output = command.folder / "out"
    options = ["--data", command.data, "--tasks", "neg136", "--output", output]
    code, out, err = command("run", "--model", published, "--revision", "step?", *options)
    assert code == 0, err
    written = {path.name for path in output.iterdir()}
    page = "comparison-org--tiny-neg136-token.html"
    assert written == {"org--tiny@step1", "org--tiny@step9", page}
    assert f"open {output / page} in a browser" in out
    overview = out[out.index("2 checkpoints") :]
    assert overview.index("step 1") < overview.index("step 9")
    files = output.rglob("predictions.parquet")
    assert len({path.read_bytes() for path in files}) == 1  # one commit, several names


@pytest.mark.slow
@pytest.mark.long
def test_a_run_loads_no_package_that_is_not_listed(demo_dir, tmp_path):
    """What it loads beside those that transformers loads for the model; a new one is added here."""
    allowed = {"cyclopts", "dateutil", "jinja2", "lmdiag", "markupsafe", "pandas", "psutil"}
    allowed |= {"pyarrow", "pytz", "rich", "tzdata", "vl_convert", "attr", "attrs"}
    allowed |= {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
    run = ["run", "--model", "demo:masked", "--data", str(demo_dir), "--output", str(tmp_path)]
    code = f"""
import sys
import transformers
from lmdiag.models.demo import demo_folder
folder = demo_folder("masked")
transformers.AutoTokenizer.from_pretrained(folder)
transformers.AutoModelForMaskedLM.from_pretrained(folder)
def loaded():
    return {{name.partition(".")[0] for name in sys.modules if name[0] != "_"}}
known = loaded() | {{*sys.stdlib_module_names}}
from lmdiag import cli
assert cli.main({[*run, "--quiet"]}) == 0
assert not loaded() - known - {allowed}, loaded() - known - {allowed}
assert "pyarrow.dataset" not in sys.modules
"""
    finished(sys.executable, "-c", code)
    assert [*tmp_path.rglob("report.html")]
