"""Forced choice: questions, answers and figures, and models that are asked so."""

import json
import math
import re
import shutil
from pathlib import Path
from zlib import crc32

import pytest
import reference
from families import CHAT, FAMILIES, family_params
from invented_runs import FakeModel, model_info

import lmdiag
from lmdiag import models
from lmdiag.asking.elicitation import parse_wording
from lmdiag.asking.questions import Setting
from lmdiag.models import LoadOptions
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import headline_rows
from lmdiag.results import load_run
from lmdiag.runs.asking import predict
from lmdiag.stimuli import Stimuli
from lmdiag.types import Answer, WordScore

COLUMNS = {
    "id": ["a1", "a2", "b2", "b1", "c1", "c2", "c3"],
    "item": [""] * 7,
    "condition": [""] * 7,
    "context": ["It is a", "It is a", "A dog", "The dogs", "I see", "I see", "I see"],
    "right_context": ["", "", "now.", "now.", "", "", ""],
    "target": ["bird", "tree", "runs", "runs", "it", "her", "him"],
    "good": [True, False, True, False, True, False, False],
    "contrast": ["a", "a", "b", "b", "c", "c", "c"],
    "expected": [[]] * 7,
}
ROWS = Stimuli("own", COLUMNS, "own.csv", None)
WORDING = "{context} ...\n{options}\nAnswer:\n---\nWhich is better?\n{options}\nAnswer:"


class Fake(FakeModel):
    """Answers each label with a log-probability; keeps the texts of the questions."""

    info = model_info(kind="causal")

    def __init__(self, log_prob):
        self.log_prob = log_prob
        self.asked = []

    def reply(self, question, top):
        text = question.query.context
        self.asked.append(text)
        scores = {word: WordScore(self.log_prob(text, word), 1, 1) for word in question.words}
        return Answer(scores, (), ())


def chosen(model, rows=ROWS, **options):
    """The predictions of a model that is asked to choose."""
    (found,), _ = predict(model, [Setting(rows, wording=parse_wording(WORDING))], top=1, **options)
    return found


def test_questions_list_the_rows_of_a_contrast_in_every_rotation():
    model = Fake(lambda text, label: -1.0)
    chosen(model)
    assert model.asked[:4] == [
        "It is a ...\n1. bird\n2. tree\nAnswer:",
        "It is a ...\n1. tree\n2. bird\nAnswer:",
        # contexts that differ, by the order of the ids: whole sentences
        "Which is better?\n1. The dogs runs now.\n2. A dog runs now.\nAnswer:",
        "Which is better?\n1. A dog runs now.\n2. The dogs runs now.\nAnswer:",
    ]
    heads = [text.split("\n")[1:4] for text in model.asked[4:]]
    assert heads == [
        ["1. it", "2. her", "3. him"], ["1. her", "2. him", "3. it"], ["1. him", "2. it", "3. her"],
    ]  # fmt: skip


def test_figures_by_hand():
    """Contrast a: p(1), p(2) are .6, .2 where bird stands first, .1, .3 where tree does.

    Normalised, bird has .75 and .75, tree .25 and .25; one of two answers is the first label; the
    labels have .8 and .4. The others tie in each order: the good row does not win, and the first
    label has its part of the answers, 1/2 and 1/3.
    """
    of = {"1. bird": {"1": 0.6, "2": 0.2}, "1. tree": {"1": 0.1, "2": 0.3}}

    def log_prob(text, label):
        return math.log(next((p[label] for first, p in of.items() if first in text), 0.25))

    found = chosen(Fake(log_prob))
    assert found.labels[0] == pytest.approx([math.log(0.6), math.log(0.3)])
    assert found.labels[1] == pytest.approx([math.log(0.1), math.log(0.2)])
    assert found.log_prob[:2] == pytest.approx([math.log(0.75), math.log(0.25)])
    measures = lmdiag.measure(found, ROWS)
    assert {name: (x.value, x.n) for name, x in measures.items()} == {
        "sensitivity": (pytest.approx(1 / 3), 3),
        "position_bias": (pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3), 3),
        # contrast c has three labels: .75
        "labels_mass": (pytest.approx((0.6 + 0.5 + 0.75) / 3), 3),
    }
    # that of sensitivity is over the one contrast that is not tied
    assert (measures["sensitivity"].chance, measures["sensitivity"].n_tied) == (0.5, 2)
    assert measures["position_bias"].chance == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    assert measures["labels_mass"].chance is None


