"""Models of word counts: wordfreq's numbers, and n-grams worked out by hand."""

import gzip
import math

import pytest
from wordfreq import word_frequency

import lmdiag
from lmdiag.models import LoadOptions, load
from lmdiag.types import BadInput, Query, Question, Sentence

ARPA = """\\data\\
ngram 1=6
ngram 2=3

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.3
-0.7\t</s>
-0.5\tthe\t-0.2
-0.9\tdog\t-0.1
-1.5\t.

\\2-grams:
-0.2\t<s> the
-0.3\tthe dog
-0.4\tdog </s>

\\end\\
"""


@pytest.fixture
def frequency():
    return load("frequency:en")


def answer(model, question, top=5):
    [answered] = model.answer([model.encode(question)], top)
    return answered


def write(path, text=ARPA):
    path.write_text(text, encoding="utf-8")
    return f"ngram:{path}"


@pytest.fixture
def ngram(tmp_path):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    return load(write(tmp_path / "small.arpa"))


# ---- frequency -----------------------------------------------------------------------------------


def test_words_have_the_numbers_of_wordfreq_whatever_the_context(frequency):
    words = ("robin", "bird", "Bird", "qzxv", "the")
    for context in ("A robin is a", "The"):
        scores = answer(frequency, Question(Query(context), words)).words
        for word in words:
            expected = math.log(max(word_frequency(word, "en"), 1e-9))
            assert scores[word].log_prob == pytest.approx(expected, abs=1e-12)
    assert scores["the"].rank == 1
    assert "'qzxv'" in frequency.warning


def test_ranks_and_top_words_are_of_one_list(frequency):
    answered = answer(frequency, Question(Query("A robin is a"), ("to", "and", "bird")), top=3)
    assert answered.top_words == ("the", "to", "and")
    assert [answered.words[word].rank for word in ("to", "and")] == [2, 3]
    assert answered.top_log_probs[1] == answered.words["to"].log_prob


def test_a_phrase_is_the_product_of_its_words(frequency):
    scores = answer(frequency, Question(Query("I like"), ("ice cream", "ice", "cream", "—"))).words
    expected = scores["ice"].log_prob + scores["cream"].log_prob
    assert scores["ice cream"].log_prob == pytest.approx(expected)
    assert scores["ice cream"].n_tokens == 2
    assert scores["—"].log_prob is None


def test_a_sentence_is_words_without_their_punctuation(frequency):
    answered = answer(frequency, Sentence("The dog — barked.", entropy=True))
    expected = [word_frequency(word, "en") for word in ("the", "dog", "barked")]
    assert answered.log_prob == pytest.approx(sum(map(math.log, expected)))
    assert [span.n_tokens for span in answered.words] == [1, 1, 0, 1]
    assert answered.entropies[2] is None


def test_languages_that_wordfreq_cannot_read_are_refused():
    with pytest.raises(BadInput, match="no language 'tlh': choose from ar, "):
        load("frequency:tlh")


@pytest.mark.parametrize("option", [{"dtype": "float16"}, {"layer": 1}, {"chat": True}])
def test_options_of_weights_are_refused(option):
    with pytest.raises(BadInput, match="cannot be used with a model of word counts"):
        load("frequency:en", LoadOptions(**option))


def test_layers_are_refused(frequency):
    with pytest.raises(BadInput, match="layers cannot be used with a model of word counts"):
        frequency.at_layers(["all"])


def test_agreement_has_ew_and_mw_over_the_verbs(frequency):
    assert frequency.set_verbs([("is", "are"), ("is", "is"), ("qzxv", "are")]) == 1
    answered = answer(frequency, Question(Query("The keys"), (), "plural"))
    share = word_frequency("are", "en") / sum(word_frequency(word, "en") for word in ("is", "are"))
    assert answered.agreement[:2] == pytest.approx((0, share))  # "is" is the more frequent one


def test_a_run_is_read_back(tmp_path):
    how = {"data": "demo", "output": tmp_path, "quiet": True}
    run = lmdiag.run("frequency:en", **how)
    assert run.results.model.architecture.startswith("wordfreq ")
    again = lmdiag.run("frequency:en", **how)
    assert again.results == run.results


# ---- n-grams -------------------------------------------------------------------------------------


def log10s(answered):
    return [span.log_prob / math.log(10) for span in answered.words]


