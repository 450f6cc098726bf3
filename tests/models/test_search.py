"""Unit `word`: against brute force over everything that a model can say, in float64."""

import copy
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import CLOSE
from tokenizer_files import byte_level, ending, sentencepiece, wordlevel, wordpiece
from transformers import PreTrainedTokenizerFast

from lmdiag.models.whole_words.search import WordSearch
from lmdiag.types import BadInput, Query, Question
from models.toys import ask, asked, bert, gpt2


@dataclass(frozen=True)
class Toy:
    """A vocabulary, and by hand: how its pieces look in a text, and which of them end a word.

    Attributes:
        tokenizer: whose pieces they are.
        text: from names of pieces to text.
        ends: how the names of pieces begin that do not continue a word.
        word, beginning: text of a word, and of what can become one.
        depth: pieces of the longest words that are tried.
        margin: beginnings so much less probable (nats) than the best piece are not tried.
    """

    tokenizer: PreTrainedTokenizerFast
    text: Callable[[Sequence[str]], str]
    ends: str
    word: str
    beginning: str
    depth: int = 4
    margin: float = math.inf

    def left(self, context):
        """The pieces of a context with what the tokenizer puts before it, but nothing after it."""
        whole = self.tokenizer(context).input_ids
        return whole[:-1] if whole[-1] == self.tokenizer.sep_token_id else whole

    def is_end(self, token):
        """Whether a word is over when this item follows; ids beyond the tokenizer's are none."""
        name = self.tokenizer.convert_ids_to_tokens(token)
        return name is None or bool(re.match(self.ends, name))

    def shown(self, pieces):
        """Pieces as text."""
        return self.text(self.tokenizer.convert_ids_to_tokens(list(pieces)))

    def read(self, context, pieces, after=""):
        """The word that the tokenizer spells so after a context; None where it spells none so."""
        text = self.shown(pieces)
        word = text[1:].rstrip("$")
        before, whole = (
            self.tokenizer(text, add_special_tokens=False).input_ids
            for text in (context, f"{context} {word}{after}")
        )
        is_spelling = whole[len(before) : len(whole) - len(after)] == list(pieces)
        return word if is_spelling and re.fullmatch(self.word, text) else None


def of_wordpiece(names):
    """Pieces as text: all but those with ## begin after a space."""
    return "".join(name.removeprefix("##") if "##" in name else f" {name}" for name in names)


BYTES = byte_level("Ġ b", "Ġb i", "' t", "i t")
BYTE_ENDS = r"[\u0100-\u0121]|[!-&(-,./:-@\[-`{-~]|<\||['-](?![A-Za-z0-9]|[^\x00-\x7f]|$)"
"""Control characters and the space (as GPT-2 writes them), marks, the end of the text, joiners
that join nothing."""

TOYS = {
    "sentencepiece": Toy(
        sentencepiece("▁a", "▁ab", "ba", "▁b'", "▁.", "b."),
        lambda names: "".join(names).replace("▁", " "),
        r"▁|<|\.$|['-]{2}",
        r" [ab]+(['-][ab]+)*",
        r" ?([ab]+(['-][ab]+)*['-]?)?",
    ),
    "wordpiece": Toy(
        wordpiece("a", "ab", "b", "##a", "##b", "##ba", "-", "."),
        of_wordpiece,
        r"(?!##)",
        r" [ab]+",
        r" ?[ab]*",
    ),
    "ending": Toy(
        ending("a</w>", "b</w>", "ab</w>", ".</w>"),
        lambda names: " " + "".join(names).replace("</w>", "$"),
        "",
        r" [ab]+\$",
        r" [ab]*\$?",
        depth=5,
    ),
    "wordlevel": Toy(
        wordlevel("a", "ab", "b", "bird"), of_wordpiece, "", r" \w+", r"( \w+)?", depth=1
    ),
    "byte-level": Toy(
        BYTES,
        lambda names: BYTES.backend_tokenizer.decoder.decode(list(names)),
        BYTE_ENDS,
        r" [^\W_]+(['-][^\W_]+)*",
        r" ?([^\W_]+(['-][^\W_]+)*['-]?)?\ufffd*",
        depth=3,
        margin=5.0,
    ),
}


