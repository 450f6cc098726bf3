"""The Python API gives the numbers of the commands."""

import inspect
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from invented_runs import predictions_of
from pandas import DataFrame, read_csv, read_parquet
from pandas.testing import assert_frame_equal
from reference import CLOSE
from transformers import AutoTokenizer

import lmdiag
from lmdiag.analysis.procedures import Procedure
from lmdiag.cli import main
from lmdiag.models import LoadOptions
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import sections
from lmdiag.results import read_results
from lmdiag.runs.asking import show_progress
from lmdiag.stimuli import load_verbs
from lmdiag.types import UNCASED, BadInput, DesignOptions, TableOptions

pytestmark = pytest.mark.usefixtures("outside_of_commands")

TASKS = ("cprag102", "role88", "neg136", "agreement")
NAMES = ("bert", "gpt2")
LIMIT = 24


@pytest.fixture(scope="module")
def api(tiny_models, demo_dir, tmp_path_factory):
    """`rows` by task, `models` by name, `measures` by both; `runs` by the command, `results`."""
    output = tmp_path_factory.mktemp("results")
    rows = {task: lmdiag.load_stimuli(str(demo_dir), task, limit=LIMIT) for task in TASKS}
    models = {name: lmdiag.load_model(str(path)) for name, path in tiny_models.items()}
    measures = {
        (name, task): lmdiag.measure(model.predict(rows[task]), rows[task])
        for name, model in models.items()
        for task in TASKS
    }
    arguments = ["--data", str(demo_dir), "--tasks", *TASKS, "--output", str(output), "--quiet"]
    arguments += ["--limit", str(LIMIT)]
    for path in tiny_models.values():  # together, they would have a page that no test reads
        assert main(["run", "--model", str(path), *arguments]) == 0
    runs = {name: next((output / name).iterdir()) for name in models}
    results = {name: read_results(path) for name, path in runs.items()}
    return SimpleNamespace(rows=rows, models=models, measures=measures, runs=runs, results=results)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_measures_are_those_of_the_command(api, name, task):
    run, measures = api.results[name].tasks[task]["none"], api.measures[name, task]
    assert list(measures) == list(run.measures)
    assert measures.folds == api.models[name].info.folds == (UNCASED if name == "bert" else ())
    for measure, expected in run.measures.items():
        for part in ("value", "ci_low", "ci_high"):
            known = getattr(expected, part)
            assert measures[measure][part] == (known and pytest.approx(known, abs=CLOSE))
        assert measures[measure]["n"] == expected.n
    read = lmdiag.load_run(api.runs[name]).predictions[task]["none", 0]
    assert dict(lmdiag.measure(read, api.rows[task])) == run.measures
    # a run says its limit, and the number of verbs for all its tasks
    signature = run.signature.replace(f"|limit:sample{LIMIT}", "")
    verbs = "" if task == "agreement" else "".join(signature.partition("|verbs:")[1:])
    assert measures.signature + verbs == signature


@pytest.mark.parametrize(("name", "before"), [("bert", ""), ("gpt2", " ")])
def test_a_run_reports_the_number_of_verbs_of_single_tokens(
    api, tiny_models, demo_dir, name, before
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_models[name])
    pairs = load_verbs(str(demo_dir))
    pieces = [[tokenizer.tokenize(before + form) for form in pair] for pair in pairs]
    unknown = [tokenizer.unk_token]
    whole = [pair for pair in pieces if [*map(len, pair)] == [1, 1] and unknown not in pair]
    results = api.results[name]
    assert 0 < results.n_verbs == len(whole) < len(pairs) == results.protocol.verbs
    (section,) = (x for x in sections(ReportFigures.of([results])) if x.task == "agreement")
    verbs = f"{len(whole)} of the {len(pairs)} verbs, whose two forms are both single tokens"
    assert f"EW and MW: over {verbs}" in section.remarks


def test_results_print_as_tables_and_have_a_short_repr(api, monkeypatch):
    """In a notebook, a console of rich displays what it prints: results are displayed once."""
    displayed = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *shown: displayed.append(shown))
    measures = api.measures["bert", "neg136"]
    html = measures._repr_html_()
    assert html.startswith("<pre>")
    assert not displayed
    for words in ("Affirmative", measures.signature.partition("|shuf")[0]):
        assert words in str(measures)
        assert words in html
    assert "\x1b" not in html + str(measures)
    assert max(map(len, str(measures).splitlines())) <= 100  # no page wraps its notes
    compared = lmdiag.compare(*api.runs.values())
    predictions = api.models["gpt2"].predict(api.rows["role88"])
    run = lmdiag.load_run(api.runs["gpt2"])
    for result in (predictions, api.measures["gpt2", "role88"], compared, run):
        assert repr(result).startswith("<")
        assert "gpt2" in repr(result)
        assert len(repr(result)) < 1000
        assert len(repr(result).splitlines()) == 1


