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
from lmdiag.studies.comparison import Comparisons, compare_runs, runs_of_other_kind
from lmdiag.text import first_few
from lmdiag.types import BadInput, TableOptions

_ITEM_COLUMNS = ("item", "context", "right_context")
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
        """Refuses runs that are not of responses, and puts word frequencies last."""
        for run in self.runs:
            if [rows.form for rows in run.stimuli.values()] != ["cloze"]:
                raise BadInput(f"{run.path} is not a run of people's responses")
        in_order = sorted(self.runs, key=lambda run: needs_no_context(run.results.model))
        object.__setattr__(self, "runs", in_order)  # a frozen record refuses to be assigned to

    def __repr__(self) -> str:
        return f"<ClozeNorms of {self.name} by {', '.join(self.models)}>"

    @property
    def name(self) -> str:
        """The name of the file of the responses."""
        return Path(self.runs[0].results.data.source).name

    @cached_property
    def models(self) -> list[str]:
        """The labels of the models, in the order of the runs."""
        models = [run.results.model for run in self.runs]
        protocols = [run.results.protocol for run in self.runs]
        return model_labels(models, protocols)

    @property
    def n_items(self) -> int:
        """Number of items."""
        (rows,) = self.runs[0].stimuli.values()
        return len({*rows.columns()["item"]})

    @cached_property
    def comparisons(self) -> Comparisons:
        """The comparisons of the first model with each other one, see `compare_runs`."""
        rows = []
        if len(self.runs) > 1:
            rows = compare_runs(*self.runs, across=self.across)
        return Comparisons(rows, self.runs, self.across)

    @cached_property
    def words(self) -> DataFrame:
        """A row per model, item and word.

        Its columns are item, context, right_context (if an item has one), word (its most frequent
        spelling), count (where it is known), cloze, probability, surprisal (bits), rank, state
        (scored, censored, unscorable) and model.
        """
        rows = [row for number in range(len(self.runs)) for row in self._word_rows(number)]
        table = DataFrame(rows)
        table = table.astype({"rank": "Int64"})
        if "count" in table and (table["count"] % 1 == 0).all():
            table = table.astype({"count": "int64"})
        if (table["right_context"] == "").all():
            table = table.drop(columns="right_context")
        return table

    @cached_property
    def items(self) -> DataFrame:
        """A row per model and item: item, context, right_context, the measures, model."""
        columns = [*_ITEM_COLUMNS, *_ITEM_MEASURES]
        tables = []
        for model, run in zip(self.models, self.runs, strict=True):
            [(task, rows)] = run.stimuli.items()
            words = DataFrame({name: rows.columns()[name] for name in _ITEM_COLUMNS})
            table = words.drop_duplicates("item", ignore_index=True)
            for measure, scores in run.scores_of(task).items():
                if measure in _ITEM_MEASURES:
                    values = dict(zip(scores.items, scores.values.tolist(), strict=True))
                    table[measure] = table["item"].map(values).astype(float)
            tables.append(table.reindex(columns=columns).assign(model=model))
        return concat(tables, ignore_index=True)

    @cached_property
    def top_words(self) -> DataFrame:
        """A row per model, item and word of the model's list.

        Its columns are item, context, right_context, word, probability, is_said (by people), model.
        """
        rows = [row for number in range(len(self.runs)) for row in self._top_word_rows(number)]
        return DataFrame(rows, columns=[*_ITEM_COLUMNS, "word", "probability", "is_said", "model"])

    @cached_property
    def _trials_and_words(self) -> list[tuple[Trials, Sequence[ItemWords]]]:
        """Of each run, its rows with the model's predictions, and the words of each item."""
        return [_trials_and_words_of(run) for run in self.runs]

    def _word_rows(self, number: int) -> Iterator[dict[str, Any]]:
        """Yields the rows of the table `words` for run `number`: one per item and word.

        A word has the texts of its most frequent spelling, the `cloze` (share of the responses) of
        all its spellings together, and its probability for the model.
        """
        trials, items = self._trials_and_words[number]
        run = self.runs[number]
        [task] = run.stimuli
        predictions = run.predictions[task][NONE, 0]
        columns = trials.rows
        for item in items:
            words = zip(item.rows, item.shares.tolist(), item.log_prob.tolist(), strict=True)
            for spelling_rows, share, log_prob in words:
                row = spelling_rows[0]  # the most frequent spelling comes first
                word = {name: columns[name][row] for name in _ITEM_COLUMNS}
                word["word"] = columns["target"][row]
                if "count" in columns:
                    word["count"] = sum(columns["count"][row] for row in spelling_rows)
                yield word | {
                    "cloze": share,
                    "probability": float(np.exp(log_prob)),
                    "surprisal": 0.0 - log_prob / math.log(2),  # 0.0 - x: no negative zero
                    "rank": predictions.rank[row],
                    "state": predictions.state(row),
                    "model": self.models[number],
                }

    def _top_word_rows(self, number: int) -> Iterator[dict[str, Any]]:
        """Yields the rows of the table `top_words` for run `number`: one per item and listed word.

        `is_said` is true if people gave the word, so if it has a share of the responses.
        """
        trials, items = self._trials_and_words[number]
        for item in items:
            row = item.rows[0][0]  # all rows of an item have the same blank
            words = trials.predictions["top_words"][row] or []
            # NaN for words that the model listed without probabilities
            log_probs = trials.predictions["top_log_probs"][row] or [math.nan] * len(words)
            item_values = {name: trials.rows[name][row] for name in _ITEM_COLUMNS}
            for word, log_prob, share in zip(words, log_probs, item.top_shares, strict=True):
                facts = {"word": word, "probability": math.exp(log_prob), "is_said": share > 0}
                yield item_values | facts | {"model": self.models[number]}

    def missed(self, model: str) -> DataFrame:
        """Returns the rows of `words` that people say, the least probable for the model first."""
        words = self.words[(self.words["model"] == model) & (self.words["cloze"] > 0)]
        words = words.dropna(subset="surprisal")
        return words.sort_values("surprisal", ascending=False, kind="stable")

    def unsaid(self, model: str) -> DataFrame:
        """Returns the rows of `top_words` that nobody said, the most probable for the model first.

        Pieces of words and punctuation marks, which lists in unit token have, are left out.
        """
        words = self.top_words[(self.top_words["model"] == model) & ~self.top_words["is_said"]]
        words = words[words["word"].str.contains(r"^(?!##).*\w")]  # "##" begins a piece of a word
        return words.sort_values("probability", ascending=False, kind="stable")

    @property
    def notes(self) -> list[str]:
        """Lines that say what was read and left out, and how the models were asked.

        For example, "demo:causal: causal, unit token, float32".
        """
        (rows,) = self.runs[0].stimuli.values()
        lines = [*rows.notes]
        for model, run in zip(self.models, self.runs, strict=True):
            info = run.results.model
            facts = f"{info.kind}, unit {run.results.protocol.unit}, {info.dtype}"
            if info.counts_words:
                facts = info.architecture
            lines.append(f"{model}: {facts}")
            folds = response_folds(rows.columns()["target"], info.word_folds)
            lines.append(f"{model}: words are compared {match_rule(folds)}")
        return [*lines, *_notes_on_missing_values(self.words, self.items)]

    @property
    def reads(self) -> list[str]:
        """A line with the first word in its context, and with its share of the responses."""
        (rows,) = self.runs[0].stimuli.values()
        share = rows.columns()["cloze"][0]
        return [f"reads {line}, {share:.0%} of the responses" for line in first_rows(rows)]

    @property
    def figures(self) -> DataFrame:
        """The table of `to_frame`, a row per model and measure.

        Of models of two kinds (causal and masked), only measures that are comparable between them.
        """
        table = self.to_frame()
        if not runs_of_other_kind(self.runs):
            return table
        # `astype`, since `map` does not return booleans for a table without rows
        return table[table["measure"].map(is_on_one_scale).astype(bool)]

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        parts = zip(self.models, self.runs, strict=True)
        return concat([figures([run.results]).assign(model=name) for name, run in parts])

    def to_json(self) -> dict[str, Any]:
        """Returns figures, words, notes and comparisons as plain values; undefined is None.

        `models` has the figures of each model, as {"name": "gpt2", "items": 40, "mass": {"value":
        0.61, "n": 40, "ci_low": 0.55, "ci_high": 0.67}, ...}; `unsaid` has words of models that
        nobody said.
        """
        models = []
        for name, run in zip(self.models, self.runs, strict=True):
            (task,) = run.results.tasks
            values = {
                measure: _json_figure(run.results.measure(task, NONE, measure))
                for measure in (*_ITEM_MEASURES, "spearman_pooled")
            }
            models.append({"name": name, "items": self.n_items} | values)
        document = {
            "models": models,
            "words": _records(self.words),
            "unsaid": _records(concat([self.unsaid(model) for model in self.models])),
            "notes": self.notes,
            "comparisons": self.comparisons.to_json()["comparisons"],
        }
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain


