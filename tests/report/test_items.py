"""Items of a run: what was asked, what was said, and how it came out."""

import math
import statistics

import pytest
from sentence_files import ORDER, PARADIGMS, SUM

from lmdiag import diagnostics
from lmdiag.report.item_list import listed, representative
from lmdiag.report.items import MAX_LISTED, Choice, Item, choose, items
from lmdiag.types import BadInput, WordSpan


def choice(id, good, p, **changes):
    """A row of the data with the probability of its target."""
    facts = {"context": "A", "target": id, "rank": 1, "words": ()}
    log_prob = None if p is None else math.log(p)
    return Choice(id=id, good=good, log_prob=log_prob, **facts | changes)


def item(name, good, *bad, **levels):
    rows = [choice(f"{name}-good", True, good)]
    rows += [choice(f"{name}-bad{i}", False, p) for i, p in enumerate(bad)]
    if good is None or None in bad:
        return Item(name, rows, levels)
    ahead = [good - (p or 0) for p in bad]
    return Item(name, rows, levels, min(ahead) > 0, min(ahead) > 0.01)


def sentence(id, good, text, *bits, **more):
    """A row that is a sentence with these surprisals of its words."""
    spans, place = [], 0
    for word, surprisal in zip(text.split(), bits, strict=True):
        place = text.index(word, place)
        log_prob = None if surprisal is None else -surprisal * math.log(2)
        spans.append(WordSpan(place, place + len(word), log_prob, 1))
        place += len(word)
    known = [surprisal for surprisal in bits if surprisal is not None]
    p = 2 ** -sum(known) if known else None
    return choice(id, good, p, context=text, target="", spans=spans, **more)


def pair(good, bad):
    rows = [sentence("g", True, "a", good), sentence("b", False, "b", bad)]
    return Item("x", rows, {}, None if good is None else good < bad)


def predicted(*holds):
    rows = [sentence("x", None, "a", 2.0)]
    return Item("x", rows, {}, predictions=[(ORDER, value) for value in holds])


@pytest.mark.parametrize(
    ("one", "order", "verdict"),
    [
        # the difference is to the most probable bad completion
        (item("x", 0.5, 0.1, 0.25), 0.25, ("right", "good preferred by .250")),
        (item("x", 0.5, 0.495), 0.005, ("narrow", "good preferred by only .0050")),
        (item("x", 0.25, 0.5), -0.25, ("wrong", "bad preferred by .250")),
        (item("x", 0.5, 0.5), 0.0, ("wrong", "neither preferred")),
        (item("x", 0.5, 0.1, None), None, ("unknown", "cannot be compared")),
        (item("x", None, 0.1), None, ("unknown", "cannot be compared")),
        # a sample of the rows, `--limit`, may lack the good row
        (Item("x", [choice("bad", False, 0.5)], {}), None, ("unknown", "cannot be compared")),
        # sentences differ by bits
        (pair(10.0, 13.25), 3.25, ("right", "good preferred by 3.2 bits")),
        (pair(10.04, 10.0), -0.04, ("wrong", "bad preferred by 0.04 bits")),
        (pair(10.0, 10.0), 0.0, ("wrong", "neither preferred")),
        (pair(None, 10.0), None, ("unknown", "cannot be compared")),
        # an item of a suite is as good as its predictions
        (predicted(True), 1, ("right", "prediction holds")),
        (predicted(False), 0, ("wrong", "prediction does not hold")),
        (predicted(True, False), 0.5, ("narrow", "1 of 2 predictions hold")),
        (predicted(True, None), None, ("unknown", "cannot be evaluated")),
    ],
)
def test_an_item_has_a_place_in_the_order_and_a_verdict(one, order, verdict):
    assert one.order == (None if order is None else pytest.approx(order))
    assert one.verdict == verdict


def test_expected_words_are_compared_as_the_tokenizer_asks():
    words = {"words": ("Tree", "bird"), "word_log_probs": (-1.0, -2.0), "expected": ("tree",)}
    blind = choice("x", True, 0.1, **words, folds=("case",))
    exact = choice("x", True, 0.1, **words)
    assert [is_expected for _, _, is_expected in blind.top] == [True, False]
    assert (blind.place, exact.place) == (1, None)
    assert blind.top[1][1] == pytest.approx(math.exp(-2))
    unknown = choice("x", True, None, words=("a", "b"))
    assert unknown.top == [("a", None, False), ("b", None, False)]


def test_regions_have_the_sum_of_the_words_that_begin_in_them():
    text = "Who fed him, then?"
    places = {"1 who": (0, 3), "2 empty": (3, 3), "3 rest": (4, 12), "4": (13, 18)}
    regions = [
        {"number": int(name[0]), "name": name[2:], "start": start, "end": end}
        for name, (start, end) in places.items()
    ]
    row = sentence("x", None, text, None, 2.5, 0.25, 8.0, regions=regions)
    assert [(part.name, part.text, part.bits) for part in row.parts] == [
        ("1 who", "Who", None),  # the first word of a model without a BOS token
        ("2 empty", "", None),
        ("3 rest", "fed him,", pytest.approx(2.75)),
        ("4", "then?", pytest.approx(8)),
    ]
    *before, last = row.spans or ()
    unknown = row._replace(spans=(*before[:2], last._replace(start=8, log_prob=None, n_tokens=0)))
    assert unknown.parts[2].bits is None  # with a word that the tokenizer cannot represent


