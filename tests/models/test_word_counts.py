"""Models of word counts: wordfreq's numbers, and n-grams worked out by hand."""

import base64
import gzip
import hashlib
import math
import random
import re
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from ngram_training import arpa_text
from pandas import DataFrame, read_csv
from wordfreq import tokenize, word_frequency

import lmdiag
from lmdiag.cli import main
from lmdiag.models import LoadOptions, load
from lmdiag.models.word_counts.ngrams import BackoffDistribution
from lmdiag.models.word_counts.word_model import ListedDistribution
from lmdiag.report.display import output_of
from lmdiag.report.run_report import Report
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import headline_rows
from lmdiag.results import cited_signature, comparable_part
from lmdiag.types import DIAGNOSTICS, BadInput, Query, Question, Sentence

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

# ARPA by KenLM's build_binary (75b7273c): a hash table and a trie; base64 of zlib
BINARIES = {
    "probing": (
        "eNrLzU0sUMjJVcgoKSmw0tfPzkhNTMtMzUnRS87P1U/OT0lVSMsvyk0sUShLLSrOzM9TMOViQIAGeyCxnxFI/AcCkA"
        "gjVIYJTB6wRxZjg9LMDKgAJK696KnUGnXrJSC5TOH04591rZVY0dRt2sSQHhR37zsLkM2V8/1jbfGDbCY0NQV1inst"
        "20rhdmIHDftBBAPDsUOzZs7cZ2xsbA/hM9ifPeOzLy0tDUif2Qt0P1QdBHB8Yspo2WgsDNLTWPT2Q211TStIvWab+Y"
        "U9h5oVgHr2IdtiU5qXbcdgUwzE+kCiJCOVISU/nUGPAQATJVYv"
    ),
    "trie": (
        "eNrLzU0sUMjJVcgoKSmw0tfPzkhNTMtMzUnRS87P1U/OT0lVSMsvyk0sUShLLSrOzM9TMOViQIAGeyCxnxFI/AcCkA"
        "gjVIYJTB6wZ4KKgTAbVI4ZyQRWKF1Qp7jXsq2UIVM4/fhnXWslrpzvH2uLH2RrL3oqtUbdesmmTQzpQXH3viPZvR9E"
        "IPjHDs2aOXMfgn8ARd7Y2BhNPcP+s2d89sHcm5aWBuSf2cvEgAqYGbCD3LS0b0tnzjzpDjREHlnCpjQv247BptiOQY"
        "/BRh9IlWSkMqTkpzMAALUuSvM="
    ),
}


DIGEST = hashlib.sha256(ARPA.encode()).hexdigest()[:8]


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


@pytest.mark.parametrize(
    ("language", "package", "word", "phrase", "unknown"),
    [
        ("zh", "jieba", "谢谢", "我喜欢苹果", "qzxv"),
        ("ja", "MeCab", "コマドリ", "大阪で食べる", "ゑゑ"),
        ("ko", "MeCab", "사과", "새가", "뷁"),
    ],
)
def test_languages_without_spaces_are_divided_by_wordfreq(language, package, word, phrase, unknown):
    remedy = f"wordfreq needs {package} for language {language}: `pip install 'wordfreq[cjk]'`"
    if find_spec(package) is None:
        with pytest.raises(BadInput) as caught:
            load(f"frequency:{language}")
        assert str(caught.value) == remedy
        pytest.skip(f"{package} is not installed: pip install 'wordfreq[cjk]' (200 MB)")
    scores = answer(load(f"frequency:{language}"), Question(Query(""), (word, phrase, unknown)))
    parts = tokenize(phrase, language)
    assert len(parts) > 1
    expected = [math.log(word_frequency(text, language)) for text in (word, *parts)]
    assert scores.words[word].log_prob == pytest.approx(expected[0], abs=1e-12)
    assert scores.words[phrase].log_prob == pytest.approx(math.fsum(expected[1:]), abs=1e-12)
    assert scores.words[unknown].log_prob == pytest.approx(math.log(1e-9))


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


