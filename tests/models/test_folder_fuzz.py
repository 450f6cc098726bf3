"""Whatever is in a model folder: the model answers, or one line says why not; no code runs.

Valid folders are changed at random, as a function of a seed, and loaded.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fuzz_changes import change_bytes

from lmdiag.models import load
from lmdiag.models.loading.load import load_parts
from lmdiag.types import BadInput, Query, Question

JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**12, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "x", "0", "32", "auto", "cuda", "../x", "/etc/passwd",
    "someone/model", "https://example.org/x", "\x00", "\ud800", "\x1b[31m", "e\u0301" * 50,
    "a" * 100_000, [], [[]], [None], [1, "a", {}], {}, {"": None}, {"a": {"b": {"c": []}}},
    [0] * 10_000, "BertModel", "gpt2", "float16", "eager",
)  # fmt: skip
"""Values put in the place of another."""

FIELDS = (
    "model_type", "architectures", "auto_map", "dtype", "torch_dtype", "quantization_config",
    "transformers_weights", "attn_implementation", "experts_implementation", "is_decoder",
    "is_encoder_decoder", "tie_word_embeddings", "num_labels", "id2label", "per_layer_config",
    "layer_types", "rope_scaling", "rope_parameters", "text_config", "sliding_window", "use_cache",
    "tokenizer_class", "added_tokens_decoder", "additional_special_tokens", "extra_special_tokens",
    "mask_token", "unk_token", "model_max_length", "chat_template", "padding_side", "fusion_config",
    "output_attentions", "distributed_config", "use_bfloat16", "chunk_size_feed_forward",
)  # fmt: skip
"""Fields that are added with junk in them."""

FILES = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
    "model.safetensors.index.json", "model.safetensors",
)  # fmt: skip

FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class",
             "socket.connect", "socket.getaddrinfo")  # fmt: skip
"""Events of Python's audit that mean that code of another's runs, or that the network is asked."""

_watching: list[str] | None = None


def _audit(event: str, _: object) -> None:
    if _watching is not None and event in FORBIDDEN:
        _watching.append(event)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collects the forbidden events of the block."""
    global _watching
    if not getattr(sys, "_lmdiag_audited", False):
        sys.addaudithook(_audit)  # there is no way to take a hook away again
        sys._lmdiag_audited = True  # type: ignore[attr-defined]
    _watching = events = []
    try:
        yield events
    finally:
        _watching = None


def mutate(source: Path, target: Path, seed: int) -> None:
    """Copies a model folder and breaks one to three things."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    dice = random.Random(seed)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        path = target / dice.choice([name for name in FILES if (target / name).is_file()])
        content = path.read_bytes()
        if dice.random() < 0.05:
            path.unlink()
            continue
        try:
            how = change_bytes if dice.random() < 0.2 else change_structure
            path.write_bytes(how(content, dice))
        except (ValueError, RecursionError, struct.error):  # broken before
            path.write_bytes(change_bytes(content, dice))


def change_structure(content: bytes, dice: random.Random) -> bytes:
    """Changes an entry of a JSON file, or entry or length of the header of a safetensors file."""
    if content[:1] == b"{":
        return change_entry(content, dice)
    (length,) = struct.unpack("<Q", content[:8])
    header, tensors = content[8 : 8 + length], content[8 + length :]
    if dice.random() < 0.2:
        length = dice.choice((0, 1, length - 1, 2**40, 2**64 - 1))
    else:
        header = change_entry(header, dice)
        length = len(header)
    return struct.pack("<Q", length) + header + tensors


def change_entry(content: bytes, dice: random.Random) -> bytes:
    """Replaces, removes or adds an entry somewhere in a JSON document."""
    document = json.loads(content)
    inner, container, key = document, document, None
    while isinstance(inner, dict | list) and inner and (key is None or dice.random() < 0.5):
        container = inner
        key = dice.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        inner = inner[key]
    kind = dice.choice(("junk", "junk", "junk", "remove", "add"))
    if kind == "remove":
        del container[key]
    elif kind == "add" and isinstance(container, dict):
        container[dice.choice(FIELDS)] = dice.choice(JUNK)
    else:
        container[key] = dice.choice(JUNK)
    return json.dumps(document).encode()


BASES = ("bert", "gpt2", "llama", "t5")


@pytest.fixture(scope="module")
def bases(
    family_dir: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """Valid folders: with one file of weights and, the last one, with several."""
    folders = [family_dir(name) for name in BASES]
    sharded = tmp_path_factory.mktemp("fuzz") / "sharded"
    parts = load_parts(str(family_dir("bert")))
    parts.model.save_pretrained(sharded, max_shard_size="20KB")
    parts.tokenizer.save_pretrained(sharded)
    return [*folders, sharded]


def outcome(folder: Path) -> str:
    """Returns "works" or the line with which the folder is refused; any other exception escapes."""
    question = Question(Query("The bird sat on the", "."), ("tree", "zzz"))
    try:
        model = load(str(folder))
        answers = model.answer([model.encode(question)], 3)
    except BadInput as error:
        return str(error)
    assert len(answers[0].top_words) == 3
    return "works"


def fuzz(bases: list[Path], target: Path, seeds: range) -> float:
    """Returns the share of folders that work; fails with the seed that led to anything else."""
    works = 0
    for seed in seeds:
        mutate(bases[seed % len(bases)], target, seed)
        with watched() as events:
            try:
                line = outcome(target)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
        assert events == [], f"seed {seed}"
        assert line.isprintable(), f"seed {seed}"
        assert len(line) < 1_500, f"seed {seed}"
        works += line == "works"
    return works / len(seeds)


def test_a_few_broken_folders(bases: list[Path], tmp_path: Path) -> None:
    assert 0.1 < fuzz(bases, tmp_path / "broken", range(50)) < 0.8


@pytest.mark.slow
def test_many_broken_folders(bases: list[Path], tmp_path: Path) -> None:
    """LMDIAG_FUZZ sets the number of folders."""
    number = int(os.environ.get("LMDIAG_FUZZ", "1000"))
    assert 0.1 < fuzz(bases, tmp_path / "broken", range(1000, 1000 + number)) < 0.8