def test_a_model_that_always_answers_with_the_first_option():
    """The first label has six nats more than the second, and each up to one that means nothing."""
    n = 400
    ids = [f"{i:03d}{x}" for i in range(n) for x in "ab"]
    columns = {
        "id": ids, "item": ids, "condition": [""] * 2 * n, "sentence": [f"It is {x}." for x in ids],
        "good": [True, False] * n, "contrast": [x[:3] for x in ids],
    }  # fmt: skip
    rows = Stimuli("own", columns, "own.csv", None, "sentences")
    found = chosen(Fake(lambda text, x: -6.0 * int(x) + crc32((text + x).encode()) / 2**32), rows)
    measures = lmdiag.measure(found, rows)
    assert (measures["position_bias"].value, measures["position_bias"].n) == (1.0, n)
    assert measures["position_bias"].versus_chance == "above"
    assert measures["sensitivity"].versus_chance == "not distinguishable"


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    "name", family_params(["gpt2", "llama", "mamba", "gpt_neox", "opt", "qwen2", "gemma", "phi3"])
)
def test_the_log_probabilities_are_those_of_transformers(name, chat, family_dir, tmp_path):
    """Labels after a space, a line break and in a chat; by the chain rule where they have two."""
    folder = Path(shutil.copytree(family_dir(name), tmp_path / name))
    (folder / "chat_template.jinja").write_text(CHAT, "utf-8")
    tokenizer, network = reference.load(folder, "causal", FAMILIES[name].attention)
    for wording in (WORDING, WORDING.replace("Answer:", "Answer:\n")):
        options = LoadOptions(elicitation="choice", choice_prompt=wording, chat=chat)
        model = models.load(str(folder), options)
        setting = Setting(ROWS, wording=parse_wording(wording))
        found = [
            predict(model, [setting], top=1, batch_size=size)[0][0].labels for size in (None, 1)
        ]
        expected = [[0.0] * len(of) for of in found[0]]
        for choice in setting.choices(cased=model.info.cased):
            text = choice.query.context
            if chat:
                text = f"<|user|>{text}\n<|assistant|>"
            elif not text.endswith("\n"):
                text += " "
            start = tokenizer(text.rstrip(" "), add_special_tokens=not chat).input_ids
            for number, row in enumerate(choice.rows):
                label = str(number + 1)
                whole = tokenizer(text + label, add_special_tokens=not chat).input_ids
                whole = whole[: len(whole) - (whole[-1] in (tokenizer.eos_token_id,))]
                assert whole[: len(start)] == start
                log_probs = reference.run(network, input_ids=whole)
                expected[row][number] = sum(
                    float(log_probs[place - 1, whole[place]])
                    for place in range(len(start), len(whole))
                )
        for labels in found:
            for of_row, of_reference in zip(labels, expected, strict=True):
                assert of_row == pytest.approx(of_reference, abs=reference.CLOSE)


@pytest.mark.slow
@pytest.mark.pages
def test_runs_comparisons_and_multiverses(command):
    model, output = command.models["gpt2"], command.folder / "results"
    start = ["--data", command.data, "--tasks", "role88", "--limit", 8, "--quiet", "--output"]
    paths = []
    for options in ([], ["--elicitation", "choice"]):
        code, out, err = command("run", "--model", model, *start, output, *options)
        assert code == 0, err
        [path] = [x.parent for x in output.glob("*/*/results.json") if x.parent not in paths]
        paths.append(path)
    assert "position bias" in out
    assert "mass on labels" in out
    assert paths[1].name == f"{paths[0].name}-elicitationchoice"
    run = load_run(paths[1])
    rows = headline_rows("role88", ReportFigures.of([run.results]))
    assert [row.labels[0] for row in rows] == ["sensitivity", "position bias", "mass on labels"]
    page = (paths[1] / "report.html").read_text("utf-8")
    assert "share of the good option" in page
    assert not re.search(r"p\(good|top words|words are compared|by probability and cloze", page)
    assert "|elicitation:choice" in run.results.signature
    assert all(len(labels or ()) == 2 for labels in run.predictions["role88"]["none", 0].labels)
    assert "elicitation (probability and choice)" in command.refused("compare", *paths)
    code, out, _ = command("compare", *paths, "--across", "elicitation", "--json")
    assert code == 0
    assert {x["measure"] for x in json.loads(out)["comparisons"]} == {"sensitivity"}
    many = ["multiverse", "--model", model, "--knobs", "elicitation,bos", *start]
    code, _, err = command(*many, command.folder / "many", "--choice-prompt", "{options}\nIt is")
    assert code == 2
    assert "--choice-prompt varies choice-prompt" in err
    code, _, err = command(*many, command.folder / "many")
    assert code == 0, err
    document = json.loads((command.folder / "many" / "multiverse.json").read_text("utf-8"))
    assert {member["choices"]["elicitation"] for member in document["members"]} == {
        "probability", "choice",
    }  # fmt: skip


def test_rows_without_contrasts_are_refused(command):
    rows = command.folder / "rows.csv"
    rows.write_text("id,context,target\n1,A robin is a,bird\n", "utf-8")
    run = ["run", "--model", command.models["gpt2"], "--output", command.folder, "--data", rows]
    refused = command.refused(*run, "--quiet", "--elicitation", "choice")
    assert "needs the columns good and contrast" in refused
