"""Items of a run: what was asked, what was said, and how it came out."""

import math

import pandas as pd
import pytest
from sentence_files import ORDER, PARADIGMS, SUM

from lmdiag import diagnostics
from lmdiag.measures import sentence_parts
from lmdiag.report.item_list import list_items, sample_items
from lmdiag.report.run_items import (
    MAX_LISTED,
    answers_to_items,
    items,
    outcomes_of,
    place_of_expected,
    records,
    top_words,
    verdict,
)
from lmdiag.types import BadInput, WordSpan


def contrast(good, *bad, asks="word"):
    """The outcome of a good row and bad ones with these probabilities or surprisals."""
    sign = -1 if asks == "sentence" else 1
    is_good = [True, *(False for _ in bad)]
    values = [math.nan if value is None else sign * value for value in (good, *bad)]
    ahead = values[0] - max(values[1:], default=math.nan)
    sensitivity = [None if math.isnan(ahead) else float(ahead > least) for least in (0, 0.01)]
    return outcome(is_good, values, [], sensitivity), asks


def predicted(*holds):
    """The outcome of an item with these predictions."""
    return outcome([None], [-2.0], [(ORDER, value) for value in holds], [None, None]), "sentence"


def outcome(is_good, values, predictions, sensitivity):
    rows = pd.DataFrame({
        "item": "x", "good": pd.Series(is_good, dtype=object), "value": values, "response": 2.0,
    })  # fmt: skip
    scores = [pd.Series([score], ["x"], dtype=float) for score in sensitivity]
    (found,) = records(outcomes_of(rows, {"x": predictions}, *scores))
    return found


@pytest.mark.parametrize(
    ("compared", "order", "expected"),
    [
        # the difference is to the most probable bad completion
        (contrast(0.5, 0.1, 0.25), 0.25, ("right", "good preferred by .250")),
        (contrast(0.5, 0.495), 0.005, ("narrow", "good preferred by only .0050")),
        (contrast(0.25, 0.5), -0.25, ("wrong", "bad preferred by .250")),
        (contrast(0.5, 0.5), 0.0, ("tied", "neither preferred")),
        (contrast(0.5, 0.5 + 4e-7), -4e-7, ("tied", "neither preferred")),
        (contrast(0.5, 0.1, None), None, ("unknown", "cannot be compared")),
        (contrast(None, 0.1), None, ("unknown", "cannot be compared")),
        # a sample of the rows, `--limit`, may lack the good row
        ((outcome([False], [0.5], [], [None, None]), "word"), None,
         ("unknown", "cannot be compared")),
        # sentences differ by bits
        (contrast(10.0, 13.25, asks="sentence"), 3.25, ("right", "good preferred by 3.2 bits")),
        (contrast(10.04, 10.0, asks="sentence"), -0.04, ("wrong", "bad preferred by 0.04 bits")),
        (contrast(10.0, 10.0, asks="sentence"), 0.0, ("tied", "neither preferred")),
        (contrast(None, 10.0, asks="sentence"), None, ("unknown", "cannot be compared")),
        # an item of a suite is as good as its predictions
        (predicted(True), 1, ("right", "prediction holds")),
        (predicted(False), 0, ("wrong", "prediction does not hold")),
        (predicted(True, False), 0.5, ("narrow", "1 of 2 predictions hold")),
        (predicted(True, None), None, ("unknown", "cannot be evaluated")),
        # a row that is not compared
        (predicted(), -2.0, ("plain", "2.0 bits")),
    ],
)  # fmt: skip
def test_an_item_has_a_place_in_the_order_and_a_verdict(compared, order, expected):
    found, _ = compared
    assert found.order == (None if order is None else pytest.approx(order))
    assert verdict(*compared) == expected


def test_expected_words_are_compared_as_the_tokenizer_asks():
    words = (("Tree", "bird"), (-1.0, -2.0), ("tree",))
    blind = top_words(*words, folds=("case",))
    exact = top_words(*words)
    assert [is_expected for _, _, is_expected in blind] == [True, False]
    assert (place_of_expected(blind), place_of_expected(exact)) == (1, None)
    assert blind[1][1] == pytest.approx(math.exp(-2))
    assert top_words(("a", "b"), None, ()) == [("a", None, False), ("b", None, False)]


def test_regions_have_the_sum_of_the_words_that_begin_in_them():
    text = "Who fed him, then?"
    bits = {"Who": None, "fed": 2.5, "him,": 0.25, "then?": 8.0}
    spans = [
        WordSpan(text.index(word), text.index(word) + len(word), value and -value * math.log(2), 1)
        for word, value in bits.items()
    ]
    places = {"who": (0, 3), "empty": (3, 3), "rest": (4, 12), "": (13, 18)}
    regions = [
        {"number": number, "name": name, "start": start, "end": end}
        for number, (name, (start, end)) in enumerate(places.items(), start=1)
    ]
    parts = sentence_parts(text, spans, regions)
    assert [(part.number, part.name, text[part.start : part.end]) for part in parts] == [
        (1, "who", "Who"), (2, "empty", ""), (3, "rest", "fed him,"), (4, "", "then?"),
    ]  # fmt: skip
    # the first word of a model without a BOS token
    found = [part.bits for part in parts]
    assert found == pytest.approx([math.nan, math.nan, 2.75, 8], nan_ok=True)
    unknown = [*spans[:2], spans[3]._replace(start=8, log_prob=None, n_tokens=0)]
    (*_, rest, _) = sentence_parts(text, unknown, regions)
    assert math.isnan(rest.bits)  # with a word that the tokenizer cannot represent
    shared = [spans[0], *(spans[n]._replace(log_prob=0.0, n_tokens=0) for n in (1, 3))]
    shared.insert(2, spans[2])
    parts = sentence_parts(text, shared, regions)
    assert [part.shares_token for part in parts] == ["next", "", "both", "previous"]