def model_of(toy, kind, seed, width=0.5):
    """A small random model over a toy's vocabulary, with two ids too many."""
    size, generator = len(toy.tokenizer) + 2, torch.Generator().manual_seed(seed)
    network = gpt2(size, tie_word_embeddings=False) if kind == "causal" else bert(size)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(width * torch.randn(parameter.shape, generator=generator))
    return asked(network, toy.tokenizer, kind, unit="word")


def distributions(model, rows, at):
    """Log-probabilities of rows of one length at one position: the whole model in float64."""
    exact = copy.deepcopy(model.reader.model).double()
    with torch.inference_mode():
        return exact(input_ids=torch.tensor(rows)).logits[:, at].log_softmax(-1)


def every_word(toy, model, context):
    """All words of up to `depth` pieces (nats), and a bound on those of all others."""
    prompt = toy.left(context)
    ends = torch.tensor([toy.is_end(n) for n in range(model.reader.model.config.vocab_size)])
    level = {(): 0.0}
    said = {}
    begins, floor = 0.0, -math.inf
    for size in range(toy.depth + 1):
        after = distributions(model, [[*prompt, *pieces] for pieces in level], -1)
        ended = after[:, ends].logsumexp(-1).tolist()
        if not size:
            begins = ended[0]
        deeper = {}
        for (pieces, reached), end, nexts in zip(level.items(), ended, after.tolist(), strict=True):
            if word := toy.read(context, pieces):
                said[word] = reached + end - begins
            for token, log_prob in enumerate(nexts[: len(toy.tokenizer)]):
                if reached + log_prob < floor:
                    continue
                if re.fullmatch(toy.beginning, toy.shown((*pieces, token))):
                    deeper[(*pieces, token)] = reached + log_prob
        if not size:
            floor = max(deeper.values()) - toy.margin
        level = {pieces: reached for pieces, reached in deeper.items() if reached >= floor}
        if not level:
            break
    return said, max([floor, *level.values()]) - begins


def every_masked_word(toy, model, context, n):
    """All words of up to n pieces at a mask before a period (nats)."""
    tokenizer, left = toy.tokenizer, toy.left(context)
    right = [tokenizer.convert_tokens_to_ids("."), tokenizer.sep_token_id]
    said = {}
    for total in range(1, n + 1):
        level = {(): -math.log(n)}
        for size in range(total):
            masks = [tokenizer.mask_token_id] * (total - size)
            rows = [[*left, *pieces, *masks, *right] for pieces in level]
            after = distributions(model, rows, len(left) + size).tolist()
            level = {
                (*pieces, token): reached + nexts[token]
                for (pieces, reached), nexts in zip(level.items(), after, strict=True)
                for token in range(len(tokenizer))
                if (not size) == toy.is_end(token)
            }
        words = {toy.read(context, pieces, "."): reached for pieces, reached in level.items()}
        said |= {word: reached for word, reached in words.items() if word}
    return said


