"""Tokenizers whose files tell the wrong characters of tokens are repaired or refused."""

import unicodedata

import pytest
from tokenizer_files import byte_level
from tokenizers import normalizers, pre_tokenizers, processors

from lmdiag.models.loading import tokenizer_file
from lmdiag.models.loading.tokenizer_file import check_offsets
from lmdiag.models.tokens.spelling import Spelling
from lmdiag.types import BadInput, Sentence
from models.toys import ask, asked, gpt2

END = ("<|end|>", 0)

TRIMMING = (
    processors.RobertaProcessing(END, END, trim_offsets=True, add_prefix_space=False),
    processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False)]),
)
"""They trim the space that the pre-tokenizer put before a text."""


@pytest.mark.parametrize("trimming", TRIMMING)
def test_the_first_word_keeps_its_token(trimming):
    tokenizer = byte_level("Ġ I", "Ġ s", "Ġs a", "Ġsa w")
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = trimming
    ids = tokenizer("I saw", add_special_tokens=False).input_ids
    assert backend.encode("I saw", add_special_tokens=False).offsets[0] == (1, 1)
    assert "they are repaired" in check_offsets("toy", tokenizer)
    assert tokenizer("I saw", add_special_tokens=False).input_ids == ids
    answer = ask(asked(gpt2(len(tokenizer)), tokenizer, "causal"), Sentence("I saw"), top=0)[0]
    assert [word.n_tokens for word in answer.words] == [1, 1]
    assert check_offsets("toy", tokenizer) is None


def test_punctuation_keeps_its_token():
    """It is split off, and given a space that is not in the text; so is the word behind it."""
    tokenizer = byte_level("Ġ I", "Ġ (", "Ġ a")
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(), pre_tokenizers.ByteLevel(add_prefix_space=True)]
    )
    backend.post_processor = processors.ByteLevel(trim_offsets=True)
    assert backend.encode("I (a").offsets[-1] == (4, 4)
    assert check_offsets("toy", tokenizer) is None
    spelled = Spelling(tokenizer).spell("I (a.")
    assert (spelled.spans[-3], spelled.uncovered) == ((3, 4), [])


def test_letters_that_a_normalizer_composes_are_covered():
    """Its tokens have the place of the first letter alone (Korean, as macOS names files)."""
    tokenizer = byte_level("Ġ I")
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    composed = "한국어 é."
    spelling = Spelling(tokenizer)
    spelled = spelling.spell(unicodedata.normalize("NFD", composed))
    assert spelled.ids == spelling.spell(composed).ids
    assert spelled.uncovered == []


def test_tokens_without_characters_are_refused(monkeypatch):
    """Where no other post-processor gives them any."""
    tokenizer = byte_level("Ġ b")
    assert check_offsets("toy", tokenizer) is None
    monkeypatch.setattr(tokenizer_file, "_text_with_empty_token", lambda backend: "I saw")
    with pytest.raises(BadInput, match="no characters"):
        check_offsets("toy", tokenizer)