def test_frequency_stands_after_all_models_in_grey_however_they_were_asked(tmp_path):
    how = {"data": "demo", "tasks": "neg136", "output": tmp_path, "quiet": True}
    frequency = lmdiag.run("frequency:en", **how)
    assert frequency.results.model.architecture.startswith("wordfreq ")
    assert lmdiag.run("frequency:en", **how).results == frequency.results
    other = lmdiag.run("demo:causal", unit="word", bos="always", **how)
    assert frequency.results.signature.endswith("|seed:0|model:frequency:en")
    shown = output_of(Report([frequency, other]))
    names = [fact.name for fact in shown.facts]
    assert names == ["demo:causal", "word frequency, no context"]
    assert [fact.is_grey for fact in shown.facts] == [False, True]
    (plot,) = (plot for plot in shown.plots if plot.name == "neg136-subset-accuracy")
    scale = plot.spec["layer"][-1]["encoding"]["color"]["scale"]
    assert scale == {"domain": names, "range": ["var(--c1)", "var(--muted)"]}
    assert [*shown.findings] == [
        "demo:causal prefers the true completion in 77.8% of affirmative and 11.1% of negated "
        "sentences (chance 50%).",
        "Frequency alone prefers the true completion in 55.6% of affirmative sentences, which "
        "cannot be told from demo:causal (77.8%; adjusted p = .410) and in 44.4% of negated "
        "sentences, which cannot be told from demo:causal (11.1%; adjusted p = .086).",
    ]
    for runs in ((frequency, other), (other, frequency)):
        compared = lmdiag.compare(*runs)
        assert {row.measure for row in compared} > {"accuracy@5", "sensitivity"}
        assert [*output_of(compared).warnings] == []
    plain = lmdiag.run("demo:causal", **how)
    for runs in ((frequency, plain), (plain, frequency)):
        (line,) = output_of(lmdiag.compare(*runs)).sections[-1].signatures
        assert line == cited_signature(plain.results.signature)


def test_unknown_words_are_named_also_in_a_run_that_is_resumed_or_read_back(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("item,cond,region_1,region_2\n1,a,The zqx,sings.\n1,b,The zqy,sing.\n", "utf-8")
    how = {"output": tmp_path, "quiet": True}
    line = "model frequency:en: 2 words are not in wordfreq, and counted as 1e-09 ('zqx', 'zqy')"
    run = lmdiag.run("frequency:en", data, **how)
    assert run.results.model_warnings == [line]
    assert lmdiag.run("frequency:en", data, region="region_2", **how).results.warnings[0] == line
    model = load("frequency:en")
    model.encode(Sentence("The zqx sings."))  # whoever answers: a journal, or another process
    assert "('zqx')" in model.warning


def test_frequency_adds_nothing_to_a_baseline_that_has_it():
    text = "the robin sings while one small dog sleeps beneath that tree and nobody cares"
    words = text.split()
    rng = random.Random(0)
    table = DataFrame({"word": words * 3, "position": range(1, 43)})
    table["rt"] = [rng.gauss(300, 20) for _ in table["word"]]
    table["guess"] = [rng.random() for _ in table["word"]]
    table["by_hand"] = [-math.log2(word_frequency(word, "en")) for word in table["word"]]
    same = "word frequency, no context: its surprisal and the control log_frequency of the baseline"
    with pytest.raises(BadInput, match=same):
        lmdiag.fit(table, response="rt", models="frequency:en")
    beside = lmdiag.fit(table, response="rt", models="frequency:en", surprisal="guess")
    assert [model.name for model in beside.models] == ["guess"]
    assert any(note.startswith(same) for note in beside.notes)
    how = {"response": "rt", "controls": ["length"], "lags": 0}
    guess, frequency = lmdiag.fit(table, models="frequency:en", surprisal="guess", **how).models
    assert (guess.name, frequency.name) == ("guess", "word frequency, no context")
    (by_hand,) = lmdiag.fit(table, surprisal="by_hand", **how).models
    assert frequency.delta_log_likelihood == pytest.approx(by_hand.delta_log_likelihood, abs=1e-5)


@pytest.mark.parametrize(
    ("data", "tasks", "n_rows"),
    [
        ("data_dir", DIAGNOSTICS, 11),
        pytest.param("agreement_dir", ("agreement",), 3, marks=pytest.mark.nightly),
    ],
)
def test_the_documented_figures_are_those_of_the_published_items(
    data, tasks, n_rows, request, root, tmp_path
):
    how = {"tasks": tasks, "output": tmp_path, "quiet": True}
    folder = request.getfixturevalue(data)
    figures = ReportFigures.of([lmdiag.run("frequency:en", folder, **how).results])
    computed = []
    for task in tasks:
        name = figures.diagnostic(task).short_title
        for row in headline_rows(task, figures):
            figure = row.cells[0].figure
            values = [cell.value.rstrip("↑↓≈*") or "–" for cell in row.cells]
            computed.append([name, row.labels[0], str(figure.n), *values])
    page = (root / "docs/recipes.md").read_text("utf-8")
    page = page.partition("## Is it more than frequency?")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if "| " in line][2:]
    assert len(rows) == 14
    assert sum(row in computed for row in rows) == n_rows


