"""Unit `word`: against brute force over everything that a model can say, in float64."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizer_files import byte_level, ending, sentencepiece, wordlevel, wordpiece
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lmdiag.models import Model
from lmdiag.models.whole_words.search import WordSearch
from lmdiag.types import BadInput, Kind, Query, Question
from models.toys import ask, asked, bert, gpt2

SPACED = sentencepiece("▁a", "▁ab", "ba", "▁b'", "▁.", "b.")
PIECES = wordpiece("a", "ab", "b", "##a", "##b", "##ba", "-", ".")
ENDED = ending("a</w>", "b</w>", "ab</w>", ".</w>")
BYTES = byte_level("Ġ b", "Ġb i", "' t", "i t")
WHOLE = wordlevel("a", "ab", "b", "bird")


class Said(NamedTuple):
    """A word that a model can say, by brute force; nats in float64."""

    word: str
    pieces: tuple[int, ...]
    log_prob: float


@dataclass(frozen=True)
class Toy:
    """A vocabulary, and by hand: how its pieces look in a text, and which of them end a word."""

    tokenizer: PreTrainedTokenizerFast
    text: Callable[[Sequence[str]], str]
    ends: str
    word: str = r" [ab]+(['-][ab]+)*"
    beginning: str = r" ?([ab]+(['-][ab]+)*['-]?)?"

    def left(self, context: str) -> list[int]:
        """The pieces of a context with what the tokenizer puts before it, but nothing after it."""
        whole = self.tokenizer(context).input_ids
        return whole[:-1] if whole[-1] == self.tokenizer.sep_token_id else whole

    def is_end(self, token: int) -> bool:
        """Whether a word is over when this item follows; ids beyond the tokenizer's are none."""
        name = self.tokenizer.convert_ids_to_tokens(token)
        return name is None or bool(re.match(self.ends, name))

    def spell(self, context: str, word: str, after: str = "") -> tuple[int, ...]:
        """The pieces of a word after a context: those that follow the context's own."""
        before = self.tokenizer(context, add_special_tokens=False).input_ids
        whole = self.tokenizer(f"{context} {word}{after}", add_special_tokens=False).input_ids
        return tuple(whole[len(before) : len(whole) - len(after)])


def of_wordpiece(names: Sequence[str]) -> str:
    """Pieces as text: all but those with ## begin after a space."""
    return "".join(name.removeprefix("##") if "##" in name else f" {name}" for name in names)


def of_bytes(names: Sequence[str]) -> str:
    """Pieces as text; parts of characters as U+FFFD."""
    characters = BYTES.backend_tokenizer.decoder
    return characters.decode(list(names))


BYTE_ENDS = r"[\u0100-\u0121]|[!-&(-,./:-@\[-`{-~]|<\||['-](?![A-Za-z0-9]|[^\x00-\x7f]|$)"
"""Control characters and the space (as GPT-2 writes them), marks, the end of the text, joiners
that join nothing."""

TOYS = {
    "sentencepiece": Toy(
        SPACED, lambda names: "".join(names).replace("▁", " "), r"▁|<|\.$|['-]{2}"
    ),
    "wordpiece": Toy(PIECES, of_wordpiece, r"(?!##)", r" [ab]+", r" ?[ab]*"),
    "ending": Toy(
        ENDED,
        lambda names: " " + "".join(names).replace("</w>", "$"),
        "",
        r" [ab]+\$",
        r" [ab]*\$?",
    ),
    "wordlevel": Toy(WHOLE, of_wordpiece, "", r" \w+", r"( \w+)?"),
    "byte-level": Toy(
        BYTES,
        of_bytes,
        BYTE_ENDS,
        r" [^\W_]+(['-][^\W_]+)*",
        r" ?([^\W_]+(['-][^\W_]+)*['-]?)?\ufffd*",
    ),
}
DEPTH = {"sentencepiece": 4, "wordpiece": 4, "ending": 5, "wordlevel": 1, "byte-level": 3}
MARGIN = {"byte-level": 5.0}
"""Beginnings so much less probable (nats) than the best piece are not tried, where many are."""


def random(network: Any, seed: int, width: float = 0.5) -> Any:
    """Gives a network random weights that are a function of the seed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(width * torch.randn(parameter.shape, generator=generator))
    return network


def toy_model(toy: Toy, kind: Kind, seed: int) -> Model:
    """A small random model over a toy's vocabulary, with two ids too many."""
    network = gpt2(len(toy.tokenizer) + 2) if kind == "causal" else bert(len(toy.tokenizer) + 2)
    return asked(random(network, seed), toy.tokenizer, kind, unit="word")


