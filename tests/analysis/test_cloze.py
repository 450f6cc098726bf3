"""Cloze norms against arithmetic done by hand, scipy, and the correlation of ROLE-88."""

import io
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from invented_runs import FakeModel, model_info
from scipy.stats import spearmanr, t

import lmdiag
from lmdiag import stimuli
from lmdiag.api import LanguageModel
from lmdiag.measures import item_measures
from lmdiag.models import LoadOptions
from lmdiag.report.display import output_of
from lmdiag.report.formats import printed
from lmdiag.stats import share_interval, sign_flip
from lmdiag.types import Answer, BadInput, WordScore

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


class Expecting(FakeModel):
    """A model that gives each word its probability, and None to a word without one.

    `p` is by word, or by context and word; `top` has the list of words of each context.
    """

    def __init__(self, p, top, **facts):
        self.info = model_info(**{"id": "org/m", "kind": "causal"} | facts)
        self.p, self.top = p, top
        self.left = math.inf  # questions until it is interrupted

    def reply(self, question, top):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        context = question.query.context
        known = {x: self.p.get((context, x), self.p.get(x)) for x in question.words}
        scores = {
            word: WordScore(x and math.log(x), None, 1 if x else 0) for word, x in known.items()
        }
        listed = self.top.get(context, {"other": 0.5})
        return Answer(scores, (*listed,), tuple(map(math.log, listed.values())), None)


def model(p, top, name="org/m", **facts):
    return LanguageModel(Expecting(p, top, id=name, **facts), LoadOptions(unit="word"))


def table(n, seed):
    """Responses to n items, twelve to each, and the probabilities of a model."""
    rng = np.random.default_rng(seed)
    words = ("a", "bb", "ccc", "dddd")
    rows = [(i, f"context {i}", f"w{i}{rng.choice(words)}") for i in range(n) for _ in range(12)]
    frame = pd.DataFrame(rows, columns=["item", "context", "response"])
    return frame, {word: float(rng.uniform(0.01, 0.15)) for word in frame["response"]}


def read(rows, **options):
    """The words of a table of responses."""
    return stimuli.load(pd.DataFrame(rows), responses=True, **options)


def test_every_number_of_terminal_page_and_json_is_the_hand_computed_one(command, monkeypatch):
    monkeypatch.setattr("lmdiag.models.load", lambda *_: Expecting(P, TOP))
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
    for number in ("59.4", "50.0", *map("{:.3f}".format, computed)):
        assert number in text
        assert number in shown
    for number in (".750", ".0625", *(f"divergence {x:.2f}" for x in divergences)):
        assert number in re.sub(r"\s+", " ", shown)
    assert shown.index(f"divergence {divergences[1]:.2f}") < shown.index(
        "ranks lowest"
    )  # the items stand first


def test_responses_are_data_of_runs_with_scores_resume_and_comparison(command, monkeypatch):
    """`run`, `report` and `compare` read them; an interrupted run ends with the same bytes."""
    frame, p = table(12, 1)
    file = command.folder / "norms.csv"
    frame.to_csv(file, index=False)
    models = {"a": Expecting(p, {}, id="a"), "b": Expecting({w: x / 2 for w, x in p.items()}, {})}
    models["b"].info = model_info(id="b", kind="causal")
    monkeypatch.setattr("lmdiag.models.load", lambda name, _: models[name])
    whole, cut = command.folder / "whole", command.folder / "cut"
    asked = ("--data", file, "--unit", "word")
    code, _, err = command("run", "--model", "a", *asked, "--output", whole)
    assert code == 0, err
    models["a"].left = 5
    assert command("run", "--model", "a", *asked, "--output", cut)[0] == 130
    models["a"].left = 7  # as many as are missing
    code, _, err = command("cloze", file, "--model", "a", "b", "--output", cut)
    assert code == 0, err
    of_both = [folder / "a/norms-word/predictions.parquet" for folder in (whole, cut)]
    assert of_both[0].read_bytes() == of_both[1].read_bytes()
    runs = [cut / name / "norms-word" for name in "ab"]
    compared = json.loads(command("compare", *runs, "--json")[1])["comparisons"]
    norms = lmdiag.cloze(file, models=["a", "b"], output=cut)
    items = {name: of.set_index("item")["mass"] for name, of in norms.items.groupby("model")}
    (mass,) = (x for x in compared if x["measure"] == "mass")
    test = sign_flip((items["b"] - items["a"]).to_numpy())
    assert mass["difference"] == pytest.approx((items["b"] - items["a"]).mean())
    assert (mass["ci_low"] < mass["difference"] < mass["ci_high"], mass["p"]) == (
        True, pytest.approx(test.p, abs=0.01),
    )  # fmt: skip
    assert [x["measure"] for x in compared] == ["mass", "top_agrees", "divergence", "spearman"]
    assert "People and models" in command("report", *runs, "--format", "text")[1]
    rows = lmdiag.load_run(runs[0]).items()
    assert rows["mass"].nunique() == 12
    assert rows["cloze"].groupby(rows["item"]).sum().tolist() == pytest.approx([1] * 12)