# ---- n-grams -------------------------------------------------------------------------------------


def log10s(answered):
    return [span.log_prob / math.log(10) for span in answered.words]


def test_a_sentence_backs_off_as_worked_by_hand(ngram):
    # <s> the: a bigram, -0.2; the dog: a bigram, -0.3; dog dog: back-off of dog and dog,
    # -0.1 - 0.9; after it cat, which is unknown: back-off of dog
    # and <unk>, -0.1 - 1; then nothing backs off
    answered = answer(ngram, Sentence("The dog dog cat the"))
    assert log10s(answered) == pytest.approx([-0.2, -0.3, -1.0, -1.1, -0.5], abs=1e-6)
    assert ngram.warning.removeprefix(f"model {ngram.info.id}: ") == (
        "1 word is only in lower case in the file, and read so ('The'); "
        "1 word is not in the file, and counted as <unk> ('cat')"
    )


def test_unknown_words_have_no_probability_where_the_file_has_none(tmp_path, ngram):
    model = load(write(tmp_path / "closed.arpa", ARPA.replace("<unk>", "mice")))
    answered = answer(model, Sentence("the cat the dog"))
    assert [span.log_prob is None for span in answered.words] == [False, True, False, False]
    scores = answer(model, Question(Query("the"), ("cat", "dog"))).words
    assert scores["cat"].log_prob is None
    assert scores["dog"].log_prob / math.log(10) == pytest.approx(-0.3, abs=1e-6)


def test_punctuation_is_a_word_where_the_vocabulary_has_it(ngram):
    # dog . : back-off of dog and the period, -0.1 - 1.5; the comma is not there
    answered = answer(ngram, Sentence("the, dog."))
    assert log10s(answered) == pytest.approx([-0.2, -0.3 - 1.6], abs=1e-6)
    assert [span.n_tokens for span in answered.words] == [1, 2]
    assert "1 word is punctuation that is not in the file, and left out (',')" in ngram.warning


def test_a_blank_is_answered_after_its_context(ngram):
    answered = answer(ngram, Question(Query("the"), ("dog", "the"), entropy=True), top=2)
    assert answered.top_words == ("dog", "the")
    assert answered.words["dog"].log_prob / math.log(10) == pytest.approx(-0.3, abs=1e-6)
    assert answered.words["the"].log_prob / math.log(10) == pytest.approx(-0.2 - 0.5, abs=1e-6)
    assert [answered.words[word].rank for word in ("dog", "the")] == [1, 2]
    # of the, dog and the period: -0.7, -0.3 and -1.7
    shares = [10**x for x in (-0.7, -0.3, -1.7)]
    assert answered.entropy == pytest.approx(-sum(p * math.log2(p) for p in shares), abs=1e-6)


