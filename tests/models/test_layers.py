"""Answers after each layer, beside transformers' own hidden states in float64.

`FINISH` says by hand what follows the layers of a family; the reference sends `hidden_states[N]` of
a full forward through it.
"""

import copy

import pytest
import torch
from families import FAMILIES, family_params
from reference import CLOSE, AtLayer, Reference, SentenceReference
from tokenizer_files import byte_level
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    GitConfig,
    GitForCausalLM,
    MllamaConfig,
    MllamaForConditionalGeneration,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
)

from lmdiag.models import LoadOptions, load
from lmdiag.runs.asking import ask
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import asked, check_same, gpt2, refusal

BYTES = byte_level("Ġ b", "Ġb i")

FINISH = {
    "bert": lambda m, x: m.cls(x),
    "distilbert": lambda m, x: m.vocab_projector(
        m.vocab_layer_norm(m.activation(m.vocab_transform(x)))
    ),
    "electra": lambda m, x: m.generator_lm_head(m.generator_predictions(x)),
    "roberta": lambda m, x: m.lm_head(x),
    "deberta-v3": lambda m, x: m.lm_predictions(x, m.deberta.embeddings.word_embeddings),
    "modernbert": lambda m, x: m.decoder(m.head(m.model.final_norm(x))),
    "gpt2": lambda m, x: m.lm_head(m.transformer.ln_f(x)),
    "gpt_neox": lambda m, x: m.lm_head(m.gpt_neox.final_layer_norm(x)),
    "opt": lambda m, x: m.lm_head(m.model.decoder.project_out(m.model.decoder.final_layer_norm(x))),
    "llama": lambda m, x: m.lm_head(m.model.norm(x)),
    "gemma2": lambda m, x: 30 * torch.tanh(m.lm_head(m.model.norm(x)) / 30),
    "qwen3": lambda m, x: m.lm_head(m.model.norm(x)),
    "mamba": lambda m, x: m.lm_head(m.backbone.norm_f(x)),
    "t5": lambda m, x: m.lm_head(m.decoder.final_layer_norm(x) * m.model_dim**-0.5),
    "bart": lambda m, x: m.lm_head(x) + m.final_logits_bias,
}
"""Family -> the logits of a state after a layer."""

LAYERS = (0, 1, 2)
"""The families here have two layers."""

QUERIES = (
    Query("He said that a robin is a"),
    Query("The doctor told José that the", "was asleep in the garden."),
    Query("A"),
)
WORDS = ("bird", "tree", "penguin", "sparrows")
QUESTIONS = [Question(query, WORDS, None, True) for query in QUERIES]
SENTENCES = [Sentence("The old man said that a dog slept."), Sentence("A robin is a bird")]


