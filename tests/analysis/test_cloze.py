"""Cloze norms against arithmetic done by hand, scipy, and the correlation of ROLE-88."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from invented_runs import model_info
from scipy.stats import spearmanr, t

import lmdiag
from lmdiag.analysis.cloze import item_measures, read_norms
from lmdiag.protocol import Predictions
from lmdiag.stats import sign_flip
from lmdiag.types import BadInput

ROWS = """participant,item,context,response
1,1,He scored another,goal
2,1,He scored another,Goal
3,1,He scored another, goal.
4,1,He scored another,point
1,2,She stirred with a,spoon
2,2,She stirred with a,wooden spoon
3,2,She stirred with a,ladle
4,2,She stirred with a,
"""
P = {"goal": 0.5, "point": 0.125, "spoon": 0.25, "wooden spoon": 0.0625, "ladle": 0.25}
TOP = {"He scored another": {"Goal": 0.5, "try": 0.25}, "She stirred with a": {"pan": 0.4}}


def model(p, top, name="org/m"):
    """A model that gives each word its probability, and None for a word without one."""

    def predict(stimuli, **_):
        columns = stimuli.columns()
        lists = [top[context] for context in columns["context"]]
        known = [p.get(word) for word in columns["target"]]
        return Predictions(
            model=info, id=columns["id"], log_prob=[x and math.log(x) for x in known],
            rank=[None] * len(known), n_tokens=[1 if x else 0 for x in known],
            top_words=[[*x] for x in lists],
            top_log_probs=[[*map(math.log, x.values())] for x in lists], unit="word",
        )  # fmt: skip

    info = model_info(id=name, kind="causal")
    return SimpleNamespace(info=info, predict=predict)


def table(n, seed):
    """Responses to n items, twelve to each, and the probabilities of a model."""
    rng = np.random.default_rng(seed)
    words = ("a", "bb", "ccc", "dddd")
    rows = [(i, f"context {i}", f"w{i}{rng.choice(words)}") for i in range(n) for _ in range(12)]
    frame = pd.DataFrame(rows, columns=["item", "context", "response"])
    return frame, {word: float(rng.uniform(0.01, 0.2)) for word in frame["response"]}


def test_every_number_of_terminal_page_and_json_is_the_hand_computed_one(command, monkeypatch):
    monkeypatch.setattr("lmdiag.api.load_model", lambda *_, **__: model(P, TOP))
    file, page, out = (command.folder / name for name in ("r.csv", "p.html", "w.csv"))
    file.write_text(ROWS)
    arguments = ("cloze", file, "--model", "org/m", "--output", command.folder)
    code, text, err = command(*arguments, "--json", "--out", out, page)
    assert code == 0, err
    found = json.loads(text)
    (figures,) = found["models"]
    # item 1: q .75 and .25; item 2: 1/3 each, since the empty response does not count
    crosses = 0.75 * 1 + 0.25 * 3, (2 + 4 + 2) / 3
    entropies = 0.75 * math.log2(4 / 3) + 0.25 * 2, math.log2(3)
    divergences = [cross - h for cross, h in zip(crosses, entropies, strict=True)]
    values = {name: figures[name]["value"] for name in figures if name not in ("name", "items")}
    q, p = [0.75, 0.25, 1 / 3, 1 / 3, 1 / 3], [*P.values()]
    assert values == pytest.approx({
        "mass": (0.625 + 0.5625) / 2, "top_agrees": 0.5, "cross_entropy": sum(crosses) / 2,
        "divergence": sum(divergences) / 2, "spearman": None,
        "spearman_pooled": spearmanr(q, p).statistic,
    })  # fmt: skip
    assert (figures["items"], figures["mass"]["n"], figures["spearman_pooled"]["n"]) == (2, 2, 5)
    assert figures["mass"]["ci_low"] is None  # fewer than eight items
    words = pd.DataFrame(found["words"])
    assert (words["word"].tolist(), words["count"].tolist()) == ([*P], [3, 1, 1, 1, 1])
    assert words["cloze"].tolist() == pytest.approx(q)
    assert words["probability"].tolist() == pytest.approx(p)
    assert found["words"][0]["surprisal"] == pytest.approx(1)
    assert [row["word"] for row in found["unsaid"]] == ["pan", "try"]
    assert "empty responses left out: 1 (line 9)" in found["notes"]
    written = pd.read_csv(out)
    assert written["word"].tolist() == [*P]
    assert written["model"].unique() == ["m"]
    _, text, _ = command(*arguments)
    shown = re.sub("<[^>]*>", " ", page.read_text().partition("</style>")[2])
    computed = (sum(divergences) / 2, values["spearman_pooled"])
    for number in ("0.594", "50.0", "2.083", *map("{:.3f}".format, computed)):
        assert number in text
        assert number in shown
    for number in (".750", ".0625", *(f"divergence {x:.2f}" for x in divergences)):
        assert number in re.sub(r"\s+", " ", shown)


def test_means_intervals_and_comparisons_are_those_of_scipy_and_of_the_statistics():
    frame, first = table(20, 0)
    second = {word: p / 2 + 0.01 for word, p in first.items()}
    tops = {context: {"other": 0.5} for context in frame["context"]}
    models = [model(first, tops, "a"), model(second, tops, "b")]
    found = lmdiag.cloze(frame, models=models)
    items = found.items[found.items["model"] == "a"]
    row = found.figures.set_index(["model", "measure"]).loc[("a", "spearman")]
    rhos = [
        spearmanr(group["cloze"], group["probability"]).statistic
        for _, group in found.words[found.words["model"] == "a"].groupby("item")
        if len(group) >= 3 and group["cloze"].nunique() > 1
    ]
    low, high = t.interval(
        0.95, len(rhos) - 1, np.mean(rhos), np.std(rhos, ddof=1) / len(rhos) ** 0.5
    )
    assert (row.value, row.n) == (pytest.approx(np.mean(rhos)), len(rhos))
    assert (row.ci_low, row.ci_high) == pytest.approx((low, high))
    (mass,) = (x for x in found.comparisons if x.measure == "mass")
    others = found.items[found.items["model"] == "b"]
    test = sign_flip(others["mass"].to_numpy() - items["mass"].to_numpy())
    assert mass.difference == pytest.approx(others["mass"].mean() - items["mass"].mean())
    assert (mass.ci_low < mass.difference < mass.ci_high, mass.p < 0.05) == (True, test.p < 0.05)


def test_a_word_without_a_probability_is_named_and_never_0():
    lacking = {word: p for word, p in P.items() if word != "ladle"}
    found = lmdiag.cloze(pd.read_csv(pd.io.common.StringIO(ROWS)), models=[model(lacking, TOP)])
    assert found.items["mass"].isna().tolist() == [False, True]
    assert found.figures.set_index("measure").loc["mass"].tolist()[2:4] == [0.625, 1]
    assert any("1 unscorable words, never counted as 0: ladle (item 2)" in x for x in found.notes)


def test_words_with_counts_or_shares_are_read_and_incomplete_shares_have_no_mass():
    counts = pd.DataFrame({"item": 1, "context": "A", "word": ["x", "X.", "y"], "count": [2, 1, 1]})
    words = read_norms(counts).columns()
    assert (words["target"], words["count"], words["cloze"]) == (["x", "y"], [3, 1], [0.75, 0.25])
    contexts = read_norms(counts.assign(context=["A", "A", "B"]))
    assert contexts.columns()["item"] == ["1.1", "1.2"]
    assert contexts.columns()["cloze"] == [1, 1]
    assert "each context of items with several is an item: 1" in contexts.notes
    cased = read_norms(counts, keep_case=True).columns()
    assert cased["target"] == ["x", "X", "y"]
    measures = item_measures(np.array([0.5, 0.2, 0.1]), np.log([0.2, 0.1, 0.3]), 0.5)
    assert math.isnan(measures["mass"])
    assert math.isnan(measures["top_agrees"])
    assert measures["spearman"] == pytest.approx(-0.5)


def test_runs_give_the_correlation_that_they_have(command):
    code, text, err = command("cloze", *command.runs, "--json")
    assert code == 0, err
    for figures, run in zip(json.loads(text)["models"], command.runs, strict=True):
        value = lmdiag.load_run(run).results.measure("role88", "none", "spearman").value
        assert figures["spearman_pooled"]["value"] == pytest.approx(value, abs=1e-12)
        assert figures["mass"]["value"] is None  # only one word of each context is known


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("4,1,He scored", "4,1,he scored"), "r.csv:5: the context differs from that in "),
        (("4,1,He", "4,,He"), "r.csv:5: the column item is empty"),
        (("2,She stirred with a,ladle", "2,,ladle"), "r.csv:8: the column context is empty: write"),
        (("response", "answer"), "the column response is missing"),
        (("He scored another", "He scored another ____"), "has a blank in it"),
    ],
)
def test_bad_tables_are_refused_with_row_and_remedy(command, change, message):
    file = command.folder / "r.csv"
    file.write_text(ROWS.replace(*change))
    assert message in command.refused("cloze", file, "--model", "demo:causal")


def test_shares_above_1_are_refused():
    rows = pd.DataFrame({"item": 1, "context": "A", "word": ["x", "y"], "cloze": [0.8, 0.4]})
    with pytest.raises(BadInput, match=r"cloze of item 1 adds up to 1\.2"):
        read_norms(rows)


def test_fit_reads_the_words_of_several_models_and_names_them():
    frame, p = table(8, 2)
    tops = {context: {"other": 0.5} for context in frame["context"]}
    models = [model(p, tops, "a"), model({word: x**2 for word, x in p.items()}, tops, "b")]
    words = lmdiag.cloze(frame, models=models).words
    fit = lmdiag.fit(words, response="cloze", controls=["length"])
    assert [(x.name, x.n) for x in fit.models] == [(name, len(words) // 2) for name in "ab"]
    first = words[words["model"] == "a"]
    x = np.column_stack([np.ones(len(first)), first["surprisal"], first["word"].str.len()])
    slope = np.linalg.lstsq(x, first["cloze"])[0][1]
    assert fit.models[0].per_bit == pytest.approx(slope)
    assert "no columns of texts and positions: earlier words are not used" in fit.notes
    with pytest.raises(BadInput, match="a and b have different rows"):
        lmdiag.fit(words.iloc[:-1], response="cloze", controls=["length"])
