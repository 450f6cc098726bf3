"""Where a space stands between two parts of a sentence."""

import pytest
import reference
from families import FAMILIES, family_params
from reference import CLOSE

from lmdiag import stimuli
from lmdiag.asking.questions import Setting, row_keys
from lmdiag.models import LoadOptions, load
from lmdiag.spacing import ends_unspaced, has_space
from lmdiag.types import BadInput, Query, Question


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # edges of the text and of a line; a space that is typed
        ("", "yes"), ("yes", ""), ("He said:\n", "yes"), ("Il dit «\u00a0", "oui"),
        # opening quotation marks and brackets, in several languages
        ('She said "', "yes"), ("She said “", "yes"), ("She said ‘", "yes"), ("“‘", "yes"),
        ("He said '", "yes"), ("Er sagte „", "Ja"), ("Hun sagde »", "Ja"), ("Hon sade ”", "ja"),
        ("Il dit «", "oui"), ("He said ``", "yes"), ("dijo ¿", "qué"), ("He (", "left"),
        # hyphens, dashes, slashes
        ("well-", "known"), ("He left—", "then"), ("1990–", "95"), ("and/", "or"),
        # elided words
        ("Il a mangé l'", "orange"), ("qu’", "il"), ("Lorsqu'", "elle"), ("(d’", "un"),
        ("dell'", "arte"), ("Un'", "amica"),
        # what belongs to the word before it
        ("did", "n't know"), ("could", "n’t"),
        ("yes", ", he said"), ("yes", "'s"), ("They", "’re"), ("yes", ")"), ("yes", "…"),
        ('"yes', '" he said'), ('"yes', '".'), ("“no”", "."), ("„Ja", "“ sagte er"), ("«x", "»."),
        # scripts without spaces and their punctuation
        ("她喜欢", "猫"), ("他说：“", "你好"), ("他说", "“你好”"), ("“你好”", "了"),
        ("他想——", "走"), ("我有3", "个"), ("他有", "3个"), ("他说，", "iPhone"),
        ("これは「", "猫"), ("ฉันชอบ", "แมว"),
    ],
)  # fmt: skip
def test_no_space_between(left, right):
    assert not has_space(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("the", "dog"), ("yes,", "he"), ("Mr.", "Smith"), ("나는 고양이를", "좋아해"),
        # closing quotation marks and brackets; opening ones on the right
        ('He said "yes"', "twice"), ("He said “yes”", "twice"), ("Er sagte „Ja“", "leise"),
        ("Er sagte „Ja.“", "Dann"), ("Hun sagde »Ja«", "højt"), ("Il dit « oui »", "à"),
        ("Hon sade ”ja”", "högt"), ("the dogs'", "tails"), ("the dogs’", "tails"), ("(x)", "that"),
        ('The 5"', "pipe"), ("He said", '"yes"'), ("He said", "“yes”"), ("He said", "'yes'"),
        ("Hon sade", "”ja”"), ("Il dit « non » et", "« oui »"), ("said", "(so)"), ("dijo", "¿qué?"),
        ("Tom", "& Ann"),
        # apostrophes that end words and quotations
        ("runnin'", "fast"), ("rock 'n'", "roll"), ("He said 'I will'", "twice"), ("the 'a'", "is"),
        # scripts without spaces beside others
        ("他喜欢", "iPhone"), ("I like", "猫"), ("ＮＨＫ", "は"),
    ],
)  # fmt: skip
def test_a_space_between(left, right):
    assert has_space(left, right)


@pytest.mark.parametrize(
    ("text", "unspaced"),
    [
        ("我喜欢", True), ("これは", True), ("テスト", True), ("我说：「", True), ("我有3", True),
        ("ฉันชอบ", True), ("ខ្ញុំ", True), ("ကြောင်", True), ("", False), ("I like", False),
        ("나는 고양이를", False), ("मुझे पसंद", False), ("أنا أحب", False), ("我喜欢 the", False),
        ("3", False), ("我喜欢\n", False),
        # full-width Latin letters and digits; squared ones; Hangul in circles; half-width kana
        ("ＮＨＫ", False), ("２", False), ("彼はＮＨＫ２", False), ("5 ㎏", False), ("㈀", False),
        ("彼は２", True), ("（笑）", True), ("ｶﾞﾗｽ", True), ("㈱", True),
    ],
)  # fmt: skip
def test_which_scripts_have_no_spaces(text, unspaced):
    assert ends_unspaced(text) is unspaced


def test_many_regions_of_a_text():
    """In proportion to their number: 30,000 did not end when each looked at the whole text."""
    rows = stimuli.load({"sentence": ["|".join(["他", "said “", "yes”", ","] * 7_500)]})
    (text,) = rows.columns()["sentence"]
    assert text.startswith("他 said “yes”, 他 said “yes”, ")
    assert len(text) == 14 * 7_500 - 1


TYPED = {
    "He said “___” twice.": "like",
    'He said "___" twice.': "bird",
    "A well-___ man saw the tree.": "known",
    "A well- ___ man saw the tree.": "known",
    "The (___) bird sings.": "little",
    "The tree/___ sings.": "bird",
    "The un___ed tree sings.": "plant",
    "The bird—___—sings.": "tree",
    "他说：“___”。": "你好",
    "The old ___ sings.": "bird",
}
"""Sentences with a gap, and the words that stand there."""


