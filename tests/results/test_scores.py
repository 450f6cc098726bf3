"""One table of scores: computed once, stored with the run, and the same in every view."""

from collections import Counter

import numpy as np
import pytest
from invented_runs import PERTURBED, json_lines, make_run
from sentence_files import suite_of
from shown import page_of, plots_of

import lmdiag
from lmdiag import diagnostics, stimuli
from lmdiag.report.run_report import Report
from lmdiag.results import load_run, load_runs
from lmdiag.results.model_labels import model_labels
from lmdiag.stats import point
from lmdiag.stimuli import perturbations
from lmdiag.types import BadInput


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, demo_dir):
    return make_run(tmp_path_factory.mktemp("scores") / "run", demo_dir, PERTURBED, unscorable=2)


def test_figures_follow_from_the_scores(run_folder):
    """Value and n of each figure, and means over shuffles."""
    run = load_run(run_folder)
    found = {
        (task, setting, measure): [
            (point(scores[measure].values, scores[measure].statistic), len(scores[measure].items))
            for scores in run.shuffles_of(task, setting)
        ]
        for task, settings in run.results.tasks.items()
        for setting in settings
        for measure in run.scores_of(task, setting)
    }
    figures = {
        (key.task, key.setting, key.measure): figure
        for key, figure in run.results.figures()
        if not key.by
    }
    assert figures.keys() == found.keys()
    for key, figure in figures.items():
        values = [value for value, n in found[key] if n]
        assert figure.n == found[key][0][1]
        assert [figure.value] == ([pytest.approx(np.mean(values), abs=1e-15)] if values else [None])


def test_scores_and_perturbations_are_computed_once(run_folder, monkeypatch):
    calls = Counter()

    def counted(name, function):
        def wrapper(*args, **options):
            calls[name] += 1
            return function(*args, **options)

        return wrapper

    score = counted("score", diagnostics.Diagnostic.score)
    monkeypatch.setattr(diagnostics.Diagnostic, "score", score)
    made = counted("perturbed", stimuli.Stimuli.with_contexts)
    monkeypatch.setattr(stimuli.Stimuli, "with_contexts", made)
    run = load_run(run_folder)
    page_of([run])
    run.to_frame()
    lmdiag.analyse(run, task="cprag102")
    settings = {
        (task, key)
        for task in run.results.tasks
        for key in perturbations.settings(task, PERTURBED.perturb, PERTURBED.shuffles)
    }
    assert calls["score"] == len(settings)
    assert calls["perturbed"] <= sum(name != "none" for _, (name, _) in settings)


def test_models_of_different_identity_are_not_averaged(tmp_path):
    """Two precisions, two models with one name, two checkpoints with one name."""
    data = tmp_path / "own.csv"
    rows = [f"{i},{c},The {c} of {i} is a,bird" for i in range(1, 10) for c in ("hen", "robin")]
    data.write_text("\n".join(["item,animal,context,target", *rows]))
    models = [
        {"dtype": "float32"}, {"dtype": "bfloat16"}, {"id": "other/model"},
        {"id": "org/a", "name": "x"}, {"id": "org/b", "name": "x"},
        {"name": "x", "revision": "step1"},
        {"name": "x", "revision": "step2"}, {"quantization": "8bit"},
    ]  # fmt: skip
    runs = [
        load_run(make_run(tmp_path / str(seed), data, seed=seed, **facts))
        for seed, facts in enumerate(models)
    ]
    labels = model_labels([run.results.model for run in runs])
    assert len({*labels}) == len(runs)
    assert labels[:2] == ["org/model (float32)", "org/model (bfloat16)"]
    alone = [lmdiag.analyse(run).effects["estimate"].tolist() for run in runs]
    analysed = lmdiag.analyse(runs)
    assert analysed.effects["model"].tolist() == labels
    assert analysed.effects["estimate"].tolist() == [x for (x,) in alone]
    tables = []
    for number, run in enumerate(runs[:2]):  # tables of their own do not merge either
        tables.append(tmp_path / f"{number}.csv")
        run_items = lmdiag.load_run(run.path).items()
        run_items.to_csv(tables[-1], index=False)
    effects = lmdiag.analyse([*map(str, tables)]).effects
    assert effects["estimate"].tolist() == pytest.approx([x for (x,) in alone[:2]])
    figures = Report(runs).figures.table
    assert not figures.duplicated(["model", "measure", "by", "level"]).any()
    assert {*figures["model"]} == {*labels}
    compared = lmdiag.compare(*runs[:2])
    assert "bfloat16" in str(compared).partition("difference")[0]


