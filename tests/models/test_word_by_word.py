"""The words of whole sentences, asked by lmdiag and by an independent float64 reference."""

import time
from contextlib import nullcontext
from dataclasses import replace

import pandas as pd
import pytest
import torch
from families import SENTENCE_FAMILIES
from reference import CLOSE, SentenceReference, double
from sentence_texts import SENTENCES, SOME
from tokenizer_files import sentencepiece, trained_bytes, unigram
from tokenizers import normalizers

from lmdiag.analysis.fit import fit_surprisals
from lmdiag.analysis.human import HumanTable
from lmdiag.analysis.procedures import Procedure, procedure_for
from lmdiag.models import LoadOptions, load
from lmdiag.runs.surprisals import (
    ask_about_words,
    layer_surprisals,
    shared_tokens_warning,
    word_surprisals,
)
from lmdiag.types import Sentence, WordSpan
from models.toys import alone, ask, asked, bert, gpt2

SIX = ("bert", "roberta", "gpt2", "gpt2-apart", "llama", "qwen2")
"""Every kind of vocabulary, with and without a blank in its words or a token before the first."""

CUT = "The well-known author’s dog sleeps; isn’t it?"
TEXTS = (
    *SOME, Sentence(CUT), Sentence(CUT, tuple(map(CUT.index, ("-known", "’s", ";", "’t", "?")))),
    "The author laughs.", "The author laugh.", "The author laughs", "The author  laughs.", "The",
    " ".join(SENTENCES[20:28]),
)  # fmt: skip
"""Odd ones, regions that begin inside words, common beginnings, and a long text."""


def cases(names, *, is_quick=False):
    """Families with the options under which each is asked."""
    masked = [{"pll": pll} for pll in ("within-word", "original")]
    causal = [{"unit": unit, "bos": bos} for unit in ("token", "word") for bos in ("auto", "never")]
    found = []
    for name in names:
        marks = () if is_quick else pytest.mark.slow if name in SIX else pytest.mark.nightly
        for options in masked if SENTENCE_FAMILIES[name].kind == "masked" else causal:
            found.append(pytest.param(name, options, id="-".join([name, *options.values()]),
                                      marks=marks))  # fmt: skip
    return found


def check(name, folder, texts, *, unit="token", **options):
    """Every word of every sentence is the reference's, in two batches of long and short ones."""
    family = SENTENCE_FAMILIES[name]
    sentences = [Sentence(text) if isinstance(text, str) else text for text in texts]
    sentences = [sentence._replace(entropy=True) for sentence in sentences]
    answers = {}
    # XGLM makes numbers of the default type on its way (transformers 5.23).
    with double() if name == "xglm" else nullcontext():
        model = load(str(folder), LoadOptions(dtype="float64", unit=unit, **options))
        for batch in (range(0, len(texts), 2), range(1, len(texts), 2)):
            encoded = [model.encode(sentences[number]) for number in batch]
            answers |= zip(batch, model.answer(encoded, 5), strict=True)
    options |= {"attention": family.attention, "window": model.info.max_length}
    options |= {"convention": family.convention} if unit == "word" else {}
    reference = SentenceReference(folder, family.kind, **options)
    for number, sentence in enumerate(sentences):
        expected, entropies = reference.words(*sentence[:2])
        assert answers[number].entropies == pytest.approx(entropies, abs=1e-5), sentence
        for word, right in zip(answers[number].words, expected, strict=True):
            assert (word[:2], word.n_tokens) == (right[:2], right.n_tokens), sentence
            assert word.log_prob == pytest.approx(right.log_prob, abs=1e-5), sentence
    return [answers[number] for number in range(len(texts))]


@pytest.mark.parametrize(("name", "options"), cases(SENTENCE_FAMILIES))
def test_every_word(name, options, family_dir):
    answers = check(name, family_dir(name), TEXTS, **options)
    # Guards the test: words of several pieces.
    assert sum(word.n_tokens > 1 for answer in answers for word in answer.words) > 30


@pytest.mark.parametrize("tokens", [pytest.param(12, marks=pytest.mark.slow), 23])
@pytest.mark.parametrize(
    ("name", "options"), [*cases(["roberta", "gpt2"], is_quick=True), *cases(["ibert"])]
)
def test_windows(name, options, tokens, tmp_path):
    """Texts that are longer than what a model reads at a time."""
    family = SENTENCE_FAMILIES[name]
    first = 2 if family.kind == "masked" else 0  # position of RoBERTa and I-BERT
    limit = {"max_position_embeddings": first + tokens}
    folder = replace(family, config=family.config | limit).make(tmp_path / name)
    text = " ".join(SENTENCES[20:60])
    texts = [text[:end].strip() for end in (20, 41, 42, 43, 44, 150)]
    check(name, folder, texts, **options)
    assert load(str(folder)).info.max_length == tokens


@pytest.mark.parametrize("unit", ["token", "word"])
def test_a_text_of_one_token(unit, family_dir):
    """Nothing stands before it, so that nothing is read; other texts keep their numbers."""
    for texts in (["a"], ["a", "a robin", "the"]):
        answers = check("gpt2", family_dir("gpt2"), texts, bos="never", unit=unit)
        assert answers[0].words == (WordSpan(0, 1, None, 1),)


def test_a_text_without_a_token(family_dir):
    """BERT's tokenizer removes the zero-width space."""
    [answer] = check("bert", family_dir("bert"), ["\u200b"])
    assert answer.n_tokens == 0


def spanning():
    """A causal model of which `▁is▁a` is one token, and its tokenizer."""
    pieces = ("▁it", "▁is", "▁is▁a", "b", "▁bird")
    tokenizer = sentencepiece(*pieces, bos=True, split=False)
    network = gpt2(len(tokenizer), bos_token_id=1)
    return network, tokenizer, asked(network, tokenizer, "causal")


