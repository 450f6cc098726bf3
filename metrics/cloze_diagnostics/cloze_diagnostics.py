"""Cloze diagnostics as a metric of the `evaluate` library, by `lmdiag.results.evaluation`."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import datasets
import evaluate

try:  # `evaluate` would otherwise advise to install the package `lmdiag`, another project
    from lmdiag import diagnostics
    from lmdiag.asking.protocol import Protocol, checked_ranks, checked_threshold
    from lmdiag.measures import folds_for
    from lmdiag.results.evaluation import evaluate as figures
    from lmdiag.results.evaluation import short_list_lines
    from lmdiag.results.predictions import normalise, predictions_of_records
    from lmdiag.stimuli import Stimuli
    from lmdiag.stimuli.reading.conversion import converted_columns
    from lmdiag.tables.table_files import Problems, Table, row_index
    from lmdiag.types import BadInput
except ImportError as error:
    raise ImportError(
        f"this metric needs the package lm-diagnostics, which has the import name lmdiag ({error})"
    ) from error

_DESCRIPTION = """
Measures of psycholinguistic diagnostics for language models: accuracy@k against human responses,
sensitivity to good and bad completions of a sentence, and the break-downs of the diagnostic, each
with its number of items and a 95% interval.
"""

_CITATION = """
@article{ettinger-2020-what-bert-is-not,
  author  = {Ettinger, Allyson},
  title   = {What {BERT} Is Not: Lessons from a New Suite of Psycholinguistic Diagnostics for
             Language Models},
  journal = {Transactions of the Association for Computational Linguistics},
  volume  = {8},
  pages   = {34--48},
  year    = {2020},
  doi     = {10.1162/tacl_a_00298}
}
"""

_INPUTS = """
Args:
    predictions: a dict for each row, in the same order, with
        top_words: the most probable words at the blank, best first; one space (or Ġ, ▁) before a
            word is removed, with a warning;
        log_prob: natural log of the probability of the row's target; None if it cannot be scored.
        One of them may be absent from all predictions: what the other allows is computed.
    references: the rows, as `load_dataset` gives them: the core columns id, item, condition,
        context, right_context, target, good, contrast, expected, and any further ones. Only context
        and target are needed; without good and contrast nothing is compared.
    k: ranks for accuracy, by default [1, 5].
    threshold: smallest difference in probability for sensitivity@threshold, by default 0.01.
    cased: compare words with `expected` exactly (default), or without case and accents.

Returns:
    measure -> {"value", "n", "ci_low", "ci_high", "chance", "versus_chance" where there is a chance
    level, "by": {column: {level: the same}}}, and "unscorable", a list of {"id", "word"}, if
    targets could not be scored. A measure that is not defined on these rows has the value None and
    a reason in "not_defined". accuracy@k with k larger than the shortest list of top words is left
    out, with a warning.

Raises:
    lmdiag.types.BadInput: malformed predictions, missing columns, repeated ids, k that is not a
        list of integers from 1 up, a threshold that is not a number from 0 up to below 1.

Example:
    >>> rows = [
    ...     {"id": "1-good", "item": "1", "condition": "good", "context": "A penguin is a",
    ...      "right_context": "", "target": "bird", "good": True, "contrast": "1",
    ...      "expected": ["bird"]},
    ...     {"id": "1-bad", "item": "1", "condition": "bad", "context": "A penguin is a",
    ...      "right_context": "", "target": "tool", "good": False, "contrast": "1",
    ...      "expected": []},
    ... ]
    >>> predictions = [
    ...     {"top_words": ["bird", "seal"], "log_prob": -0.5},
    ...     {"top_words": ["bird", "seal"], "log_prob": -7.5},
    ... ]
    >>> metric = evaluate.load("metrics/cloze_diagnostics")
    >>> measures = metric.compute(predictions=predictions, references=rows, k=[1, 2])
    >>> measures["sensitivity"]["value"]
    1.0
"""


class ClozeDiagnostics(evaluate.Metric):
    """Measures of a cloze diagnostic; the configuration names the task, and may be any name.

    The names of the diagnostics of lmdiag stand for their measures and break-downs. Predictions and
    rows are stored in the library's cache as JSON text, because its features are fixed and would
    refuse the further columns of the break-downs.
    """

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": text, "references": text}),
            reference_urls=["https://doi.org/10.1162/tacl_a_00298"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Adds one prediction and its row."""
        super().add(prediction=_text(prediction), reference=_text(reference), **kwargs)

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Adds predictions and their rows."""
        super().add_batch(
            predictions=[_text(prediction) for prediction in predictions],
            references=[_text(reference) for reference in references],
            **kwargs,
        )

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        k: tuple[int, ...] = (1, 5),
        threshold: float = 0.01,
        cased: bool = True,
    ) -> dict[str, Any]:
        protocol = Protocol(k=checked_ranks(k), threshold=checked_threshold(threshold))
        rows = _objects(references, "reference")
        columns = _columns(rows, self.config_name)
        given = _objects(predictions, "prediction")
        run, notes = normalise(
            predictions_of_records(_records(given, columns["id"])), "predictions"
        )
        notes += [f"not computed: {line}" for line in short_list_lines(columns, run, protocol.k)]
        for line in notes:
            warnings.warn(line, stacklevel=2)
        is_own = diagnostics.get(self.config_name).missing_columns(columns)
        stimuli = Stimuli("own" if is_own else self.config_name, columns, "references", None)
        computed = figures(stimuli, [run], protocol, folds_for(None, cased)).to_json()
        unscorable = {"unscorable": computed["unscorable"]} if computed["unscorable"] else {}
        return dict(computed["measures"]) | unscorable


def _records(
    predictions: list[dict[str, Any]], rows: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each prediction with its place and the id of its row."""
    for number, (prediction, row) in enumerate(zip(predictions, rows, strict=True), start=1):
        where = f"prediction {number}"
        if prediction.get("id", row) != row:
            raise BadInput(f"{where} is for {prediction['id']}, its reference is {row}: align them")
        yield where, prediction | {"id": row}


def _text(record: Any) -> str:
    """Returns a prediction or row as JSON text."""
    return record if isinstance(record, str) else json.dumps(record, default=_plain)


def _plain(value: Any) -> Any:
    """Returns a number or array of numpy as numbers of Python, a date as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _objects(texts: list[str], noun: str) -> list[dict[str, Any]]:
    """Returns the objects that were added, as `_text` wrote them."""
    records = []
    for number, text in enumerate(texts, start=1):
        try:
            record = json.loads(text)
        except ValueError:
            record = text
        if not isinstance(record, dict):
            due = "a dict, of a row of the data set or what a model predicted for it"
            raise BadInput(f"{noun} {number} is {text!r:.60}: give {due}")
        records.append(record)
    return records


def _columns(rows: list[dict[str, Any]], task: str) -> dict[str, list[Any]]:
    """Returns the rows as columns, with None where a row lacks a further column."""
    if not rows:
        raise BadInput("there are no references: give the rows of the data set")
    places = [f"reference {number}" for number in range(1, len(rows) + 1)]
    table = Table.of_rows("references", rows, row_index(places))
    problems = Problems()
    columns = converted_columns(table, task, problems)
    problems.raise_all()
    if len(set(columns["id"])) < len(rows):
        raise BadInput("references have the same id more than once: give each row once")
    return columns
