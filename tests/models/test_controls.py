"""The text of a control token: unscorable as a word, warned of in a context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from families import FAMILIES
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

import lmdiag
from lmdiag import cli
from lmdiag.models.tokens.controls import control_names
from lmdiag.models.tokens.spelling import Spelling
from lmdiag.schema import Query
from models.toys import byte_level, names, sentencepiece, wordpiece


def with_added() -> PreTrainedTokenizerFast:
    """GPT-2's convention with a token in each of the lists that a tokenizer has."""
    tokenizer = byte_level("Ġ b", "Ġb i")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    tokenizer.add_special_tokens({"cls_token": "CLASSIFY"})
    tokenizer.add_tokens([AddedToken("SYSTEM", special=True)])
    tokenizer.add_tokens([AddedToken("<|im_start|>", special=False), "[INST]", "</think>"])
    tokenizer.add_tokens([" zebra", "gnu"])
    return tokenizer


LISTED = ("<|end|>", "<|user|>", "CLASSIFY", "SYSTEM", "<|im_start|>", "[INST]", "</think>")


@pytest.mark.parametrize("word", LISTED)
def test_unscorable_as_a_word(word: str) -> None:
    spelling = Spelling(with_added())
    assert spelling.after(word, "a bird") is None
    assert spelling.in_sentence(word, Query("a bird", "is here.")) is None
    assert spelling.after(f"x{word}", "a bird") is None


@pytest.mark.parametrize(("word", "pieces"), [("zebra", [" zebra"]), ("gnu", ["Ġ", "gnu"])])
def test_added_words_are_words(word: str, pieces: list[str]) -> None:
    tokenizer = with_added()
    assert names(tokenizer, Spelling(tokenizer).after(word, "a bird")) == pieces


@pytest.mark.parametrize("name", LISTED)
def test_found_in_a_text(name: str) -> None:
    texts = ["a bird", f"a {name} bird", f"{name}{name}"]
    assert control_names(with_added(), texts) == [[], [name], [name]]


def test_what_is_no_control_token() -> None:
    """Brackets of the text's own, words that were added, characters that are unknown."""
    texts = ["a [bird] <b> zebra gnu", "a жук"]
    assert control_names(with_added(), texts) == [[], []]
    assert control_names(wordpiece("a"), ["a robin", "a [UNK]"]) == [[], ["[UNK]"]]
    assert control_names(sentencepiece("▁a"), ["a ж", "a <s> b </s>"]) == [[], ["<s>", "</s>"]]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two contrasts, the second with [MASK] in its contexts."""
    file = tmp_path / "rows.jsonl"
    contexts = {"plain": "A robin is a", "masked": "A [MASK] is a"}
    lines = [
        {
            "id": f"{item}-{target}", "item": item, "condition": "c", "context": context,
            "target": target, "good": target == "bird", "contrast": item, "right_context": "",
            "expected": [],
        }
        for item, context in contexts.items()
        for target in ("bird", "tree")
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return file


LINE = (
    "2 contexts contain the text of a control token, which model {} reads as the token itself and "
    "not as text ([MASK] in row masked-bird, [MASK] in row masked-tree): rewrite these rows if "
    "this is not intended"
)


def test_one_warning(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(FAMILIES["bert"].make(tmp_path / "bert"))
    stimuli = lmdiag.load_stimuli(str(rows), "rows")
    with pytest.warns(UserWarning, match="control token") as caught:
        lmdiag.load_model(model).predict(stimuli)
    assert [str(each.message) for each in caught] == [LINE.format(model)]
    capsys.readouterr()
    options = ["--data", str(rows), "--tasks", "rows", "--output", str(tmp_path / "out")]
    assert cli.main(["run", "--model", model, "--quiet", *options]) == 0
    assert capsys.readouterr().err == f"lmdiag: warning: {LINE.format(model)}\n"