def test_a_thousand_sentences_have_the_scores_of_kenlm(tmp_path, ngram):
    import kenlm

    rng = random.Random(0)
    words = [f"w{number}" for number in range(200)]
    weights = [1 / rank for rank in range(1, 201)]
    corpus = [rng.choices(words, weights, k=rng.randint(1, 12)) for _ in range(1000)]
    model = load(write(tmp_path / "trained.arpa", arpa_text(corpus)))
    scorer = kenlm.Model(str(tmp_path / "trained.arpa"))
    for _ in range(1000):
        text = " ".join(rng.choices([*words, "unknown"], k=rng.randint(1, 12)))
        expected = [log10 for log10, *_ in scorer.full_scores(text, eos=False)]
        assert log10s(answer(model, Sentence(text))) == pytest.approx(expected, abs=1e-6)
    for text in ("", "w0", "w0 w1", "w3 unknown", "unknown w2", "w199 w199"):
        distribution = model.distribution(model._state_after(text))
        logs = [
            [*scorer.full_scores(f"{text} {word}", eos=False)][-1][0] * math.log(10)
            for word in model.words
        ]
        listed = ListedDistribution(np.array(logs))
        assert isinstance(distribution, BackoffDistribution)
        assert distribution.nats == pytest.approx(listed.nats, abs=1e-6)
        assert distribution.entropy == pytest.approx(listed.entropy, abs=1e-6)
        assert distribution.nats_of(distribution.top(5)) == pytest.approx(
            listed.nats_of(listed.top(5)), abs=1e-6
        )
        for number, nats in enumerate(distribution.nats):  # ties are those of the list
            assert distribution.rank(nats, number) == 1 + int((distribution.nats > nats).sum())
    distribution = model.distribution(model.start)
    rest = sum(10 ** scorer.score(word, eos=False) for word in ("</s>", "unknown"))
    assert math.fsum(map(math.exp, distribution.nats)) + rest == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", BINARIES)
def test_a_binary_has_the_answers_of_its_arpa_file(tmp_path, ngram, kind):
    path = tmp_path / "small.binary"
    path.write_bytes(zlib.decompress(base64.b64decode(BINARIES[kind])))
    model = load(f"ngram:{path}")
    assert {*model.words} == {*ngram.words}
    text = "The dog dog cat the."
    assert log10s(answer(model, Sentence(text))) == log10s(answer(ngram, Sentence(text)))
    content = path.read_bytes()
    for damaged, message in (
        (content[:80], "ends in its header"),
        (content[:-5], "does not end with 6 words"),
        (content[:88] + b"\0" + content[89:], "binary of 0-grams"),
        (content[:100] + b"\0" + content[101:], "binary without its words"),
        (content[:56] + b"\1" + content[57:], "test values don't match"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=message) as caught:
            load(f"ngram:{path}")
        assert "\n" not in str(caught.value)


def test_a_signature_names_the_file_and_its_digest(tmp_path, ngram):
    run = lmdiag.run(ngram.info.id, "demo", tasks="neg136", output=tmp_path, quiet=True)
    line = run.results.signature
    assert line == f"{comparable_part(line)}|model:ngram:small.arpa@{DIGEST}"
    assert {x.signature for x in run.results.tasks["neg136"].values()} == {line}


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
    "many words": (("ngram 1=6", "ngram 1=4"), r"but got -0\.9 dog -0\.1 instead$"),
    "a word twice": (("-1.5\t.", "-1.5\tthe"), "has the word 'the' 2 times"),
    "few pairs": (("ngram 2=3", "ngram 2=4"), "not parse .* into a float in the 2-gram at byte"),
    "many pairs": (("ngram 2=3", "ngram 2=2"), "Expected .end. but the ARPA file has -0.4 dog"),
    "huge counts": (("ngram 2=3", "ngram 2=3000000000000"), "counts of n-grams do not fit"),
    "negative counts": (("ngram 1=6", "ngram 1=-6"), "'ngram 1=-6', is not the number of 1-grams"),
    "NaN": (("-0.9\tdog", "nan\tdog"), "probability of 'dog' is nan"),
    "NaN of a pair": (
        ("-0.3\tthe dog", "nan\tthe dog"),
        "not parse .nan. into a float in the 2-gram",
    ),
    "infinite": (("-0.3\tthe dog", "-inf\tthe dog"), "a log10 probability of -inf"),
    "positive": (("-0.9\tdog", "0.9\tdog"), "probability of 'dog' is 0.9"),
    "no end": (("\\end\\", ""), "not a usable file of n-grams: End of file$"),
    "orders": (
        ("ngram 2=3", "\n".join(f"ngram {n}=1" for n in range(2, 12))),
        "of 11 words, and kenlm was built for 6: compile it again with MAX_ORDER=11",
    ),
    "many orders": (("ngram 2=3", "ngram 2=3\nngram 999=1"), "is not the number of 3-grams"),
    "no sentences": (("<s>\t-0.3", "<t>\t-0.3"), "The ARPA file is missing <s>"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGED.values(), ids=[*DAMAGED])
def test_a_damaged_file_is_refused_in_one_line(tmp_path, change, message):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    with pytest.raises(BadInput, match=message) as caught:
        load(write(tmp_path / "bad.arpa", ARPA.replace(*change)))
    assert "\n" not in str(caught.value)


def test_a_back_off_that_makes_probabilities_above_1_is_refused(tmp_path, ngram):
    model = load(write(tmp_path / "bad.arpa", ARPA.replace("dog\t-0.1", "dog\t1e38")))
    with pytest.raises(BadInput, match="probability of 'the' after some words is above 1"):
        answer(model, Question(Query("the dog"), ("cat",)))
    with pytest.raises(BadInput, match="probability of 'the' after some words is above 1"):
        answer(model, Sentence("the dog the"))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path, ngram):
    path = tmp_path / "latin.arpa"
    path.write_bytes(ARPA.replace("\tthe dog", "\tthe d\xf6g").encode("latin-1"))
    with pytest.raises(BadInput, match=r"it is not UTF-8$"):
        load(f"ngram:{path}")


