"""Two tiny models that come with the package: `demo:masked` and `demo:causal`.

A ModernBERT and a GPT-2 of toy size, so that every command can be tried and tested without a
network. They were trained on sentences of a small made-up English; their weights are part of the
package, so that they give the same figures on every machine. `datasets/lmdiag/demo/training.py` in
the repository makes them again.
"""

from __future__ import annotations

from pathlib import Path

from lmdiag.text import suggest
from lmdiag.types import BadInput

DEMO_NAMES = ("masked", "causal")


def demo_folder(name: str) -> Path:
    """Returns the folder of a demo model, which transformers loads like any other."""
    if name not in DEMO_NAMES:
        suggestion = suggest(f"demo:{name}", [f"demo:{x}" for x in DEMO_NAMES])
        raise BadInput(f"no model demo:{name}{suggestion}: choose demo:masked or demo:causal")
    return Path(__file__).with_name(name)
