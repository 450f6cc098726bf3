"""All figures of one or several runs as one long csv table, at full precision."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lmdiag.report.listing import Chosen
from lmdiag.results import Results
from lmdiag.results.published import published_beside
from lmdiag.text import csv_cell, visible

_NUMBERS = (
    "value", "n", "ci_low", "ci_high", "chance", "versus_chance", "p_chance", "sd", "runs",
)  # fmt: skip
_COLUMNS = (
    "model", "revision", "commit", "task", "setting", "measure", "by", "level", *_NUMBERS,
    "published", "signature",
)  # fmt: skip
"""Values are as in `results.json`; `published` is percent."""

_TOP_COLUMNS = ("context", "right_context", "model", "place", "word", "probability", "expected")
_PART_COLUMNS = ("id", "sentence", "model", "place", "region", "start", "text", "bits")


def render(runs: Sequence[Results], chosen: Sequence[Chosen] = ()) -> str:
    """Returns a line per figure; if items are chosen, per top word, or per word of sentences."""
    if chosen and chosen[0].choice.is_sentence:
        return _csv(_PART_COLUMNS, _parts(chosen))
    if chosen:
        return _csv(_TOP_COLUMNS, _top_words(chosen))
    return _csv(_COLUMNS, (record for run in runs for record in _figures(run)))


def _figures(run: Results) -> Iterator[list[Any]]:
    published = published_beside(run)
    for place, figure in run.figures():
        yield [
            *(run.model.name or run.model.id, run.model.revision, run.model.commit),
            *place,
            *(getattr(figure, name) for name in _NUMBERS),
            published[place].value if place in published else None,
            run.tasks[place.task][place.setting].signature,
        ]


def _top_words(chosen: Sequence[Chosen]) -> Iterator[list[Any]]:
    for item in chosen:
        for model, top in item.said:
            for i, entry in enumerate(top, start=1):
                yield [item.choice.context, item.choice.right_context, model, i, *entry]


def _parts(chosen: Sequence[Chosen]) -> Iterator[list[Any]]:
    """The words of chosen sentences, or their regions, with their surprisals."""
    for item in chosen:
        for model, parts in item.said:
            for i, part in enumerate(parts, start=1):
                place = [part.name or None, part.start, part.text, part.bits]
                yield [item.choice.id, item.choice.sentence, model, i, *place]


def _csv(columns: Sequence[str], records: Iterable[list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        [csv_cell(visible(value) if isinstance(value, str) else value) for value in record]
        for record in records
    )
    return buffer.getvalue()
