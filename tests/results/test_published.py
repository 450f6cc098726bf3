"""Published figures: their arithmetic, those of authors' files, and beside figures of a run."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from invented_runs import make_run

from lmdiag.report import numbers
from lmdiag.results import Figure, FigureKey, SettingResults, read_results
from lmdiag.results.published_figures import (
    document,
    human_facts,
    published_figures,
    published_figures_of,
)
from lmdiag.types import DIAGNOSTICS

NOT_A_SHARE = {
    # 7 of 17 is 41.18, which rounds to 41.2
    ("8", "bert-base-uncased", "role88", "accuracy@5"): 41.1,
    # Shivagunde et al. (2023) sometimes cut where they should round: 404 of 750 is 53.87
    ("2", "bert-large-uncased", "neg1500_gen", "accuracy@5"): 53.8,
    ("2", "albert-large-v2", "neg1500_gen", "accuracy@5"): 36.2,
    ("2", "albert-xlarge-v2", "neg1500_gen", "accuracy@5"): 47.8,
    ("2", "t5-large", "neg1500_gen", "accuracy@5"): 49.8,
    ("2", "albert-xlarge-v1", "neg136", "accuracy@5"): 55.5,
    ("3", "bert-base-uncased", "neg1500_temp", "accuracy@1"): 28.5,
    ("3", "albert-base-v2", "neg1500_temp", "accuracy@1"): 2.0,
    ("4", "roberta-base", "neg1500_gen", "accuracy@1"): 15.4,
    ("2", "albert-base-v1", "role88", "accuracy@5"): 17.1,  # 15 of 88 is 17.05
}
"""Cells that are not a share of their n, rounded to one decimal."""

MEANS = ("shuf", "shuf_trunc")
"""Settings whose figures are means over 100 runs, so that any decimal is possible."""


def pick(**wanted):
    """The published figures with these properties, parts of their addresses included."""
    return [
        figure
        for figure in published_figures()
        if wanted.items() <= (vars(figure) | figure.key._asdict()).items()
    ]


def test_every_proportion_is_k_of_n_but_for_those_that_are_listed():
    others = {
        (f.table, f.model, f.key.task, f.key.measure): f.value
        for f in published_figures()
        if f.key.setting not in MEANS
        and f.value not in {round(100 * k / f.n, 1) for k in range(f.n + 1)}
    }
    assert others == NOT_A_SHARE
    for figure in published_figures():
        assert (figure.sd is not None) == (figure.key.setting in MEANS)
    counts = Counter(figure.source for figure in published_figures())
    assert counts == {
        "ettinger-2020": 78, "shivagunde-2023": 134, "shivagunde-2022": 36, "celik-2025": 576,
    }  # fmt: skip
    models = {figure.model for figure in published_figures()}
    assert models == document()["parameters"].keys()
    keys = {(figure.model, figure.key, figure.source) for figure in published_figures()}
    assert len(keys) == len(published_figures())
    assert [len([*human_facts(task)]) for task in ("cprag102", "role88", "own")] == [4, 1, 0]


@pytest.fixture(scope="module")
def results(data_dir, tmp_path_factory):
    """Those of a BERT base that knows all answers."""
    folder = tmp_path_factory.mktemp("run")
    return read_results(make_run(folder, data_dir, skill=99, id="google-bert/bert-base-uncased"))


def test_both_names_of_a_model_are_known_and_no_other(results):
    for name, is_known in (
        ("bert-base-uncased", True), ("google-bert/bert-base-uncased", True),
        ("roberta-base", True), ("FacebookAI/roberta-base", True),
        ("bert-base-cased", False), ("me/bert-base-uncased", False),
    ):  # fmt: skip
        of_model = replace(results, model=replace(results.model, id=name))
        found = {figure.model for figure in published_figures_of(of_model).values()}
        assert found == ({name.rpartition("/")[2]} if is_known else set())


def test_figures_beside_a_run(results):
    """Every unperturbed one, with the same n. Those of the extended sets: test_extended_sets.py."""
    beside = published_figures_of(results)
    for task in DIAGNOSTICS:
        for published in pick(setting="none", task=task):
            figure = results.figure(published.key)
            assert figure.n == published.n, published
    for table, level, text in (
        ("14", "natural/negative", "87.5 (+12.5)"),  # in Wilson's 67.6 to 100
        ("12", "simp/negative", "0.0 (+100.0)*"),
    ):
        [key] = (x.key for x in pick(table=table, level=level, model="bert-base-uncased"))
        figure = results.figure(key)
        assert numbers.published(beside[key], figure) == text
    undefined = SettingResults({"sensitivity": Figure(None, 0)})
    assert published_figures_of(replace(results, tasks={"neg136": {"none": undefined}})) == {}


def test_a_second_source_that_differs_is_named(results):
    """Accuracy@5 of RoBERTa large on NEG-136 SIMP is 17 of 18 and 18 of 18 in two sources."""
    of_model = replace(results, model=replace(results.model, id="FacebookAI/roberta-large"))
    key = FigureKey("neg136", "none", "accuracy@5", "subset", "simp")
    published = published_figures_of(of_model)[key]
    text = "94.4 (+5.6); 100.0 Çelik, files"
    assert numbers.published(published, of_model.figure(key)) == text
    assert not any(figure.others for figure in published_figures_of(results).values())


def test_rounding_does_not_put_a_figure_outside():
    published = replace(pick()[0], value=38.9)
    for low, star in (0.38912, ""), (0.3896, "*"), (None, ""):
        assert numbers.published(published, Figure(0.4, 18, low, 0.5)) == f"38.9 (+1.1){star}"


POLARITIES = ("affirmative", "negative")
BOTH = ("sensitivity", "sensitivity@0.01")
PARTS = {"cprag": "cprag102", "role": "role88", "negsimp": "neg136", "negnat": "neg136"}


def printed_figures(part):
    """Measure, break-down and level of the shares that the original scorer prints, in order."""
    if part == "cprag":
        levels = (("", ""), ("constraint", "high"), ("constraint", "low"))
        return [("accuracy@5", "", "")], [(x, *level) for x in BOTH for level in levels]
    if part == "role":
        quartiles = [("accuracy@5", "cloze_quartile", n) for n in "1234"]
        return [("accuracy@5", "", ""), *quartiles], [(x, "", "") for x in BOTH]
    subset = part.removeprefix("neg")
    levels = [("subset", subset), *(("subset/polarity", f"{subset}/{x}") for x in POLARITIES)]
    sensitivities = [(x, *level) for x in BOTH for level in levels]
    for kind in ("natural", "less_natural") if subset == "nat" else ():
        sensitivities.append(("sensitivity", "natural", kind))
        sensitivities += [("sensitivity", "natural/polarity", f"{kind}/{x}") for x in POLARITIES]
    return [("accuracy@5", "subset", subset)], sensitivities


@pytest.mark.slow
def test_the_figures_of_the_original_scorer(original_outputs, data_dir, command):
    """34 figures of each of four models; with them 60 published ones are made from their files."""
    n_equal = 0
    recomputed = {}
    for outputs in sorted((original_outputs / "outputs").iterdir()):
        folder = original_outputs / "result-acc-sentivity" / outputs.name
        asked = ("--predictions", outputs, "--data", data_dir, "--uncased", "--json")
        for part, task in PARTS.items():
            measures = json.loads(command("score", "--task", task, *asked)[1])["measures"]
            files = (f"prediction_accuracy-{part}.txt", f"sensitivity/sensitivity-{part}.txt")
            for file, figures in zip(files, printed_figures(part), strict=True):
                printed = re.findall(r": ([\d.]+) \(", (folder / file).read_text("utf-8"))
                for (name, by, level), share in zip(figures, map(float, printed), strict=True):
                    figure = measures[name]["by"][by][level] if by else measures[name]
                    assert figure["value"] == pytest.approx(share, abs=1e-12), (folder, file, level)
                    n_equal += 1
                    key = FigureKey(task, "none", name, by, level)
                    recomputed[outputs.name, key] = round(100 * share, 1)
    assert n_equal == 34 * len({model for model, _ in recomputed})
    published = [x for x in published_figures() if x.source != "celik-2025"]
    made = {x: recomputed.get((x.model, x.key)) for x in published}
    (misprint,) = (x for x, value in made.items() if value not in (None, x.value))
    assert (misprint.table, misprint.value, made[misprint]) == ("8", 41.1, 41.2)
    assert sum(value is not None for value in made.values()) >= 60


def test_files_of_the_original_code_that_are_not_read(demo_dir, command):
    outputs = command.folder / "outputs"
    outputs.mkdir()
    words = outputs / "modelpreds-role-x"
    words.write_text(" met  seen\r\n" + "\n" * 31)  # a list may be empty
    asked = ("score", "--task", "role88", "--data", demo_dir, "--predictions", outputs)
    code, out, err = command(*asked, "--json")
    assert (code, next(iter(json.loads(out)["measures"]))) == (0, "accuracy@1")
    assert "empty words were added to 31 of the lists, which have fewer than 2" in err
    probabilities = outputs / "modeltgtprobs-role-x"
    for lines, message in (
        (["0.5"] * 31, "modeltgtprobs-role-x has 31 lines, and the data set 32 rows"),
        (["0.5", "1.5"] * 16, "modeltgtprobs-role-x:2: '1.5' must be a probability, or nan"),
    ):
        probabilities.write_text("\n".join(lines))
        code, _, err = command(*asked)
        assert code == 2
        assert message in err
    (outputs / "modelpreds-role-y").write_text("")
    assert "files of several models (modelpreds-role-x and modelpreds-role-y)" in command(*asked)[2]
