"""A small random model and tokenizer of every supported family, as a folder.

Weights are drawn widely, so that probabilities are spread and every position matters.
"""

import shutil
from dataclasses import dataclass
from typing import Any

import pytest
import tokenizer_files

CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A chat template."""
SPARE = 7
"""Rows of the embeddings beyond the tokenizer, where families pad them (Pythia, T5, Qwen)."""


@dataclass(frozen=True)
class Family:
    """How to make a small model of one family.

    Attributes:
        name: of the family.
        tokenizer: name in `tokenizer_files.PUBLISHED`.
        model: name of the model's class in transformers.
        config: arguments of its configuration beside the vocabulary's size.
        spare: rows of the embeddings without a token.
        width: standard deviation of the weight matrices; smaller for families that do not scale
            their attention, which would magnify the rounding of float32.
        attention: implementation that the reference runs; another than the one that lmdiag gets.
    """

    name: str
    tokenizer: str
    model: str
    config: dict[str, Any]
    spare: int = 0
    width: float = 0.2
    attention: str = "eager"

    @property
    def kind(self):
        """masked, causal or seq2seq."""
        if self.model.endswith("ForMaskedLM"):
            return "masked"
        return "seq2seq" if self.model.endswith("ForConditionalGeneration") else "causal"

    @property
    def convention(self):
        """Model of its tokenizer: wordpiece, byte-level, unigram or metaspace-bpe."""
        return tokenizer_files.PUBLISHED[self.tokenizer].model

    def make(self, folder, published=None):
        """Writes the model and its small, or a published, tokenizer; the same ones every time."""
        import torch
        import transformers

        if published is None:
            size = tokenizer_files.write(self.tokenizer, folder)
        else:
            shutil.copytree(published, folder)
            size = len(transformers.AutoTokenizer.from_pretrained(folder))
        model_class = getattr(transformers, self.model)
        config = model_class.config_class(vocab_size=size + self.spare, **self.config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(sum(self.name.encode()))
            model = model_class(config)
            for name, parameter in model.named_parameters():
                noise = torch.randn(parameter.shape)
                if parameter.dim() == 2 and not name.endswith(("A_log", "time_mix")):
                    parameter.data.copy_(self.width * noise)
                else:
                    parameter.data.add_(0.1 * noise)
            model.tie_weights()
        model.save_pretrained(folder)
        return folder


LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 2}
POSITIONS = {"max_position_embeddings": 130}
BERT_LIKE = {"hidden_size": 32, "intermediate_size": 48} | LAYERS | POSITIONS
S_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
ROBERTA_LIKE = BERT_LIKE | S_IDS | {"type_vocab_size": 1}
MODERNBERT_LIKE = BERT_LIKE | {
    "pad_token_id": 3, "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2,
    "global_attn_every_n_layers": 2,
}  # fmt: skip
DEBERTA_LIKE = BERT_LIKE | {
    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False,
    "type_vocab_size": 0,
}  # fmt: skip
LLAMA_LIKE = BERT_LIKE | {"num_key_value_heads": 1, "head_dim": 16}
GEMMA_LIKE = LLAMA_LIKE | {"sliding_window": 6, "query_pre_attn_scalar": 16}
PHI3_LIKE = BERT_LIKE | {"num_key_value_heads": 2, "pad_token_id": 2, "bos_token_id": 1}
PHI3_LIKE |= {"eos_token_id": 2}
FALCON_LIKE = {"hidden_size": 32} | LAYERS
T5_LIKE = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
T5_LIKE |= {"decoder_start_token_id": 0}
END = {"bos_token_id": 0, "eos_token_id": 0}
GPT2_LIKE = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 130} | END
LONGROPE = {
    "type": "longrope",
    "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
    "long_factor": [2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0],
}
DSA = {
    "moe_intermediate_size": 16, "num_key_value_heads": 2, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "index_topk": 48, "index_n_heads": 2, "index_head_dim": 16,
    "first_k_dense_replace": 1,
}  # fmt: skip
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

MASKED = (
    Family("bert", "bert", "BertForMaskedLM", BERT_LIKE),
    Family("bert-cased", "bert-cased", "BertForMaskedLM", BERT_LIKE),
    Family("distilbert", "bert", "DistilBertForMaskedLM",
           {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48} | POSITIONS),
    Family("electra", "bert", "ElectraForMaskedLM", BERT_LIKE | {"embedding_size": 24}),
    Family("mpnet", "mpnet", "MPNetForMaskedLM", BERT_LIKE | S_IDS),
    Family("roberta", "roberta", "RobertaForMaskedLM", ROBERTA_LIKE),
    Family("deberta", "deberta", "DebertaForMaskedLM", DEBERTA_LIKE),
    Family("modernbert", "modernbert", "ModernBertForMaskedLM",
           MODERNBERT_LIKE | {"local_attention": 4}),
    Family("modernbert-wide", "modernbert", "ModernBertForMaskedLM",
           MODERNBERT_LIKE | {"local_attention": 128}),
    Family("eurobert", "eurobert", "EuroBertForMaskedLM", LLAMA_LIKE |
           {"pad_token_id": 3, "mask_token_id": 2, "bos_token_id": 0, "eos_token_id": 1}),
    Family("xlm-roberta", "xlm-roberta", "XLMRobertaForMaskedLM", ROBERTA_LIKE),
    Family("camembert", "camembert", "CamembertForMaskedLM",
           ROBERTA_LIKE | {"bos_token_id": 5, "eos_token_id": 6}),
    Family("albert", "albert", "AlbertForMaskedLM", BERT_LIKE | {"embedding_size": 24}),
    Family("fnet", "fnet", "FNetForMaskedLM", {"hidden_size": 32, "num_hidden_layers": 2,
           "intermediate_size": 48, "type_vocab_size": 4} | POSITIONS),
    Family("deberta-v2", "deberta-v2", "DebertaV2ForMaskedLM",
           DEBERTA_LIKE | {"conv_kernel_size": 3, "conv_act": "gelu"}),
    Family("deberta-v3", "deberta-v3", "DebertaV2ForMaskedLM",
           DEBERTA_LIKE | {"share_att_key": True, "norm_rel_ebd": "layer_norm",
           "position_buckets": 8, "legacy": False}, SPARE),
    Family("luke", "roberta", "LukeForMaskedLM",
           ROBERTA_LIKE | {"entity_vocab_size": 9, "entity_emb_size": 8}),
    Family("ibert", "roberta", "IBertForMaskedLM", ROBERTA_LIKE),
    Family("xmod", "xlm-roberta", "XmodForMaskedLM",
           ROBERTA_LIKE | {"languages": ["de_DE", "en_XX"], "default_language": "en_XX"}),
    # Sparse attention from 15 tokens on, which is read as full attention.
    Family("big_bird", "albert", "BigBirdForMaskedLM", BERT_LIKE |
           {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1,
            "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}),
)  # fmt: skip

CAUSAL = (
    Family("gpt2", "gpt2", "GPT2LMHeadModel", GPT2_LIKE),
    Family("gpt_neo", "gpt2", "GPTNeoForCausalLM", {"hidden_size": 32, "num_layers": 2,
           "num_heads": 2, "attention_types": [[["global", "local"], 1]], "window_size": 8}
           | POSITIONS | END, width=0.12),
    Family("gpt_neox", "gpt_neox", "GPTNeoXForCausalLM", BERT_LIKE, SPARE),
    Family("opt", "opt", "OPTForCausalLM", {"hidden_size": 32, "word_embed_proj_dim": 24,
           "ffn_dim": 48, "pad_token_id": 1} | LAYERS | POSITIONS | END),
    Family("bloom", "bloom", "BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 2}),
    Family("falcon", "falcon", "FalconForCausalLM",
           FALCON_LIKE | {"new_decoder_architecture": False, "multi_query": True}),
    # Its eager attention adds the position bias twice (transformers 5.23).
    Family("falcon-alibi", "falcon", "FalconForCausalLM", FALCON_LIKE | {"alibi": True},
           attention="sdpa"),
    Family("phi", "gpt2", "PhiForCausalLM", BERT_LIKE, SPARE),
    Family("qwen2", "qwen2", "Qwen2ForCausalLM", LLAMA_LIKE | END, SPARE),
    Family("qwen3", "qwen2", "Qwen3ForCausalLM", LLAMA_LIKE | END, SPARE),
    Family("llama3", "llama3", "LlamaForCausalLM",
           LLAMA_LIKE | {"bos_token_id": 0, "eos_token_id": 1}),
    Family("mamba", "gpt_neox", "MambaForCausalLM",
           {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, SPARE),
    Family("rwkv", "gpt_neox", "RwkvForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2,
           "attention_hidden_size": 32, "intermediate_size": 48, "context_length": 64}),
    Family("llama", "llama", "LlamaForCausalLM", LLAMA_LIKE),
    Family("mistral", "llama", "MistralForCausalLM", LLAMA_LIKE | {"sliding_window": 6}),
    Family("phi3", "llama", "Phi3ForCausalLM", PHI3_LIKE),
    # Other rotation factors from 65 tokens on.
    Family("phi3-longrope", "llama", "Phi3ForCausalLM",
           PHI3_LIKE | {"original_max_position_embeddings": 64, "rope_scaling": LONGROPE}),
    Family("gemma", "gemma", "GemmaForCausalLM", LLAMA_LIKE),
    Family("gemma2", "gemma", "Gemma2ForCausalLM", GEMMA_LIKE),
    Family("gemma3", "gemma", "Gemma3ForCausalLM", GEMMA_LIKE),
    Family("gemma3-wide", "gemma", "Gemma3ForCausalLM", GEMMA_LIKE | {"sliding_window": 512}),
    Family("roberta-causal", "roberta", "RobertaForCausalLM", ROBERTA_LIKE | {"is_decoder": True}),
    # Of longer texts a token sees the best 48 tokens.
    Family("doge", "llama", "DogeForCausalLM", LLAMA_LIKE | {"keep_window_size": 48}),
    Family("xglm", "xglm", "XGLMForCausalLM", {"d_model": 32, "num_layers": 2,
           "attention_heads": 2, "ffn_dim": 48} | POSITIONS | S_IDS),
)  # fmt: skip

INDEXED = (
    Family("glm_moe_dsa", "llama", "GlmMoeDsaForCausalLM", BERT_LIKE | DSA),
    Family("deepseek_v32", "llama", "DeepseekV32ForCausalLM", BERT_LIKE | DSA),
)
"""An index has a token see the best 48; for questions, since lmdiag's experts refuse float64."""

