"""Rows through the model: layouts, the cut projection, ties, broken numbers, full memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_files import byte_level, wordpiece
from transformers.activations import FastGELUActivation, NewGELUActivation

from lmdiag.models import LoadOptions, Model, load
from lmdiag.models.answers import best
from lmdiag.models.forward import layout
from lmdiag.models.forward.layout import reach
from lmdiag.models.tokens.questions import TokenRow
from lmdiag.types import BadInput, Query, Question
from models.test_masked import some_questions
from models.toys import asked, bert, gpt2

TOKENIZER = wordpiece("a", "the", "robin", "is", "bird", "tree", "##s", ".", "near")
BYTES = byte_level("Ġ b", "Ġb i")
ROWS = (TokenRow((1, 2, 3, 4), (3,)), TokenRow((5, 6), (0, 1)))


class TestLayout:
    def test_always(self, family_dir: Callable[[str], Path]) -> None:
        with pytest.raises(BadInput, match="cannot read several contexts in one row"):
            load(str(family_dir("mamba")), LoadOptions(packing="always"))

    def test_a_model_of_few_positions(self) -> None:
        """What is tried does not fit: rows of one length, and the same numbers for what fits."""
        network = gpt2(len(BYTES), n_positions=9)
        model = asked(network, BYTES, "causal")
        assert (model.reader.layout, model.reader.gate) == ("equal", None)
        rows = [
            TokenRow((1, 2, 3, 4), (3,)),
            TokenRow((5, 6), (0, 1)),
            TokenRow((7, 8, 9, 10), (2,)),
        ]
        alone = torch.cat([model.reader.read([row]) for row in rows])
        assert (model.reader.read(rows) - alone).abs().max() < 1e-5

    def test_half_precision_is_not_packed(self) -> None:
        """Rounding would hide an error."""
        network = gpt2(len(BYTES)).to(torch.bfloat16)
        assert asked(network, BYTES, "causal").reader.layout == "padded"

    @pytest.mark.parametrize(
        ("name", "tokens"),
        [
            ("mistral", 6),
            ("modernbert", 2),
            ("gpt_neo", 8),
            ("gemma2", 6),
            ("gpt2", None),
            ("bert", None),
        ],
    )
    def test_reach(self, name: str, tokens: int | None, family_dir: Callable[[str], Path]) -> None:
        assert reach(load(str(family_dir(name))).reader.model.config) == tokens

    @pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "opt"])
    def test_layouts_agree(self, name: str, family_dir: Callable[[str], Path]) -> None:
        """Packed, padded, and one at a time: the same numbers, rows beyond the pack's width too."""
        model = load(str(family_dir(name)))
        model.reader.width = 24  # some rows are longer
        rows = [row for question in some_questions(25) for row in model.encode(question).rows]
        assert {len(row.ids) > 24 for row in rows} == {True, False}
        packed = model.reader.read(rows)
        model.reader.layout = "padded"
        padded = model.reader.read(rows)
        model.reader.layout = "equal"
        equal = model.reader.read(rows)
        alone = torch.cat([model.reader.read([row]) for row in rows])
        for together in (packed, padded, equal):
            assert (together - alone).abs().max() < 3e-5


