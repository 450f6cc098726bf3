"""Two tiny models that come with the package: `demo:masked` and `demo:causal`.

A ModernBERT and a GPT-2 of toy size, so that every command can be tried, and tested, with no
network. They were trained on sentences of a small made-up English (`corpus`); their weights are
part of the package, so that they give the same figures on every machine. `training` makes them
again; no run imports it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from lmdiag.schema import BadInput
from lmdiag.suggestions import suggest

Name = Literal["masked", "causal"]
NAMES: tuple[Name, ...] = get_args(Name)


def demo_folder(name: str) -> Path:
    """Returns the folder of a demo model, which transformers loads like any other.

    Args:
        name: "masked" or "causal".

    Raises:
        BadInput: there is no such demo model.
    """
    if name not in NAMES:
        raise BadInput(
            f"no model demo:{name}{suggest(name, NAMES)}: choose demo:masked or demo:causal"
        )
    return Path(__file__).with_name(name)