def test_a_compressed_file_that_expands_beyond_reason_is_refused(tmp_path):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    path = tmp_path / "bomb.arpa.gz"
    path.write_bytes(gzip.compress(ARPA.encode() + b"\n" * 50_000_000))
    with pytest.raises(BadInput, match="bytes per compressed byte"):
        load(f"ngram:{path}")


def test_models_without_a_language_or_a_file_are_refused():
    for name, message in (("frequency:", "needs a language"), ("ngram:", "needs a file")):
        with pytest.raises(BadInput, match=message):
            load(name)


def test_a_file_that_is_not_there_is_named():
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    with pytest.raises(BadInput, match=r"nowhere\.arpa cannot be read"):
        load("ngram:nowhere.arpa")


@pytest.mark.slow
@pytest.mark.long
def test_a_trigram_model_of_natural_stories_runs_every_command(
    human, public_suites, tmp_path, monkeypatch
):
    pytest.importorskip("kenlm", reason="kenlm is not installed")
    times = human / "kuribayashi-2024/data/NS/all.txt.annotation.filtered.averaged_rt.csv"
    words = read_csv(times, keep_default_na=False)
    sentences = [
        re.findall(r"[\w'’-]+|[^\w\s]", " ".join(sentence["word"]))
        for _, sentence in words.groupby(["article", "sent_id"], sort=False)
    ]
    assert len(sentences) == 485
    monkeypatch.chdir(tmp_path)
    model = write(Path("stories.arpa"), arpa_text(sentences))
    rows = ["item,number,region_1,region_2,region_3"]
    rows += [
        f"{i},{n},The,{s},barked." for i in (1, 2, 3) for n, s in (("a", "boy"), ("b", "boys"))
    ]
    Path("regions.csv").write_text("\n".join(rows), "utf-8")
    Path("said.csv").write_text("item,context,response\n1,The old,man\n1,The old,boy\n2,A,dog\n")
    rows = ["item,cond,sentence_good,sentence_bad", "1,a,The man was old.,The man were old."]
    Path("pairs.csv").write_text("\n".join([*rows, "2,a,The boys bark.,The boys barks."]), "utf-8")
    Path("texts.txt").write_text("The old man — the boy.\n", "utf-8")
    run = "results/ngram--stories.arpa/diagnostics-token"
    of_sentences = "results/ngram--stories.arpa/regions-token"
    fit = ["--text", "article", "--position", "zone", "--word", "word", "--response", "time"]
    for command in (
        ["run", "--data", "demo", "--model", model, "frequency:en", "--entropy"],
        ["run", "regions.csv", "--model", model],
        ["run", "pairs.csv", "--model", model, "frequency:en"],
        ["run", str(public_suites / "fgd-embed3.json"), "--model", model, "frequency:en"],
        ["run", "--data", "demo", "--tasks", "agreement", "--model", model, "frequency:en"],
        ["report", run, "--out", "report.html"],
        ["report", run, "results/frequency--en/diagnostics-token", "--out", "report.docx"],
        ["items", run, "--out", "items.csv"],
        ["compare", run, "results/frequency--en/diagnostics-token"],
        ["analyse", of_sentences],
        ["multiverse", "--data", "demo", "--tasks", "role88", "--model", model],
        ["cloze", "said.csv", "--model", model],
        ["surprisal", "texts.txt", "--model", model, "--entropy"],
        ["fit", str(times), *fit, "--model", model],
    ):
        assert main(command) == 0, command
