"""Models that are not what their files say, or that answer differently each time."""

import shutil
import warnings
from pathlib import Path

import pytest
import torch
from families import FAMILIES, GPT2_LIKE, SEEING_RIGHT, Family
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

import lmdiag
from lmdiag.models import LoadOptions, load
from lmdiag.models.loading import model_checks
from lmdiag.models.loading.errors import one_line_errors
from lmdiag.types import BadInput, Query, Question
from models.toys import ask, check_same, edit, refusal

WEIGHTS = "model.safetensors"
REFORMER = {
    "hidden_size": 32, "num_attention_heads": 2, "attention_head_size": 16, "feed_forward_size": 48,
    "attn_layers": ["lsh", "local", "lsh"], "lsh_attn_chunk_length": 8, "num_buckets": 4,
    "local_attn_chunk_length": 8, "axial_pos_shape": [16, 16], "axial_pos_embds_dim": [16, 16],
    "max_position_embeddings": 256,
}  # fmt: skip
OWN_CODE = """
import torch
from transformers import {base}
class MyModel({base}):
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = {logits}
        return output
"""
DROPOUT = "torch.nn.functional.dropout(output.logits, p=0.1)"


@pytest.fixture
def made(family_dir, tmp_path):
    """Returns a function that copies a family's model, adds weights and changes its config."""

    def make(family, *added, **config):
        folder = Path(shutil.copytree(family_dir(family), tmp_path / family))
        weights = load_file(folder / WEIGHTS) | {name: torch.ones(2) for name in added}
        save_file(weights, folder / WEIGHTS, {"format": "pt"})
        edit(folder, "config.json", **config)
        return folder

    return make


def with_own_code(folder, family, logits):
    """Puts a class beside a model that passes all arguments on and changes the logits."""
    base = FAMILIES[family].model
    auto_class = {"bert": "MaskedLM", "gpt2": "CausalLM", "t5": "Seq2SeqLM"}[family]
    (folder / "own_code.py").write_text(OWN_CODE.format(base=base, logits=logits))
    auto_map = {f"AutoModelFor{auto_class}": "own_code.MyModel"}
    edit(folder, "config.json", auto_map=auto_map, architectures=["MyModel"])


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_dropout_that_is_left_on(family, made):
    folder = made(family)
    with_own_code(folder, family, DROPOUT)
    for dtype in ("float32", "bfloat16"):
        line = refusal(folder, trust_remote_code=True, dtype=dtype)
        assert "gives other numbers when it reads the same text again" in line


@pytest.mark.parametrize("name", ["ReformerModelWithLMHead", "ReformerForMaskedLM"])
def test_hashed_attention(name, tmp_path):
    """Of texts longer than a chunk it hashes the tokens anew each time."""
    config = REFORMER | {"is_decoder": name.endswith("Head")}
    folder = Family("reformer", "bert", name, config).make(tmp_path / "reformer")
    kind = "causal" if config["is_decoder"] else "masked"
    assert "gives other numbers when it reads the same text again" in refusal(folder, kind=kind)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_forward_that_passes_its_arguments_on(family, made):
    folder = made(family)
    question = Question(Query("The old man said that it was a"), ("house", "wheelbarrow"))
    expected = ask(load(str(folder)), question)
    with_own_code(folder, family, "output.logits")
    model = load(str(folder), LoadOptions(trust_remote_code=True))
    assert type(model.parts.model).__name__ == "MyModel"
    check_same(ask(model, question), expected)


@pytest.mark.parametrize(
    ("name", "family"),
    [("MixtralForCausalLM", "llama"), ("XGLMForCausalLM", "xglm"), ("XLNetLMHeadModel", "xlnet")],
)
def test_a_data_type_that_an_operation_does_not_have(name, family, tmp_path):
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    made = {x.name: x for x in (*FAMILIES.values(), *SEEING_RIGHT)}[family]
    config = made.config | (experts if name.startswith("Mixtral") else {})
    folder = Family(family, made.tokenizer, name, config).make(tmp_path / family)
    line = refusal(folder, dtype="float64")
    assert "does not run in float64 (RuntimeError: " in line
    assert line.endswith("): use --dtype float32")


@pytest.mark.parametrize(
    ("family", "config", "count", "first"),
    [
        ("gpt2", {"n_layer": 1}, 11, "transformer.h.1.attn.c_attn.weight"),
        ("gpt2", {"n_layer": 0}, 22, "transformer.h.0.attn.c_attn.weight"),
        ("gpt2", {"n_layer": -1}, 22, "transformer.h.0.attn.c_attn.weight"),
        ("bert", {"num_hidden_layers": 1}, 16, "bert.encoder.layer.1.attention.output.LayerNorm"),
        ("t5", {"num_decoder_layers": 1}, 13, "decoder.block.1.layer.0.SelfAttention.k.weight"),
        ("phi", {"num_hidden_layers": 1}, 14, "model.layers.1.input_layernorm.bias"),
    ],
)
def test_layers_that_the_configuration_leaves_out(family, config, count, first, made):
    line = refusal(made(family, **config))
    assert f"{count} weights of layers or biases that its configuration leaves out" in line
    assert f"(first: {first}" in line


