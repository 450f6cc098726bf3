"""Measures of whole sentences and of suites. The arithmetic is in comments beside the values."""

import json
import math
import re
from dataclasses import replace

import pytest
from invented_runs import model_info, predictions_of
from sentence_files import BITS, suite

import lmdiag
from lmdiag import stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.measures import part_bits
from lmdiag.results.evaluation import evaluate
from lmdiag.results.item_rows import items_of_predictions, measure_columns
from lmdiag.results.item_scores import item_scores, without_curves
from lmdiag.studies.comparison import _headlines
from lmdiag.types import UNCASED, BadInput, SentenceAnswer, WordSpan

NAT = math.log(2)
"""Nats in a bit."""


def of(rows, bits, unknown=()):
    """Predictions with the surprisal of each word, punctuation by itself, of one token each.

    Args:
        rows: what is asked.
        bits: surprisals of the words of each row; None for a first word without one.
        unknown: numbers of a row and of a word that the tokenizer cannot represent.
    """
    answers = []
    for row, text in enumerate(rows.columns()["sentence"]):
        words = []
        for word, match in enumerate(re.finditer(r"\w+|[^\w\s]", text)):
            value = None if (row, word) in unknown else bits[row][word]
            nats = None if value is None else -value * NAT
            words.append(WordSpan(*match.span(), nats, n_tokens=(row, word) not in unknown))
        answers.append(SentenceAnswer(tuple(words)))
    more = {name: [getattr(answer, name) for answer in answers] for name in ("n_tokens", "words")}
    return predictions_of(rows.columns(), [answer.log_prob for answer in answers], **more)


def measured(rows, predictions, kind="causal"):
    return item_scores(rows, predictions, Protocol(), kind=kind)


def figures(rows, predictions, folds=()):
    return evaluate(rows, [predictions], Protocol(), folds)


def pairs():
    """Three contrasts, the second with two bad sentences."""
    return stimuli.load(
        [
            {"id": name, "sentence": f"{name} is here", "good": name[1] == "1",
             "contrast": name[0], "length": "long" if name[0] == "b" else "short"}
            for name in ("a1", "a2", "b1", "b2", "b3", "c1", "c2")
        ]
    )  # fmt: skip


def test_sensitivity_by_the_sum_and_by_the_mean():
    rows = pairs()
    # sums, in bits: a 9 under 10; b 6, over 5.5 and under 7; c 8 = 8
    bits = [(3, 3, 3), (4, 3, 3), (2, 2, 2), (2, 2, 1.5), (3, 2, 2), (4, 2, 2), (2, 2, 4)]
    # means: a 9/3 over 10/5; b 6/3 under 5.5/2 and 7/3; c 8/4 under 8/3
    found = measured(rows, replace(of(rows, bits), n_tokens=[3, 5, 3, 2, 3, 4, 3]))
    per_word = found.pop("surprisal_per_word")  # each sentence has three words
    assert per_word.values.tolist() == pytest.approx([sum(of_row) / 3 for of_row in bits])
    found = {name: found[name] for name in found if not name.startswith("slor")}
    assert list(found) == ["sensitivity", "sensitivity_mean"]
    assert found["sensitivity"].values.tolist() == [1, 0, 0]
    assert found["sensitivity_mean"].values.tolist() == [0, 1, 1]
    assert found["sensitivity"].items.tolist() == ["a", "b", "c"]
    for scores_of in found.values():
        assert scores_of.chance.tolist() == [1 / 2, 1 / 3, 1 / 2]
        assert {level: len(items) for level, items in scores_of.levels["length"].items()} == {
            "short": 2, "long": 1,
        }  # fmt: skip


def test_a_sentence_without_a_probability_leaves_its_contrast_out_and_is_named():
    rows = pairs()
    predictions = of(rows, [(1, 1, 1)] * 7, unknown=[(1, 0), (4, 0), (4, 1), (4, 2)])
    assert measured(rows, predictions)["sensitivity"].items.tolist() == ["c"]
    found = figures(rows, predictions)
    named = [(target.id, target.word) for target in found.unscorable]
    assert named == [("a2", "a2"), ("b3", "b3, is, here")]
    assert found.without_first == 0


def test_words_without_a_token_of_their_own_have_no_surprisal_and_are_named():
    rows = pairs()
    predictions = of(rows, [(1, 1, 1)] * 7)
    first = predictions.words[0]
    shared = first[1]._replace(log_prob=0.0, n_tokens=0)
    predictions.words[0] = (first[0], shared, *first[2:])
    assert math.isnan(part_bits(predictions.words[0], shared.start, shared.end))
    assert part_bits(predictions.words[0], 0, shared.end) == pytest.approx(1)
    found = figures(rows, predictions)
    text = rows.columns()["sentence"][0]
    named = [(word.id, word.word) for word in found.shared_tokens]
    assert named == [(rows.columns()["id"][0], text[: shared.end])]
    assert found.unscorable == []