def test_everything_becomes_a_frame(api):
    predictions = api.models["gpt2"].predict(api.rows["role88"])
    frame = predictions.to_frame()
    assert frame["id"].tolist() == predictions.id
    assert frame["log_prob"].tolist() == predictions.log_prob

    measures = api.measures["gpt2", "role88"]
    frame = measures.to_frame().set_index(["measure", "by", "level"])
    assert frame.loc[("sensitivity", "", ""), "value"] == measures["sensitivity"]["value"]
    assert frame.loc[("sensitivity", "", ""), "chance"] == 0.5
    quartile = measures["accuracy@5"]["by"]["cloze_quartile"]["2"]
    assert frame.loc[("accuracy@5", "cloze_quartile", "2"), "n"] == quartile["n"]

    compared = lmdiag.compare(*api.runs.values())
    frame = compared.to_frame()
    assert frame["difference"].tolist() == [x.difference for x in compared]
    assert set(frame["new_model"]) == {"gpt2"}

    frame = lmdiag.load_run(api.runs["gpt2"]).to_frame()
    assert set(frame["precision"]) == {"float32"}
    assert frame["step"].isna().all()
    whole = frame[(frame["task"] == "role88") & (frame["by"] == "")]
    assert whole["measure"].tolist() == list(api.results["gpt2"].tasks["role88"]["none"].measures)


def test_two_models_are_compared_as_by_the_command(api, command):
    _, out, _ = command("compare", *api.runs.values(), "--json")
    printed = [(x["measure"], x["difference"]) for x in json.loads(out)["comparisons"]]
    compared = lmdiag.compare(*api.runs.values())
    assert [(x.measure, x.difference) for x in compared] == printed
    pair = [api.measures[name, "role88"] for name in NAMES]
    of_measures = {x.measure: x.difference for x in lmdiag.compare(*pair)}
    of_runs = {x.measure: x.difference for x in compared if x.task == "role88"}
    assert of_measures == pytest.approx(of_runs, abs=CLOSE)
    assert "sensitivity@0.01" in str(compared)


def test_only_what_was_measured_in_the_same_way_is_compared(api):
    """The same rows, unit, BOS, perturbation and shuffle: as the command, by signatures."""
    rows, plain, folder = api.rows["cprag102"], api.models["gpt2"], api.models["gpt2"].info.id
    first = api.measures["gpt2", "cprag102"]
    word = lmdiag.load_model(folder, unit="word")
    never = lmdiag.load_model(folder, bos="never")
    for part, predictions, options in (
        ("unit (token and word); seed (0 and 3)", word.predict(rows, seed=3), {}),
        ("k (1,5 and 1,2)", plain.predict(rows), {"k": [1, 2]}),
        ("bos (- and never)", never.predict(rows), {}),
        ("perturb (- and trunc)", plain.predict(rows, perturbation="trunc"), {}),
    ):
        with pytest.raises(BadInput) as refused:
            lmdiag.compare(first, first, lmdiag.measure(predictions, rows, **options))
        assert f"differ in {part};" in str(refused.value)
        assert "number 3" in str(refused.value)
    shuffled = [
        lmdiag.measure(plain.predict(rows, perturbation="shuf", run=run), rows) for run in (0, 1)
    ]
    assert "|shuf:1|" in shuffled[0].signature  # a single one
    for models, message in (
        (shuffled, r"differ in run \(- and 1\);"),
        ([first], "takes two or more"),
        ([first, api.runs["gpt2"]], "but not both"),
    ):
        with pytest.raises(BadInput, match=message):
            lmdiag.compare(*models)


TEXTS = ["The dogs near the gate bark.", "", "A robin is a bird.", "The dogs near the gate bark."]


