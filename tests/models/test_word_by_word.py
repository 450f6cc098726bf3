"""The words of whole sentences, asked by lmdiag and by an independent float64 reference.

The reference (`sentence_reference`) runs transformers' own model on one row at a time, without
padding, and takes tokens and their places from the tokenizer itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from families import SENTENCE_FAMILIES
from reference import double
from sentence_reference import SentenceReference, total
from sentence_texts import SENTENCES, SOME
from transformers import AutoTokenizer

from lmdiag import stimuli
from lmdiag.api import LanguageModel
from lmdiag.evaluation import evaluate
from lmdiag.models import LoadOptions, Model, load
from lmdiag.runs.asking import ask
from lmdiag.runs.journal import Journal
from lmdiag.schema import BadInput, Protocol, Sentence, SentenceAnswer, WordSpan

FamilyDir = Callable[[str], Path]

TOLERANCE = 1e-5
"""Nats; both models are float64."""

PLL = ("within-word", "original")

NAMED = (
    "bert", "roberta", "modernbert", "deberta-v2", "xlm-roberta", "gpt2", "gpt2-prefixed",
    "gpt2-apart", "llama", "xglm",
)  # fmt: skip
"""All two hundred sentences: every kind of vocabulary, with and without a blank in its words."""

QUICK = ("bert", "roberta", "gpt2", "gpt2-apart", "llama")

QUICKEST = ("bert", "gpt2")
"""Tests that ask several times are left to `make check` for the other families."""

BY_BYTES = {"byte-level", "metaspace-bpe"}
"""Vocabularies that can spell every character."""


@pytest.fixture(autouse=True)
def _float64_for_xglm(request: pytest.FixtureRequest) -> Iterator[None]:
    """XGLM makes numbers of the default type on its way (transformers 5.23)."""
    with double() if "xglm" in request.node.name else nullcontext():
        yield


def loaded(folder: Path, **options: Any) -> Model:
    """A family's model in float64."""
    return load(str(folder), LoadOptions(dtype="float64", **options))


def answered(
    model: Model, texts: Iterable[str | Sentence], size: int | None = None, **more: Any
) -> list[SentenceAnswer]:
    """Returns the answers to sentences, in batches of a size."""
    sentences = [text if isinstance(text, Sentence) else Sentence(text) for text in texts]
    return ask(model, sentences, top=5, batch_size=size, **more)  # type: ignore[return-value]


def reference(name: str, folder: Path, *, unit: str = "token", **options: Any) -> SentenceReference:
    """The reference of a family."""
    family = SENTENCE_FAMILIES[name]
    options |= {"convention": family.convention} if unit == "word" else {}
    options |= {"by_prefix": True} if name == "phi3-longrope" else {}  # see `forward.lengths`
    return SentenceReference(folder, family.kind, attention=family.attention, **options)


def check(
    answers: Sequence[SentenceAnswer],
    by: SentenceReference,
    texts: Sequence[str | Sentence],
    tolerance: float = TOLERANCE,
) -> None:
    """Every word of every sentence is the reference's."""
    for answer, text in zip(answers, texts, strict=True):
        expected = by.words(*text) if isinstance(text, Sentence) else by.words(text)
        assert [word[:2] for word in answer.words] == [word[:2] for word in expected], text
        assert [word.n_tokens for word in answer.words] == [w.n_tokens for w in expected], text
        for word, other in zip(answer.words, expected, strict=True):
            assert word.log_prob == (
                other.log_prob and pytest.approx(other.log_prob, abs=tolerance)
            )


def check_same(
    first: Sequence[SentenceAnswer], second: Sequence[SentenceAnswer], tolerance: float = 1e-6
) -> None:
    """The answers are the same up to rounding; some families round to float32 on their way."""
    for one, other in zip(first, second, strict=True):
        assert [word[:2] for word in one.words] == [word[:2] for word in other.words]
        for word, same in zip(one.words, other.words, strict=True):
            assert word.n_tokens == same.n_tokens
            expected = same.log_prob and pytest.approx(same.log_prob, abs=tolerance)
            assert word.log_prob == expected


