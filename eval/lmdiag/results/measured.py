"""The measures of predictions that are in memory, in Python, with the names of a run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.presentable import Presentable
from lmdiag.results.evaluation import evaluate
from lmdiag.results.figures import figures
from lmdiag.results.item_scores import item_scores
from lmdiag.results.model_labels import model_label
from lmdiag.results.results import Figure, results_of_setting
from lmdiag.results.run import Run
from lmdiag.text import suggest
from lmdiag.types import Fold

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.stimuli import Stimuli


class Measures(Presentable, dict[str, Figure]):
    """The measures of a task: name -> `lmdiag.results.Figure`.

    Attributes:
        stimuli, predictions: what was measured.
        protocol: k, threshold, and how the model was asked.
        name: of the model.
        scores: measure -> the values of the single items behind it.
        folds: differences between words that did not count, see `lmdiag.measures.fold_word`.
        signature: makes two of them comparable, see `lmdiag.results.comparable_part`.
        results, run: the measures as the results of a run, and as a run.
        unscorable: rows whose word the tokenizer cannot represent, as id and word.
        not_computed: a line for each measure that cannot be computed, and why.
    """

    def __init__(
        self,
        predictions: Predictions,
        stimuli: Stimuli,
        protocol: Protocol,
        folds: Collection[Fold],
    ) -> None:
        model = predictions.model
        kind = model.kind if model else "masked"
        self.stimuli = stimuli
        self.predictions = predictions
        self.protocol = protocol
        self.folds = folds
        self.name = model_label(model)
        task = stimuli.task
        setting = predictions.perturbation, predictions.run
        self.scores = item_scores(stimuli, predictions, protocol, folds, kind)
        evaluated = evaluate(
            stimuli, [predictions], protocol, folds, kind, scores=[self.scores], model=model
        )
        super().__init__(evaluated.measures)
        self.results = results_of_setting(stimuli, predictions.perturbation, evaluated, model)
        predictions_of_task = {task: {setting: predictions}}
        # a run without a directory, by which the measures are shown as those of a run are
        self.run = Run(Path(), self.results, {task: stimuli}, predictions_of_task)
        self.run.scores[task, *setting] = self.scores  # of these folds, not of the model's
        self.signature = evaluated.signature
        self.unscorable = evaluated.unscorable
        self.not_computed = evaluated.not_computed

    def __missing__(self, name: str) -> Figure:
        """Raises a `KeyError` that suggests a similar measure."""
        raise KeyError(f"no measure {name!r}{suggest(name, self)}")

    def __repr__(self) -> str:
        """Returns one line: the model, the task, the names of the measures, and the signature."""
        names = ", ".join(self)
        return f"<Measures of {self.name} on {self.stimuli.task}: {names}; {self.signature}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        return figures([self.results]).assign(model=self.name)
