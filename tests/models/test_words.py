"""Words at a blank and their boundaries, in every convention, on vocabularies of a few pieces."""

import pytest
from reference import CLOSE
from tokenizer_files import byte_level, ending, names, sentencepiece, trained_bytes, wordpiece
from tokenizers import AddedToken, Tokenizer, models
from transformers import PreTrainedTokenizerFast

from lmdiag.models.tokens.boundaries import Boundaries, Prefix
from lmdiag.models.tokens.spelling import Spelling, folds_of
from lmdiag.models.tokens.vocabulary import Vocabulary, control_names
from lmdiag.runs.asking import control_warning, row_texts
from lmdiag.stimuli import load as load_stimuli
from lmdiag.types import BadInput, Query, Question
from models.toys import alone, ask, asked, bert, gpt2

BERT = wordpiece(
    "a", "the", "robin", "is", "bird", "##s", "##ing", "don", "’", "t", ".", ",", "it", "naive"
)  # fmt: skip
GPT2 = byte_level("Ġ t", "Ġt h", "Ġth e", "Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "b i", "bi r", "bir d")
LLAMA = sentencepiece("▁the", "▁bird", "bird", "s", "word", "a", "it")
DROPPING = sentencepiece("▁the", "▁bird", drop=True)
"""A byte-pair vocabulary without unknown token loses what it lacks."""
PHRASES = sentencepiece("▁new", "▁new▁york", "▁york", "▁the", "▁etc", "▁etc.", split=False)
"""Its pieces cross the boundary between word and text."""


BYTES = byte_level("Ġ b", "Ġb i", "' t", "- -", "Ġ Ġ")
SPACED = sentencepiece("▁ab", "b'", "'a", "b.", "▁-")
ENDED = ending("a</w>", "b</w>", "ab</w>", ".</w>")


class TestWord:
    @pytest.mark.parametrize(
        ("word", "pieces"),
        [
            ("Birds", ["bird", "##s"]),
            ("don’t", ["don", "’", "t"]),  # punctuation splits a word into pieces
            ("[MASK]", None),  # not a word
            ("", None),
        ],
    )
    def test_in_a_sentence(self, word, pieces):
        spelling = Spelling(BERT)
        assert names(BERT, spelling.in_sentence(word, Query("a robin is a"))) == pieces
        assert names(BERT, spelling.in_sentence(word, Query("", "is the robin."))) == pieces

    @pytest.mark.parametrize(
        ("tokenizer", "context", "word", "pieces"),
        [
            (GPT2, "", "bird", ["bird"]),  # opens the text: no blank before it
            (GPT2, "the “", "bird", ["bird"]),  # nor after an opening mark
            (GPT2, "the”", "bird", ["Ġbird"]),
            (LLAMA, "the", "sit", ["▁", "s", "it"]),  # the single space belongs to the word
            (LLAMA, "", "bird", ["▁bird"]),
            (LLAMA, "", "sit", ["▁", "s", "it"]),
            (LLAMA, "the", "bixd", None),
            (DROPPING, "the", "birxd", None),
            (DROPPING, "the", "bird", ["▁bird"]),
        ],
    )
    def test_after_a_context(self, tokenizer, context, word, pieces):
        assert names(tokenizer, Spelling(tokenizer).after(word, Query(context))) == pieces

    def test_pieces_that_cross_the_boundary(self):
        """The text keeps its own pieces; different words have different pieces."""
        spelling = Spelling(PHRASES)
        whole = PHRASES.encode("the new york", add_special_tokens=False)
        assert names(PHRASES, whole) == ["▁the", "▁new▁york"]
        assert names(PHRASES, spelling.text("the new")) == ["▁the", "▁new"]
        assert names(PHRASES, spelling.in_sentence("etc", Query("the"))) == ["▁etc"]
        pieces = {
            word: spelling.after(word, Query("the new")) for word in ("york", "new", "the", "etc")
        }
        assert len(set(pieces.values())) == len(pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("’s", ["â", "Ģ", "Ļ", "s"]),
        ("'s bird", ["'", "s", "Ġbird"]),
        ("…", ["â", "Ģ", "¦"]),
        ("'s' the", ["'", "s", "'", "Ġthe"]),
        ("'so' the", ["Ġ", "'", "s", "o", "'", "Ġthe"]),
    ],
)
def test_marks_and_clitics_follow_the_word_directly(text, pieces):
    """A quotation does not."""
    assert names(GPT2, Spelling(GPT2).around(Query("", text))[1]) == pieces