@pytest.mark.parametrize(
    ("name", "options"), [("gpt2", {}), ("gpt2", {"bos": "never"}), ("bert", {"pll": "original"})]
)
def test_surprisals_are_those_of_the_command(api, command, name, options):
    """One row per word, with the same numbers in the file that the command writes."""
    folder = api.models[name].info.id
    frame = lmdiag.load_model(folder, **options).surprisals(TEXTS)
    assert frame["text"].tolist() == [1] * 6 + [3] * 5 + [4] * 6
    assert frame["word"].tolist() == " ".join(TEXTS).split()
    cut = [TEXTS[row.text - 1][row.start :] for row in frame.itertuples()]
    assert all(map(str.startswith, cut, frame["word"]))
    texts, file = command.folder / "texts.txt", command.folder / "words.parquet"
    texts.write_text("\n".join(TEXTS))
    chosen = [f"--{option}={value}" for option, value in options.items()]
    arguments = ["--model", folder, texts, "--output", file, "--quiet"]
    code, out, err = command("surprisal", *arguments, *chosen)
    assert (code, out, err) == (0, "", "")
    assert_frame_equal(frame, read_parquet(file))


def test_texts_and_words_without_surprisals(api):
    for texts in ("", [], [" ", "\n"]):
        frame = api.models["bert"].surprisals(texts)
        columns = ["text", "position", "word", "start", "surprisal", "n_tokens"]
        assert (frame.columns.tolist(), len(frame)) == (columns, 0)
        assert frame["surprisal"].dtype == np.float64
    with pytest.raises(BadInput, match=r"text 2 is None: give texts as strings"):
        api.models["bert"].surprisals(["A robin", None])
    model = lmdiag.load_model(api.models["gpt2"].info.id, bos="never")
    for text, undefined in (("A robin", [True, False]), ("Robin", [True])):
        frame = model.surprisals(text)
        assert frame["surprisal"].isna().tolist() == undefined
        assert frame["surprisal"].dtype == np.float64
        assert frame["n_tokens"].min() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": [0]}, r"k is \[0\]: give integers from 1 up"),
        ({"k": 5}, r"k is 5:"),
        ({"threshold": 1}, "threshold is 1: give a number from 0 up to below 1"),
        ({"threshold": float("nan")}, "threshold is nan"),
    ],
)
def test_options_of_measure_are_checked(api, options, message):
    rows = api.rows["role88"]
    with pytest.raises(BadInput, match=message):
        lmdiag.measure(predictions_of(rows.columns(), [-1.0] * len(rows)), rows, **options)


def test_python_does_what_the_command_line_does(tmp_path):
    """`run` gives what `load_run` gives; runs, predictions and tables the same analysis."""
    data = tmp_path / "mine.csv"
    rows = [f"{i},{a},The cook {i} {a} the,soup" for i in range(1, 7) for a in ("ate", "made")]
    data.write_text("\n".join(["item,verb,context,target", *rows]))
    run = lmdiag.run("demo:causal", data, output=tmp_path)
    assert run.results == lmdiag.load_run(run.path).results
    stimuli = lmdiag.load_stimuli(str(data), "mine")
    predictions = lmdiag.load_model("demo:causal").predict(stimuli)
    sources = [run, run.path, run.items(), predictions, predictions.items()]
    analyses = [lmdiag.analyse(source) for source in sources]
    analyses.append(lmdiag.analyse(run.predictions["mine"]["none", 0], stimuli))
    effects = [analysis.effects["estimate"].tolist() for analysis in analyses]
    assert effects == [pytest.approx(effects[0], abs=CLOSE)] * 6
    with pytest.raises(BadInput, match="predictions with their stimuli"):
        lmdiag.analyse(run.predictions["mine"]["none", 0])