def params(names: Iterable[str]) -> list[Any]:
    """Families as parameters of a test."""
    return [pytest.param(n, marks=() if n in QUICKEST else pytest.mark.slow) for n in names]


def variants(name: str) -> list[dict[str, Any]]:
    """The options under which a family is asked."""
    if SENTENCE_FAMILIES[name].kind == "masked":
        return [{"pll": pll} for pll in PLL]
    return [{"unit": unit} for unit in ("token", "word")]


CASES = [(name, options) for name in NAMED for options in variants(name)]


def named(case: Any) -> str:
    return case if isinstance(case, str) else "-".join(case.values())


class TestReference:
    """The reference against transformers' own loss, and against a case worked out by hand."""

    @pytest.mark.parametrize("name", ["gpt2", "llama"])
    def test_the_sum_is_the_loss(self, name: str, family_dir: FamilyDir) -> None:
        right = reference(name, family_dir(name))
        tokens = right.split(SENTENCES[0])
        ids = torch.tensor([tokens.opening + tokens.ids])
        loss = right.model(input_ids=ids, labels=ids).loss  # mean over all tokens but the first
        assert total(right.words(SENTENCES[0])) == pytest.approx(-len(tokens.ids) * loss.item())

    def test_masks(self, family_dir: FamilyDir) -> None:
        """bert splits "Zoë's": zoe, ', s; its word is what lies between two blanks."""
        right = reference("bert", family_dir("bert"))
        seen: list[list[int]] = []
        run = right._run
        right._run = lambda ids: seen.append(ids) or run(ids)  # type: ignore[method-assign]
        right.words("a bird.")
        a, bird, mark, mask = right.tokenizer.convert_tokens_to_ids(["a", "bird", ".", "[MASK]"])
        opening, closing = right.tokenizer.cls_token_id, right.tokenizer.sep_token_id
        rows = [[mask, bird, mark], [a, mask, mask], [a, bird, mask]]
        assert seen == [[opening, *row, closing] for row in rows]


@pytest.mark.parametrize(
    ("name", "options"), [case for case in CASES if case[0] in QUICK], ids=named
)
def test_some_sentences(name: str, options: dict[str, Any], family_dir: FamilyDir) -> None:
    folder = family_dir(name)
    answers = answered(loaded(folder, **options), SOME)
    check(answers, reference(name, folder, **options), SOME)
    # Guards the test: words of several pieces, and words without a probability where there are.
    words = [word for answer in answers for word in answer.words]
    assert sum(word.n_tokens > 1 for word in words) > 30
    spelled = SENTENCE_FAMILIES[name].convention in BY_BYTES
    assert all(word.log_prob is not None for word in words) == spelled


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES, ids=named)
def test_two_hundred_sentences(name: str, options: dict[str, Any], family_dir: FamilyDir) -> None:
    folder = family_dir(name)
    model = loaded(folder, **options)
    answers = answered(model, SENTENCES)
    # One sentence is longer than 130 tokens where every blank is one.
    check(answers, reference(name, folder, window=model.info.max_length, **options), SENTENCES)
    assert len(answers) == 200


@pytest.mark.slow
@pytest.mark.parametrize("name", SENTENCE_FAMILIES)
def test_every_family(name: str, family_dir: FamilyDir) -> None:
    folder = family_dir(name)
    for options in variants(name):
        answers = answered(loaded(folder, **options), SOME)
        check(answers, reference(name, folder, **options), SOME)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published", "size"),
    [("bert", "bert-base-uncased", 30522), ("gpt2", "gpt2", 50257)],
)
def test_published_vocabularies(
    name: str, published: str, size: int, upstream: Path, tmp_path: Path
) -> None:
    source = upstream.parent / "tokenizers" / published
    if not source.is_dir():
        pytest.skip(f"no published tokenizer at {source}")
    folder = SENTENCE_FAMILIES[name].make(tmp_path / published, (source, size))
    for options in variants(name):
        answers = answered(loaded(folder, **options), SENTENCES)
        check(answers, reference(name, folder, **options), SENTENCES)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_float32(name: str, family_dir: FamilyDir) -> None:
    """As models are usually run; the tolerance is that of one word of several pieces."""
    for options in variants(name):
        model = load(str(family_dir(name)), LoadOptions(**options))
        texts = SOME[:4]
        check(answered(model, texts), reference(name, family_dir(name), **options), texts, 1e-4)


