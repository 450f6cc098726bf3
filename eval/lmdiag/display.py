"""What `lmdiag.measure` and `lmdiag.compare` return: figures that print as tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag import evaluation
from lmdiag.analysis.items import Per, items_of_predictions
from lmdiag.comparison import Comparison
from lmdiag.printable import Printable
from lmdiag.protocol import Predictions, Protocol
from lmdiag.report import terminal
from lmdiag.report.charts.output import notebook
from lmdiag.results import Figure, Results, Run, of_setting
from lmdiag.results.figures import figures
from lmdiag.results.models import model_label, model_labels, weights_text
from lmdiag.results.scores import item_scores
from lmdiag.text import suggest
from lmdiag.types import Fold

if TYPE_CHECKING:
    import altair
    from pandas import DataFrame
    from rich.console import Console

    from lmdiag.stimuli import Stimuli


class Measures(Printable, dict[str, Figure]):
    """The measures of a task: name -> `lmdiag.results.Figure`.

    Attributes:
        stimuli, predictions: what was measured.
        protocol: k, threshold, and how the model was asked.
        name: of the model.
        scores: measure -> the values of the single items behind it.
        folds: differences between words that did not count, see `lmdiag.measures.fold_word`.
        signature: makes two of them comparable exactly when equal.
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
        self.scores = item_scores(stimuli, predictions, protocol, folds, kind)
        scores = [self.scores]
        found = evaluation.evaluate(stimuli, [predictions], protocol, folds, kind, scores)
        super().__init__(found.measures)
        self.results = of_setting(stimuli, predictions.perturbation, found, model)
        computed = {stimuli.task: {(predictions.perturbation, predictions.run): self.scores}}
        self.run = Run(Path(), self.results, {stimuli.task: stimuli}, computed=computed)
        self.signature = found.signature
        self.unscorable = found.unscorable
        self.not_computed = found.not_computed

    def __missing__(self, name: str) -> Figure:
        raise KeyError(f"no measure {name!r}{suggest(name, self)}")

    def __repr__(self) -> str:
        names = ", ".join(self)
        return f"<Measures of {self.name} on {self.stimuli.task}: {names}; {self.signature}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        return figures([self.results]).assign(model=self.name)

    def show(self, console: Console) -> None:
        """Prints the tables of the task."""
        terminal.print_results(self.results, console)

    def chart(self) -> altair.TopLevelMixin:
        """Returns accuracy and sensitivity with their intervals as an altair chart."""
        from lmdiag.report.charts.kinds import measures_plot

        return notebook(measures_plot(self.name, self.results))


@dataclass(frozen=True, repr=False, kw_only=True)
class TaskPredictions(Predictions):
    """Predictions with the rows that they are of.

    Attributes:
        stimuli: the rows, perturbed where the predictions are.
    """

    stimuli: Stimuli

    def items(self, per: Per = "row") -> DataFrame:
        """Returns the items as a pandas table; see `lmdiag.results.Run.items`."""
        return items_of_predictions(self, self.stimuli, per)


class Comparisons(Printable, list[Comparison]):
    """Comparisons of a model with others, one a measure and other model.

    Attributes:
        results: of the models; the others are compared with the first one.
        names: of the models.
        signatures: parallel; see `lmdiag.results.signature`.
    """

    def __init__(self, rows: Sequence[Comparison], results: Sequence[Results]) -> None:
        super().__init__(rows)
        self.results = results
        self.names = model_labels([run.model for run in results], [run.protocol for run in results])
        self.signatures = [run.signature for run in results]

    def __repr__(self) -> str:
        reference, *others = self.names
        return f"<{len(self)} comparisons of {reference} with {', '.join(others)}>"

    @property
    def headings(self) -> list[str]:
        """The names of the models with precision and commit."""
        pairs = zip(self.names, self.results, strict=True)
        return [f"{name}  {weights_text(of.model)}".rstrip() for name, of in pairs]

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per comparison.

        `base_model` and `new_model` name the models, `base` and `new` are their figures.

        Undefined is NaN; the other columns are the fields of `lmdiag.comparison.Comparison`.
        """
        from pandas import DataFrame

        frame = DataFrame(
            {"base_model": self.names[0], "new_model": self.names[row.number]} | asdict(row)
            for row in self
        )
        return frame.drop(columns="number", errors="ignore")

    def show(self, console: Console) -> None:
        """Prints one table per pair of models, task and setting."""
        protocols = [of.protocol for of in self.results]
        weights = [weights_text(of.model) for of in self.results]
        terminal.print_comparisons(self, self.names, weights, self.signatures, protocols, console)
