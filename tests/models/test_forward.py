"""Rows through the model: packs, batches, probing, the projection, broken numbers, full memory."""

import numpy as np
import pytest
import torch
from families import CAUSAL, SEEING_RIGHT, family_params
from hypothesis import given
from hypothesis import strategies as st
from reference import CLOSE
from tokenizer_files import byte_level, wordpiece
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM

from lmdiag.models import LoadOptions, load
from lmdiag.models.answers import most_probable
from lmdiag.models.forward import probing
from lmdiag.models.forward.packing import pack_contexts, plan_batches
from lmdiag.models.forward.sizes import Sizes, sizes_for
from lmdiag.models.tokens.encoded_questions import Blank, EncodedQuestion, PartialWord, TokenRow
from lmdiag.runs import asking
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import alone, ask, asked, bert, check_same, gpt2, refusal

TOKENIZER = wordpiece("a", "the", "robin", "is", "bird", "tree", "##s", ".", "near")
BYTES = byte_level("Ġ b", "Ġb i")
ROWS = [TokenRow((1, 2, 3, 4), (3,)), TokenRow((5, 6), (0, 1)), TokenRow((5, 6, 7, 8), (0, 3))]
CONTEXTS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=9).map(tuple), min_size=1, max_size=12
)


def some_questions(count):
    """Returns questions of unlike lengths, with words of one and of several pieces."""
    text = "The old woman who lived near the sea kept three cats and a dog in the garden"
    rights = ("", "near the park.", ", and the cat sleeps!")
    return [
        Question(
            Query(" ".join(text.split()[: 1 + 5 * number % 17]), rights[number % 3]),
            ("bird", "wrench", "sparrows", "naïve"),
        )
        for number in range(count)
    ]


def refusing(network, refuses):
    """The network, which fails for some inputs."""

    def check(_, __, inputs):
        if refuses(inputs):
            raise ValueError("not so\nand more lines")

    network.register_forward_pre_hook(check, with_kwargs=True)
    return network


@given(CONTEXTS, st.booleans(), st.integers(9, 20))
def test_every_context_sees_itself_alone(contexts, causal, width):
    packs, packed_at = pack_contexts(contexts, width, causal=causal)
    assert all(0 < len(row.ids) <= width for row in packs)
    for ids, (number, offsets) in zip(contexts, packed_at, strict=True):
        mask = packs[number].mask(width, causal=causal)
        assert mask.diagonal().all()  # of what fills the pack up, too
        assert [packs[number].ids[offset] for offset in offsets] == list(ids)
        inside = np.ones((len(ids), len(ids)), dtype=bool)
        expected = np.tril(inside) if causal else inside
        assert (mask[offsets][:, offsets] == expected).all()
        assert mask[offsets].sum() == expected.sum()  # and nothing else
    tokens = {ids[:end] for ids in contexts for end in range(1, len(ids) + 1)}
    if causal and len(packs) == 1:  # common prefixes are read once
        assert len(packs[0].ids) == len(tokens)


@given(CONTEXTS, st.integers(1, 40), st.none() | st.integers(1, 5), st.booleans(), st.booleans())
def test_every_question_is_in_one_batch(contexts, budget, count, packed, causal):
    query = Query("")
    questions = []
    for ids in contexts:
        rows = (Blank(ids).row(PartialWord(())),)
        questions.append(
            EncodedQuestion(Question(query, ()), query, Blank(ids), {}, rows, (), False)
        )
    dealt = plan_batches(questions, budget=budget, count=count, packed=packed, causal=causal)
    assert sorted(number for batch in dealt for number in batch) == list(range(len(contexts)))
    for batch in dealt:
        rows = [contexts[number] for number in batch]
        if count is not None:
            assert len(batch) <= count
        elif len(batch) > 1 and packed and causal:
            assert len({row[: end + 1] for row in rows for end in range(len(row))}) <= budget
        elif len(batch) > 1:  # masked packs are dealt evenly: one context beyond their share
            assert sum(map(len, rows)) <= budget + (max(map(len, contexts)) if packed else 0)


QUESTIONS = some_questions(25)


