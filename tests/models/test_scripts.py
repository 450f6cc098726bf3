"""Contexts in scripts without spaces between words, against transformers in float64."""

import pytest
from reference import CLOSE
from tokenizer_files import sentencepiece, trained_bytes

from lmdiag.models.tokens.spelling import is_joined
from lmdiag.types import BadInput, Query, Question
from models.toys import alone, ask, asked, gpt2

PARTS = (
    "我", "喜欢", "猫", "小", "狗", "他", "也", "，", "。", "แมว", "กิน", "ปลา", "I", "like", "1",
)  # fmt: skip
"""Words of which the tokenizers have items, with and without a space before them."""


TOKENIZERS = {
    "byte-level": trained_bytes([*PARTS, *(f" {part}" for part in PARTS)] * 9, 500),
    "metaspace": sentencepiece(*(f"▁{character}" for character in sorted({*"".join(PARTS)}))),
}
"""In the way of GPT-2, and of Llama: a blank before the text, an item for each character."""


def chain(network, ids, pieces):
    """The log-probability of pieces after ids, by the whole model in float64."""
    row = [*ids, *pieces]
    return sum(
        float(alone(network, row, len(ids) + n - 1)[piece]) for n, piece in enumerate(pieces)
    )


@pytest.mark.parametrize(
    ("context", "words"),
    [("我喜欢", ("猫", "小猫", "狗")), ("他喜欢狗，", ("我",)), ("แมวกิน", ("ปลา", "แมว"))],
)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_space_is_inserted(name, context, words):
    tokenizer = TOKENIZERS[name]
    network = gpt2(len(tokenizer))
    model = asked(network, tokenizer, "causal", dtype="float32")
    [answer] = ask(model, Question(Query(context), words))
    ids = tokenizer(context, add_special_tokens=False).input_ids
    for word in words:
        whole = tokenizer(context + word, add_special_tokens=False).input_ids
        assert whole[: len(ids)] == ids  # guards the test
        expected = chain(network, ids, whole[len(ids) :])
        assert answer.words[word].log_prob == pytest.approx(expected, abs=CLOSE)
        assert answer.words[word].n_tokens == len(whole) - len(ids)


def test_unit_word_is_refused():
    tokenizer = TOKENIZERS["byte-level"]
    model = asked(gpt2(len(tokenizer)), tokenizer, "causal", unit="word")
    assert model.encode(Question(Query("I like"), ("猫",))).words["猫"]
    with pytest.raises(BadInput, match=r"'我喜欢' ends in a script without .* --unit token"):
        model.encode(Question(Query("我喜欢"), ("猫",)))


@pytest.mark.parametrize(
    ("context", "joined"),
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
def test_which_scripts_have_no_spaces(context, joined):
    assert is_joined(context) is joined
