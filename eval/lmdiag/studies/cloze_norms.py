"""Cloze norms: what people say at a blank, and what models expect there.

Responses are data like any other: a run asks their words (`lmdiag.stimuli.responses`) and has the
measures of docs/specification.md, section 4 (`lmdiag.measures.cloze`). Here stand the words of such
runs as tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame, concat
from pydantic_core import to_jsonable_python

from lmdiag.files.reading import is_folder, user_path
from lmdiag.measures import (
    ItemWords,
    Trials,
    match_rule,
    registered,
    response_folds,
    words_of_items,
)
from lmdiag.presentable import Presentable
from lmdiag.results import Figure, Run
from lmdiag.results.figures import figures
from lmdiag.results.model_labels import model_labels, needs_no_context
from lmdiag.stimuli.designs.shown import first_rows
from lmdiag.stimuli.perturbations import NONE
from lmdiag.studies.comparison import Comparisons, compare_runs, unlike_first
from lmdiag.text import first_few
from lmdiag.types import BadInput, TableOptions

_PLACE = ("item", "context", "right_context")
_ITEM_MEASURES = ("mass", "top_agrees", "cross_entropy", "divergence", "spearman")


@dataclass(frozen=True, repr=False)
class ClozeNorms(Presentable):
    """Runs of models on the words that people gave.

    Attributes:
        runs: the first is the one that the others are compared with; word frequencies are last.
        across: keys of `KNOBS` in which they may differ.
    """

    runs: Sequence[Run]
    across: Sequence[str] = ()

    def __post_init__(self) -> None:
        for run in self.runs:
            if [rows.form for rows in run.stimuli.values()] != ["cloze"]:
                raise BadInput(f"{run.path} is not a run of people's responses")
        in_order = sorted(self.runs, key=lambda run: needs_no_context(run.results.model))
        object.__setattr__(self, "runs", in_order)

    def __repr__(self) -> str:
        return f"<ClozeNorms of {self.name} by {', '.join(self.models)}>"

    @property
    def name(self) -> str:
        """The name of the file of the responses."""
        return Path(self.runs[0].results.data.source).name

    @cached_property
    def models(self) -> list[str]:
        """The names of the models."""
        results = [run.results for run in self.runs]
        return model_labels([of.model for of in results], [of.protocol for of in results])

    @property
    def n_items(self) -> int:
        """Number of items."""
        (rows,) = self.runs[0].stimuli.values()
        return len({*rows.columns()["item"]})

    @cached_property
    def comparisons(self) -> Comparisons:
        """Of the first model with each other one, see `lmdiag.studies.comparison.compare_runs`."""
        several = len(self.runs) > 1
        rows = compare_runs(*self.runs, across=self.across) if several else []
        return Comparisons(rows, self.runs, self.across)

    @cached_property
    def words(self) -> DataFrame:
        """A row per model, item and word.

        Its columns are item, context, right_context (if an item has one), word (its most frequent
        spelling), count (where it is known), cloze, probability, surprisal (bits), rank, state
        (scored, censored, unscorable) and model.
        """
        rows = [row for number in range(len(self.runs)) for row in self._words(number)]
        table = DataFrame(rows)
        table = table.astype({"rank": "Int64"})
        if "count" in table and (table["count"] % 1 == 0).all():
            table = table.astype({"count": "int64"})
        has_right = (table["right_context"] != "").any()
        return table if has_right else table.drop(columns="right_context")

    @cached_property
    def items(self) -> DataFrame:
        """A row per model and item: item, context, right_context, the measures, model."""
        parts = []
        for model, run in zip(self.models, self.runs, strict=True):
            ((task, rows),) = run.stimuli.items()
            places = DataFrame({name: rows.columns()[name] for name in _PLACE})
            table = places.drop_duplicates("item", ignore_index=True)
            for name, scores in run.scores_of(task).items():
                if name in _ITEM_MEASURES:
                    values = dict(zip(scores.items, scores.values.tolist(), strict=True))
                    table[name] = table["item"].map(values).astype(float)
            parts.append(table.reindex(columns=[*_PLACE, *_ITEM_MEASURES]).assign(model=model))
        return concat(parts, ignore_index=True)

    @cached_property
    def top_words(self) -> DataFrame:
        """A row per model, item and word of the model's list.

        Its columns are item, context, right_context, word, probability, is_said (by people), model.
        """
        rows = [row for number in range(len(self.runs)) for row in self._top_words(number)]
        return DataFrame(rows, columns=[*_PLACE, "word", "probability", "is_said", "model"])

    @cached_property
    def _trials_and_words(self) -> list[tuple[Trials, Sequence[ItemWords]]]:
        """The rows of each model with its predictions, and the words of the items."""
        return [self._of_run(run) for run in self.runs]

    def _of_run(self, run: Run) -> tuple[Trials, Sequence[ItemWords]]:
        ((task, rows),) = run.stimuli.items()
        predictions = run.predictions[task][NONE, 0]
        folds = run.results.model.word_folds
        trials = Trials(rows.columns(), vars(predictions), {}, folds=folds)
        return trials, words_of_items(trials)

    def _words(self, number: int) -> Iterator[dict[str, Any]]:
        """Yields the rows of `words` of a model, by its number."""
        trials, items = self._trials_and_words[number]
        run = self.runs[number]
        (task,) = run.stimuli
        predictions = run.predictions[task][NONE, 0]
        rows = trials.rows
        for item in items:
            words = zip(item.rows, item.shares.tolist(), item.log_prob.tolist(), strict=True)
            for spellings, share, nats in words:
                first = spellings[0]  # row of the most frequent spelling
                count = sum(rows["count"][row] for row in spellings) if "count" in rows else None
                yield {name: rows[name][first] for name in _PLACE} | {
                    "word": rows["target"][first],
                    **({} if count is None else {"count": count}),
                    "cloze": share,
                    "probability": float(np.exp(nats)),
                    "surprisal": 0.0 - nats / math.log(2),
                    "rank": predictions.rank[first],
                    "state": predictions.state(first),
                    "model": self.models[number],
                }

    def _top_words(self, number: int) -> Iterator[dict[str, Any]]:
        """Yields the rows of `top_words` of a model, by its number."""
        trials, items = self._trials_and_words[number]
        for item in items:
            first = item.rows[0][0]  # all rows of an item have the same blank
            words = trials.predictions["top_words"][first] or []
            log_probs = trials.predictions["top_log_probs"][first] or [math.nan] * len(words)
            place = {name: trials.rows[name][first] for name in _PLACE}
            for word, log_prob, share in zip(words, log_probs, item.top_shares, strict=True):
                facts = {"word": word, "probability": math.exp(log_prob), "is_said": share > 0}
                yield place | facts | {"model": self.models[number]}

    def missed(self, model: str) -> DataFrame:
        """Returns the words that people say, the least probable for the model first."""
        words = self.words[(self.words["model"] == model) & (self.words["cloze"] > 0)]
        words = words.dropna(subset="surprisal")
        return words.sort_values("surprisal", ascending=False, kind="stable")

    def unsaid(self, model: str) -> DataFrame:
        """Returns the model's top words that nobody said, the most probable first.

        Pieces of words and punctuation marks, which lists in unit token have, are left out.
        """
        words = self.top_words[(self.top_words["model"] == model) & ~self.top_words["is_said"]]
        words = words[words["word"].str.contains(r"^(?!##).*\w")]
        return words.sort_values("probability", ascending=False, kind="stable")

    @property
    def notes(self) -> list[str]:
        """What was read and left out, and how the models were asked."""
        (rows,) = self.runs[0].stimuli.values()
        lines = [*rows.notes]
        for model, run in zip(self.models, self.runs, strict=True):
            info = run.results.model
            folds = response_folds(rows.columns()["target"], info.word_folds)
            settings = info.kind, f"unit {run.results.protocol.unit}", info.dtype
            lines.append(
                f"{model}: {info.architecture if info.counts_words else ', '.join(settings)}"
            )
            lines.append(f"{model}: words are compared {match_rule(folds)}")
        return [*lines, *_left_out(self.words, self.items)]

    @property
    def reads(self) -> list[str]:
        """The first word in its context, with the share of the responses."""
        (rows,) = self.runs[0].stimuli.values()
        share = rows.columns()["cloze"][0]
        return [f"reads {line}, {share:.0%} of the responses" for line in first_rows(rows)]

    @property
    def figures(self) -> DataFrame:
        """What `to_frame` returns; of a masked and a causal model what is on one scale."""
        table = self.to_frame()
        if not unlike_first(self.runs):
            return table
        return table[table["measure"].map(is_on_one_scale).astype(bool)]

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        parts = zip(self.models, self.runs, strict=True)
        return concat([figures([run.results]).assign(model=name) for name, run in parts])

    def to_json(self) -> dict[str, Any]:
        """Returns all figures as plain values; undefined is None."""
        models = []
        for name, run in zip(self.models, self.runs, strict=True):
            (task,) = run.results.tasks
            values = {
                measure: _json_figure(run.results.measure(task, NONE, measure))
                for measure in (*_ITEM_MEASURES, "spearman_pooled")
            }
            models.append({"name": name, "items": self.n_items} | values)
        unsaid = concat([self.unsaid(model) for model in self.models])
        records = {
            name: table.astype(object).where(table.notna(), None).to_dict("records")
            for name, table in {"words": self.words, "unsaid": unsaid}.items()
        }
        comparisons = self.comparisons.to_json()["comparisons"]
        document = {"models": models, **records, "notes": self.notes, "comparisons": comparisons}
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain


def is_on_one_scale(measure: str) -> bool:
    """Returns whether masked and causal models have comparable values."""
    entry = registered(measure)
    return entry is None or not (entry.one_kind or entry.is_pooled)


def _json_figure(figure: Figure | None) -> dict[str, Any]:
    """The numbers of a figure; None for one that no item has."""
    undefined = Figure(None, 0)
    fields = ("value", "n", "ci_low", "ci_high")
    return {field: (figure or undefined)[field] for field in fields}


def responses_of(source: object, options: TableOptions, response: str) -> TableOptions:
    """Returns how a table of responses is read; `BadInput` for a folder, which is none."""
    if isinstance(source, str | Path) and is_folder(user_path(str(source))):
        remedy = "give a table of responses; `lmdiag report RUN` shows finished runs"
        raise BadInput(f"{source} is a folder: {remedy}")
    columns = (*options.columns, f"response={response}") if response else options.columns
    return replace(options, columns=columns)


def _left_out(words: DataFrame, items: DataFrame) -> Iterator[str]:
    """Yields the words without a probability, and the items without a measure."""
    for (model, state), left_out in words[words["state"] != "scored"].groupby(["model", "state"]):
        names = [f"{word.word} (item {word.item})" for word in left_out.itertuples()]
        yield f"{model}: {len(left_out)} {state} words, never counted as 0: {first_few(names, 5)}"
    for model, rows in items.groupby("model", sort=False):
        if left_out := rows["item"][rows["divergence"].isna()].tolist():
            why = "the shares do not add up to 1, or a word has no probability"
            without = "no probability of human responses and no KL divergence"
            what = f"{len(left_out)} of {len(rows)} items have {without}"
            yield f"{model}: {what}, since {why}: {first_few(left_out, 5)}"