class TestBeginning:
    """What stands before the first word of a causal model."""

    @pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "bloom", "llama", "opt", "qwen2"])
    @pytest.mark.parametrize("bos", ["auto", "never"])
    def test_reference(self, name: str, bos: str, family_dir: FamilyDir) -> None:
        folder = family_dir(name)
        answers = answered(loaded(folder, bos=bos), SOME)
        check(answers, reference(name, folder, bos=bos), SOME)
        first = [answer.words[0] for answer in answers]
        assert all(word.n_tokens for word in first)
        has_one = bos == "auto" and name != "qwen2"  # Qwen has none
        assert all((word.log_prob is not None) == has_one for word in first)
        rest = [word for answer in answers for word in answer.words[1:]]
        assert all(word.log_prob is not None for word in rest)

    @pytest.mark.parametrize("unit", ["token", "word"])
    @pytest.mark.parametrize("packing", ["always", "never"])
    def test_a_text_of_one_token(self, unit: str, packing: str, family_dir: FamilyDir) -> None:
        """Nothing stands before it, so that nothing is read; other texts keep their numbers."""
        folder = family_dir("gpt2")
        model = loaded(folder, bos="never", unit=unit, packing=packing)
        for texts in (["a"], ["a", "a robin", "the"], ["a", "the"]):
            answers = answered(model, texts)
            check(answers, reference("gpt2", folder, bos="never", unit=unit), texts)
            assert answers[0].words == (WordSpan(0, 1, None, 1),)

    def test_a_text_without_a_token(self, family_dir: FamilyDir) -> None:
        """BERT's tokenizer removes the zero-width space."""
        (answer,) = answered(loaded(family_dir("bert")), ["\u200b"])
        assert answer.n_tokens == 0

    @pytest.mark.parametrize("name", ["gpt2", "llama"])
    def test_always_is_the_default(self, name: str, family_dir: FamilyDir) -> None:
        default, always = (
            answered(loaded(family_dir(name), bos=bos), SOME[:4]) for bos in ("auto", "always")
        )
        assert default == always

    def test_sums_leave_the_first_word_out(self, family_dir: FamilyDir) -> None:
        model = loaded(family_dir("qwen2"))
        several, one = answered(model, [SENTENCES[0], "Penguin"])
        assert several.log_prob == pytest.approx(sum(w.log_prob or 0 for w in several.words[1:]))
        assert several.n_tokens == sum(word.n_tokens for word in several.words[1:])
        assert (one.log_prob, one.n_tokens) == (None, 0)


@pytest.mark.parametrize("name", ["gpt2", "gpt2-apart", "llama"])
def test_words_end_at_white_space_alone(name: str, family_dir: FamilyDir) -> None:
    """In "tool." the mass of the period counts once: as a part of the word, not as its end.

    The reference reads transformers' distributions after each word and adds up the items that begin
    with white space, or end the text, by what the tokenizer decodes after a letter.
    """
    folder, text = family_dir(name), 'A (small) hammer, said Zoë, is a "tool".'
    (answer,) = answered(loaded(folder, unit="word"), [text])
    right = reference(name, folder)
    tokens = right.split(text)
    before = right._before(tokens)
    size = before[-1].shape[-1]
    letter = right.tokenizer("a", add_special_tokens=False).input_ids
    decoded = [right.tokenizer.decode([*letter, n]) for n in range(size)]
    alone = right.tokenizer.decode(letter)
    ends = [
        n in right.tokenizer.all_special_ids or shown[len(alone) :][:1].isspace()
        for n, shown in enumerate(decoded)
    ]
    # That the first piece of a word begins with white space, or the piece before it is a blank.
    nats, edges = [0.0] * len(tokens.spans), [0.0] * (len(tokens.spans) + 1)
    for n, (token, word) in enumerate(zip(tokens.ids, tokens.words, strict=True)):
        nats[word] += float(before[n][token])
        if n and word != tokens.words[n - 1]:
            edges[word] = float(before[n][torch.tensor(ends)].logsumexp(0))
    edges[-1] = float(before[-1][torch.tensor(ends)].logsumexp(0))
    expected = [total + edges[number + 1] - edges[number] for number, total in enumerate(nats)]
    assert [word.log_prob for word in answer.words] == pytest.approx(expected, abs=TOLERANCE)
    # They telescope: the probability of the tokens, and of white space or the end after them.
    assert answer.log_prob == pytest.approx(sum(nats) + edges[-1], abs=TOLERANCE)
    assert min(edges[1:]) < -0.1  # guards the test: a boundary that is not certain