def test_means_have_the_intervals_of_scipy_and_shares_that_of_the_logit(tmp_path):
    frame, p = table(20, 0)
    found = lmdiag.cloze(frame, models=model(p, {}), output=tmp_path)
    figures = found.to_frame().set_index("measure")
    rhos = [
        spearmanr(group["cloze"], group["probability"]).statistic
        for _, group in found.words.groupby("item")
        if len(group) >= 3 and group["cloze"].nunique() > 1
    ]
    mean = np.mean(rhos)
    error = np.std(rhos, ddof=1) / len(rhos) ** 0.5 / (1 - mean**2)  # of Fisher's z
    bounds = np.tanh(t.interval(0.95, len(rhos) - 1, np.arctanh(mean), error))
    row = figures.loc["spearman"]
    assert (row.value, row.n) == (pytest.approx(np.mean(rhos)), len(rhos))
    assert (row.ci_low, row.ci_high) == pytest.approx(bounds)
    row = figures.loc["mass"]
    bounds = share_interval(found.items["mass"].to_numpy())
    assert (row.ci_low, row.ci_high) == pytest.approx(bounds)
    assert figures.loc["spearman_pooled", ["ci_low", "ci_high"]].isna().all()


def test_of_a_masked_and_a_causal_model_what_is_on_one_scale_is_shown(tmp_path):
    frame, p = table(10, 4)
    both = [model(p, {}, "a"), model(p, {}, "b", kind="masked")]
    text = str(lmdiag.cloze(frame, models=both, output=tmp_path))
    shown, _, rest = text.partition("\n\nSpearman: ")
    assert "Spearman" in shown
    assert "top word" in shown
    assert "mass" not in shown
    assert "divergence" not in shown
    why = "KL divergence of a and b: not on one scale, since masked models spread"
    assert why in " ".join(rest.split())


def test_a_word_without_a_probability_is_named_and_never_0(tmp_path):
    lacking = {word: p for word, p in P.items() if word != "ladle"}
    frame = pd.read_csv(io.StringIO(ROWS))
    found = lmdiag.cloze(frame, models=model(lacking, TOP), output=tmp_path)
    assert found.items["mass"].isna().tolist() == [False, True]
    row = found.to_frame().set_index("measure").loc["mass"]
    assert (row.value, row.n) == (0.625, 1)
    assert any("1 unscorable words, never counted as 0: ladle (item 2)" in x for x in found.notes)


def test_norms_without_a_figure_say_why_beside_those_of_another_model(tmp_path):
    frame = pd.read_csv(io.StringIO(ROWS))
    none = model({}, TOP, "org/none", kind="masked")
    why = (
        "none has no figure on rows: its vocabulary lacks goal, point, spoon, wooden spoon, ladle."
    )
    alone = output_of(lmdiag.cloze(frame, models=none, output=tmp_path))
    assert [*alone.findings] == [why]
    assert why in printed(alone, "html", 8.0)
    both = lmdiag.cloze(frame, models=[none, model(P, TOP, "org/some")], output=tmp_path)
    assert next(iter(output_of(both).findings)) == why