class TestTokenizer:
    def test_nothing_spelt(self):
        cyrillic = Tokenizer(models.BPE({"ж": 0, "у": 1, "к": 2}, []))
        with pytest.raises(BadInput, match="drops plain English words"):
            Spelling(PreTrainedTokenizerFast(tokenizer_object=cyrillic))

    def test_truncation_of_the_file_is_off(self):
        """A tokenizer saved with truncation would silently cut contexts."""
        tokenizer = byte_level()
        tokenizer.backend_tokenizer.enable_truncation(2)
        assert len(Spelling(tokenizer).text("a long text")) == 11

    @pytest.mark.parametrize(
        ("tokenizer", "folds"),
        [
            (wordpiece("a", "A"), ("case", "accents")),
            (wordpiece("a", "A", lower=False), ()),
            (wordpiece("x", lower=False), ()),  # both unknown: still cased
            (GPT2, ()),
            (LLAMA, ()),
        ],
    )
    def test_words_that_are_read_alike(self, tokenizer, folds):
        assert folds_of(tokenizer) == folds


def with_controls():
    """GPT-2's convention with a token in each of the lists that a tokenizer has."""
    tokenizer = byte_level("Ġ b", "Ġb i")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    tokenizer.add_special_tokens({"cls_token": "CLASSIFY"})
    tokenizer.add_tokens([AddedToken("SYSTEM", special=True)])
    tokenizer.add_tokens([AddedToken("<|im_start|>", special=False), "[INST]", "</think>"])
    tokenizer.add_tokens([" zebra", "gnu"])
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        (BERT, {"bird": "bird", "##s": "##s", ".": ".", "[MASK]": "[MASK]", "[UNK]": "[UNK]"}),
        (GPT2, {"Ġbird": "bird", "bird": "##bird", ".": "##.", "<|end|>": "<|end|>"}),
        (GPT2, {"Ġ": "␣", "Ċ": "Ċ"}),  # a space; nothing to be seen: its name
        (GPT2, {"Ã": "##Ã"}),  # half a character: its name
        (byte_level("Ã ©", "Ġ Ã©"), {"Ã©": "##é", "ĠÃ©": "é"}),
        (LLAMA, {"▁bird": "bird", "bird": "##bird", "▁": "␣", "</s>": "</s>"}),
        (sentencepiece("▁the", "<0x41>", "<0xE2>", "<0x0A>"),
         {"<0x41>": "##A", "<0xE2>": "##<0xE2>", "<0x0A>": "<0x0A>"}),
        (ending("a</w>", "ab</w>"), {"a</w>": "a", "a": "a##", "ab</w>": "ab"}),
        (with_controls(), {" zebra": "zebra", "gnu": "##gnu", "[INST]": "[INST]",
                           "<|im_start|>": "<|im_start|>", "SYSTEM": "SYSTEM"}),
    ],
)  # fmt: skip
def test_items_in_a_list_of_answers(tokenizer, expected):
    vocabulary, ids = Vocabulary(tokenizer), tokenizer.get_vocab()
    assert {name: vocabulary.show(ids[name]) for name in expected} == expected


