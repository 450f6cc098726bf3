"""Reads the `results.json` of a submission, with the bounds that a stranger's file needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from lmdiag.hub.names import DTYPES, QUANTIZATIONS
from lmdiag.hub.refusal import Refused, refuse
from lmdiag.reading import parse_json
from lmdiag.results import RESULTS, Device, Results
from lmdiag.schema import BadInput
from lmdiag.text import all_visible, visible

_MAX_TEXT = 300
"""Characters of a text."""

_MAX_ITEMS = 50
"""Entries of a list."""

_MAX_COUNT = 2**53
"""Of parameters: a JavaScript number is exact up to here."""

_MODEL_FIELDS = (
    "id", "revision", "commit", "kind", "architecture", "dtype", "tokenizer", "cased",
    "vocab_size", "n_parameters", "quantization",
)  # fmt: skip


def parse_results(content: bytes) -> Results:
    """Returns what a submission says of itself, with every text made visible.

    What nobody can check and nothing needs is left out: device, versions, durations, files, and
    the name that the submitter gave to the model.

    Args:
        content: of the file.

    Raises:
        Refused: not strict JSON, nested too deeply, of another version, a value that is missing,
            of the wrong type or too large.
    """
    try:
        results = Results.from_json(parse_json(content, RESULTS, finite=True), RESULTS)
    except BadInput as error:
        raise Refused([str(error)]) from None
    refuse(f"{RESULTS}: {complaint}" for complaint in _complaints(results))
    model = replace(
        results.model,
        **all_visible({name: getattr(results.model, name) for name in _MODEL_FIELDS}),
        **{"max_length": None, "bos": False, "training_step": None},
        **{"attention": None, "name": None},
    )
    return replace(
        results,
        model=model,
        finished=visible(results.finished),
        device=Device("", 0),
        n_contexts=0,
        **{name: {} for name in ("identity", "versions", "seconds", "files")},
    )


def _complaints(results: Results) -> Iterator[str]:
    model = results.model
    protocol, data = asdict(results.protocol), {"source": results.data.source}
    yield from _too_large("model", asdict(model))
    yield from _too_large("protocol", protocol | {"tasks": list(results.protocol.tasks)})
    yield from _too_large("data", data)
    if model.dtype not in DTYPES:
        yield f"model.dtype must be one of {', '.join(DTYPES)}"
    if model.quantization not in QUANTIZATIONS:
        yield f"model.quantization must be one of {', '.join(map(str, QUANTIZATIONS))}"
    for name in ("vocab_size", "n_parameters"):
        if not 0 <= getattr(model, name) < _MAX_COUNT:
            yield f"model.{name} must be between 0 and 2**53"
    try:
        datetime.fromisoformat(results.finished)
    except ValueError:
        yield "finished is not an ISO 8601 date"


def _too_large(where: str, values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, list | tuple) and len(value) > _MAX_ITEMS:
            yield f"{where}.{name} has more than {_MAX_ITEMS} entries"
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and len(text) > _MAX_TEXT:
                yield f"{where}.{name} has more than {_MAX_TEXT} characters"
