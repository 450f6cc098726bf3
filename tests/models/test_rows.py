"""The rows that masked, causal and encoder-decoder models read for a question."""

import pytest
from reference import CLOSE
from tokenizer_files import byte_level, sentencepiece, wordpiece

from lmdiag.models import LoadOptions, load
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import alone, ask, asked, bert, gpt2

PIECES = wordpiece(
    "a", "the", "robin", "is", "bird", "tree", "##s", "##ing", "car", "##pet", "##man", ".", "near"
)
MASKED = asked(bert(len(PIECES)), PIECES, "masked")
CLS, SEP, MASK = 2, 3, 4
LEFT = [CLS, *PIECES.convert_tokens_to_ids(["a", "robin", "is", "a"])]
RIGHT = [*PIECES.convert_tokens_to_ids(["."]), SEP]
BYTES = byte_level("Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "Ġ t", "Ġt r", "Ġtr e", "Ġtre e", "Ġ a")
CAUSAL = asked(gpt2(len(BYTES)), BYTES, "causal")


def test_as_many_masks_as_pieces():
    """carpet and carman are car + 1 piece: they share `[MASK] [MASK]` and `car [MASK]`."""
    car, bird = PIECES.convert_tokens_to_ids(["car", "bird"])
    encoded = MASKED.encode(Question(Query("a robin is a"), ("carpet", "carman", "birds")))
    assert [list(row.ids) for row in encoded.rows] == [
        [*LEFT, MASK, *RIGHT],
        [*LEFT, MASK, MASK, *RIGHT],
        [*LEFT, car, MASK, *RIGHT],
        [*LEFT, bird, MASK, *RIGHT],
    ]
    assert [row.reads for row in encoded.rows] == [(5,), (5,), (6,), (6,)]
    assert encoded.length == 8 + 3 * 9


def test_contexts_that_are_too_long():
    """[CLS], 60 words, two masks, the period and [SEP] are 65 tokens."""
    with pytest.raises(BadInput, match=r"'robin a a.*…' takes 65 tokens.*toy reads at most 64"):
        MASKED.encode(Question(Query("robin" + " a" * 59), ("birds",)))
    with pytest.raises(BadInput, match=r"'xxxx.*…' takes 97 tokens .* model toy reads at most"):
        CAUSAL.encode(Question(Query("x" * 97), ("bird",)))


class TestCausal:
    def test_words_share_their_first_pieces(self):
        """birds = bird s, birdsx = bird s x, tre = Ġtre: one row carries all three."""
        words = ("bird", "birds", "birdsx", "tre")
        encoded = CAUSAL.encode(Question(Query("a"), words))
        (row,) = encoded.rows
        a, bird, s, x, tre = BYTES.convert_tokens_to_ids(["a", "Ġbird", "s", "x", "Ġtre"])
        assert list(row.ids) == [a, bird, s]
        assert row.reads == (0, 1, 2)
        assert [partial.pieces for partial in encoded.partials] == [(), (bird,), (bird, s)]
        assert encoded.words["birdsx"] == (bird, s, x)
        assert encoded.words["tre"] == (tre,)
        # What is right of the blank is not seen.
        assert CAUSAL.encode(Question(Query("a", "on the tree."), words)).rows == encoded.rows

    def test_end_tokens_never_follow_the_context(self):
        tokenizer = byte_level(end=True)
        model = asked(gpt2(len(tokenizer)), tokenizer, "causal")
        (row,) = model.encode(Question(Query("ab"), ("c",))).rows
        assert tokenizer.convert_ids_to_tokens(row.ids) == ["a", "b", "Ġ"]

    def test_what_stands_before_an_empty_context(self):
        empty = Question(Query(""), ("bird",))
        llama, bare = (sentencepiece("▁the", "▁bird", bos=opens) for opens in (True, False))
        model = asked(gpt2(len(llama)), llama, "causal")
        assert model.info.bos
        assert model.encode(empty).rows[0].ids == (llama.bos_token_id,)
        nothing = asked(gpt2(len(bare)), bare, "causal", bos="never").encode(empty)
        assert nothing.unasked.words == {"bird": (None, None, 0)}
        bare.bos_token = None
        with pytest.raises(BadInput, match="model toy: its tokenizer has no beginning-of-sequence"):
            asked(gpt2(len(bare)), bare, "causal", bos="always")


class TestEncoderDecoders:
    def test_sentences_are_encoded_once(self, family_dir):
        """Words of several pieces that part ways need several decoder rows, but one encoder row."""
        model = load(str(family_dir("t5")))
        near = Query("The old woman", "near the sea.")
        question = model.encode(Question(near, ("sparrows", "elephants", "wrenches")))
        assert len(question.rows) == 3
        other = model.encode(Question(Query("A robin is a"), ("bird",)))
        seen = []
        model.reader.model.get_encoder().register_forward_pre_hook(
            lambda _, __, inputs: seen.append(len(inputs["input_ids"])), with_kwargs=True
        )
        model.answer([question, other], 5)
        assert seen == [1, 1]  # of two lengths

    def test_whole_sentences_are_refused(self, family_dir):
        with pytest.raises(BadInput, match="is an encoder-decoder, which gives no probability of"):
            load(str(family_dir("t5"))).encode(Sentence("A robin is a bird."))


@pytest.mark.parametrize("unit", ["token", "word"])
def test_a_blank_that_opens_the_text(unit, family_dir):
    """After the start token, as the first word of a sentence; without one there is nothing."""
    opening = Question(Query("", "can fly."), ("bird", "tree"))
    other = Question(Query("The old man"), ("bird",))
    model = load(str(family_dir("gpt2")), LoadOptions(unit=unit))
    first, _ = ask(model, opening, other)
    start = model.parts.tokenizer.bos_token_id
    network = model.parts.model
    ids = [start, *model.parts.tokenizer("tree").input_ids]
    steps = [alone(network, ids, n)[token] for n, token in enumerate(ids[1:])]
    if unit == "token":
        assert first.words["tree"].log_prob == pytest.approx(float(sum(steps)), abs=CLOSE)
    silent = load(str(family_dir("gpt2")), LoadOptions(unit=unit, bos="never"))
    nothing, something = ask(silent, opening, other)
    assert nothing.words["tree"] == (None, None, 0)
    assert something.words["bird"].log_prob < 0
    masked = load(str(family_dir("bert")), LoadOptions(unit=unit))
    assert ask(masked, opening)[0].words["bird"].log_prob < 0