class TestProjection:
    @pytest.mark.parametrize(
        ("name", "gate"),
        [
            ("bert", "BertSelfOutput"),
            ("roberta", "RobertaSelfOutput"),
            ("electra", "ElectraSelfOutput"),
            ("deberta-v2", "DebertaV2SelfOutput"),
            ("albert", "Linear"),
            ("gpt2", "Linear"),
            ("gemma2", "Linear"),
            ("t5", "Linear"),
            ("fnet", "Linear"),
        ],
    )
    def test_cut_or_whole(self, name: str, gate: str, family_dir: Callable[[str], Path]) -> None:
        """Computing the wanted positions only gives what computing everything gives."""
        model = load(str(family_dir(name)))
        rows = [row for question in some_questions(4) for row in model.encode(question).rows]
        assert type(model.reader.gate).__name__ == gate
        cut = model.reader.read(rows)
        model.reader.gate = None
        assert (cut - model.reader.read(rows)).abs().max() < 1e-5

    def test_the_last_layer_is_not_computed_elsewhere(
        self, family_dir: Callable[[str], Path]
    ) -> None:
        model = load(str(family_dir("bert")))
        seen = []
        for layer in model.reader.model.bert.encoder.layer:
            layer.output.register_forward_hook(lambda _, __, states: seen.append(states.shape[:2]))
        rows = [row for question in some_questions(4) for row in model.encode(question).rows]
        model.reader.read(rows)
        n_reads = sum(len(row.reads) for row in rows)
        assert seen[-1] == (1, n_reads)
        assert all(rows * tokens > n_reads for rows, tokens in seen[:-1])

    @pytest.mark.parametrize("otherwise", ["by name", "unnamed"])
    def test_a_model_that_projects_otherwise(self, otherwise: str) -> None:
        """What a hook does not see, or the model does not name, is projected everywhere and cut."""
        network = gpt2(len(BYTES))
        call = type(network.lm_head).__call__

        class ByName(torch.nn.Linear):
            def __call__(self, states: torch.Tensor) -> torch.Tensor:
                return call(self, input=states)

        if otherwise == "by name":
            network.lm_head.__class__ = ByName
        else:
            network.get_output_embeddings = lambda: None  # type: ignore[method-assign]
        plain = asked(gpt2(len(BYTES)), BYTES, "causal").reader
        reader = asked(network, BYTES, "causal").reader
        assert reader.gate is None
        assert (reader.read(ROWS) - plain.read(ROWS)).abs().max() < 1e-6

    def test_a_gate_that_changes_the_numbers_is_left_open(
        self, family_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first layer's module looks like a gate, but other layers come after it."""
        monkeypatch.setattr(
            layout,
            "gates",
            lambda model: [
                model.bert.encoder.layer[0].attention.output,
                model.get_output_embeddings(),
            ],
        )
        reader = load(str(family_dir("bert"))).reader
        assert reader.gate is reader.model.get_output_embeddings()

    def test_only_wanted_positions_are_projected(self) -> None:
        network = gpt2(len(BYTES))
        model = asked(network, BYTES, "causal")
        seen = []
        network.lm_head.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape))
        assert model.reader.read(ROWS).shape == (3, len(BYTES))
        assert [tuple(shape[:2]) for shape in seen] == [(1, 3)]

    @pytest.mark.parametrize(
        ("dtype", "softmax"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)]
    )
    def test_the_softmax_is_never_in_half_precision(
        self, dtype: torch.dtype, softmax: torch.dtype
    ) -> None:
        reader = asked(gpt2(len(BYTES)).to(dtype), BYTES, "causal").reader
        log_probs = reader.read([TokenRow((1, 2, 3), (2,))])
        assert log_probs.dtype == softmax
        assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("spelt_out", [NewGELUActivation, FastGELUActivation])
def test_the_tanh_form_of_gelu_is_one_operation(spelt_out: type[torch.nn.Module]) -> None:
    """transformers spells it out; half precision is left alone."""
    states = torch.linspace(-6, 6, 1001)
    for dtype, fused in ((torch.float32, True), (torch.bfloat16, False)):
        network = gpt2(len(BYTES)).to(dtype)
        network.transformer.h[0].mlp.act = spelt_out()
        act = asked(network, BYTES, "causal").reader.model.transformer.h[0].mlp.act
        assert isinstance(act, torch.nn.GELU) == fused
        assert (act(states) - spelt_out()(states)).abs().max() < 1e-6


@given(
    st.lists(st.lists(st.integers(-3, 0), min_size=7, max_size=7), min_size=1, max_size=4),
    st.integers(1, 9),
)
def test_the_best_items_ties_by_id(rows: list[list[int]], top: int) -> None:
    ids, values = best(torch.tensor(rows, dtype=torch.float32), top)
    for row, tokens, nats in zip(rows, ids.tolist(), values.tolist(), strict=True):
        assert tokens == sorted(range(7), key=lambda token: (-row[token], token))[:top]
        assert nats == [row[token] for token in tokens]