class TestLayout:
    def test_rows_beyond_the_width_of_a_pack(self, family_dir):
        reader = (model := load(str(family_dir("bert")))).reader
        reader.width = 24
        rows = [row for question in some_questions(25) for row in model.encode(question).rows]
        assert {len(row.ids) > 24 for row in rows} == {True, False}
        packed, reader.layout = reader.read(rows), "alone"
        assert (packed - reader.read(rows)).abs().max() < CLOSE

    @pytest.mark.parametrize("name", ["bert", "gpt2"])
    def test_numbers_do_not_depend_on_sizes(self, name, family_dir):
        """Of packs, batches, and what is normalised together; those of an accelerator, too.

        Some rows are longer than packs of 16 tokens.
        """
        model = load(str(family_dir(name)))
        reader, of_accelerator = model.reader, sizes_for("cuda")
        sentences = [Sentence(question.query.context, entropy=True) for question in QUESTIONS]
        expected = asking.ask(model, QUESTIONS, top=5), asking.ask(model, sentences, top=0)
        for sizes in (
            of_accelerator, Sizes(48, True, 16, 2**12, 2**12, 3, 2),
            Sizes(400, True, 256, 2**16, 2**16, 500, 100),
        ):  # fmt: skip
            reader.sizes, reader.width = sizes, sizes.width
            probing.choose_layout(reader, model.encoder)
            assert reader.layout == ("packed" if sizes.packs else "equal")
            check_same(asking.ask(model, QUESTIONS, top=5), expected[0])
            for found, same in zip(asking.ask(model, sentences, top=0), expected[1], strict=True):
                assert found.entropies == pytest.approx(same.entropies, abs=CLOSE)
                for word, same_word in zip(found.words, same.words, strict=True):
                    assert word.log_prob == pytest.approx(same_word.log_prob, abs=CLOSE)

    @pytest.mark.parametrize(
        ("positions", "change", "layout"),
        [
            (9, lambda network: network, "equal"),  # the texts that are tried are longer
            (96, lambda network: network.bfloat16(), "equal"),  # rounding would hide an error
            (96, lambda network: refusing(network, lambda x: len(x["input_ids"]) > 1), "alone"),
            (96, lambda network: setattr(network, "get_output_embeddings", lambda: None), "packed"),
        ],
    )
    def test_of_a_model(self, positions, change, layout):
        """The last one does not name its projection to the vocabulary."""
        network = gpt2(len(BYTES), n_positions=positions)
        change(network)
        reader = asked(network, BYTES, "causal").reader
        assert reader.layout == layout
        exact = gpt2(len(BYTES), n_positions=positions).to(network.dtype)
        expected = [alone(exact, row.ids, read) for row in ROWS for read in row.reads]
        tolerance = CLOSE if network.dtype == torch.float32 else 0.5
        assert (reader.read(ROWS) - torch.stack(expected)).abs().max() < tolerance

    @pytest.mark.parametrize(
        ("module", "change", "is_projected_alone"),
        [
            ("transformer.drop", lambda x: x * torch.arange(1, 1 + x.shape[1])[:, None], True),
            ("lm_head", lambda x: x + x.cumsum(1) / 10, False),
        ],
    )
    def test_other_numbers_without_an_error(self, module, change, is_projected_alone):
        """Offsets in a row that count beside positions; logits that depend on those before them."""
        network = gpt2(len(BYTES))
        network.get_submodule(module).register_forward_hook(lambda _, __, x: change(x))
        reader = asked(network, BYTES, "causal").reader
        assert reader.layout == "equal"
        assert (reader.projection_module is network.lm_head) == is_projected_alone

    @pytest.mark.parametrize(
        ("name", "most"),
        [("phi3-longrope", 64), ("doge", 48), ("glm_moe_dsa", 48), ("deepseek_v32", 48)],
    )
    def test_models_that_are_read_below_a_boundary(self, name, most, family_dir):
        """Longer texts change the rotation factors of all, or which of equal tokens are kept."""
        model = load(str(family_dir(name)))
        assert model.info.max_length == most
        with pytest.raises(BadInput, match=f"reads at most {most}"):
            model.encode(Question(Query("a " * most), ()))


