"""Compares llama-cpp-python's server, asked by `--server`, with transformers on the same weights.

    python tests/peers/compare_llama_cpp.py ENGINE DATA [--folder FOLDER]

Run by hand with lmdiag's Python. ENGINE is a Python that has `llama-cpp-python[server]` and `gguf`;
DATA is a built data set directory. A model of Llama's shape with random weights, and the tokenizer
of the causal demo model, are written for both: as a folder of transformers, and as a GGUF file in
float32. Prints for each diagnostic the largest difference in the log-probability of a target and of
a top token, and the rows whose top words differ where the engine names them; then the same for the
words of sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

UNREADABLE = "[no text]"
"""A token that has a part of a character only, which the engine names by an empty text."""

TASKS = ("cprag102", "role88", "neg136")
SENTENCES = (
    "The robin is a bird.", "“A robin’s nest,” she said, “is naïve.”", "The old man saw the trout.",
)  # fmt: skip
SHAPE: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False, "initializer_range": 0.15, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip


def write_model(folder: Path) -> None:
    """Writes the model for transformers, and its tensors for `write_gguf`."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lmdiag.models.demo import demo_folder

    demo = demo_folder("causal")
    vocabulary = json.loads((demo / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **SHAPE)).float()
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo / name, folder)
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    np.savez(folder / "tensors.npz", **tensors)


def write_gguf(folder: Path) -> None:
    """Writes the same model as a GGUF file; runs in the Python of the engine."""
    import gguf

    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["merges"]]
    tokens = sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__)
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    writer.add_context_length(SHAPE["max_position_embeddings"])
    writer.add_embedding_length(SHAPE["hidden_size"])
    writer.add_block_count(SHAPE["num_hidden_layers"])
    writer.add_feed_forward_length(SHAPE["intermediate_size"])
    writer.add_head_count(SHAPE["num_attention_heads"])
    writer.add_head_count_kv(SHAPE["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(SHAPE["rms_norm_eps"])
    writer.add_rope_dimension_count(SHAPE["hidden_size"] // SHAPE["num_attention_heads"])
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(0)  # float32
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, *[1] * (len(tokens) - 1)])  # one control token, else normal ones
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(True)
    with np.load(folder / "tensors.npz") as tensors:
        for name in tensors.files:
            writer.add_tensor(renamed(name), reordered(name, tensors[name]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def renamed(name: str) -> str:
    """The name of a tensor in GGUF."""
    plain = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    name = name.removesuffix(".weight")
    if name in plain:
        return f"{plain[name]}.weight"
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.weight"


def reordered(name: str, tensor: Any) -> Any:
    """Rotary pairs are neighbours in llama.cpp, and half a head apart in transformers."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for part, key in heads.items():
        if part in name:
            rows, width = tensor.shape
            n = SHAPE[key]
            halves = tensor.reshape(n, 2, rows // n // 2, width)
            return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, width))
    return tensor


@contextmanager
def served(engine: str, folder: Path) -> Iterator[str]:
    """The address of llama-cpp-python's server while it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": folder / "model.gguf", "model_alias": "tiny", "logits_all": "true", "port": port,
        "n_ctx": 256, "n_threads": 1, "type_k": 0, "type_v": 0,  # float32 for keys and values, too
    }  # fmt: skip
    words = [f"--{name}={value}" for name, value in options.items()]
    with (folder / "engine.log").open("wb") as log:
        command = [engine, "-m", "llama_cpp.server", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(600):
            with suppress(OSError):
                urllib.request.urlopen(f"{url}/models").close()
                break
            if process.poll() is not None:
                raise SystemExit((folder / "engine.log").read_text("utf-8")[-2000:])
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait()


def compare(folder: Path, url: str, data: str, tokenizer: str | None) -> None:
    """Prints how far the two are apart."""
    import lmdiag

    local = lmdiag.load_model(str(folder), bos="always")
    theirs = lmdiag.load_model("tiny", server=url, tokenizer=tokenizer, in_flight=2)
    print(f"{theirs.model.connection.name}, tokenizer {tokenizer}")  # type: ignore[attr-defined]
    for task in TASKS:
        rows = lmdiag.load_stimuli(data, task)
        a, b = local.predict(rows), theirs.predict(rows)
        scored = np.abs(np.subtract(a.log_prob, b.log_prob))  # type: ignore[arg-type]
        lists = [
            abs(x - y)
            for ours, other in zip(a.top_log_probs, b.top_log_probs, strict=True)
            for x, y in zip(ours or (), other or (), strict=False)
        ]
        pairs = zip(a.id, a.top_words, b.top_words, strict=True)
        differing = [
            (row, ours, other)
            for row, ours, other in pairs
            if any(
                x not in (y, UNREADABLE) and not x.startswith("\\")  # a control character
                for y, x in zip(ours, other, strict=False)
            )
        ]
        print(
            f"{task}: {len(a.id)} rows; log p differs by at most {scored.max():.2e}, of top tokens "
            f"by {max(lists):.2e}; {len(differing)} rows with other top words; pieces equal: "
            f"{a.n_tokens == b.n_tokens}"
        )
        for row, ours, other in differing[:3]:
            print(f"  {row}: {ours} {other}")
        columns = rows.columns()
        for i in np.flatnonzero(np.not_equal(a.n_tokens, b.n_tokens))[:3]:
            print(
                f"  {a.id[i]}: {columns['context'][i]!r} {columns['target'][i]!r}: "
                f"{a.n_tokens[i]} and {b.n_tokens[i]} pieces"
            )
    ours, other = local.surprisals(SENTENCES), theirs.surprisals(SENTENCES)
    gap = (ours["surprisal"] - other["surprisal"]).abs()
    print(
        f"sentences: {len(ours)} words, {int(other['surprisal'].isna().sum())} not scored; bits "
        f"differ by at most {gap.max():.2e}; pieces equal: {ours.n_tokens.equals(other.n_tokens)}"
    )


def main() -> None:
    if sys.argv[1] == "--gguf":
        write_gguf(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine")
    parser.add_argument("data")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_model(folder)
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([args.engine, __file__, "--gguf", str(folder)], check=True, env=own)
        with served(args.engine, folder) as url:
            for tokenizer in (None, str(folder)):
                compare(folder, url, args.data, tokenizer)


if __name__ == "__main__":
    main()