def test_words_with_counts_or_shares_are_read_and_incomplete_shares_have_no_mass():
    counts = pd.DataFrame({"item": 1, "context": "A", "word": ["x", "X.", "y"], "count": [2, 1, 1]})
    words = read(counts).columns()
    assert (words["target"], words["count"], words["cloze"]) == (["x", "y"], [3, 1], [0.75, 0.25])
    contexts = read(counts.assign(context=["A", "A", "B"]))
    assert contexts.columns()["item"] == ["1.1", "1.2"]
    assert contexts.columns()["cloze"] == [1, 1]
    assert "each context of items with several is an item: 1" in contexts.notes
    assert read(counts, keep_case=True).columns()["target"] == ["x", "X", "y"]
    measures = item_measures(np.array([0.5, 0.2, 0.1]), np.log([0.2, 0.1, 0.3]), 0.5)
    assert math.isnan(measures["mass"])
    assert math.isnan(measures["top_agrees"])
    assert measures["spearman"] == pytest.approx(-0.5)


def test_names_that_are_made_are_never_those_of_the_user():
    rows = {"item": ["7", "7", "7.1"], "context": ["A a", "B b", "C c"], "response": ["x"] * 3}
    assert read(rows).columns()["item"] == ["7..1", "7..2", "7.1"]


SPELLINGS = ["résumé", "resume", "ｒｅｓｕｍｅ", "re\u0301sume\u0301", "long  form", "long form"]


@pytest.mark.parametrize(
    ("p", "labels", "mass"),
    [
        # all spellings of a word have one probability: they are the same tokens
        ([0.2] * 4 + [0.1] * 2, ["résumé", "long form"], 0.3),
        # each spelling has tokens of its own, but for letters and marks that are one character
        ([0.2, 0.15, 0.1, 0.05, 0.02, 0.01], [*SPELLINGS[:3], *SPELLINGS[4:]], 0.48),
    ],
)
def test_spellings_of_the_same_tokens_are_one_word_with_the_most_frequent_as_label(
    tmp_path, p, labels, mass
):
    counts = [4, 2, 1, 1, 1, 3]
    frame = pd.DataFrame({"context": "My", "response": SPELLINGS, "count": counts})
    expecting = model(dict(zip(SPELLINGS, p, strict=True)), {"My": {"RESUME.": 0.2}}, folds=())
    found = lmdiag.cloze(frame, models=expecting, output=tmp_path)
    assert {*found.words["word"]} == {*labels}
    assert found.words["count"].sum() == 12
    assert found.items["mass"].tolist() == pytest.approx([mass])
    if len(labels) == 2:
        assert found.words.set_index("word")["count"].to_dict() == {"résumé": 8, "long form": 4}
        assert found.items["top_agrees"].tolist() == [1]


def test_the_correlation_of_role88_is_that_of_its_run(command):
    run = lmdiag.load_run(command.runs[0])
    rows = run.stimuli["role88"].columns()
    nats = run.predictions["role88"]["none", 0].log_prob
    pairs = zip(rows["context"], rows["target"], nats, strict=True)
    p = {(context, word): math.exp(x) / 2 for context, word, x in pairs if x is not None}
    names = ("context", "target", "target_cloze")
    frame = pd.DataFrame({name: rows[name] for name in names})
    found = lmdiag.cloze(frame, models=model(p, {}), output=command.folder)
    figures = found.to_frame().set_index("measure")["value"]
    value = run.results.measure("role88", "none", "spearman").value
    assert figures["spearman_pooled"] == pytest.approx(value, abs=1e-12)
    assert "mass" not in figures  # only one word of each context is known