def count_forwards(network):
    """Returns a list that gets a number of tokens at each forward of the network."""
    sizes = []
    network.register_forward_pre_hook(
        lambda _, __, inputs: sizes.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    return sizes


class TestRepeatability:
    @pytest.mark.parametrize(("make", "kind"), [(bert, "masked"), (gpt2, "causal")])
    def test_three_forwards_show_it_with_all_else(self, make, kind):
        """A long row, the short ones side by side, and all of them in a pack.

        The pack of a masked model has twelve sentences with masks, too, which are read once. That
        of a causal model has the beginnings that the short rows share with the long one once.
        """
        tokenizer = TOKENIZER if kind == "masked" else BYTES
        network = make(len(tokenizer), **{"max_position_embeddings": 512})
        sizes = count_forwards(network)
        assert asked(network, tokenizer, kind).reader.layout == "packed"
        assert sizes == [150, 36, 150 + (10 + 6 + 1 if kind == "causal" else 36 + 144)]

    @pytest.mark.parametrize("shortest", [1, 150])
    def test_a_model_that_counts_its_forwards(self, shortest):
        """It draws no random numbers, and may answer otherwise only where a text is long."""
        network = bert(len(TOKENIZER), max_position_embeddings=256)
        sizes = count_forwards(network)
        network.bert.embeddings.register_forward_hook(
            lambda _, __, x: x + 0.1 * len(sizes) if x.shape[1] >= shortest else x
        )
        with pytest.raises(BadInput, match="gives other numbers when it reads the same text again"):
            asked(network, TOKENIZER, "masked")

    def test_a_change_that_half_precision_could_hide(self):
        """Every second forward prefers half of the vocabulary, by less than rounding may change.

        The largest difference is within the tolerance of rows that are read together, the mean is
        not what a row that is read again may have.
        """
        network = bert(len(TOKENIZER), max_position_embeddings=256).bfloat16()
        sizes = count_forwards(network)
        half = 0.15 * (torch.arange(len(TOKENIZER)) % 2).bfloat16()
        network.get_output_embeddings().register_forward_hook(
            lambda _, __, logits: logits + half * (len(sizes) % 2)
        )
        with pytest.raises(BadInput, match="gives other numbers when it reads the same text again"):
            asked(network, TOKENIZER, "masked")


class TestProjectionModule:
    @pytest.mark.parametrize(
        ("name", "module"),
        [("bert", "BertSelfOutput"), ("deberta-v2", "DebertaV2SelfOutput"), ("albert", "Linear"),
         ("xmod", "Linear"), ("luke", "Linear"), ("gpt2", "Linear"), ("t5", "Linear")],
    )  # fmt: skip
    def test_of_a_family(self, name, module, family_dir):
        """Computing the wanted positions only gives what computing everything gives.

        XMOD counts the rows behind its attention, and LUKE cuts positions beyond their length.
        """
        reader = (model := load(str(family_dir(name)))).reader
        rows = [row for question in some_questions(4) for row in model.encode(question).rows]
        assert type(reader.projection_module).__name__ == module
        seen = []
        reader.model.get_output_embeddings().register_forward_hook(
            lambda _, inputs, __: seen.append(inputs[0][..., 0].numel())
        )
        cut = reader.read(rows)
        assert sum(seen) == sum(len(row.reads) for row in rows)  # no logits that nobody reads
        reader.projection_module = None
        assert (cut - reader.read(rows)).abs().max() < CLOSE

    def test_a_module_that_changes_the_numbers(self, family_dir, monkeypatch):
        """The first layer's module looks like one, but other layers come after it."""

        def modules(model):
            return [model.bert.encoder.layer[0].attention.output, model.get_output_embeddings()]

        monkeypatch.setattr(probing, "projection_modules", modules)
        reader = load(str(family_dir("bert"))).reader
        assert reader.projection_module is reader.model.get_output_embeddings()


class TestCausality:
    @pytest.mark.parametrize("family", SEEING_RIGHT, ids=lambda family: family.name)
    def test_families(self, family, tmp_path):
        folder = family.make(tmp_path / family.name)
        for dtype in ("float32", "bfloat16"):
            if (family.name, dtype) != ("xlnet", "bfloat16"):  # which it does not take
                line = refusal(folder, kind="causal", dtype=dtype)
                assert f"({family.model}) is not causal: " in line
                assert "--kind masked" in line

    @pytest.mark.parametrize("how", ["next token", "prefix"])
    def test_a_glance_to_the_right(self, how):
        """One token to the right, or both sides of the first six tokens, is enough."""
        network = gpt2(len(BYTES))
        forward = network.forward

        def with_prefix(input_ids, **inputs):
            sees = torch.ones(input_ids.shape[1], input_ids.shape[1]).tril().bool()
            sees[:6, :6] = True
            return forward(input_ids=input_ids, **inputs | {"attention_mask": sees[None, None]})

        if how == "prefix":
            network.forward = with_prefix
        else:
            network.transformer.ln_f.register_forward_hook(
                lambda _, __, x: x + 0.1 * torch.nn.functional.pad(x, (0, 0, 0, 1))[:, 1:]
            )
        with pytest.raises(BadInput, match="is not causal"):
            asked(network, BYTES, "causal")

    @pytest.mark.parametrize("name", family_params(family.name for family in CAUSAL))
    def test_rounding_is_not_taken_for_it(self, name, family_dir):
        """Alibi, sliding windows, recurrences; `test_families` has float32."""
        load(str(family_dir(name)), LoadOptions(dtype="bfloat16"))


class TestNumbers:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
    def test_the_softmax_is_never_in_half_precision(self, dtype):
        log_probs = asked(gpt2(len(BYTES)).to(dtype), BYTES, "causal").reader.read(ROWS)
        assert log_probs.dtype == torch.promote_types(dtype, torch.float32)
        assert float(log_probs[0].exp().sum()) == pytest.approx(1, abs=CLOSE)

    @given(
        st.lists(st.lists(st.integers(-3, 0), min_size=7, max_size=7), min_size=1, max_size=4),
        st.integers(1, 9),
    )
    def test_the_best_items_ties_by_id(self, rows, top):
        ids, values = most_probable(torch.tensor(rows, dtype=torch.float32), top)
        for row, tokens, nats in zip(rows, ids.tolist(), values.tolist(), strict=True):
            assert tokens == sorted(range(7), key=lambda token: (-row[token], token))[:top]
            assert nats == [row[token] for token in tokens]

    @pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
    def test_broken_logits(self, value):
        """NaN and infinity at one blank: model and context are named; -inf is probability 0."""
        model = asked(gpt2(len(BYTES)), BYTES, "causal")

        def spoil(_, __, logits):
            logits[..., -1, 7] = value  # the last of the gathered positions
            return logits

        model.reader.model.get_output_embeddings().register_forward_hook(spoil)
        questions = [Question(Query(text), ()) for text in ("a tree", "near the robin")]
        if value == -torch.inf:
            assert ask(model, *questions, top=len(BYTES))[1].top_log_probs[-1] == -torch.inf
        else:
            told = r"toy gives NaN .*'near the robin'.* float32 already"
            with pytest.raises(BadInput, match=told):
                ask(model, *questions)


@pytest.mark.parametrize(
    ("layout", "error"),
    [("packed", torch.OutOfMemoryError), ("packed", RuntimeError), ("equal", MemoryError)],
)
def test_full_memory_halves_batches(layout, error):
    """Down to one question a time, with the same numbers, and no attempt twice too large."""
    model = asked(bert(len(TOKENIZER)), TOKENIZER, "masked")
    model.reader.layout = layout
    contexts = ("a", "the robin is a", "a tree", "near the robin is the tree", "is")
    batch = [model.encode(Question(Query(x), ("bird", "birds", "tree"))) for x in contexts]
    expected = model.answer(batch, 5)
    largest = max(len(e.rows) * max(len(row.ids) for row in e.rows) for e in batch)
    tried = []

    def check(_, __, inputs):
        tried.append(inputs["input_ids"].numel() > largest)
        if tried[-1]:
            raise error("CUDA out of memory. Tried to allocate 20.00 GiB")

    model.reader.model.register_forward_pre_hook(check, with_kwargs=True)
    for _ in range(2):
        failed = sum(tried)
        check_same(model.answer(batch, 5), expected)
    assert sum(tried) <= failed + 1  # it has learnt
    largest = 0
    with pytest.raises(BadInput, match="model toy runs out of memory on the one text 'a'"):
        model.answer(batch, 5)


@pytest.mark.parametrize("unit", ["token", "word"])
def test_a_model_that_fails_at_its_first_text(unit):
    with pytest.raises(BadInput) as caught:
        asked(refusing(gpt2(len(BYTES)), lambda _: True), BYTES, "causal", unit=unit)
    assert str(caught.value) == (
        "model toy cannot be queried (not so): check that its config.json and its tokenizer "
        "belong to its weights, or try another --kind"
    )


def test_unit_word_is_refused_with_quantized_weights():
    network = bert(len(TOKENIZER))
    network.is_quantized = True
    with pytest.raises(BadInput, match="use --dtype float32 without --quantization"):
        asked(network, TOKENIZER, "masked", unit="word")


def test_a_cache_is_refused_through_further_arguments():
    """GraniteMoeHybrid's forward takes `use_cache` in `**kwargs`, and passes it on."""
    config = {
        "vocab_size": len(BYTES), "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_local_experts": 0,
        "layer_types": ["mamba", "mamba"], "mamba_n_heads": 4, "mamba_d_head": 16,
        "mamba_expand": 2, "mamba_n_groups": 1, "mamba_d_state": 8,
        "shared_intermediate_size": 48, "max_position_embeddings": 200,
    }  # fmt: skip
    torch.manual_seed(0)
    network = GraniteMoeHybridForCausalLM(GraniteMoeHybridConfig(**config))
    model = asked(network.eval().requires_grad_(False), BYTES, "causal")
    assert "use_cache" in model.reader.accepted_arguments
    [answer] = ask(model, Question(Query("a robin is a"), ("tree",)))
    whole = BYTES("a robin is a tree").input_ids
    start = len(BYTES("a robin is a").input_ids)
    exact = network.double()(input_ids=torch.tensor([whole]), use_cache=False).logits[0]
    nats = [exact[at - 1].log_softmax(-1)[whole[at]] for at in range(start, len(whole))]
    assert answer.words["tree"].log_prob == pytest.approx(float(sum(nats)), abs=CLOSE)