def test_a_blank_that_opens_the_text_without_a_start_token(tiny_models):
    rows = lmdiag.load_stimuli(
        DataFrame([("", "Birds", "can fly.")], columns=["context", "target", "right_context"])
    )
    model = lmdiag.load_model(tiny_models["gpt2"], bos="never")
    why = (
        "has no beginning-of-sequence token before an empty context: no probability of the word in"
    )
    with pytest.warns(UserWarning, match=why):
        assert model.predict(rows).log_prob == [None]
    model = lmdiag.load_model(tiny_models["gpt2"], bos="never", prompt="It is said: {context}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert model.predict(rows).log_prob != [None]
    assert [str(warning.message) for warning in caught if why in str(warning.message)] == []


def test_several_models_are_run_in_order(demo_dir, tiny_models, tmp_path):
    models = [tiny_models["bert"], str(tiny_models["gpt2"])]
    runs = lmdiag.run(models, demo_dir, tasks="role88", limit=2, output=tmp_path)
    assert [run.results.model.id for run in runs] == [*map(str, models)]
    names = [model.rpartition("/")[2] for model in map(str, models)]
    assert repr(runs) == f"<2 runs: {names[0]}, {names[1]}>"
    assert [*runs.to_frame()["model"].unique()] == [*map(str, models)]
    table, page = runs.save(tmp_path / "runs.md", tmp_path / "runs.html")
    assert all(name in file.read_text() for file in (table, page) for name in names)
    assert names[0] in str(runs)
    assert names[0] in runs._repr_html_()
    assert runs.charts()
    with pytest.raises(BadInput, match="name is for one model"):
        lmdiag.run(models, demo_dir, name="mine", output=tmp_path)


def test_layers_are_runs_and_the_design_is_stored(tmp_path):
    data = tmp_path / "mine.csv"
    rows = [f"{i},{a},The cook {i} {a} the,soup" for i in range(1, 3) for a in ("ate", "made")]
    data.write_text("\n".join(["item,verb,context,target", *rows]))
    how = {"output": tmp_path, "conditions": "verb", "item": ["item"]}
    runs = lmdiag.run("demo:causal", data, layers=[0, "2"], **how)
    assert [run.results.protocol.layer for run in runs] == [0, None]  # 2 is the last
    ordinary = lmdiag.run("demo:causal", data, **how)
    assert runs[1].path == ordinary.path
    design = DesignOptions(conditions=("verb",), item=("item",))
    assert ordinary.results.design == design
    again = lmdiag.run("demo:causal", data, output=tmp_path)  # without one the stored one is kept
    assert again.path == ordinary.path
    assert again.results.design == lmdiag.load_run(again.path).results.design == design


def test_threads_share_a_model(api):
    """Each thread asks other questions, and the projection is changed while one is asked."""
    model, rows = api.models["gpt2"], api.rows["role88"]
    texts = [f"The cook made soup {number} times." for number in range(8)]
    expected = [model.surprisals(text)["surprisal"].tolist() for text in texts]
    nats = model.predict(rows).log_prob
    with ThreadPoolExecutor(4) as threads:
        of_rows = [threads.submit(model.predict, rows) for _ in range(4)]
        of_texts = [*threads.map(model.surprisals, texts * 4)]
    assert all(x.result().log_prob == pytest.approx(nats, abs=CLOSE) for x in of_rows)
    for frame, bits in zip(of_texts, expected * 4, strict=True):
        assert frame["surprisal"].tolist() == pytest.approx(bits, abs=CLOSE, nan_ok=True)


FRAME = DataFrame({"context": ["The"], "target": ["cat"]})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda api: lmdiag.load_model(None), "model_id must be a Hub id, .* not NoneType"),
        (lambda api: lmdiag.load_model(7), "model_id must be .* not int"),
        (lambda api: lmdiag.run(None), "model must be a Hub id, .* not NoneType"),
        (lambda api: api.models["bert"].predict(["a"]), "stimuli must be stimuli, .* not list"),
        (lambda api: api.models["bert"].predict(FRAME), "lmdiag.load_stimuli .* not DataFrame"),
        (lambda api: api.models["bert"].predict(None), "stimuli must be .* not NoneType"),
        (lambda api: lmdiag.measure(None, api.rows["role88"]), "predictions must be .* NoneType"),
        (lambda api: lmdiag.analyse(None), "source must be predictions, .* not NoneType"),
        (lambda api: lmdiag.analyse([{"a": 1}]), "source must be predictions, .* not dict"),
        (lambda api: lmdiag.analyse([]), "source is empty"),
        (lambda api: lmdiag.compare(None, 1), "must be results of `measure`, .* not NoneType"),
        (lambda api: lmdiag.fit(None), "human must be a file, .* not NoneType"),
        (lambda api: api.models["gpt2"].surprisals({"text": "A"}), "texts must be .* not dict"),
        (lambda api: api.models["gpt2"].surprisals(FRAME), "texts must be .* not DataFrame"),
        (lambda api: lmdiag.load_stimuli({"context": "The", "target": "cat"}),
         "the column context is one text: give a list of values per column"),
        (lambda api: lmdiag.run(FRAME, "gpt2"), "model must be a Hub id, .* not DataFrame"),
        (lambda api: lmdiag.run("demo:causal", bach_size=8), "did you mean 'batch_size'"),
        (lambda api: lmdiag.load_stimuli("demo", "role88", limt=1), "did you mean 'limit'"),
        (lambda api: lmdiag.run("demo:causal", limit=0), "limit must be a whole number from 1 up"),
        (lambda api: lmdiag.load_model("demo:masked", chat=True), "chat=True cannot be used with"),
        (lambda api: lmdiag.load_model("demo:causal", unit="word", dtype="bfloat16"),
         "use dtype='float32' without quantization, or unit='token'"),
    ],
)  # fmt: skip
def test_arguments_that_are_something_else(call, told, api):
    with pytest.raises(BadInput, match=told) as caught:
        call(api)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("size", [0, -1, 1.5, "x", True])