def test_a_sentence_backs_off_as_worked_by_hand(ngram):
    # <s> the: a bigram, -0.2; the dog: a bigram, -0.3; dog dog: back-off of dog and dog,
    # -0.1 - 0.9; after it cat, which is unknown: back-off of dog
    # and <unk>, -0.1 - 1; then nothing backs off
    answered = answer(ngram, Sentence("The dog dog cat the"))
    assert log10s(answered) == pytest.approx([-0.2, -0.3, -1.0, -1.1, -0.5], abs=1e-6)
    assert "'cat'" in ngram.warning


def test_punctuation_is_a_word_where_the_vocabulary_has_it(ngram):
    # dog . : back-off of dog and the period, -0.1 - 1.5; the comma is not there
    answered = answer(ngram, Sentence("the, dog."))
    assert log10s(answered) == pytest.approx([-0.2, -0.3 - 1.6], abs=1e-6)
    assert [span.n_tokens for span in answered.words] == [1, 2]


def test_a_blank_is_answered_after_its_context(ngram):
    answered = answer(ngram, Question(Query("the"), ("dog", "the"), entropy=True), top=2)
    assert answered.top_words == ("dog", "the")
    assert answered.words["dog"].log_prob / math.log(10) == pytest.approx(-0.3, abs=1e-6)
    assert answered.words["the"].log_prob / math.log(10) == pytest.approx(-0.2 - 0.5, abs=1e-6)
    assert [answered.words[word].rank for word in ("dog", "the")] == [1, 2]
    # of the, dog and the period: -0.7, -0.3 and -1.7
    shares = [10**x for x in (-0.7, -0.3, -1.7)]
    assert answered.entropy == pytest.approx(-sum(p * math.log2(p) for p in shares), abs=1e-6)


def test_sentences_have_the_scores_of_kenlm(tmp_path, ngram):
    import kenlm

    scorer = kenlm.Model(str(tmp_path / "small.arpa"))
    for text in ("the dog", "dog the . dog", "cat the dog dog", "the the the ."):
        expected = [log10 for log10, *_ in scorer.full_scores(text, eos=False)]
        assert log10s(answer(ngram, Sentence(text))) == pytest.approx(expected, abs=1e-6)


def test_a_compressed_file_is_read(tmp_path, ngram):
    path = tmp_path / "small.arpa.gz"
    path.write_bytes(gzip.compress(ARPA.encode()))
    text = "the dog cat"
    assert log10s(answer(load(f"ngram:{path}"), Sentence(text))) == pytest.approx(
        log10s(answer(ngram, Sentence(text)))
    )


DAMAGED = {
    "no header": (("\\data\\", "data"), "does not begin with"),
    "few words": (("ngram 1=6", "ngram 1=8"), "does not have 8 words"),
    "many words": (("ngram 1=6", "ngram 1=4"), "not a usable ARPA file"),
    "huge counts": (("ngram 2=3", "ngram 2=3000000000000"), "counts of n-grams do not fit"),
    "NaN": (("-0.9\tdog", "nan\tdog"), "probability of 'dog' is nan"),
    "NaN of a pair": (("-0.3\tthe dog", "nan\tthe dog"), "not a usable ARPA file"),
    "positive": (("-0.9\tdog", "0.9\tdog"), "probability of 'dog' is 0.9"),
    "no end": (("\\end\\", ""), "not a usable ARPA file"),
    "orders": (("ngram 2=3", "\n".join(f"ngram {n}=1" for n in range(2, 12))), "usable ARPA file"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGED.values(), ids=[*DAMAGED])
def test_a_damaged_file_is_refused_in_one_line(tmp_path, change, message):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    with pytest.raises(BadInput, match=message) as caught:
        load(write(tmp_path / "bad.arpa", ARPA.replace(*change)))
    assert "\n" not in str(caught.value)


def test_a_compressed_file_that_expands_beyond_reason_is_refused(tmp_path):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    path = tmp_path / "bomb.arpa.gz"
    path.write_bytes(gzip.compress(ARPA.encode() + b"\n" * 50_000_000))
    with pytest.raises(BadInput, match="bytes per compressed byte"):
        load(f"ngram:{path}")


def test_a_file_that_is_not_there_is_named():
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    with pytest.raises(BadInput, match=r"nowhere\.arpa cannot be read"):
        load("ngram:nowhere.arpa")