def word_log_prob(exact, sentence, word, kind):
    """Returns the log-probability of a word in a typed sentence, and its pieces; or None.

    By transformers' own forward over the tokens of the whole sentence, a row per piece; None where
    a token lies on both sides of the word's edge, or is unknown.
    """
    tokenizer, model = exact
    start = sentence.index("___")
    left = len(sentence[:start].rstrip(" "))
    whole = tokenizer(sentence.replace("___", word), return_offsets_mapping=True)
    ids = whole["input_ids"]
    spans = whole["offset_mapping"]
    inside = [i for i, (a, b) in enumerate(spans) if b > left and a < start + len(word)]
    is_apart = all(spans[i][0] >= left and spans[i][1] <= start + len(word) for i in inside)
    pieces = [ids[i] for i in inside]
    if not is_apart or not pieces or tokenizer.unk_token_id in pieces:
        return None
    before, after = ids[: inside[0]], ids[inside[-1] + 1 :]
    total = 0.0
    for n, piece in enumerate(pieces):
        if kind == "causal":
            row, place = [*before, *pieces[:n]], inside[0] + n - 1
            total += float(reference.run(model, input_ids=row)[place][piece])
        elif kind == "masked":
            masks = [tokenizer.mask_token_id] * (len(pieces) - n)
            row = [*before, *pieces[:n], *masks, *after]
            total += float(reference.run(model, input_ids=row)[inside[0] + n][piece])
        else:
            filler = tokenizer.convert_tokens_to_ids("<extra_id_0>")
            row = [model.config.decoder_start_token_id, filler, *pieces[:n]]
            source = [*before, filler, *after]
            logits = reference.run(model, input_ids=source, decoder_input_ids=row)
            total += float(logits[-1][piece])
    return total, len(pieces)


@pytest.mark.parametrize("name", family_params(("bert", "roberta", "gpt2", "llama", "t5")))
def test_a_sentence_is_asked_as_it_is_typed(name, family_dir):
    family = FAMILIES[name]
    folder = family_dir(name)
    rows = stimuli.load({"sentence": [*TYPED], "target": [*TYPED.values()]})
    keys = row_keys(Setting(rows), kind=family.kind, cased=True)
    model = load(str(folder), LoadOptions())
    questions = [
        Question(query, (word,)) for (query, _), word in zip(keys, TYPED.values(), strict=True)
    ]
    answers = model.answer([model.encode(question) for question in questions], 3)
    exact = reference.load(folder, family.kind, family.attention)
    n_checked = 0
    for (sentence, word), answer in zip(TYPED.items(), answers, strict=True):
        right = word_log_prob(exact, sentence, word, family.kind)
        if right is not None:
            score = answer.words[word]
            assert (score.log_prob, score.n_tokens) == pytest.approx(right, abs=CLOSE), sentence
            n_checked += 1
    assert n_checked > len(TYPED) // 2


def test_queries_of_contexts_and_targets():
    """By the rule, without a column of spaces; it is there once a sentence needs it."""
    usual = stimuli.load({"sentence": ["He said “___”.", "A ___, then."], "target": ["yes", "dog"]})
    assert "gap_spaces" not in usual.columns()
    typed = stimuli.load({"sentence": ["A un___ed tree", "A ___ tree"], "target": ["used", "big"]})
    assert typed.columns()["gap_spaces"] == ["none", "both"]
    keys = [key for key, _ in row_keys(Setting(typed), kind="masked", cased=True)]
    assert keys == [Query("A un", "ed tree", False, False), Query("A", "tree", True, True)]
    assert keys[0].around("used", ".") == ("A un", "ed tree")
    assert keys[1].around("big", ".") == ("A ", " tree")
    assert Query("A", "").around("dog", ".") == ("A ", ".")


@pytest.mark.parametrize(
    ("language", "left", "right", "is_apart"),
    [
        ("nl", "Hij komt", "'s ochtends", True), ("nl", "Zij ging in", "'t huis", True),
        ("nl", "Hij heeft", "’n boek", True), ("nl", "Ja", ",", False),
        ("it", "Dov'", "è", False), ("it", "quest’", "anno", False), ("it", "Un po'", "di", True),
        ("fr", "Aujourd'", "hui", False), ("fr", "puisqu’", "elle", False),
        ("fr", "le", "'s", True),
        ("ca", "Porta", "'l", False), ("ca", "digue", "'ns", False), ("ca", "l'", "home", False),
        ("en", "They", "'re", False), ("en", "did", "n't", False), ("en", "the mill'", "s", True),
    ],
)  # fmt: skip
def test_apostrophes_join_words_as_the_language_does(language, left, right, is_apart):
    assert has_space(left, right, language) == is_apart


def test_a_language_holds_for_words_at_a_blank_and_for_regions(tmp_path):
    blanks = tmp_path / "blanks.csv"
    blanks.write_text("context,target,right_context\nHij komt,'s ochtends,.\nHij komt,nu,.\n")
    usual, dutch = (stimuli.load(blanks, language=language) for language in ("", "nl"))
    assert "gap_spaces" not in usual.columns()
    assert dutch.columns()["gap_spaces"] == ["before", ""]
    keys = row_keys(Setting(dutch), kind="masked", cased=True)
    assert next(keys)[0].around("'s ochtends") == ("Hij komt ", ".")
    regions = tmp_path / "regions.csv"
    regions.write_text("region_1,region_2\nDov',è il gatto\n")
    sentences = [stimuli.load(regions, language=x).columns()["sentence"] for x in ("", "it")]
    assert sentences == [["Dov' è il gatto"], ["Dov'è il gatto"]]
    with pytest.raises(BadInput, match="language de: choose from ca, en, fr, it, nl"):
        stimuli.load(regions, language="de")
    whole = tmp_path / "whole.csv"
    whole.write_text("sentence\nDov'è il gatto\n")
    with pytest.raises(BadInput, match="the sentences are whole: leave it out"):
        stimuli.load(whole, language="it")
