"""Reading a `results.json` that a stranger wrote: its form, before its figures mean anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lmdiag.results import RESULTS, SCHEMA_VERSION
from lmdiag.schema import BadInput

MAX_RESULTS = 20_000_000
"""Bytes of a results.json: those of a full run have a hundredth of it."""

MAX_TEXT = 300
"""Characters of a name."""

MAX_COUNT = 2**53
"""Of parameters: what a number in JavaScript can count up to."""

MAX_ITEMS = 50
"""Entries of a list."""

_NUMBER = (int, float)
_OPTIONAL_TEXT = (str, type(None))
_OPTIONAL_COUNT = (int, type(None))

FORM: Mapping[str, Any] = {
    "schema_version": int,
    "signature": str,
    "model": {
        "id": str,
        "revision": _OPTIONAL_TEXT,
        "commit": str,
        "kind": ("masked", "causal", "seq2seq"),
        "architecture": str,
        "dtype": str,
        "tokenizer": str,
        "cased": bool,
        "vocab_size": int,
        "n_parameters": int,
        "quantization": _OPTIONAL_TEXT,
    },
    "data": {"source": str, "revision": _OPTIONAL_TEXT, "fingerprint": str, "tasks": dict},
    "protocol": {
        "tasks": [str],
        "perturb": [str],
        "shuffles": int,
        "seed": int,
        "unit": str,
        "k": [int],
        "threshold": _NUMBER,
        "bos": str,
        "limit": _OPTIONAL_COUNT,
        "verbs": _OPTIONAL_COUNT,
        "match": str,
    },
    "finished": str,
    "tasks": dict,
}
"""Key -> its type, several types, [type of a list], its possible values, or the form below it."""


def read_strictly(folder: Path) -> dict[str, Any]:
    """Returns the `results.json` of a submission, of this schema version and the right form.

    Raises:
        BadInput: it is missing, too large, no strict JSON (NaN is none), or of another form.
    """
    path = folder / RESULTS
    if not path.is_file():
        raise BadInput(f"there is no {RESULTS}")
    if path.stat().st_size > MAX_RESULTS:
        raise BadInput(f"{RESULTS} has more than {MAX_RESULTS:,} bytes")
    try:
        results = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{RESULTS} cannot be read: {error}") from None
    if not isinstance(results, dict):
        raise BadInput(f"{RESULTS} holds no object")
    if results.get("schema_version") != SCHEMA_VERSION:
        found = str(results.get("schema_version"))[:20]
        raise BadInput(f"{RESULTS} is of schema version {found}, not {SCHEMA_VERSION}")
    for check in (misfits(results, FORM, ""), _misfit_facts(results)):
        for complaint in check:
            raise BadInput(f"{RESULTS}: {complaint}")
    return results


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _misfit_facts(results: Mapping[str, Any]) -> Iterator[str]:
    try:
        datetime.fromisoformat(results["finished"])
    except ValueError:
        yield "finished is no ISO 8601 date"
    for count in ("vocab_size", "n_parameters"):
        if not 0 <= results["model"][count] < MAX_COUNT:
            yield f"model.{count} is no number of them"


def misfits(value: Any, form: Any, path: str) -> Iterator[str]:
    """Yields what does not fit the form, naming the place."""
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            yield f"{path.strip('.') or 'it'} must be an object"
            return
        for key, below in form.items():
            if key not in value:
                yield f"{path}{key} is missing"
            else:
                yield from misfits(
                    value[key],
                    below,
                    f"{path}{key}" if not isinstance(below, Mapping) else f"{path}{key}.",
                )
    elif isinstance(form, list):
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            yield f"{path} must be a list of at most {MAX_ITEMS}"
        for item in value if isinstance(value, list) else ():
            yield from misfits(item, form[0], path)
    elif isinstance(form, tuple) and all(isinstance(each, str) for each in form):
        if value not in form:
            yield f"{path} must be one of {', '.join(form)}"
    elif not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
        yield f"{path} is of the wrong type"
    elif isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        yield f"{path} is no Unicode text"
    elif isinstance(value, str) and len(value) > MAX_TEXT:
        yield f"{path} has more than {MAX_TEXT} characters"