def test_batch_sizes_that_are_not_allowed(size, api):
    model, told = api.models["gpt2"], f"batch_size must be a whole number from 1 up, not {size!r}"
    with pytest.raises(BadInput, match=told):
        model.predict(api.rows["role88"], batch_size=size)
    with pytest.raises(BadInput, match=told):
        model.surprisals("A bird.", batch_size=size)
    with pytest.raises(BadInput, match=told):
        lmdiag.run("demo:causal", batch_size=size)


def test_a_path_is_a_model(tiny_models):
    assert lmdiag.load_model(tiny_models["bert"]).info.id == str(tiny_models["bert"])


def test_a_notebook_without_ipywidgets_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    with show_progress(2, label="gpt2") as show:
        show(2)
    assert "2/2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "records"),
    [
        (lmdiag.load_model, [LoadOptions]), (lmdiag.run, [LoadOptions, TableOptions]),
        (lmdiag.fit, [Procedure, TableOptions]), (lmdiag.cloze, [TableOptions]),
        (lmdiag.analyse, [TableOptions]), (lmdiag.load_stimuli, [TableOptions]),
    ],
)  # fmt: skip
def test_keywords_are_named_in_signatures(function, records):
    """With the types and defaults of the records that declare them, and nothing beside them."""
    shown = inspect.signature(function).parameters
    assert not any(x.kind is x.VAR_KEYWORD for x in shown.values())
    for record in records:
        for field in fields(record):
            assert shown[field.name].kind is inspect.Parameter.KEYWORD_ONLY
    assert shown["columns" if TableOptions in records else "dtype"].default in ((), "auto")


def test_rows_in_memory_are_run_as_those_of_their_file(root, tmp_path):
    """And are kept with the run, which can be opened again."""
    file = root / "docs" / "examples" / "attraction.csv"
    named = lmdiag.run("demo:causal", file, output=tmp_path / "named")
    frame = read_csv(file)
    in_memory = lmdiag.run("demo:causal", frame, tasks="attraction", output=tmp_path / "memory")
    assert in_memory.results.tasks == named.results.tasks
    assert in_memory.results.signature == named.results.signature
    opened = lmdiag.load_run(in_memory.path)
    assert opened.results == in_memory.results
    assert_frame_equal(opened.items("word"), named.items("word"))
    for name, told in ((("a", "b"), "tasks a b: rows in memory have one name"), ("a/b", "leave")):
        with pytest.raises(BadInput, match=told):
            lmdiag.run("demo:causal", frame, tasks=name, output=tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


STEMS = [
    f"{name} is a" for name in ("A robin", "A trout", "A daisy", "An oak", "A hammer", "A pea")
]
MEASURED = DataFrame(
    {"text": n, "position": p, "word": word, "rt": 300 + 7 * len(word) + n}
    for n, stem in enumerate(STEMS)
    for p, word in enumerate(stem.split(), start=1)
)
CALLS = {
    "run": lambda **how: lmdiag.run(
        "demo:causal", [{"context": stem, "target": "bird"} for stem in STEMS], **how
    ),
    "cloze": lambda **how: lmdiag.cloze(
        DataFrame({"context": STEMS, "response": "bird"}), models="demo:causal", **how
    ),
    "fit": lambda **how: lmdiag.fit(
        MEASURED, models="demo:causal", response="rt", controls=["length"], lags=0, **how
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_told_of_progress_and_may_stop_what_then_goes_on(name, tmp_path):
    def told(folder, stop=None):
        """What it is told, and the tables, of a call that may be stopped."""
        calls = []

        def tell(done, total):
            calls.append((done, total))
            if done == stop:
                raise InterruptedError

        with pytest.raises(InterruptedError) if stop else nullcontext():
            made = CALLS[name](output=folder, batch_size=2, on_progress=tell)
            return calls, made.to_frame().drop(columns="commit", errors="ignore")
        return calls, None

    whole, expected = told(tmp_path / "whole")
    assert (whole[0], whole[-1]) == ((0, 6), (6, 6))
    stopped, _ = told(tmp_path / "parts", stop=4)
    assert stopped[-1] == (4, 6)
    rest, frame = told(tmp_path / "parts")
    assert 0 < rest[0][0] <= 4  # a batch that was not finished is asked again
    assert_frame_equal(frame, expected)