def test_brackets_without_end_are_a_response_as_typed():
    """Python's reader of JSON gives up on them by a RecursionError."""
    deep = "[" * 100_000
    found = read({"context": ["A a"] * 3, "response": [deep, "x", "x"]})
    assert found.columns()["target"] == ["x", deep]


LAYOUTS = {
    "lists of experiments": ({"context": ["A a"] * 3, "response": ['["x"]', '["x"]', '["y"]']},
                             {}, "responses written as lists, of which the text is read: 3"),
    "objects of experiments": ({"context": ["A a"] * 3, "response": ['{"Q0":"x"}'] * 2 + ["y"]},
                               {}, "responses written as lists, of which the text is read: 2"),
    "several columns": ({"context": ["A a"] * 2, "r1": ["x", "y"], "r2": ["x", ""]},
                        {"wide": ["r1", "r2"]}, "1 empty cells make none"),
    "a gap of each row": ({"sentence": ["A a <1>", "A a #2"], "mark": ["<1>", "#2"],
                           "response": ["x", "y"], "count": [2, 1]},
                          {"gap": "mark"}, "gap: <1>, #2 in the sentence"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_responses(layout):
    rows, options, note = LAYOUTS[layout]
    found = read(rows, **options)
    assert found.columns()["target"] == ["x", "y"]
    assert found.columns()["cloze"] == pytest.approx([2 / 3, 1 / 3])
    assert any(note in line for line in found.notes), found.notes


def test_tables_of_stimuli_are_none_of_responses(tmp_path):
    """A rating called response, a word that is a target, a share beside it."""
    sentences = ["The hen ran.", "A dog sat."]
    assert stimuli.load({"sentence": sentences, "response": ["1", "7"]}).form == "sentences"
    words = {"context": ["The old", "A new"], "target": ["hen", "dog"], "cloze": [0.5, 0.2]}
    assert stimuli.load(words).form == ""
    said = {"context": ["The old", "A new"], "word": ["hen", "dog"], "cloze": [0.5, 0.2]}
    assert stimuli.load(said).form == "cloze"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("4,1,He scored", "4,1,he scored"), "r.csv:5: the context differs from that in "),
        (("response", "answer"), "the column response is missing"),
        (("He scored another", "He scored another ____"), "has a blank in it"),
    ],
)
def test_bad_tables_are_refused_with_row_and_remedy(command, change, message):
    file = command.folder / "r.csv"
    file.write_text(ROWS.replace(*change))
    assert message in command.refused("cloze", file, "--model", "demo:causal")


def test_shares_above_1_are_refused():
    rows = {"item": [1, 1], "context": ["A", "A"], "word": ["x", "y"], "cloze": [0.8, 0.4]}
    with pytest.raises(BadInput, match=r"cloze of item 1 adds up to 1\.2"):
        read(rows)


