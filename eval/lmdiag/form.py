"""The form of results.json: which keys the readers need, and of what type their values are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Optional:
    """A key that may be missing; where it is there, its value has this form."""

    form: Any


@dataclass(frozen=True)
class Each:
    """An object with any keys, at least so many, whose values all have this form."""

    form: Any
    least: int = 0


_TEXT_OR_NULL = (str, type(None))
_COUNT_OR_NULL = (int, type(None))
_NUMBER = (int, float)
_NUMBER_OR_NULL = (int, float, type(None))

_CELL: dict[str, Any] = {
    "value": _NUMBER_OR_NULL,
    "n": Optional(_COUNT_OR_NULL),
    "ci_low": Optional(_NUMBER_OR_NULL),
    "ci_high": Optional(_NUMBER_OR_NULL),
    "chance": Optional(_NUMBER_OR_NULL),
    "sd": Optional(_NUMBER_OR_NULL),
    "not_defined": Optional(_TEXT_OR_NULL),
}
FIGURE: Mapping[str, Any] = _CELL | {"by": Each(Each(_CELL))}
"""A measure: its figure over all rows, and column -> level -> the figure of a break-down."""

_SETTING: Mapping[str, Any] = {
    "signature": str,
    "measures": Each(FIGURE),
    "unscorable": [{"id": str, "word": str}],
}

HEAD: Mapping[str, Any] = {
    "identity": Optional(Each(_TEXT_OR_NULL)),
    "files": Optional(Each(str)),
}
"""What says whose run it is, and which files its figures were computed from."""

RESULTS: Mapping[str, Any] = {
    "signature": str,
    "model": {
        "id": str,
        "revision": _TEXT_OR_NULL,
        "commit": str,
        "kind": ("masked", "causal", "seq2seq"),
        "architecture": str,
        "dtype": str,
        "tokenizer": str,
        "cased": bool,
        "n_parameters": int,
        "bos": Optional(bool),
        "quantization": Optional(_TEXT_OR_NULL),
        "training_step": Optional(_COUNT_OR_NULL),
    },
    "data": {
        "source": str,
        "revision": _TEXT_OR_NULL,
        "fingerprint": str,
        "tasks": Each({"fingerprint": str, "n": int}),
    },
    "protocol": {
        "tasks": [str],
        "perturb": [str],
        "shuffles": int,
        "seed": int,
        "unit": ("token", "word"),
        "k": [int],
        "threshold": _NUMBER,
        "bos": str,
        "limit": _COUNT_OR_NULL,
        "verbs": Optional(_COUNT_OR_NULL),
        "match": ("exact", "case-blind"),
    },
    "versions": Each(str),
    "device": {"name": str, "processes": int},
    "seconds": Each(_NUMBER),
    "finished": str,
    "n_contexts": int,
    "tasks": Each(Each(_SETTING, least=1), least=1),
}
"""Key -> a type, several types, the values it may have, [the form of each item], or a form."""


def misfits(value: Any, form: Any, path: str = "") -> Iterator[str]:
    """Yields what does not have the form, naming the place, e.g. `model.id must be str`."""
    here = path or "it"
    if isinstance(form, Mapping | Each):
        yield from _of_object(value, form, path)
    elif isinstance(form, list):
        if not isinstance(value, list):
            yield f"{here} must be a list"
            return
        for i, item in enumerate(value):
            yield from misfits(item, form[0], f"{path}[{i}]")
    elif isinstance(form, tuple) and isinstance(form[0], str):
        if not isinstance(value, str) or value not in form:
            yield f"{here} must be one of {', '.join(form)}"
    elif not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
        names = [each.__name__ for each in (form if isinstance(form, tuple) else (form,))]
        yield f"{here} must be {' or '.join(names).replace('NoneType', 'null')}"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{here} must be finite"


def _of_object(value: Any, form: Mapping[str, Any] | Each, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path or 'it'} must be an object"
        return
    prefix = f"{path}." if path else ""
    if isinstance(form, Each):
        if len(value) < form.least:
            yield f"{path or 'it'} must not be empty"
        for key, item in value.items():
            yield from misfits(item, form.form, f"{prefix}{key}")
        return
    for key, below in form.items():
        if key in value:
            inner = below.form if isinstance(below, Optional) else below
            yield from misfits(value[key], inner, f"{prefix}{key}")
        elif not isinstance(below, Optional):
            yield f"{prefix}{key} is missing"