def test_an_unknown_word_makes_a_sentence_unscorable(family_dir: FamilyDir) -> None:
    """Its other words keep their probabilities."""
    (answer,) = answered(loaded(family_dir("bert")), ["The жук sleeps."])
    assert [word.log_prob is None for word in answer.words] == [False, True, False]
    assert answer.words[1].n_tokens == 0
    assert answer.log_prob is None


def test_both_pll_differ_where_words_have_several_pieces(family_dir: FamilyDir) -> None:
    folder = family_dir("roberta")
    first, second = (answered(loaded(folder, pll=pll), ["Zoë saw a penguin"])[0] for pll in PLL)
    for one, other in zip(first.words, second.words, strict=True):
        assert (one.log_prob == pytest.approx(other.log_prob)) == (one.n_tokens == 1)


@pytest.mark.parametrize("name", ["bert", "bert-cased", "albert", "gpt2"])
def test_a_pair_of_the_same_tokens_is_no_comparison(name: str, family_dir: FamilyDir) -> None:
    """By the tokenizer itself: pairs that differ in case, accents or blanks alone, and others."""
    good = "The robin sleeps"
    changed = ("the robin sleeps", "The r\u00f3bin sleeps", "The  robin sleeps", "The robin  sleep")
    bad = [*changed, good]
    rows = [{"sentence_good": good, "sentence_bad": text, "id": text} for text in bad]
    loaded_rows = stimuli.load(rows)
    options = LoadOptions()
    model = LanguageModel(load(str(family_dir(name)), options), options)
    predictions = model.predict(loaded_rows)
    found = evaluate(loaded_rows, [predictions], Protocol(), model.info.cased)
    tokenizer = AutoTokenizer.from_pretrained(family_dir(name))
    equal = [tokenizer(text).input_ids == tokenizer(good).input_ids for text in bad]
    assert found.equal_contrasts == sum(equal)
    assert found.measures["sensitivity"].n == len(bad) - sum(equal) - len(found.unscorable)
    # Guards the test: the two last are not, and are, the same for all, the first for two of them.
    assert equal[3:] == [False, True]
    assert equal[0] == (name in ("bert", "albert"))