def test_fit_reads_the_words_of_several_models_and_names_them(tmp_path):
    frame, p = table(8, 2)
    tops = {context: {"other": 0.2} for context in frame["context"]}
    models = [model(p, tops, "a"), model({word: x**2 for word, x in p.items()}, tops, "b")]
    words = lmdiag.cloze(frame, models=models, output=tmp_path).words
    fit = lmdiag.fit(words, response="cloze", controls=["length"])
    assert [(x.name, x.n) for x in fit.models] == [(name, len(words) // 2) for name in "ab"]
    # a filter of another column does not choose a model
    sized = words.assign(model_size=1)
    filtered = lmdiag.fit(sized, response="cloze", controls=["length"], filter=["model_size>0"])
    assert [x.name for x in filtered.models] == ["a", "b"]
    first = words[words["model"] == "a"]
    x = np.column_stack([np.ones(len(first)), first["surprisal"], first["word"].str.len()])
    slope = np.linalg.lstsq(x, first["cloze"])[0][1]
    assert fit.models[0].per_bit == pytest.approx(slope)
    assert "no columns of texts and positions: earlier words are not used" in fit.notes
    with pytest.raises(BadInput, match="a and b have different rows"):
        lmdiag.fit(words.iloc[:-1], response="cloze", controls=["length"])


STEMS = [f"The cook {n} put the key in the" for n in range(8)]
SAID = {"box": 3, "bag": 2, "sea": 1}


def test_words_that_stand_once_are_not_counted_once_beside_their_numbers():
    rows = [(stem, word, n) for stem in STEMS for word, n in SAID.items()]
    words = pd.DataFrame(rows, columns=["context", "response", "N"])
    with pytest.raises(BadInput, match="each word stands once with its context, and N may be how"):
        read(words)
    counted = read(words, columns=["count=N"]).columns()
    assert counted["cloze"][:3] == [3 / 6, 2 / 6, 1 / 6]
    shares = words.assign(N=words["N"] / 6).rename(columns={"N": "prop"})
    with pytest.raises(BadInput, match="prop may be its share: give --columns cloze=prop"):
        read(shares)
    percent = words.assign(cloze=words["N"] / 6 * 100).drop(columns="N")
    with pytest.raises(BadInput, match="percentages are read as numbers, --columns count=COLUMN"):
        read(percent)
    for amount in (-1, 2**54):
        with pytest.raises(BadInput, match=rf"a number from 0 to 2\*\*53, not {amount}"):
            read(words.assign(N=amount), columns=["count=N"])
    times = words.assign(N=[512, 408, 623] * 8).rename(columns={"N": "rt"})
    assert len(read(times)) == 24


def test_responses_are_found_by_what_they_are_and_columns_without_a_use_are_named(
    tmp_path, command
):
    said = [
        (stem, f"{word}{number}", n)
        for number, stem in enumerate(STEMS)
        for word, n in SAID.items()
        for _ in range(n)
    ]
    rows = pd.DataFrame(said, columns=["Satzanfang", "Antwort", "rt"]).assign(rt=range(48))
    path = tmp_path / "own.csv"
    rows.to_csv(path, index=False)
    out = command("check", path)[1]
    assert "responses of people: for `lmdiag cloze`, with --columns context=Satzanfang resp" in out
    assert "responses   not used: rt" in out
    numbered = rows.assign(item=rows["Satzanfang"].factorize()[0]).rename(
        columns={"rt": "sentence"}
    )
    out = command("check", written(numbered, tmp_path))[1]
    assert "items       8" in out
    assert "lmdiag run" not in out  # numbers are no sentences
    fillers = rows.assign(cond=rows["Antwort"].str[:3].map({"box": "a", "bag": "b", "sea": "c"}))
    assert "lmdiag cloze" not in command("check", written(fillers, tmp_path))[1]  # of conditions
    sentences = rows.drop(columns="rt").rename(
        columns={"Satzanfang": "sentence", "Antwort": "response"}
    )
    assert "--columns context=sentence" in command("check", written(sentences, tmp_path))[1]


def written(table, folder):
    path = folder / "table.csv"
    table.to_csv(path, index=False)
    return path


def test_several_responses_in_a_cell_are_refused():
    rows = pd.DataFrame({"context": STEMS[:4], "response": ["box; bag", "sea", "box, bag", "a|b"]})
    with pytest.raises(BadInput, match="the response box; bag is several: write a row per resp"):
        read(rows)


def test_responses_with_their_contexts_in_them_are_refused():
    rows = pd.DataFrame({"context": STEMS, "response": [f"{stem} box" for stem in STEMS]})
    with pytest.raises(BadInput, match="box begins with its context: write the words after it al"):
        read(rows)


def test_words_with_counts_are_responses_whatever_their_contexts_are_called(tmp_path, command):
    rows = [(stem, word, n) for stem in STEMS for word, n in SAID.items()]
    words = pd.DataFrame(rows, columns=["stem", "word", "count"])
    out = command("check", written(words, tmp_path))[1]
    assert "for `lmdiag cloze`, with --columns context=stem response=word" in out