def distributions(network: PreTrainedModel, rows: Sequence[Sequence[int]], at: int) -> torch.Tensor:
    """Log-probabilities of rows of one length at one position: the whole model in float64."""
    exact = copy.deepcopy(network).double()
    with torch.inference_mode():
        return exact(input_ids=torch.tensor(rows)).logits[:, at].log_softmax(-1)


def every_word(
    toy: Toy, model: Model, context: str, depth: int, margin: float = math.inf
) -> tuple[list[Said], float]:
    """All words of up to `depth` pieces, and a bound on the log-probability of all others."""
    network = model.reader.model
    prompt = toy.left(context)
    ends = torch.tensor([toy.is_end(token) for token in range(network.config.vocab_size)])
    level: dict[tuple[int, ...], float] = {(): 0.0}
    said = []
    begins, floor = 0.0, -math.inf
    for size in range(depth + 1):
        rows = [[*prompt, *pieces] for pieces in level]
        after = distributions(network, rows, len(prompt) + size - 1)
        ended = after[:, ends].logsumexp(-1).tolist()
        if not size:
            begins = ended[0]
        deeper: dict[tuple[int, ...], float] = {}
        for (pieces, reached), end, nexts in zip(level.items(), ended, after.tolist(), strict=True):
            text = toy.text(toy.tokenizer.convert_ids_to_tokens(list(pieces)))
            word = text[1:].rstrip("$")
            if re.fullmatch(toy.word, text) and toy.spell(context, word) == pieces:
                said.append(Said(word, pieces, reached + end - begins))
            for token, log_prob in enumerate(nexts[: len(toy.tokenizer)]):
                if reached + log_prob < floor:
                    continue
                names = toy.tokenizer.convert_ids_to_tokens([*pieces, token])
                if re.fullmatch(toy.beginning, toy.text(names)):
                    deeper[(*pieces, token)] = reached + log_prob
        if not size:
            floor = max(deeper.values()) - margin
        level = {pieces: reached for pieces, reached in deeper.items() if reached >= floor}
        if not level:
            break
    return said, max([floor, *level.values()]) - begins


def every_masked_word(toy: Toy, model: Model, context: str, n: int) -> list[Said]:
    """All words of up to n pieces at a mask before a period."""
    tokenizer, network = toy.tokenizer, model.reader.model
    left = toy.left(context)
    right = [tokenizer.convert_tokens_to_ids("."), tokenizer.sep_token_id]
    said = []
    for total in range(1, n + 1):
        level: dict[tuple[int, ...], float] = {(): -math.log(n)}
        for size in range(total):
            masks = [tokenizer.mask_token_id] * (total - size)
            rows = [[*left, *pieces, *masks, *right] for pieces in level]
            after = distributions(network, rows, len(left) + size).tolist()
            level = {
                (*pieces, token): reached + nexts[token]
                for (pieces, reached), nexts in zip(level.items(), after, strict=True)
                for token in range(len(tokenizer))
                if (not size) == toy.is_end(token)
            }
        for pieces, log_prob in level.items():
            text = toy.text(tokenizer.convert_ids_to_tokens(list(pieces)))
            word = text[1:]
            if re.fullmatch(toy.word, text) and toy.spell(context, word, ".") == pieces:
                said.append(Said(word, pieces, log_prob))
    return said


def search(model: Model, **options: int) -> WordSearch:
    """A search with other bounds than the usual ones."""
    return WordSearch(model.encoder, model.reader, model.vocabulary, model.info, **options)