def test_a_first_word_without_a_probability_is_left_out_of_sums_and_counted():
    rows = pairs()
    # sums without the first word: a 6 under 7; b 4 over 3.5; c 4 under 6
    bits = [(None, 3, 3), (None, 4, 3), (None, 2, 2), (None, 2, 1.5), (None, 2, 2), (None, 2, 2),
            (None, 2, 4)]  # fmt: skip
    predictions = of(rows, bits)
    assert measured(rows, predictions)["sensitivity"].values.tolist() == [1, 0, 1]
    found = figures(rows, predictions)
    assert (found.without_first, found.unscorable) == (7, [])


def test_the_same_sentences_or_tokens_are_nothing_to_compare():
    """Of an uncased model; of any other, where the numbers are the same, too."""
    rows = stimuli.load([{"sentence_good": "A b", "sentence_bad": "A b"}])
    same = measured(rows, of(rows, [(1, 2), (1, 2)]))["sensitivity"]
    assert len(same.items) == 0
    assert same.not_defined == "the good sentence and a bad one of each contrast are the same"
    pairs = [("The dogs bark", "the dogs bark"), ("A b", "a b"), ("A b", "A c"), ("A b", "A d")]
    rows = stimuli.load([{"sentence_good": good, "sentence_bad": bad} for good, bad in pairs])
    # equal sums; other ones, as in half precision; equal by chance; other ones
    bits = [(1, 2, 3), (1, 2, 3), (1, 2), (1, 2.5), (1, 2), (1, 2), (1, 2), (1, 3)]
    # a tie is no success: 1 of 2; 2 of 3
    for folds, equal, n, right in ((UNCASED, 2, 2, 1), ((), 1, 3, 2)):
        found = figures(rows, of(rows, bits), folds)
        assert found.equal_contrasts == found.to_json()["equal_contrasts"] == equal
        sensitivity = found.measures["sensitivity"]
        assert (sensitivity.n, sensitivity.value) == (n, right / n)


def test_the_critical_word_is_the_response():
    """Of the first figures, of items and of analyses; the whole sentence on request."""
    rows = stimuli.load(
        {"item": ["1", "1", "2", "2"], "condition": ["x", "y"] * 2, "at": ["1", "2", "1", "1"],
         "sentence": ["One two three", "One two three", "A b", "A b c"]},
        critical="at:0",
    )  # fmt: skip
    predictions = of(rows, [(1, 2, 6), (1, 3, 4), (1, 5), (1, 7, 8)])
    with pytest.raises(BadInput, match="position 2 is not between 0 and 1, the last word"):
        stimuli.load({"sentence": ["One two"], "at": ["2"]}, critical="at:0")
    found = measured(rows, predictions)
    assert found["critical_surprisal"].values == pytest.approx([2, 4, 5, 7])
    headlines = [name for name, *_ in _headlines(rows.diagnostic, found)]
    assert {*headlines} == {"critical_surprisal"}
    table = items_of_predictions(predictions, rows)
    assert [*table["text"]] == ["two", "three", "b", "b"]
    assert [*table["surprisal"]] == pytest.approx([2, 4, 5, 7])
    # y - x: (4 - 2 + 7 - 5) / 2 = 2; of the whole sentence (8 - 9 + 16 - 6) / 2 = 4.5
    found = lmdiag.analyse(predictions, rows, conditions="condition")
    assert found.response_text() == "surprisal of the critical word"
    assert found.effects["estimate"].tolist() == pytest.approx([2])
    whole = lmdiag.analyse(predictions, rows, region="sentence", conditions="condition").effects
    assert whole["estimate"].tolist() == pytest.approx([4.5])


@pytest.mark.parametrize(
    ("name", "positions"),
    [("at", ["0", "1"]), ("crit0idx", ["1", "1"]), ("zero_based", ["1", "2"])],
)
def test_positions_that_seem_to_count_from_zero(name, positions):
    """Both readings of the first row are shown; one of them is chosen."""
    data = {"sentence": ["One two three", "A b c"], name: positions}
    with pytest.raises(BadInput, match=rf"--critical {name}:0 reads .*; --critical {name}:1 reads"):
        stimuli.load(data, critical=name)
    rows = stimuli.load(data, critical=f"{name}:0")
    assert (rows.regions or [])[1][0]["start"] == 2 * int(positions[1])


