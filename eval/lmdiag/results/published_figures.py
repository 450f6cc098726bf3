"""Published figures, kept as data, to compare with the figures of a run.

`published.json` holds tables of Ettinger (2020) for BERT base and large (uncased) and of Shivagunde
et al. (2023) for the models that are on the Hub; figures of the original code on three models, and
of Çelik on 48, from the files of two repositories; and averages of human studies. What is left out
and why: docs/diagnostics/known.md and extended-sets.md. What table 2 of Shivagunde et al. calls
sensitivity, how often "not" changes the most probable word, is not the measure `sensitivity`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lmdiag import diagnostics
from lmdiag.results.results import FigureKey, Results

_ORGANISATIONS = frozenset(
    {"google-bert", "FacebookAI", "distilbert", "albert", "google-t5", "openai-community"}
)
"""Organisations on the Hub with models whose ids had none before."""


@dataclass(frozen=True)
class PublishedFigure:
    """A number in a table of a paper, or in a published file.

    Attributes:
        source: key of the paper or repository in `published.json`.
        table: number of the table, of the section for figures of the text, or name of the files.
        model: Hub id.
        key: address of the same figure in the results of a run.
        value, sd: percent, and percentage points over runs where the paper gives them.
        n: number of items that the figure is a share of.
        others: figures of further sources that differ from it.
    """

    source: str
    table: str
    model: str
    key: FigureKey
    value: float
    sd: float | None
    n: int
    others: tuple[PublishedFigure, ...] = ()


@cache
def document() -> Mapping[str, Any]:
    """Returns the content of `published.json`."""
    content: dict[str, Any] = json.loads(Path(__file__).with_name("published.json").read_bytes())
    return content


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """Returns all published figures, in the order of the tables.

    A column of a table in `published.json` is a list: the parts of `FigureKey` but the task, then
    n. An entry is a value in percent, or value and standard deviation.
    """
    figures = []
    for table in document()["tables"]:
        source, number = table["source"], table["table"]
        for model, entries in table["models"].items():  # the rows of the table
            # a column is [setting, measure, by, level, n], with by and level "" for all items
            for (*address, n), entry in zip(table["columns"], entries, strict=True):
                if entry is None:  # the source lacks it
                    continue
                value, sd = entry if isinstance(entry, list) else (entry, None)
                key = FigureKey(table["task"], *address)
                figures.append(PublishedFigure(source, number, model, key, value, sd, n))
    return tuple(figures)


def published_figures_of(results: Results) -> dict[FigureKey, PublishedFigure]:
    """Returns the published figures that a run can be compared with, by their addresses.

    These are figures of the same model on the rows that the source reports on. A model may be named
    by its id of today, "google-bert/bert-base-uncased", or by that of the papers,
    "bert-base-uncased". If several sources have a figure, that of the first source is returned; its
    `others` has the figures of the further sources that differ from it.
    """
    organisation, _, name = results.model.id.partition("/")
    model = name if organisation in _ORGANISATIONS else results.model.id
    figure_of_key: dict[FigureKey, PublishedFigure] = {}
    for published in published_figures():
        key = published.key
        if published.model != model or not has_published_rows(results, key.task):
            continue
        figure = results.figure(key)
        if figure is None or figure.value is None:
            continue
        earlier = figure_of_key.setdefault(key, published)
        if published.value != earlier.value:
            figure_of_key[key] = replace(earlier, others=(*earlier.others, published))
    return figure_of_key


REFERENCES = {"bert-base-uncased": "BERT base", "bert-large-uncased": "BERT large"}
"""The models of Ettinger (2020), whose figures stand beside those of any model."""


def reference_figures(results: Results, task: str) -> dict[tuple[str, FigureKey], PublishedFigure]:
    """Returns (model, address) -> the figures of Ettinger (2020) on a task.

    {} for a run on other rows than those of the paper.
    """
    if not has_published_rows(results, task):
        return {}
    return {
        (figure.model, figure.key): figure
        for figure in published_figures()
        if figure.source == "ettinger-2020" and figure.key.task == task
    }


def has_published_rows(results: Results, task: str) -> bool:
    """Returns whether a run is on the rows that the paper reports on, judged by their number."""
    n_published = diagnostics.get(task).published_rows
    if n_published is None or task not in results.data.tasks:
        return False
    return results.data.tasks[task].n == n_published


def citation(source: str) -> str:
    """Returns author and year of a source, a key of `sources` in `published.json`."""
    return str(document()["sources"][source]["short"])


def human_facts(task: str) -> Iterator[Mapping[str, Any]]:
    """Yields the averages of human studies on a task, as `human` in `published.json` has them.

    The papers give them, and the data do not contain them.
    """
    return (fact for fact in document()["human"] if fact["task"] == task)