SEQ2SEQ = (
    Family("t5", "t5", "T5ForConditionalGeneration", T5_LIKE, SPARE),
    Family("flan-t5", "t5", "T5ForConditionalGeneration", T5_LIKE | GATED, width=0.12),
    Family("mt5", "t5", "MT5ForConditionalGeneration", T5_LIKE | GATED, width=0.12),
    Family("switch", "t5", "SwitchTransformersForConditionalGeneration",
           T5_LIKE | {"num_decoder_layers": 2, "num_experts": 3, "num_sparse_encoder_layers": 1,
           "num_sparse_decoder_layers": 1}, width=0.12),
    Family("bart", "roberta", "BartForConditionalGeneration", {"d_model": 32, "encoder_layers": 2,
           "decoder_layers": 2, "encoder_ffn_dim": 48, "encoder_attention_heads": 2,
           "decoder_attention_heads": 2, "decoder_ffn_dim": 48, "forced_bos_token_id": 0}
           | POSITIONS),
)  # fmt: skip

SEEING_RIGHT = (
    Family("xlnet", "albert", "XLNetLMHeadModel",
           {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}),
    Family("xlm", "albert", "XLMWithLMHeadModel",
           {"emb_dim": 32, "n_layers": 2, "n_heads": 2} | POSITIONS),
    Family("cpmant", "albert", "CpmAntForCausalLM",
           {"hidden_size": 32, "dim_head": 16, "dim_ff": 48, "prompt_length": 4} | LAYERS),
)  # fmt: skip
"""Models that transformers lists as causal, and that read both sides of a text."""