class TestCompany:
    """No number depends on what goes through the model together, or on the order."""

    TEXTS = SOME[2:9]

    @pytest.mark.parametrize("name", params(SENTENCE_FAMILIES))
    def test_batches_order_and_packing(self, name: str, family_dir: FamilyDir) -> None:
        for options in variants(name):
            model = loaded(family_dir(name), **options)
            whole = answered(model, self.TEXTS)
            check_same(whole, answered(model, self.TEXTS, 1))
            check_same(whole, answered(model, self.TEXTS, 3))
            check_same(whole[::-1], answered(model, self.TEXTS[::-1]))
            assert answered(model, self.TEXTS) == whole  # the same batches: to the last bit
            for packing in ("always", "never"):
                try:
                    other = loaded(family_dir(name), packing=packing, **options)
                except BadInput:
                    assert packing == "always"  # the model's positions do not allow it
                    continue
                check_same(whole, answered(other, self.TEXTS))

    @pytest.mark.parametrize("name", ["bert", "gpt2"])
    def test_common_beginnings(self, name: str, family_dir: FamilyDir) -> None:
        """Minimal pairs, prefixes of each other, and sentences that differ in their blanks."""
        beginning = "The author that the guards like"
        texts = [f"{beginning} {end}" for end in ("laughs.", "laugh.", "laughs", "laughs. Zoë")]
        texts += [beginning, f"{beginning}  laughs.", f" {beginning}", "The", "The author"]
        for options in variants(name):
            model = loaded(family_dir(name), **options)
            check(answered(model, texts), reference(name, family_dir(name), **options), texts)

    @pytest.mark.parametrize("name", ["bert", "gpt2"])
    def test_interrupted(self, name: str, family_dir: FamilyDir, tmp_path: Path) -> None:
        model = loaded(family_dir(name))
        expected = answered(model, SENTENCES[:36], 4)
        answer, deaths = model.answer, iter([3, 1, 0, 4])

        def dying(left: int) -> Callable[..., Any]:
            def fail(batch: Any, top: int) -> Any:
                nonlocal left
                if not left:
                    raise KeyboardInterrupt
                left -= 1
                return answer(batch, top)

            return fail

        for left in deaths:
            model.answer = dying(left)  # type: ignore[method-assign]
            with Journal(tmp_path) as journal, pytest.raises(KeyboardInterrupt):
                answered(model, SENTENCES[:36], 4, journal=journal)
        model.answer = answer  # type: ignore[method-assign]
        with Journal(tmp_path) as journal:
            assert len(journal.read()) == 8 * 4
            assert answered(model, SENTENCES[:36], 4, journal=journal) == expected


class TestWindows:
    """Texts that are longer than what a model reads at a time."""

    TEXT = " ".join(SENTENCES[20:60])

    def short(self, name: str, tokens: int, folder: Path) -> Path:
        """A model of a family that reads so many tokens."""
        family = SENTENCE_FAMILIES[name]
        limit = "n_positions" if name.startswith("gpt2") else "max_position_embeddings"
        padded = 2 if name == "roberta" else 0  # its positions begin after the padding index
        return replace(family, config=family.config | {limit: tokens + padded}).make(folder / name)

    def test_causal_windows_by_hand(self, family_dir: FamilyDir) -> None:
        """A beginning token and eight others at a time: steps of four."""
        right = reference("gpt2", family_dir("gpt2"), window=9)
        seen: list[list[int]] = []
        run = right._run
        right._run = lambda ids: seen.append(ids) or run(ids)  # type: ignore[method-assign]
        text = "A robin is a bird and a trout is a fish."
        opening, ids = right.split(text).opening, right.split(text).ids
        words = right.words(text)
        assert len(ids) == 14
        starts = (0, 4, 8)  # the last window has what is left
        assert seen == [opening + ids[start : start + 8] for start in starts]
        # Token 8 is the first that the second window scores: it is the fifth there.
        values = right._causal(right.split(text))
        assert values[8] == pytest.approx(float(run(opening + ids[4:12])[4][ids[8]]))
        assert total(words) == pytest.approx(sum(value or 0 for value in values))

    def test_masked_windows_by_hand(self, family_dir: FamilyDir) -> None:
        """Eight tokens between the special ones: steps of four.

        Token 5 is the sixth of the first window, with two tokens after it, and the second of the
        next one, with one token before it: the first window has more on its shorter side. Token 6
        has one after it in the first window and two before it in the second.
        """
        right = reference("bert", family_dir("bert"), window=10, pll="original")
        seen: list[list[int]] = []
        run = right._run
        right._run = lambda ids: seen.append(ids) or run(ids)  # type: ignore[method-assign]
        text = "a bird is a bird is a bird is a bird is a bird"
        split = right.split(text)
        assert len(split.ids) == 14
        right.words(text)
        mask = right.tokenizer.mask_token_id
        places = [(ids[1:-1].index(mask), len(ids) - 2) for ids in seen]
        # Windows [0, 8), [4, 12), [8, 14); token 9: (5, 2) on its sides, or (1, 4).
        first = [(n, 8) for n in range(6)]
        second = [(n - 4, 8) for n in range(6, 10)]
        assert places == first + second + [(n - 8, 6) for n in range(10, 14)]

    @pytest.mark.parametrize("name", params(("bert", "roberta", "gpt2", "llama")))
    @pytest.mark.parametrize("tokens", [12, 23])
    def test_reference(self, name: str, tokens: int, tmp_path: Path) -> None:
        folder = self.short(name, tokens, tmp_path)
        cases = [*variants(name), *([{"bos": "never"}] if name == "gpt2" else [])]
        texts = [self.TEXT[:end].strip() for end in (20, 41, 42, 43, 44, 300)]
        for options in cases:
            model = loaded(folder, **options)
            assert model.info.max_length == tokens
            right = reference(name, folder, **options, window=tokens)
            check(answered(model, texts), right, texts)
            lengths = [len(right.split(text).ids) for text in texts]
            assert min(lengths) < tokens < max(lengths) / 3

    @pytest.mark.parametrize("name", ["bert", "gpt2"])
    def test_company(self, name: str, tmp_path: Path) -> None:
        """Long and short texts together, in batches of any size."""
        folder = self.short(name, 16, tmp_path)
        texts = [self.TEXT[:200], "Penguin", self.TEXT[:30], self.TEXT[5:300], *SOME[:3]]
        for options in variants(name):
            model = loaded(folder, **options)
            whole = answered(model, texts)
            check_same(whole, answered(model, texts, 1))
            check_same(whole, answered(model, texts, 2))
            check_same(whole, answered(loaded(folder, packing="never", **options), texts))

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["bert", "roberta", "modernbert", "gpt2", "llama", "mamba"])
    def test_long_text(self, name: str, family_dir: FamilyDir) -> None:
        """All of the text, as much as the model reads at a time."""
        for options in variants(name):
            model = loaded(family_dir(name), **options)
            window = model.info.max_length
            right = reference(name, family_dir(name), **options, window=window)
            check(answered(model, [self.TEXT]), right, [self.TEXT])
            assert len(right.split(self.TEXT).ids) > 4 * (window or 0)


