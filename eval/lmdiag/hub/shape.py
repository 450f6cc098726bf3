"""Reading the `results.json` of a submission: its form, before its figures mean anything.

Size, depth and digits are bounded before the JSON is parsed. Only the fields of `FORM` are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lmdiag.hub.names import DTYPES, QUANTIZATIONS
from lmdiag.hub.refusal import Refused, shorten
from lmdiag.results import RESULTS, SCHEMA_VERSION

MAX_DEPTH = 32
"""Objects and lists within each other; those of a run are 10 deep."""

MAX_DIGITS = 18
"""Digits of a whole number, so that it fits into 64 bits."""

MAX_TEXT = 300
"""Characters of a name."""

MAX_COUNT = 2**53
"""Of parameters: what a number in JavaScript can count up to."""

MAX_ITEMS = 50
"""Entries of a list."""

_NUMBER = (int, float)
_OPTIONAL_TEXT = (str, type(None))
_OPTIONAL_COUNT = (int, type(None))
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{]|[\]}]', re.DOTALL)
"""A whole string, whose brackets do not count, or one bracket."""


class OneOf(tuple[Any, ...]):
    """The values that a field may have."""


FORM: Mapping[str, Any] = {
    "schema_version": int,
    "signature": str,
    "model": {
        "id": str,
        "revision": _OPTIONAL_TEXT,
        "commit": str,
        "kind": OneOf(("masked", "causal", "seq2seq")),
        "architecture": str,
        "dtype": OneOf(DTYPES),
        "tokenizer": str,
        "cased": bool,
        "vocab_size": int,
        "n_parameters": int,
        "quantization": OneOf(QUANTIZATIONS),
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
"""Key -> its type, several types, [type of a list], `OneOf` its values, or the form below it."""


def parse_results(content: bytes) -> dict[str, Any]:
    """Returns the fields of `FORM` of a submission's `results.json`; all others are dropped.

    Args:
        content: of the file.

    Raises:
        Refused: it is not strict JSON (NaN is none), nested too deep, of another version or form.
    """
    results = _parse(content)
    if not isinstance(results, dict):
        raise Refused([f"{RESULTS} must hold a JSON object"])
    if results.get("schema_version") not in (1, SCHEMA_VERSION):
        version = shorten(str(results.get("schema_version")), 20)
        raise Refused([f"{RESULTS} is of schema version {version}, not {SCHEMA_VERSION}"])
    for check in (misfits(results, FORM, ""), _misfit_facts(results)):
        for complaint in check:
            raise Refused([f"{RESULTS}: {complaint}"])
    return pick(results, FORM)


def _parse(content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
        if depth(text) > MAX_DEPTH:
            raise Refused([f"{RESULTS} is nested more than {MAX_DEPTH} levels deep"])
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_bounded_int)
    except ValueError as error:
        raise Refused([f"{RESULTS} cannot be read: {error}"]) from None


def depth(text: str) -> int:
    """Returns how many brackets are open at once at most, in text that may be JSON."""
    level = most = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            level += 1
            most = max(most, level)
        elif match[0] in "]}":
            level -= 1
    return most


def pick(value: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that a form names, at every level of it."""
    return {
        key: pick(value[key], below) if isinstance(below, Mapping) else value[key]
        for key, below in form.items()
    }


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _bounded_int(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a whole number has more than {MAX_DIGITS} digits")
    return int(digits)


def _misfit_facts(results: Mapping[str, Any]) -> Iterator[str]:
    try:
        datetime.fromisoformat(results["finished"])
    except ValueError:
        yield "finished is not an ISO 8601 date"
    for count in ("vocab_size", "n_parameters"):
        if not 0 <= results["model"][count] < MAX_COUNT:
            yield f"model.{count} must be between 0 and 2**53"


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
    elif isinstance(form, OneOf):
        if not isinstance(value, str | None) or value not in form:
            yield f"{path} must be one of {', '.join(map(str, form))}"
    elif not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
        yield f"{path} is of the wrong type"
    elif isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        yield f"{path} is not valid Unicode text"
    elif isinstance(value, str) and len(value) > MAX_TEXT:
        yield f"{path} has more than {MAX_TEXT} characters"