def test_every_contrast_is_an_item_with_its_good_row_first(runs, forms):
    """That verdicts are the scores of sensitivity is tested with all views."""
    tasks = [(runs["weak"], task) for task in ("cprag102", "role88", "neg136")]
    for run, task in (*tasks, (forms["pairs"], "blimp")):
        found, rows = items(run, task), run.stimuli[task].columns()
        outcomes = found.outcomes
        known = outcomes.dropna(subset="difference")
        assert known["prefers_good"].tolist() == (known["difference"] > 0).tolist()
        assert {*known["prefers_good"]} == {0, 1}
        assert outcomes["prefers_good"].isna().equals(outcomes["difference"].isna())
        assert [*outcomes.index] == list(dict.fromkeys(rows["contrast"]))
        assert sorted(found.rows["id"]) == sorted(rows["id"])
        assert found.rows.drop_duplicates("item")["good"].all()
        expecting = found.rows[found.rows["expected"].map(len) > 0]
        if len(expecting):
            accuracy = run.results.tasks[task]["none"].measures["accuracy@1"].value
            assert accuracy == pytest.approx(expecting["place"].eq(1).fillna(False).mean())
    assert len(outcomes) == 4 * len(PARADIGMS)
    assert math.isnan(outcomes["difference"].iloc[0])  # a word cannot be represented
    scored = found.rows[found.rows["item"] != outcomes.index[0]]
    parts = found.parts().groupby("row")
    sums = parts["surprisal"].sum()
    assert scored["surprisal"].tolist() == pytest.approx(sums.loc[scored.index].tolist())
    assert scored["sentence"].map(str.split).equals(parts["text"].agg(list).loc[scored.index])


def test_items_of_suites_agree_with_their_formulas(forms):
    found = items(forms["suites"], "gym")
    assert [*found.outcomes.index][:3] == [f"center_embed/{i}" for i in (1, 2, 3)]
    measure = forms["suites"].results.tasks["gym"]["none"].measures["suite_accuracy"]
    assert measure.value == pytest.approx(found.outcomes["held"].fillna(0).mean())
    bits_of_row = found.parts().fillna(0).groupby("row")["surprisal"].agg(list)
    for name, rows in found.rows.groupby("item"):
        assert [*rows["condition"]] == ["plaus", "implaus"]
        bits = [bits_of_row[row] for row in rows.index]
        expected = [(ORDER, sum(bits[0][2:4]) < sum(bits[1][2:4]))]
        if found.levels.loc[name, "suite"] != "center_embed":
            expected.append((SUM, rows["surprisal"].iloc[0] < rows["surprisal"].iloc[1]))
        assert found.outcomes.loc[name, "predictions"] == expected
    weak = items(forms["suites of weak"], "gym").outcomes
    assert {*weak["held"]} == {0, 0.5, 1}


def test_a_list_has_distinct_contexts_and_perturbed_items_anchors_of_their_own(runs):
    several = [items(runs[name], "cprag102") for name in ("strong", "weak")]
    (first, *_) = list_items(several, diagnostics.get("cprag102"))
    (rows,) = first.contexts  # the three completions share a context
    assert [row[0].good for row in rows] == [True, False, False]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert list(rows[0][0].expected) == [rows[0][0].target]
    diagnostic = diagnostics.get("role88")
    plain, changed = items(runs["weak"], "role88"), items(runs["weak"], "role88", "obj")
    assert changed.rows["context"].str.contains(" which one the ").all()
    assert not plain.rows["context"].str.contains(" which one the ").any()
    as_listed = list_items([plain], diagnostic)
    anchors = [one.anchor for one in list_items([changed], diagnostic, "obj")]
    assert anchors == [f"obj:{one.anchor}" for one in as_listed]
    assert len(as_listed[0].contexts) == 2  # one verb in two contexts


def test_of_too_many_the_worst_and_the_best_of_each_template_are_listed():
    few = pd.DataFrame({"order": 0.4}, map(str, range(MAX_LISTED)))
    assert sample_items(few, few[[]]) == [*few.index]
    many = pd.DataFrame(
        {
            "order": [0.5 - (i + 1) / 1000 for i in range(MAX_LISTED)] * 2,
            "template": ["first"] * MAX_LISTED + ["second"] * MAX_LISTED,
        },
        [f"{template}-{i}" for template in ("first", "second") for i in range(MAX_LISTED)],
    )
    names = {*sample_items(many, many[["template"]])}
    assert len(names) == 2 * 12
    assert {"first-0", f"first-{MAX_LISTED - 1}", "second-0", f"second-{MAX_LISTED - 1}"} <= names
    assert 2 <= len(sample_items(few[:40], few[:40][[]], n_parts=40 * 3000)) < 10


def test_chosen_items_may_be_rows_or_contrasts(runs):
    rows = runs["strong"].stimuli["role88"].columns()
    contrast, row = rows["contrast"][0], rows["id"][2]
    chosen = answers_to_items([runs["strong"], runs["weak"]], [row, contrast])
    pair = sorted(range(2), key=lambda i: rows["condition"][i])  # appropriate first: table 10
    sentences = [f"{rows['context'][i]} ____" for i in (2, *pair)]
    assert [answers.sentence for answers in chosen] == sentences
    assert [*chosen[0].by_model] == ["strong", "weak"]
    assert all(len(words) == 5 for answers in chosen for words in answers.by_model.values())
    with pytest.raises(BadInput, match=f"no item '{contrast}x' .did you mean '{contrast}"):
        answers_to_items([runs["strong"]], [f"{contrast}x"])