def check(model, context, said, top, **bounds):
    """The list is the best of all words, and candidates have their probabilities.

    Words that are equal up to rounding may stand in either order.
    """
    assert sum(map(math.exp, said.values())) <= 1 + 1e-9
    search = WordSearch(model.encoder, model.reader, model.vocabulary, model.info, **bounds)
    words = tuple(said)[:: max(1, len(said) // 6)]
    ((answer,),) = search.answer([search.encode(Question(Query(context), words))], top)
    best = sorted(said.values(), reverse=True)[:top]
    assert answer.top_log_probs == pytest.approx(best, abs=CLOSE)
    assert [said[word] for word in answer.top_words] == pytest.approx(best, abs=CLOSE)
    assert len(set(answer.top_words)) == len(answer.top_words) == min(top, len(said))
    for word in words:
        score, log_prob = answer.words[word], said[word]
        assert score.log_prob == pytest.approx(log_prob, abs=CLOSE)
        n_above = sum(other > log_prob + 2 * CLOSE for other in said.values())
        n_from = sum(other > log_prob - 2 * CLOSE for other in said.values())
        is_below = len(best) == top and log_prob - 2 * CLOSE < best[-1]
        assert n_above < score.rank <= n_from if score.rank else is_below


@pytest.mark.parametrize("name", TOYS)
@settings(max_examples=6)
@given(data=st.data(), seed=st.integers(0, 10_000), width=st.sampled_from([1, 2, 128]))
def test_causal(name, data, seed, width):
    model = model_of(TOYS[name], "causal", seed)
    context = data.draw(st.sampled_from(["a", "ab b", "b a"]))
    said, bound = every_word(TOYS[name], model, context)
    # Longer words than those tried may come after so many of them, not before.
    certain = sum(log_prob > bound + 2 * CLOSE for log_prob in said.values())
    assume(certain)
    check(model, context, said, data.draw(st.integers(1, certain)), width=width)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    context=st.sampled_from(["a", "ab ba", "b a ."]),
    top=st.integers(1, 30),
    width=st.sampled_from([1, 2, 128]),
    lengths=st.integers(1, 3),
)
def test_masked(seed, context, top, width, lengths):
    model = model_of(TOYS["wordpiece"], "masked", seed)
    said = every_masked_word(TOYS["wordpiece"], model, context, lengths)
    check(model, context, said, top, width=width, lengths=lengths)


def test_ties_by_token_ids():
    """A model that prefers nothing: the words of one piece, in the order of their ids."""
    model = model_of(TOYS["wordpiece"], "masked", 0, width=0.0)
    (answer,) = ask(model, Question(Query("a"), ("bbbb", "ba")))
    # log(1/3) for the length, and log(1/15) for the piece, of 5 special ones, 8 and 2 spare ids.
    assert answer.top_log_probs[:3] == pytest.approx([-math.log(45)] * 3)
    # Then a ##a, a ##ba; a ##b would be spelt ab.
    assert answer.top_words == ("a", "ab", "b", "aa", "aba")
    assert answer.top_log_probs[3:] == pytest.approx([-math.log(3 * 15 * 15)] * 2)
    # b ##a is not listed, but as probable as the last one that is: three words are before it.
    assert answer.words["ba"] == (answer.top_log_probs[4], 4, 2)
    # More pieces than are looked for: scored with the same weight.
    assert answer.words["bbbb"].log_prob == pytest.approx(-math.log(3 * 15**4))


def test_no_end_in_sight():
    """All items equally probable: no list is made up."""
    model = model_of(TOYS["byte-level"], "causal", 0, width=0.0)
    with pytest.raises(BadInput, match=r"search after 'a b' did not converge after .*token"):
        check(model, "a b", {}, 5, most_nodes=40)


@pytest.mark.parametrize(
    ("value", "reason"),
    [(math.nan, "NaN or infinite logits for the"), (-math.inf, "no probability to the beginning")],
)
def test_logits_from_which_nothing_follows(value, reason):
    """NaN after a piece, which no single item shows; no item that begins a word."""
    toy = TOYS["sentencepiece"]
    model = model_of(toy, "causal", 5)
    network, ends = model.reader.model, ~model.words.boundaries.continues
    if math.isnan(value):
        with torch.no_grad():
            network.transformer.wte.weight[toy.tokenizer.convert_tokens_to_ids("▁b")] = value
    else:
        network.lm_head.register_forward_hook(lambda _, __, logits: logits.masked_fill(ends, value))
    with pytest.raises(BadInput, match=f"{reason}.* 'a'"):
        ask(model, Question(Query("a"), ("b",)))
