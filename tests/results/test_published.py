"""The papers' figures: whether their arithmetic holds, and how they compare with our own."""

from dataclasses import replace

import pytest
from invented_runs import make_run

from lmdiag.report import numbers
from lmdiag.results import Figure, Measure, SettingResults, read_results
from lmdiag.results.published import human_facts, published_beside, published_figures
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
    assert len({figure.model for figure in published_figures()}) == 21
    keys = {(figure.model, figure.key) for figure in published_figures()}
    assert len(published_figures()) == len(keys) == 216
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
        found = {figure.model for figure in published_beside(of_model).values()}
        assert found == ({name.rpartition("/")[2]} if is_known else set())


def test_figures_beside_a_run(results):
    """Every unperturbed one, with the same n. Those of the extended sets: test_extended_sets.py."""
    beside = published_beside(results)
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
    undefined = SettingResults({"sensitivity": Measure(None, 0)})
    assert published_beside(replace(results, tasks={"neg136": {"none": undefined}})) == {}


def test_rounding_does_not_put_a_figure_outside():
    published = replace(pick()[0], value=38.9)
    for low, star in (0.38912, ""), (0.3896, "*"), (None, ""):
        assert numbers.published(published, Figure(0.4, 18, low, 0.5)) == f"38.9 (+1.1){star}"