def test_rows_that_several_runs_have_are_read_once(demo_dir, tmp_path):
    names = ["demo:causal", "demo:masked"]
    made = lmdiag.run(names, demo_dir, tasks="role88", limit=4, output=tmp_path)
    first, second = load_runs([run.path for run in made])
    assert first.stimuli["role88"] is second.stimuli["role88"]
    alone = load_run(second.path)
    assert alone.stimuli["role88"].fingerprint == second.stimuli["role88"].fingerprint


def test_correct_is_the_column_of_sensitivity(tmp_path):
    """For an uncased model, a contrast of `Bird` and `bird` is not a comparison."""
    data = tmp_path / "own.csv"
    lines = ["item,size,context,target,good,contrast"]
    for item in range(1, 6):
        for size in ("small", "large"):
            bad = "Bird" if (item, size) == (3, "large") else "tool"
            context = f"The {size} robin {item} is a"
            lines += [f"{item},{size},{context},bird,1,{item}{size}"]
            lines += [f"{item},{size},{context},{bad},0,{item}{size}"]
    data.write_text("\n".join(lines))
    run = lmdiag.load_run(make_run(tmp_path / "run", data, cased=False))
    items = run.items()
    good = items[items["good"]].set_index("contrast")["sensitivity"]
    assert good.isna().tolist() == [name == "3large" for name in good.index]
    assert items.loc[~items["good"], "sensitivity"].isna().all()
    assert run.results.measure("own", "none", "sensitivity").value == good.mean()
    analysed = lmdiag.analyse(run, response="correct", conditions=["size"])
    assert ([*analysed.left_out.values()], {*analysed.cells["n"]}) == ([1], {4})
    # a table without the measures has the same
    measures = ["sensitivity", "sensitivity@0.01"]
    table = lmdiag.analyse(items.drop(columns=measures), response="correct", conditions=["size"])
    assert table.effects.equals(analysed.effects)


def test_an_empty_region_of_a_suite_is_the_same_in_every_view(tmp_path):
    """It has 0 bits, as in formulas: a mean over three items, one of them empty."""
    items = [{"a": ("The dogs", verb), "b": ("The dogs", "barks")} for verb in ("bark", "", "bark")]
    suite = suite_of("suite", "xy", items, ["(2;%a%) < (2;%b%)"])
    data = json_lines(tmp_path / "suite.json", suite)
    run = lmdiag.load_run(make_run(tmp_path / "run", data, kind="causal", bos=True))
    table = run.items(per="region")
    bits = table[(table["number"] == 2) & (table["condition"] == "a")]["surprisal"]
    assert bits.tolist()[1] == 0
    cells = lmdiag.analyse(run, region=2, conditions=["condition"]).cells
    assert cells[["n", "mean"]].to_numpy().tolist()[0] == [3, pytest.approx(bits.mean())]
    (chart,) = [plot for plot in plots_of([run]) if plot.kind == "regions"]
    (found,) = [
        x for x in chart.spec["data"]["values"] if x["level"] == "2 y" and x["series"] == "a"
    ]
    assert (found["n"], found["value"]) == (3, pytest.approx(bits.mean()))


@pytest.mark.parametrize("has_ids", [True, False])
def test_runs_on_one_file_under_two_names_are_compared(tmp_path, has_ids):
    """Ids that are made up begin with the name of the file."""
    lines = [
        f"{word}{i},The {i} is a,{word},{good},{i}"
        for i in range(9)
        for word, good in (("a", 1), ("b", 0))
    ]
    lines = ["id,context,target,good,contrast", *lines]
    text = "\n".join(line if has_ids else line.partition(",")[2] for line in lines)
    runs = []
    for seed, name in enumerate(("one", "two")):
        (tmp_path / f"{name}.csv").write_text(text)
        run = make_run(tmp_path / name, tmp_path / f"{name}.csv", seed=seed, id=f"org/{name}")
        runs.append(load_run(run))
    assert (runs[0].results.signature == runs[1].results.signature) == has_ids
    compared = {x.measure: x for x in lmdiag.compare(*runs, measures=["all"])}
    for measure in ("sensitivity", "surprisal"):
        values = [run.results.measure(run.path.name, "none", measure).value for run in runs]
        assert [compared[measure].base, compared[measure].new] == values
    assert "two" in page_of(runs)
    (tmp_path / "two.csv").write_text(text.replace("The 8", "The last"))
    with pytest.raises(BadInput, match="signatures differ in data"):
        lmdiag.compare(runs[0], make_run(tmp_path / "other", tmp_path / "two.csv"))
