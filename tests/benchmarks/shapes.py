"""Random models of published shapes, in folders such as the Hub has.

Weights do not matter to speed. Tokenizers are the published ones where `LMDIAG_TOKENIZERS` (or
`../shared/tokenizers` beside the repository) has them, so that texts have their real length; else
small ones of the same conventions, which split more.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizer_files

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shape:
    """What a model looks like.

    Attributes:
        model: class in transformers; its configuration's defaults are the published base model.
        tokenizer: folder of the published tokenizer.
        small: name of the small tokenizer that replaces it, see `tokenizer_files.PUBLISHED`.
        config: what differs from the defaults.
    """

    model: str
    tokenizer: str
    small: str
    config: dict[str, Any] = field(default_factory=dict)


WORDPIECE, BYTES = "bert-base-uncased", "gpt2"
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY |= {"intermediate_size": 64}

SHAPES = {
    "bert-base": Shape("BertForMaskedLM", WORDPIECE, "bert"),
    "gpt2": Shape("GPT2LMHeadModel", BYTES, "gpt2"),
    "gpt2-262k": Shape("GPT2LMHeadModel", BYTES, "gpt2", {"vocab_size": 262_144}),
    "bert-tiny": Shape("BertForMaskedLM", WORDPIECE, "bert", TINY),
    "gpt2-tiny": Shape("GPT2LMHeadModel", BYTES, "gpt2", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
}
"""The shapes that all figures are given for, one with a vocabulary as large as that of Gemma 3, and
tiny ones where only the rest is to be seen."""


def make(name: str, folder: Path) -> Path:
    """Writes model and tokenizer into `folder / name`, unless they are there, and returns it."""
    import torch
    import transformers

    shape = SHAPES[name]
    out = folder / name
    if (out / "config.json").exists():
        return out
    out.mkdir(parents=True)
    if (published := tokenizers() / shape.tokenizer).is_dir():
        for path in published.iterdir():
            shutil.copy(path, out / path.name)
    else:
        tokenizer_files.write(shape.small, out)
    model_class = getattr(transformers, shape.model)
    torch.manual_seed(0)
    model_class(model_class.config_class(**shape.config)).save_pretrained(out)
    return out


def is_masked(name: str) -> bool:
    """Whether a shape is that of a masked model."""
    return SHAPES[name].model.endswith("ForMaskedLM")


def tokenizers() -> Path:
    """Returns where published tokenizers are, if anywhere."""
    return Path(os.environ.get("LMDIAG_TOKENIZERS") or ROOT.parent / "shared" / "tokenizers")
