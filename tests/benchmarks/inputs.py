"""What is asked in a benchmark, in files that other programs can read, and of which models.

The models are random ones of published shapes, since weights do not matter to speed. Their
tokenizers are the published ones where `LMDIAG_TOKENIZERS` (or `../shared/tokenizers` beside the
repository) has them, so that texts have their real length; else small ones of the same conventions,
which split more.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import tokenizer_files
import vocabularies

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
CONTEXTS = 384
"""Rows of agreement that are asked."""
TOKENIZERS = {"BertForMaskedLM": ("bert-base-uncased", "bert"), "GPT2LMHeadModel": ("gpt2", "gpt2")}
"""Class in transformers -> published tokenizer, and the small one of `tokenizer_files`."""
SHAPES: dict[str, tuple[str, dict[str, int]]] = {
    "bert-base": ("BertForMaskedLM", {}),
    "gpt2": ("GPT2LMHeadModel", {}),
    "gpt2-262k": ("GPT2LMHeadModel", {"vocab_size": 262_144}),  # as many words as Gemma 3 has
    "bert-tiny": ("BertForMaskedLM", {"hidden_size": 32, "num_hidden_layers": 2,
                                      "num_attention_heads": 2, "intermediate_size": 64}),
    "gpt2-tiny": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
}  # fmt: skip
"""Name -> class in transformers, and what differs from its defaults, the published base model."""


def build_data(folder: Path) -> tuple[Path, str]:
    """Builds the data set from the upstream copies or else from the demo; returns it and which."""
    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or SHARED / "upstream")
    source = "upstream" if (upstream / "lm-diagnostics").is_dir() else "demo"
    data = folder / f"data-{source}"
    if not (data / "README.md").exists():
        command = [sys.executable, str(ROOT / "datasets/lmdiag/build.py"), str(data), "--source"]
        subprocess.run([*command, str(upstream) if source == "upstream" else "demo"], check=True)
    return data, source


def write_questions(folder: Path, work: str, count: int, data: Path) -> Path:
    """Writes the questions of a work and returns the file.

    Args:
        folder: where the file goes.
        work: see `contenders`.
        count: number of sentences; each has 12 random everyday words.
        data: the data set.
    """
    questions: dict[str, Any]
    if work == "sentences":
        rng = random.Random(0)
        words = sorted(set(re.findall(r"[A-Za-z]+", vocabularies.TEXT)))
        texts = [" ".join(rng.choices(words, k=12)) + "." for _ in range(count)]
        questions = {"sentences": texts}
    else:
        import lmdiag

        tasks = ["agreement"] if work == "agreement" else ["cprag102", "role88", "neg136"]
        limit = CONTEXTS if work == "agreement" else None
        columns = [lmdiag.load_stimuli(str(data), task, limit=limit).columns() for task in tasks]
        names = {"context": "context", "right": "right_context", "target": "target"}
        rows = [
            {name: part[column][row] for name, column in names.items()}
            for part in columns
            for row in range(len(part["id"]))
        ]
        questions = {"source": str(data), "tasks": tasks, "limit": limit, "rows": rows}
    file = folder / f"{work}-{count}.json"
    file.write_text(json.dumps(questions))
    return file


def make_model(name: str, folder: Path) -> Path:
    """Writes model and tokenizer into `folder / name`, unless they are there, and returns it."""
    import torch
    import transformers

    model, config = SHAPES[name]
    published, small = TOKENIZERS[model]
    out = folder / name
    if (out / "config.json").exists():
        return out
    place = Path(os.environ.get("LMDIAG_TOKENIZERS") or SHARED / "tokenizers") / published
    if place.is_dir():
        shutil.copytree(place, out)
    else:
        out.mkdir(parents=True)
        tokenizer_files.write(small, out)
    model_class = getattr(transformers, model)
    torch.manual_seed(0)
    model_class(model_class.config_class(**config)).save_pretrained(out)
    return out
