"""Chosen items with their top words, as in tables 6, 10, 13 and 15 of Ettinger (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.report.items import BLANK, Choice, TopWord, items
from lmdiag.report.labels import run_labels
from lmdiag.schema import BadInput
from lmdiag.suggestions import suggest

if TYPE_CHECKING:
    from lmdiag.results import Run


class Chosen(NamedTuple):
    """A context of a chosen item.

    Attributes:
        context, right_context: the text around the blank.
        said: each model, by name, with its most probable words.
    """

    context: str
    right_context: str
    said: list[tuple[str, tuple[TopWord, ...]]]

    @property
    def sentence(self) -> str:
        """The context with its blank."""
        return f"{self.context} {BLANK} {self.right_context}".rstrip()


def choose(runs: Sequence[Run], ids: Sequence[str]) -> list[Chosen]:
    """Returns the distinct contexts of chosen items, in the order in which they were named.

    Args:
        runs: runs on the same data.
        ids: of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

    Raises:
        BadInput: no run has an item of that name.
    """
    choices = [_by_id(run) for run in runs]
    known = {name for by_id in choices for name in by_id}
    for name in ids:
        if name not in known:
            paths = " or ".join(str(run.path) for run in runs)
            raise BadInput(
                f"no item {name!r}{suggest(name, known)} in {paths}: its ids are in "
                "predictions.parquet"
            )
    models = run_labels([run.results for run in runs])
    tops: dict[tuple[str, str], dict[str, tuple[TopWord, ...]]] = {}
    for name in ids:
        for model, by_id in zip(models, choices, strict=True):
            for choice in by_id.get(name, ()):
                tops.setdefault(choice.sentence, {})[model] = choice.top
    return [
        Chosen(*sentence, [(model, top.get(model, ())) for model in models])
        for sentence, top in tops.items()
    ]


def _by_id(run: Run) -> dict[str, list[Choice]]:
    """Id of a row or of a contrast -> its rows."""
    choices: dict[str, list[Choice]] = {}
    for item in (item for task in run.stimuli for item in items(run, task)):
        for choice in item.choices:
            for name in dict.fromkeys((item.id, choice.id)):
                choices.setdefault(name, []).append(choice)
    return choices