def test_every_contrast_is_an_item_with_its_good_row_first(runs, forms):
    """That verdicts are the scores of sensitivity is tested with all views."""
    tasks = [(runs["weak"], task) for task in ("cprag102", "role88", "neg136")]
    for run, task in (*tasks, (forms["pairs"], "blimp")):
        found, rows = items(run, task), run.stimuli[task].columns()
        assert {one.prefers_good for one in found} >= {True, False}
        for one in found:
            assert one.prefers_good == (None if one.difference is None else one.difference > 0)
        assert [one.id for one in found] == list(dict.fromkeys(rows["contrast"]))
        assert sorted(c.id for one in found for c in one.choices) == sorted(rows["id"])
        assert all(one.choices[0].good for one in found)
        first = [c.place == 1 for one in found for c in one.choices if c.expected]
        if first:
            accuracy = run.results.tasks[task]["none"].measures["accuracy@1"].value
            assert accuracy == pytest.approx(statistics.fmean(first))
    assert len(found) == 4 * len(PARADIGMS)
    assert found[0].difference is None  # a word cannot be represented
    for row in (row for one in found[1:] for row in one.choices):
        assert row.bits == pytest.approx(sum(part.bits or 0 for part in row.parts))
        assert [part.text for part in row.parts] == row.sentence.split()


def test_items_of_suites_agree_with_their_formulas(forms):
    found = items(forms["suites"], "gym")
    assert [one.id for one in found][:3] == [f"center_embed/{i}" for i in (1, 2, 3)]
    measure = forms["suites"].results.tasks["gym"]["none"].measures["suite_accuracy"]
    assert measure.value == pytest.approx(statistics.fmean(one.held or 0 for one in found))
    for one in found:
        plaus, implaus = one.choices
        assert (plaus.condition, implaus.condition) == ("plaus", "implaus")
        bits = [[part.bits or 0 for part in row.parts] for row in (plaus, implaus)]
        expected = [(ORDER, sum(bits[0][2:4]) < sum(bits[1][2:4]))]
        if one.levels["suite"] != "center_embed":
            expected.append((SUM, (plaus.bits or 0) < (implaus.bits or 0)))
        assert one.predictions == expected
    assert {one.held for one in items(forms["suites of weak"], "gym")} == {0, 0.5, 1}


def test_a_list_has_distinct_contexts_and_perturbed_items_anchors_of_their_own(runs):
    several = [items(runs[name], "cprag102") for name in ("strong", "weak")]
    (first, *_) = listed(several, diagnostics.get("cprag102"))
    (rows,) = first["contexts"]  # the three completions share a context
    assert [row[0].good for row in rows] == [True, False, False]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert list(rows[0][0].expected) == [rows[0][0].target]
    diagnostic = diagnostics.get("role88")
    plain, changed = items(runs["weak"], "role88"), items(runs["weak"], "role88", "obj")
    assert all(" which one the " in c.context for one in changed for c in one.choices)
    assert not any(" which one the " in c.context for one in plain for c in one.choices)
    as_listed = listed([plain], diagnostic)
    anchors = [one["anchor"] for one in listed([changed], diagnostic, "obj")]
    assert anchors == [f"obj:{one['anchor']}" for one in as_listed]
    assert len(as_listed[0]["contexts"]) == 2  # one verb in two contexts


def test_of_too_many_the_worst_and_the_best_of_each_template_are_listed():
    few = [item(str(i), 0.5, 0.1) for i in range(MAX_LISTED)]
    assert representative(few) == few
    many = [
        item(f"{template}-{i}", 0.5, (i + 1) / 1000, template=template)
        for template in ("first", "second")
        for i in range(MAX_LISTED)
    ]
    names = {one.id for one in representative(many)}
    assert len(names) == 2 * 12
    assert {"first-0", f"first-{MAX_LISTED - 1}", "second-0", f"second-{MAX_LISTED - 1}"} <= names
    long = sentence("x", None, " ".join(["word"] * 3000), *[0.1] * 3000)
    assert 2 <= len(representative([Item(str(i), [long], {}) for i in range(40)])) < 10


def test_chosen_items_may_be_rows_or_contrasts(runs):
    rows = runs["strong"].stimuli["role88"].columns()
    contrast, row = rows["contrast"][0], rows["id"][2]
    chosen = choose([runs["strong"], runs["weak"]], [row, contrast])
    pair = sorted(range(2), key=lambda i: rows["condition"][i])  # appropriate first: table 10
    assert [choice.context for choice, _ in chosen] == [rows["context"][i] for i in (2, *pair)]
    assert [*chosen[0][1]] == ["strong", "weak"]
    assert all(len(row.top) == 5 for _, answers in chosen for row in answers.values() if row)
    with pytest.raises(BadInput, match=f"no item '{contrast}x' .did you mean '{contrast}"):
        choose([runs["strong"]], [f"{contrast}x"])