def _trials_and_words_of(run: Run) -> tuple[Trials, Sequence[ItemWords]]:
    """The rows of a run with the model's predictions, and the words of each item.

    A run of people's responses has one task, whose rows are the words that people gave.
    """
    [(task, rows)] = run.stimuli.items()
    predictions = run.predictions[task][NONE, 0]  # of unperturbed rows
    folds = run.results.model.word_folds  # differences between words that do not count, e.g. case
    trials = Trials(rows.columns(), vars(predictions), {}, folds=folds)
    return trials, words_of_items(trials)


def _records(table: DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries: [{"word": "cat", "rank": None}]; None for NaN."""
    records: list[dict[str, Any]]
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return records


def is_on_one_scale(measure: str) -> bool:
    """Returns whether the values of a measure are comparable between masked and causal models."""
    entry = registered(measure)
    return entry is None or not (entry.one_kind or entry.is_pooled)


def _json_figure(figure: Figure | None) -> dict[str, Any]:
    """Value, number of items and interval of a figure; of no figure, None with n = 0."""
    figure = figure or Figure(None, 0)
    return {field: figure[field] for field in ("value", "n", "ci_low", "ci_high")}


def responses_of(source: object, options: TableOptions, response: str) -> TableOptions:
    """Returns the options with which a table of responses is read.

    For example, with `response="answer"` the column "answer" is read as `response`.

    Args:
        source: the table; a folder is refused (`BadInput`).
        options: of the user.
        response: name of the column of responses; "" for the usual ones.
    """
    if isinstance(source, str | Path) and is_folder(user_path(str(source))):
        remedy = "give a table of responses; `lmdiag report RUN` shows finished runs"
        raise BadInput(f"{source} is a folder: {remedy}")
    columns = (*options.columns, f"response={response}") if response else options.columns
    return replace(options, columns=columns)


def _notes_on_missing_values(words: DataFrame, items: DataFrame) -> Iterator[str]:
    """Yields lines about the words without a probability, and the items without a divergence.

    For example, "gpt2: 2 unscorable words, never counted as 0: cats (item 3), dogs (item 5)".

    Args:
        words: a row per model, item and word, with its `state`: "scored", or why it is not.
        items: a row per model and item, with its `divergence`.
    """
    not_scored = words[words["state"] != "scored"]
    for (model, state), rows in not_scored.groupby(["model", "state"]):
        names = [f"{word.word} (item {word.item})" for word in rows.itertuples()]
        yield f"{model}: {len(rows)} {state} words, never counted as 0: {first_few(names, 5)}"
    for model, rows in items.groupby("model", sort=False):
        undefined_items = rows["item"][rows["divergence"].isna()].tolist()
        if undefined_items:
            why = "the shares do not add up to 1, or a word has no probability"
            without = "no probability of human responses and no KL divergence"
            what = f"{len(undefined_items)} of {len(rows)} items have {without}"
            yield f"{model}: {what}, since {why}: {first_few(undefined_items, 5)}"