class TestControls:
    """The text of a control token: unscorable as a word, warned of in a context."""

    @pytest.mark.parametrize(
        "name", ["<|end|>", "<|user|>", "CLASSIFY", "SYSTEM", "<|im_start|>", "[INST]", "</think>"]
    )
    def test_in_every_list_of_a_tokenizer(self, name):
        tokenizer = with_controls()
        spelling = Spelling(tokenizer)
        assert spelling.after(name, Query("a bird")) is None
        assert spelling.in_sentence(name, Query("a bird", "is here.")) is None
        assert spelling.after(f"x{name}", Query("a bird")) is None
        texts = ["a bird", f"a {name} bird", f"{name}{name}"]
        assert control_names(tokenizer, texts) == [[], [name], [name]]

    def test_other_tokens_and_marks(self):
        """Brackets of the text's own, words that were added, characters that are unknown."""
        tokenizer = with_controls()
        texts = ["a [bird] <b> zebra gnu", "a жук"]
        assert control_names(tokenizer, texts) == [[], []]
        assert control_names(wordpiece("a"), ["a robin", "a [UNK]"]) == [[], ["[UNK]"]]
        assert control_names(sentencepiece("▁a"), ["a ж", "a <s> b </s>"]) == [[], ["<s>", "</s>"]]
        # a unigram vocabulary names an unknown piece after its own characters
        unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0))
        unigram.add_special_tokens(["<unk>"])
        pieces = PreTrainedTokenizerFast(tokenizer_object=unigram, unk_token="<unk>")
        assert control_names(pieces, ["a", "aж", "a<unk>"]) == [[], [], ["<unk>"]]
        for word, pieces in (("zebra", [" zebra"]), ("gnu", ["Ġ", "gnu"])):
            assert names(tokenizer, Spelling(tokenizer).after(word, Query("a bird"))) == pieces

    def test_one_warning(self):
        """Two rows, the second with [SEP] in its context."""
        contexts = ["A robin is a", "A [SEP] is a"]
        rows = {"id": ["a", "b"], "context": contexts, "target": ["bird", "bird"]}
        model = asked(bert(len(BERT)), BERT, "masked")
        assert control_warning(model, row_texts([load_stimuli(rows)], "masked")) == (
            "model toy reads the name of a control token as the token itself, and not as text "
            "([SEP] in row b): rewrite these texts if this is not intended"
        )


@pytest.mark.parametrize(
    ("tokenizer", "pieces", "word", "goes_on", "bare"),
    [
        (SPACED, "▁", None, True, False),
        (SPACED, "▁ab", "ab", True, False),
        (SPACED, "▁ab b'", None, True, False),
        (SPACED, "▁ab b' a", "abb'a", True, False),
        (SPACED, "▁ab - a", "ab-a", True, False),
        (SPACED, "▁ab -", None, True, False),
        (SPACED, "▁ab - -", None, False, False),
        (SPACED, "▁ab b.", None, False, False),
        (SPACED, "▁ab ▁ab", None, False, False),
        (SPACED, "▁ ▁ab", None, False, False),
        (SPACED, "▁- a", None, False, False),
        (SPACED, "a", None, False, False),
        (SPACED, "▁ab </s>", None, False, False),
        (BYTES, "Ġb Ã", None, True, False),  # the first half of é
        (BYTES, "Ġb Ã ©", "bé", True, False),
        (BYTES, "Ġb ©", None, False, False),  # a second half without a first
        (BYTES, "Ġb â Ģ Ļ", None, True, False),  # ’
        (BYTES, "Ġb â Ģ Ļ s", "b’s", True, False),
        (BYTES, "Ġb â Ģ Ŀ", None, False, False),  # ”
        (BYTES, "Ġb 't", "b't", True, False),
        (BYTES, "Ġ 7", "7", True, False),
        (BYTES, "b", None, False, False),
        (ENDED, "b", None, True, False),
        (ENDED, "b a ab</w>", "baab", False, False),
        (ENDED, "b .</w>", None, False, False),
        (sentencepiece("▁e\u0301", "\u0301"), "▁e \u0301", "e\u0301", True, False),
        # without the mark of a word's start
        (BYTES, "b i", "bi", True, True),
        (BYTES, "Ġb", None, False, True),
        (SPACED, "a", "a", True, True),
        (SPACED, "▁ab", None, False, True),
    ],
)
def test_where_words_begin_and_end(tokenizer, pieces, word, goes_on, bare):
    ids = tuple(tokenizer.convert_tokens_to_ids(pieces.split()))
    assert None not in ids
    boundaries = Boundaries(Vocabulary(tokenizer), len(tokenizer))
    assert boundaries.parse_prefix(ids, bare=bare) == Prefix(word, goes_on)


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