def test_surprisal_per_word_where_nothing_is_compared():
    rows = stimuli.load(
        [{"sentence": "One two three", "condition": "x"}, {"sentence": "One", "condition": "y"},
         {"sentence": "A b", "condition": "y"}]
    )  # fmt: skip
    # (1 + 2 + 6) / 3 = 3; 4; a first word without a probability: 5 / 1
    found = measured(rows, of(rows, [(1, 2, 6), (4,), (None, 5)]))
    assert list(found)[:1] == ["surprisal_per_word"]
    assert found["surprisal_per_word"].values == pytest.approx([3, 4, 5])
    assert found["surprisal_per_word"].at("condition", "y").values == pytest.approx([4, 5])
    # of a program that gives sums alone, by the words of the text; a probability of 0 is left out
    sums = predictions_of(rows.columns(), [-9 * NAT, -math.inf, -4 * NAT])
    assert measured(rows, sums)["surprisal_per_word"].values == pytest.approx([3, 2])


def doors(*formulas):
    """The suite, with its formulas or others, and the surprisals of its words in bits."""
    others = {"predictions": [{"type": "formula", "formula": text} for text in formulas]}
    rows = stimuli.load(suite(**(others if formulas else {})), "doors")
    return rows, [BITS[name] for name in rows.columns()["id"]]


def verdicts(found):
    part = found["prediction_accuracy"]
    return dict(zip(part.items.tolist(), part.values.tolist(), strict=True))


def test_every_formula_of_the_suite_by_hand():
    rows, bits = doors()
    found = measured(rows, of(rows, bits))
    assert list(found) == ["suite_accuracy", "prediction_accuracy"]
    # regions 1 to 4 and the sentence, match and mismatch:
    # item 1: 7 0 3 5 (15), 7 0 6.5 5.5 (19)
    # item 2: 7 8 2 1 (18), 7.0011 8 2.5 0.5 (18.0011)
    # item 3: 7 8 2 1 (18), 7 9 2.5 2 (20.5)
    # 1: 3 < 6.5; 2 < 2.5; 2 < 2.5
    # 2: 3 < 6.5, 5 < 5.5, and 0 = 0, an empty region; not 1 < 0.5; 2 < 2.5, 1 < 2, but not 8 = 9
    # 3: neither 15 > 19 nor 5 > 5.5; not 18 > 18.0011, but 1 > 0.5; neither
    # 4: 6.5 + 5.5 - 3 - 5 = 4 > 3; 2.5 + 0.5 - 2 - 1 = 0; 2.5 + 2 - 2 - 1 = 1.5
    # 5: 0 = 0; 8; 8. 6: 7 = 7; 7.0011 - 7 = 0.0011 > 0.001 + 0.00001 * 7.0011 = 0.00107; 7 = 7
    expected = [[1, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1]]
    assert verdicts(found) == {
        f"doors/{item + 1}/{n + 1}": expected[item][n] for item in range(3) for n in range(6)
    }
    shares = found["suite_accuracy"]
    assert shares.items.tolist() == ["doors/1", "doors/2", "doors/3"]
    assert shares.values == pytest.approx([5 / 6, 2 / 6, 2 / 6])
    assert (shares.statistic, shares.chance) == ("share", None)
    assert shares.levels == {}  # one suite is no break-down
    predictions = found["prediction_accuracy"]
    assert {
        level: predictions.at("prediction", level).values.tolist()
        for level in predictions.levels["prediction"]
    } == {f"doors/{n + 1}": [of_item[n] for of_item in expected] for n in range(6)}
    # one prediction per item makes proportions
    rows, bits = doors("(3;%match%) < (3;%mismatch%)")
    shares = measured(rows, of(rows, bits))["suite_accuracy"]
    assert (shares.statistic, shares.values.tolist()) == ("proportion", [1, 1, 1])