@pytest.mark.parametrize("unit", ["token", pytest.param("word", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", family_params(FINISH))
def test_words_at_blanks(name, unit, family_dir):
    """All layers in one pass, and one layer alone; the last layer is the ordinary answer."""
    folder, family = family_dir(name), FAMILIES[name]
    model = load(str(folder), LoadOptions(unit=unit))
    by_layer = [*zip(*ask(model.at_layers(LAYERS), QUESTIONS, top=5), strict=True)]
    assert [*by_layer[-1]] == ask(model, QUESTIONS, top=5)
    alone = load(str(folder), LoadOptions(unit=unit, layer=1))
    check_same(ask(alone, QUESTIONS, top=5), by_layer[1])
    exact = Reference(folder, family.kind, family.convention, "auto", family.attention)
    whole = exact.model
    for layer, answers in zip(LAYERS, by_layer, strict=True):
        exact.model = AtLayer(whole, layer, FINISH[name])
        exact._read.cache_clear()
        for question, answer in zip(QUESTIONS, answers, strict=True):
            for word in WORDS:
                right = exact.score(
                    question.query.context, question.query.right_context, word, unit
                )
                assert answer.words[word].log_prob == pytest.approx(right.log_prob, abs=CLOSE)
                assert unit == "word" or answer.words[word].rank in right.ranks


@pytest.mark.parametrize("name", family_params([n for n in FINISH if n not in ("t5", "bart")]))
def test_sentences(name, family_dir):
    folder, family = family_dir(name), FAMILIES[name]
    model = load(str(folder))
    by_layer = [*zip(*ask(model.at_layers(LAYERS), SENTENCES, top=0), strict=True)]
    assert [*by_layer[-1]] == ask(model, SENTENCES, top=0)
    exact = SentenceReference(folder, family.kind, attention=family.attention)
    whole = exact.model
    for layer, answers in zip(LAYERS, by_layer, strict=True):
        exact.model = AtLayer(whole, layer, FINISH[name])
        for sentence, answer in zip(SENTENCES, answers, strict=True):
            words, _ = exact.words(sentence.text)
            for span, right in zip(answer.words, words, strict=True):
                assert span.log_prob == pytest.approx(right.log_prob, abs=CLOSE), span


def gpt1():
    """Its blocks return a list."""
    config = OpenAIGPTConfig(vocab_size=len(BYTES), n_embd=16, n_layer=3, n_head=2, n_positions=64)
    return OpenAIGPTLMHeadModel(config)


VISION = {"image_size": 16, "patch_size": 8, "intermediate_size": 96, "num_attention_heads": 2}
"""A tower with as many layers as the text model, and more parameters."""

TEXT = {"vocab_size": len(BYTES), "hidden_size": 16, "intermediate_size": 24, "head_dim": 8}
TEXT |= {"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1}


def gemma3_with_images():
    text = {**TEXT, "pad_token_id": 0, "sliding_window": 64}
    vision = {**VISION, "hidden_size": 32, "num_hidden_layers": 3}
    tokens = {"image_token_index": 5, "boi_token_index": 6, "eoi_token_index": 7}
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, **tokens)
    return Gemma3ForConditionalGeneration(config)


def git():
    vision = {**VISION, "hidden_size": 32, "num_hidden_layers": 3}
    sizes = {name: size for name, size in TEXT.items() if name not in ("head_dim",)}
    config = GitConfig(vision_config=vision, max_position_embeddings=64, **sizes)
    return GitForCausalLM(config)


def mllama():
    """Its second layer reads images alone, and does not run on a text."""
    text = {name: size for name, size in TEXT.items() if name not in ("head_dim",)}
    text |= {"cross_attention_layers": [1], "rope_scaling": {"rope_type": "default"}}
    text |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    vision = {"hidden_size": 32, "num_hidden_layers": 3, "num_global_layers": 1}
    vision |= {"attention_heads": 2, "image_size": 16, "patch_size": 8, "vision_output_dim": 64}
    vision |= {"intermediate_layers_indices": [0], "supported_aspect_ratios": [[1, 1]]}
    config = MllamaConfig(text_config=text, vision_config=vision, image_token_index=5)
    return MllamaForConditionalGeneration(config)


@pytest.mark.parametrize(
    ("make", "finish", "numbers"),
    [
        (gpt1, lambda m, x: m.lm_head(x), (0, 1, 2)),
        (gemma3_with_images, lambda m, x: m.lm_head(m.model.language_model.norm(x)), (0, 1, 2)),
        (git, lambda m, x: m.output(x), (0, 1, 2)),
        (mllama, lambda m, x: m.lm_head(m.model.language_model.norm(x)), (0, 1, 1)),
    ],
)
def test_lists_of_states_and_towers_of_images(make, finish, numbers):
    torch.manual_seed(0)
    network = make().eval().requires_grad_(False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model = asked(network, BYTES, "causal")
    text = "a bird is a bird"
    model.at_layers(["all"])  # asked for layers twice, as by two calls of the Python API
    [by_layer] = ask(model.at_layers(["all"]), [Sentence(text)], top=0)
    assert len(by_layer) == 4
    ids = torch.tensor([[BYTES.bos_token_id, *BYTES(text).input_ids]])
    exact = copy.deepcopy(network).double()
    outputs = exact(input_ids=ids, output_hidden_states=True)
    states = [outputs.hidden_states[number] for number in numbers]
    logits = [finish(exact, state) for state in states] + [outputs.logits]
    for answer, logits_of in zip(by_layer, logits, strict=True):
        log_probs = logits_of[0, :-1].log_softmax(-1)
        right = float(log_probs.gather(1, ids[0, 1:, None]).sum())
        assert answer.log_prob == pytest.approx(right, abs=CLOSE)


def test_one_layer_is_not_run_further(family_dir):
    """The layers behind the one that is asked see nothing."""
    model = load(str(family_dir("gpt2")), LoadOptions(layer=1))
    run = []
    for number, layer in enumerate(model.parts.model.transformer.h):
        layer.register_forward_hook(lambda *_, number=number: run.append(number))
    model.answer([model.encode(question) for question in QUESTIONS], 5)
    assert set(run) == {0}


@pytest.mark.parametrize("asked", [["3"], ["-1"], ["all", "1"], ["1.5"]])
def test_layers_that_are_not_there_are_refused(asked, family_dir):
    model = load(str(family_dir("gpt2")))
    with pytest.raises(
        BadInput, match=r"gpt2: there is no layer .*: give all, or layers from 0 to 2"
    ):
        model.at_layers(asked)
    assert "layer" in refusal(family_dir("gpt2"), layer=3)


def test_a_repeated_layer_is_refused(family_dir):
    """ALBERT has one layer and a number of times."""
    assert "no list of as many layers" in refusal(family_dir("albert"), layer=1)


def test_a_network_that_does_more_after_its_layers_is_refused():
    """The state after the last layer does not give its ordinary answer."""
    network = gpt2(len(BYTES), n_layer=2)
    network.transformer.ln_f.register_forward_pre_hook(
        lambda module, inputs: inputs if inputs[0].shape[1] == 1 else (inputs[0] ** 3,)
    )
    model = asked(network, BYTES, "causal")
    with pytest.raises(BadInput, match="makes another answer of the state after its last layer"):
        model.at_layers(["all"])