class TestBrokenNumbers:
    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    @pytest.mark.parametrize("kind", ["masked", "causal"])
    def test_refused(self, value: float, kind: Any) -> None:
        """One bad logit at one blank: model and context are named, nothing is scored."""
        tokenizer = TOKENIZER if kind == "masked" else BYTES
        network = (bert if kind == "masked" else gpt2)(len(tokenizer))
        model = asked(network, tokenizer, kind)
        contexts = ("a tree", "near the robin")
        encoded = [model.encode(Question(Query(text), ("bird",))) for text in contexts]
        bad = encoded[1].rows[0].ids

        def spoil(_: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            output[..., -1, 7] = value  # the last of the gathered positions
            return output

        network.get_output_embeddings().register_forward_hook(spoil)
        assert bad  # the second question's row is read last
        with pytest.raises(BadInput, match=r"model toy gives NaN .*'near the robin'"):
            model.answer(encoded, 5)

    def test_minus_infinity_is_a_probability_of_zero(self) -> None:
        network = gpt2(len(BYTES))
        model = asked(network, BYTES, "causal")

        def forbid(_: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            output[..., 7] = -torch.inf
            return output

        network.lm_head.register_forward_hook(forbid)
        (answer,) = model.answer([model.encode(Question(Query("be"), ("bird",)))], len(BYTES))
        assert answer.top_log_probs[-1] == -torch.inf


class TestMemory:
    QUESTIONS = tuple(
        Question(Query(context), ("bird", "birds", "tree"))
        for context in ("a", "the robin is a", "a tree", "near the robin is the tree", "is")
    )

    @contextmanager
    def full(self, model: Model, tokens: int, error: type[Exception]) -> Iterator[list[int]]:
        """Has every forward pass of more tokens fail, as a device does; yields those tried."""
        tried: list[int] = []

        def check(_: Any, __: Any, inputs: dict[str, torch.Tensor]) -> None:
            tried.append(inputs["input_ids"].numel())
            if tried[-1] > tokens:
                raise error("CUDA out of memory. Tried to allocate 20.00 GiB")

        handle = model.reader.model.register_forward_pre_hook(check, with_kwargs=True)
        try:
            yield tried
        finally:
            handle.remove()

    @pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError, MemoryError])
    @pytest.mark.parametrize("packing", ["auto", "never"])
    def test_halves(self, packing: str, error: type[Exception]) -> None:
        """Down to one question a time, with the same numbers, and no attempt twice too large."""
        model = asked(bert(len(TOKENIZER)), TOKENIZER, "masked", packing=packing)
        encoded = [model.encode(question) for question in self.QUESTIONS]
        expected = model.answer(encoded, 5)
        largest = max(len(e.rows) * max(len(row.ids) for row in e.rows) for e in encoded)
        with self.full(model, largest, error) as tried:
            found = model.answer(encoded, 5)
            failed = sum(tokens > largest for tokens in tried)
            again = model.answer(encoded, 5)
            assert sum(tokens > largest for tokens in tried) <= failed + 1  # it has learnt
        for answers in (found, again):
            for answer, right in zip(answers, expected, strict=True):
                assert answer.top_words == right.top_words
                for word, score in answer.words.items():
                    assert score.rank == right.words[word].rank
                    assert score.log_prob == pytest.approx(right.words[word].log_prob, abs=1e-5)

    def test_one_question_alone(self) -> None:
        model = asked(gpt2(len(BYTES)), BYTES, "causal")
        encoded = [model.encode(question) for question in self.QUESTIONS]
        with (
            self.full(model, 0, torch.OutOfMemoryError),
            pytest.raises(BadInput, match="model toy runs out of memory on the one text 'a'"),
        ):
            model.answer(encoded, 5)

    def test_other_errors_pass(self) -> None:
        model = asked(gpt2(len(BYTES)), BYTES, "causal")
        encoded = [model.encode(question) for question in self.QUESTIONS]

        def fail(*_: Any) -> None:
            raise RuntimeError("shape mismatch")

        model.reader.model.register_forward_pre_hook(fail)
        with pytest.raises(RuntimeError, match="shape mismatch"):
            model.answer(encoded, 5)


def test_no_questions() -> None:
    assert asked(gpt2(len(BYTES)), BYTES, "causal").answer([], 5) == []