def test_two_suites_are_a_break_down_and_each_has_its_own_formulas(tmp_path):
    easy = suite(meta={}, predictions=[{"type": "formula", "formula": "(*;%match%) > 0"}])
    for name, content in (("doors", suite()), ("easy", easy)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    rows = stimuli.load(str(tmp_path))
    bits = [BITS[name.replace("easy", "doors")] for name in rows.columns()["id"]]
    found = measured(rows, of(rows, bits))
    shares = found["suite_accuracy"]
    assert shares.statistic == "share"
    assert {x: shares.at("suite", x).values.mean() for x in shares.levels["suite"]} == {
        "doors": pytest.approx(1 / 2), "easy": 1,  # (5 + 2 + 2) / 18
    }  # fmt: skip


def test_a_region_with_an_unknown_word_leaves_its_predictions_out():
    rows, bits = doors()
    predictions = of(rows, bits, unknown=[(0, 2)])  # the verb
    found = measured(rows, predictions)
    # 1, 2 and 4 read the verb, and 3 the whole sentence; 5 and 6 hold
    assert found["prediction_accuracy"].left_out == tuple(f"doors/1/{n}" for n in (1, 2, 3, 4))
    assert found["suite_accuracy"].values == pytest.approx([2 / 2, 2 / 6, 2 / 6])
    assert figures(rows, predictions).not_computed == [
        "prediction_accuracy: 4 of 18 predictions on items read a region without a probability"
    ]
    named = [(target.id, target.word) for target in figures(rows, predictions).unscorable]
    assert named == [("doors/1/match", "open")]
    # a region with another word, too: "The doors"
    found = measured(rows, of(rows, bits, unknown=[(0, 1)]))
    assert found["prediction_accuracy"].left_out == ("doors/1/3", "doors/1/6")


def test_a_first_word_without_a_probability_in_regions():
    texts = ["(1;%match%) < (1;%mismatch%)", "(*;%match%) < (*;%mismatch%)"]
    rows, bits = doors(*texts)
    found = measured(rows, of(rows, [[None, *values[1:]] for values in bits]))
    # region 1 without "The" or "A": 5 < 5; 4 < 4.0011; 4 < 4. Sentences: 13 < 17 and so on
    assert verdicts(found) == {
        "doors/1/1": 0, "doors/1/2": 1, "doors/2/1": 1, "doors/2/2": 1, "doors/3/1": 0,
        "doors/3/2": 1,
    }  # fmt: skip


def test_sums_of_another_program_allow_formulas_on_whole_sentences():
    texts = ["(*;%match%) < (*;%mismatch%)", "(3;%match%) < (3;%mismatch%)"]
    rows, bits = doors(*texts)
    predictions = replace(of(rows, bits), words=[], n_tokens=[None] * 6)
    found = measured(rows, predictions)
    assert verdicts(found) == {"doors/1/1": 1, "doors/2/1": 1, "doors/3/1": 1}
    lines = figures(rows, predictions).not_computed
    assert [line.partition(":")[0] for line in lines] == [
        "formulas on regions", "prediction_accuracy",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("second", "compared"), [("causal", ["surprisal_per_word"]), ("masked", [])]
)
def test_surprisals_are_compared_within_a_kind(second, compared):
    rows = stimuli.load([{"sentence": "One two"}, {"sentence": "A b"}])
    models = [
        lmdiag.measure(replace(of(rows, bits), model=model_info(kind=kind)), rows)
        for kind, bits in (("causal", [(1, 2), (1, 3)]), (second, [(2, 2), (2, 3)]))
    ]
    figures = lmdiag.compare(*models)
    assert [figure.measure for figure in figures] == compared


def test_shares_are_correlated_with_those_of_people():
    """Spearman over contrasts; the contrast with a word that has no probability is left out."""
    shares = [0.9, 0.6, 0.7, 0.3, 0.5]
    people = [0.8, 0.7, 0.9, 0.2, 0.1]
    rows = stimuli.load([
        {"sentence_good": f"{name} is here", "sentence_bad": f"{name} are here", "human": share}
        for name, share in zip("abcde", people, strict=True)
    ])  # fmt: skip
    bits = [[0, 0, -math.log2(p)] for share in shares for p in (share, 1 - share)]
    result = figures(rows, of(rows, bits, unknown={(9, 2)})).measures["spearman_human"]
    # shares and people of the other four have the ranks 4, 2, 3, 1 and 3, 2, 4, 1:
    # 1 - 6 (1 + 0 + 1 + 0) / (4 (16 - 1)) = 0.8
    assert (result.value, result.n) == (pytest.approx(0.8), 4)
    assert not result.by
    labels = stimuli.load([{"sentence_good": "a b", "sentence_bad": "b a", "human": "yes"}])
    assert "spearman_human" not in figures(labels, of(labels, [[1, 1], [1, 1]])).measures


def test_slor_is_the_gain_over_the_words_alone():
    pytest.importorskip("wordfreq", reason="wordfreq is not installed")
    texts = ["the dog", "the zzqxv", "dog"]
    rows = stimuli.load([{"sentence": text} for text in texts])
    predictions = of(rows, [[2, 9], [2, 9], [9]])
    result = figures(rows, predictions).measures["slor@language=en"]
    from wordfreq import word_frequency

    the, dog = (math.log2(word_frequency(word, "en")) for word in ("the", "dog"))
    # one word is not known; (-11 - the - dog) / 2 and -9 - dog
    assert result.value == pytest.approx(((-11 - the - dog) / 2 + (-9 - dog)) / 2)
    assert result.n == 2
    german = stimuli.load([{"sentence": text, "language": "de"} for text in texts])
    assert "slor@language=de" in figures(german, of(german, [[2, 9], [2, 9], [9]])).measures
    scores = item_scores(rows, predictions, Protocol(), kind="causal")
    assert "slor@language=en" in dict(measure_columns(rows, scores))  # the items, and analyses
    assert "slor@language=en" in without_curves(scores)  # what is saved and compared