class TestUnitWord:
    """The word-boundary correction of causal models telescopes."""

    @pytest.mark.parametrize("name", ["gpt2", "gpt2-apart", "llama", "xglm", "mamba"])
    def test_the_sum_is_the_sentence_and_its_end(self, name: str, family_dir: FamilyDir) -> None:
        folder, rng = family_dir(name), random.Random(0)
        texts = [*SOME[:8], *SENTENCES[20:24]]
        plain = answered(loaded(folder), texts)
        model, right = loaded(folder, unit="word"), reference(name, folder, unit="word")
        for text, tokens in zip(texts, plain, strict=True):
            if tokens.log_prob is None:
                continue
            split = right.split(text)
            end = right._end(right._before(split)[-1])
            expected = pytest.approx(tokens.log_prob + end, abs=TOLERANCE)
            cuts = sorted(rng.sample(range(1, len(text)), min(4, len(text) - 1)))
            for sentence in (Sentence(text), Sentence(text, tuple(cuts))):
                (answer,) = answered(model, [sentence])
                assert sum(word.log_prob or 0.0 for word in answer.words) == expected
            assert end < -1e-3  # guards the test: the correction is not nothing


class TestCuts:
    """Parts of words, where a region begins inside one."""

    @pytest.mark.parametrize("name", QUICK)
    def test_parts_sum_up_to_words(self, name: str, family_dir: FamilyDir) -> None:
        text = "The well-known author’s dog sleeps; isn’t it?"
        cuts = tuple(text.index(part) for part in ("-known", "’s", ";", "’t", "?"))
        for options in variants(name):
            model = loaded(family_dir(name), **options)
            whole, parts = answered(model, [Sentence(text), Sentence(text, cuts)])
            check([parts], reference(name, family_dir(name), **options), [Sentence(text, cuts)])
            assert {start for start, *_ in parts.words} == {w.start for w in whole.words} | {*cuts}
            for word in whole.words:
                own = [part for part in parts.words if word.start <= part.start < word.end]
                known = [part.log_prob for part in own if part.log_prob is not None]
                assert (word.log_prob is None) == (len(known) < len(own))
                if word.log_prob is not None:
                    assert sum(known) == pytest.approx(word.log_prob)
                    assert sum(part.n_tokens for part in own) == word.n_tokens