FAMILIES = {family.name: family for family in (*MASKED, *CAUSAL, *INDEXED, *SEQ2SEQ)}
"""Name -> family, all of them."""

OTHER_BLANKS = (
    Family("gpt2-prefixed", "gpt2-prefixed", "GPT2LMHeadModel", GPT2_LIKE),
    Family("gpt2-apart", "gpt2-apart", "GPT2LMHeadModel", GPT2_LIKE),
)
"""Byte-level vocabularies that treat blanks otherwise than GPT-2's; for whole sentences."""

SENTENCE_FAMILIES = {family.name: family for family in (*MASKED, *CAUSAL, *OTHER_BLANKS)}
"""Name -> family, all that score sentences."""

QUICK = ("bert", "gpt2", "t5")
"""One family for each kind of model; `make test` runs these."""

REPRESENTATIVE = (*QUICK, "roberta", "llama", "mamba")
"""With them, each kind of tokenizer, and most position schemes; `make check` runs these."""


def family_params(names):
    """Returns families as parameters of a test; `make nightly` runs all."""
    marks = dict.fromkeys(REPRESENTATIVE, pytest.mark.slow) | dict.fromkeys(QUICK, ())
    return [pytest.param(name, marks=marks.get(name, pytest.mark.nightly)) for name in names]
