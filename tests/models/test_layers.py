"""Answers after each layer, beside transformers' own hidden states in float64.

`FINISH` says by hand what follows the layers of a family; the reference sends `hidden_states[N]` of
a full forward through it.
"""

import pytest
import torch
from families import FAMILIES, family_params
from reference import CLOSE, AtLayer, Reference, SentenceReference
from tokenizer_files import byte_level

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