def check(whole: WordSearch, context: str, said: Sequence[Said], top: int) -> None:
    """The list is the best of all words, and candidates have their probabilities.

    Words that are equal up to rounding may stand in either order.
    """
    assert sum(math.exp(one.log_prob) for one in said) <= 1 + 1e-9
    words = tuple(one.word for one in said[:: max(1, len(said) // 6)])
    (answer,) = whole.answer([whole.encode(Question(Query(context), words))], top)
    best = sorted(said, key=lambda one: (-one.log_prob, one.pieces))[:top]
    assert answer.top_log_probs == pytest.approx([one.log_prob for one in best], abs=2e-5)
    known = {one.word: one.log_prob for one in said}
    listed = [known[word] for word in answer.top_words]
    assert listed == pytest.approx(answer.top_log_probs, abs=2e-5)
    assert len(set(answer.top_words)) == len(answer.top_words) == min(top, len(said))
    for word in words:
        assert answer.words[word].log_prob == pytest.approx(known[word], abs=2e-5)


class TestBruteForce:
    """Vocabularies so small that all words can be tried, in every convention."""

    @pytest.mark.parametrize("name", TOYS)
    @settings(max_examples=12)
    @given(data=st.data(), seed=st.integers(0, 10_000), width=st.sampled_from([1, 2, 128]))
    def test_causal(self, name: str, data: st.DataObject, seed: int, width: int) -> None:
        toy = TOYS[name]
        model = toy_model(toy, "causal", seed)
        context = data.draw(st.sampled_from(["a", "ab b", "b a"]))
        said, bound = every_word(toy, model, context, DEPTH[name], MARGIN.get(name, math.inf))
        # Longer words than those tried may come after so many of them, not before.
        certain = sum(one.log_prob > bound + 1e-4 for one in said)
        assume(certain)
        top = data.draw(st.integers(1, certain))
        check(search(model, width=width), context, said, top)

    @settings(max_examples=20)
    @given(
        seed=st.integers(0, 10_000),
        context=st.sampled_from(["a", "ab ba", "b a ."]),
        top=st.integers(1, 30),
        width=st.sampled_from([1, 2, 128]),
        lengths=st.integers(1, 3),
    )
    def test_masked(self, seed: int, context: str, top: int, width: int, lengths: int) -> None:
        toy = TOYS["wordpiece"]
        model = toy_model(toy, "masked", seed)
        said = every_masked_word(toy, model, context, lengths)
        check(search(model, width=width, lengths=lengths), context, said, top)


class TestOrder:
    def test_ties_by_token_ids(self) -> None:
        """A model that prefers nothing: the words of one piece, in the order of their ids."""
        network = random(bert(len(PIECES)), 0, width=0.0)
        (answer,) = ask(asked(network, PIECES, "masked", unit="word"), Question(Query("a"), ()))
        # log(1/3) for the length, and log(1/13) for the piece, of 5 special ones and 8.
        assert answer.top_words[:3] == ("a", "ab", "b")
        assert answer.top_log_probs[:3] == pytest.approx([-math.log(39)] * 3)
        # Then a ##a, a ##ba; a ##b would be spelt ab.
        assert answer.top_words[3:] == ("aa", "aba")
        assert answer.top_log_probs[3:] == pytest.approx([-math.log(3 * 13 * 13)] * 2)


class TestCandidates:
    def test_more_pieces_than_are_looked_for(self) -> None:
        """Scored with the same weight; the list has no word of so many pieces."""
        model = toy_model(TOYS["wordpiece"], "masked", 2)
        token = asked(model.reader.model, PIECES, "masked")
        question = Question(Query("a"), ("bbbb", "b"))
        (answer,), (plain,) = ask(model, question, top=200), ask(token, question)
        assert answer.words["bbbb"].n_tokens == 4
        for word, score in plain.words.items():
            assert answer.words[word].log_prob == pytest.approx(score.log_prob - math.log(3))
        (alone,) = ask(model, Question(Query("a"), ()), top=200)
        assert answer.top_words == alone.top_words
        assert "bbbb" not in alone.top_words


class TestBadInput:
    def test_no_end_in_sight(self) -> None:
        """All items equally probable: no list is made up."""
        network = random(gpt2(len(BYTES)), 0, width=0.0)
        whole = search(asked(network, BYTES, "causal"), most_nodes=40)
        with pytest.raises(BadInput, match=r"hardly prefers any word to others after 'a b'.*token"):
            whole.answer([whole.encode(Question(Query("a b"), ()))], 5)

    def test_nan_further_on(self) -> None:
        """A piece after which the model gives NaN, which no single item shows."""
        network = random(gpt2(len(SPACED), tie_word_embeddings=False), 5)
        with torch.no_grad():
            network.transformer.wte.weight[SPACED.convert_tokens_to_ids("▁b")] = torch.nan
        model = asked(network, SPACED, "causal", unit="word")
        with pytest.raises(BadInput, match="NaN or infinite logits for the context 'a'"):
            ask(model, Question(Query("a"), ("b",)))

    def test_no_word_can_begin(self) -> None:
        network = random(gpt2(len(SPACED), tie_word_embeddings=False), 5)
        model = asked(network, SPACED, "causal", unit="word")
        ends = ~model.words.boundaries.continues

        def silence(_: Any, __: Any, logits: torch.Tensor) -> torch.Tensor:
            return logits.masked_fill(ends, -torch.inf)

        network.lm_head.register_forward_hook(silence)
        with pytest.raises(BadInput, match="no probability to the beginning of a word after 'a'"):
            ask(model, Question(Query("a"), ("b",)))