def test_biases_that_the_configuration_leaves_out(tmp_path):
    """Eight of the attention of two layers; then six of the rest."""
    config = FAMILIES["llama"].config | {"attention_bias": True, "mlp_bias": True}
    folder = Family("llama", "llama", "LlamaForCausalLM", config).make(tmp_path / "llama")
    edit(folder, "config.json", attention_bias=False)
    assert "8 weights of layers or biases" in refusal(folder)
    edit(folder, "config.json", attention_bias=True, mlp_bias=False)
    assert "(first: model.layers.0.mlp.down_proj.bias)" in refusal(folder)


@pytest.mark.parametrize(
    ("family", "added"),
    [
        ("bert", ["bert.pooler.dense.weight", "cls.seq_relationship.weight",
                  "cls.seq_relationship.bias", "bert.embeddings.position_ids"]),
        ("roberta", ["roberta.pooler.dense.bias", "roberta.embeddings.position_ids"]),
        ("albert", ["albert.pooler.weight", "sop_classifier.classifier.bias"]),
        ("electra", ["electra.embeddings.position_ids"]),
        ("gpt2", ["transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias"]),
        ("gpt_neo", ["transformer.h.0.attn.attention.bias",
                     "transformer.h.0.attn.attention.masked_bias"]),
        ("gpt_neox", ["gpt_neox.layers.0.attention.bias",
                      "gpt_neox.layers.1.attention.masked_bias",
                      "gpt_neox.layers.1.attention.rotary_emb.inv_freq"]),
        ("llama", ["model.layers.0.self_attn.rotary_emb.inv_freq", "lm_head.weight"]),
        ("qwen3", ["mtp.layers.0.mlp.up_proj.weight", "model.mtp_block.0.input_layernorm.weight",
                   "model.layers.2.eh_proj.weight", "model.layers.2.self_attn.q_proj.weight",
                   "model.visual.blocks.0.attn.qkv.weight", "vision_model.class_embedding"]),
        ("t5", ["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"]),
        ("bart", ["model.encoder.version", "model.decoder.version"]),
        ("xglm", ["model.embed_positions.weights"]),
    ],
)  # fmt: skip
def test_what_published_checkpoints_carry_unused(family, added, made):
    folder = made(family)
    added = [name for name in added if name not in load_file(folder / WEIGHTS)]
    save_file(
        load_file(folder / WEIGHTS) | {name: torch.ones(2) for name in added}, folder / WEIGHTS
    )
    assert load(str(folder)).warning is None


def test_other_unused_weights_are_a_warning_in_the_run(made, demo_dir, tmp_path, capsys):
    folder = made("llama", "model.layers.0.self_attn.q_norm.weight", "v_head.bias")
    line = "does not use 2 weights of its checkpoint (first: model.layers.0.self_attn.q_norm.weight"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = lmdiag.load_model(str(folder))
    with pytest.warns(UserWarning, match="does not use 2 weights"):
        model.surprisals("A robin is a bird.")
    run = lmdiag.run(str(folder), demo_dir, tasks=["role88"], limit=2, output=tmp_path)
    assert line in capsys.readouterr().err
    assert line in run.results.warnings[0]
    assert AutoTokenizer.from_pretrained(folder).is_fast


@pytest.mark.parametrize(("saved_by", "warns"), [("99.1.0.dev0", True), ("5.20.0", False)])
def test_a_checkpoint_of_a_newer_transformers_is_a_warning(saved_by, warns, made, monkeypatch):
    folder = made("gpt2")
    edit(folder, "config.json", transformers_version=saved_by)
    assert ("was saved by transformers 99.1, and " in (load(str(folder)).warning or "")) == warns
    monkeypatch.setattr(model_checks, "version", lambda name: "5.20.0")
    assert load("demo:causal").warning is None


def test_a_module_that_is_not_installed_is_named():
    message = r"needs a Python module that is not installed .*No module named 'einops'"
    for error in (ImportError, RuntimeError):  # transformers wraps it
        with pytest.raises(BadInput, match=message), one_line_errors("org/model"):
            raise error("No module named 'einops'")


def test_a_tied_head_that_was_saved_beside_other_embeddings(made):
    """transformers ties only what is equal or not saved."""
    folder = made("gpt2")
    weights = load_file(folder / WEIGHTS)
    head = weights["transformer.wte.weight"].flip(0).contiguous()
    save_file(weights | {"lm_head.weight": head}, folder / WEIGHTS, {"format": "pt"})
    network = load(str(folder)).parts.model
    assert torch.equal(network.lm_head.weight, head)
    assert GPT2_LIKE["n_layer"] == 2