@pytest.mark.parametrize(("text", "n_tokens"), [("it is a bird", 1), ("it is ab bird", 2)])
def test_a_token_of_two_words(text, n_tokens):
    """`▁is▁a` is one token: "a" has no surprisal, and the sentence has that of all its tokens.

    Neither has "ab", whose other token `b` belongs to "is", too.
    """
    network, tokenizer, model = spanning()
    answer = ask(model, Sentence(text), top=0)[0]
    ids = tokenizer(text).input_ids
    by_token = [float(alone(network, ids, n)[id]) for n, id in enumerate(ids[1:])]
    assert answer.log_prob == pytest.approx(sum(by_token), abs=CLOSE)
    assert answer.words[1].log_prob == pytest.approx(sum(by_token[1:-1]), abs=CLOSE)
    assert [word.n_tokens for word in answer.words] == [1, n_tokens, 0, 1]
    table = word_surprisals(model, [text])
    assert table["shares_token"].tolist() == ["", "next", "previous", ""]
    assert table["surprisal"].isna().tolist() == [False, False, True, False]
    assert "(is a" in shared_tokens_warning(table)
    layers = layer_surprisals(model.at_layers("all"), [text])
    assert layers["layer"].nunique() > 1
    assert shared_tokens_warning(layers) == shared_tokens_warning(table)
    assert shared_tokens_warning(word_surprisals(model, ["it is it"])) is None


def test_a_fit_marks_words_that_share_a_token():
    words = ["it", "is", "a", "bird", "it", "is", "it", "bird", "is"]
    frame = pd.DataFrame({"position": range(1, 10), "word": words, "rt": range(9, 0, -1)})
    procedure = procedure_for(frame, None, Procedure(response="rt", formula="rt ~ surprisal"))
    table = HumanTable(frame, "words", procedure)
    _, _, model = spanning()
    [(source, _)] = ask_about_words(model, LoadOptions(), table)
    fitted = fit_surprisals(table, [source])
    assert fitted.models[0].left_out == {"surprisal is missing": 1}
    assert [*fitted.models[0].words["shares_token"]] == ["", "next", *[""] * 6]
    assert "toy: 1 word that begins in a token of the word before (is a) has" in "".join(
        fitted.notes
    )


SCRIPTS = (
    *("我昨天在图书馆看书。", "小猫 喜欢 吃鱼，小狗也喜欢。"),
    *("猫が魚を食べました。", "か\u3099っこう に 行きます。", "ｶﾞﾗｽ\u30001枚"),
    *("الكلبُ ينبحُ في الحديقة.", "كَتَبَتِ البِنْتُ رسالةً، ثُمَّ نامت.", "ﻻ أعرف."),
    *("הכלב נובח בגן.", "שָׁלוֹם לָכֶם, יְלָדִים!"),
    *("लड़का किताब पढ़ता है।", "लडका क्ष\u200dमा ज़रूर माँगेगा।"),
    *("İstanbul'da ılık bir gün geçirdik.", "Dişçi İnci'yi gördü."),
    *("Pöydällä on kissanpentuja.", "A\u0308iti ei syönyt leipää."),
    *("แมวกำลังกินปลา", "เด็ก ๆ ไปโรงเรียน ทุกวัน"),
)
"""Scripts without blanks, from right to left, with combining marks, and composed in two ways."""


@pytest.mark.parametrize(
    ("name", "options"), [*cases(["gpt2", "xlm-roberta"], is_quick=True), *cases(["xglm"])]
)
def test_other_scripts(name, options, tmp_path):
    """Bytes of which some merges cross or split characters, and pieces of normalised text."""
    normal = [normalizers.NFKC().normalize_str(text).replace(" ", "▁") for text in SCRIPTS]
    pairs = {text[n : n + 2] for text in normal for n in range(0, len(text) - 1, 3)}
    pieces = sorted({*"".join(normal), *pairs} - {"▁"})
    tokenizer = trained_bytes(SCRIPTS * 3, 380) if name == "gpt2" else unigram(*pieces)
    make = bert if name == "xlm-roberta" else gpt2
    make(len(tokenizer), max_position_embeddings=96).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    # with regions that begin inside words, some of them at a combining mark
    cuts = [tuple(n for n in range(2, len(text), 3) if text[n] != " ") for text in SCRIPTS]
    check(name, tmp_path, [*SCRIPTS, *map(Sentence, SCRIPTS, cuts)], **options)


@pytest.mark.parametrize(("name", "n_words"), [("causal", 60_000), ("masked", 10_000)])
def test_long_texts_take_linear_time(name, n_words, monkeypatch):
    """Without the network; a masked model's rows, one per word, are made as they are read."""
    model = load(f"demo:{name}", LoadOptions())
    sizes = []

    def read_layers(rows, layers, pick):
        sizes.append(sum(len(row.ids) for row in rows))
        answers = torch.full((sum(len(row.reads) for row in rows), 1), -1.0)
        return iter([answers] * len(layers))

    monkeypatch.setattr(model.reader, "read_layers", read_layers)
    seconds = []
    for size in (n_words // 5, n_words):
        model.report = (shares := []).append
        began = time.process_time()
        encoded = model.encode(Sentence("the bird " * (size // 2)))
        assert model.plan([encoded]) == [[0]]
        (answer,) = model.answer([encoded], top=0)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 15 * seconds[0]  # linear: 5 times; quadratic: 25 times
    assert len(answer.words) == n_words
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert max(sizes) < 3000
