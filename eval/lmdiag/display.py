"""What `lmdiag.measure` and `lmdiag.compare` return: figures that print as tables."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from rich.console import Console

from lmdiag import evaluation
from lmdiag.analysis.designs import Analysis
from lmdiag.analysis.items import Per, items_of, items_of_predictions
from lmdiag.comparison import Comparison
from lmdiag.multiverse import Multiverse
from lmdiag.protocol import Predictions, Protocol, QueryOptions
from lmdiag.report import terminal
from lmdiag.report.charts.output import notebook
from lmdiag.results import Measure, Run, load_run, of_setting
from lmdiag.results.figures import figures
from lmdiag.results.models import model_label
from lmdiag.results.scores import MeasureScores, item_scores
from lmdiag.text import as_parameters, suggest
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import altair
    from pandas import DataFrame

    from lmdiag.stimuli import Stimuli


P = ParamSpec("P")
T = TypeVar("T")


def in_python(function: Callable[P, T]) -> Callable[P, T]:
    """Has the errors of a function name parameters where those of commands name options."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except BadInput as error:
            error.args = (as_parameters(str(error)),)
            raise

    return call


class Printable:
    """Something with tables: `print` and notebooks show them, `repr` is one line."""

    def show(self, console: Console) -> None:
        """Prints the tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self._recorded().export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._recorded().export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def _recorded(self) -> Console:
        file = io.StringIO()  # in a notebook, rich would also display what is only recorded here
        console = Console(file=file, record=True, width=100, highlight=False, force_jupyter=False)
        self.show(console)
        return console


class Measures(Printable, dict[str, Measure]):
    """The measures of a task: name -> `lmdiag.results.Measure`.

    Attributes:
        stimuli, predictions: what was measured.
        protocol: k, threshold, and how the model was asked.
        name: of the model.
        scores: measure -> the values of the single items behind it.
        cased: whether words were compared exactly, else case-blind.
        signature: makes two of them comparable exactly when equal.
        results: the measures as the results of a run.
        unscorable: rows whose word the tokenizer cannot represent, as id and word.
        not_computed: a line for each measure that cannot be computed, and why.
    """

    def __init__(
        self, predictions: Predictions, stimuli: Stimuli, protocol: Protocol, cased: bool
    ) -> None:
        model = predictions.model
        kind = model.kind if model else "masked"
        self.stimuli = stimuli
        self.predictions = predictions
        self.protocol = protocol
        self.cased = cased
        self.name = model_label(model)
        self.scores = item_scores(stimuli, predictions, protocol, cased, kind)
        known = [self.scores]
        found = evaluation.evaluate(stimuli, [predictions], protocol, cased, kind, known)
        super().__init__(found.measures)
        self.results = of_setting(stimuli, predictions.perturbation, found, model)
        self.signature = found.signature
        self.unscorable = found.unscorable
        self.not_computed = found.not_computed

    def __missing__(self, name: str) -> Measure:
        raise KeyError(f"no measure {name!r}{suggest(name, self)}")

    def __repr__(self) -> str:
        names = ", ".join(self)
        return f"<Measures of {self.name} on {self.stimuli.task}: {names}; {self.signature}>"

    def mean_scores(self, task: str, setting: str) -> MeasureScores:
        """Returns the scores, as `lmdiag.results.Run.mean_scores` does."""
        return self.scores

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
        """Returns the items as a pandas table; see `FinishedRun.items`."""
        return items_of_predictions(self, self.stimuli, per)


class FinishedRun(Run):
    """A finished run, read back, with its items and charts; see `lmdiag.results.Run`."""

    def items(self, per: Per = "row") -> DataFrame:
        """Returns the items as a pandas table; see `lmdiag.analysis.items.items_of`.

        Args:
            per: "row" for a row per row of the data, "region" or "word" for those of sentences.
        """
        return items_of(self, per=per)

    def charts(self) -> dict[str, altair.TopLevelMixin]:
        """Returns the charts of the report as altair charts, by name."""
        from lmdiag.report.html import Report

        return {plot.name: notebook(plot) for plot in Report(self).charts()}


@in_python
def load_finished(path: str | Path, data: str | None = None) -> FinishedRun:
    """Reads a finished run and its data; see `lmdiag.results.load_run`."""
    return cast(FinishedRun, load_run(path, data, record=FinishedRun))


class Analysed(Printable, Analysis):
    """Cell means, effects and mixed models, which print as `lmdiag analyse` prints them."""

    def __repr__(self) -> str:
        conditions = " x ".join(self.conditions)
        return f"<Analysis of {self.response} by {conditions or 'a formula'}>"

    def chart(self) -> altair.TopLevelMixin:
        """Returns the means of the conditions and the items as an altair chart."""
        from lmdiag.report.charts.conditions import condition_plot

        return notebook(condition_plot("conditions", self))

    def show(self, console: Console) -> None:
        """Prints the tables."""
        terminal.print_analysis(self, console)


class Comparisons(Printable, list[Comparison]):
    """Comparisons of a model with others, one a measure and other model.

    Attributes:
        names: of the models; the others are compared with the first one.
        signatures: parallel; see `lmdiag.results.signature`.
        weights: precision and commit of each model, in words.
        protocols: how each was asked.
    """

    def __init__(
        self,
        names: list[str],
        rows: list[Comparison],
        signatures: list[str],
        weights: list[str],
        protocols: Sequence[QueryOptions],
    ) -> None:
        super().__init__(rows)
        self.names = names
        self.signatures = signatures
        self.weights = weights
        self.protocols = protocols

    def __repr__(self) -> str:
        first, *others = self.names
        return f"<{len(self)} comparisons of {first} with {', '.join(others)}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per comparison; `model_a`, `model_b` name the models.

        Undefined is NaN; the other columns are the fields of `lmdiag.comparison.Comparison`.
        """
        from pandas import DataFrame

        frame = DataFrame(
            {"model_a": self.names[0], "model_b": self.names[row.second]} | asdict(row)
            for row in self
        )
        return frame.drop(columns="second", errors="ignore")

    def show(self, console: Console) -> None:
        """Prints one table per pair of models, task and setting."""
        terminal.print_comparisons(self, self.headings, self.signatures, self.protocols, console)

    @property
    def headings(self) -> list[str]:
        """The names of the models with precision and commit."""
        pairs = zip(self.names, self.weights, strict=True)
        return [f"{name}  {weights}".rstrip() for name, weights in pairs]


@dataclass(frozen=True, repr=False)
class LoadedMultiverse(Printable, Multiverse):
    """The figures of models in every protocol, read back; `path` is their directory."""

    path: Path = Path()

    def __repr__(self) -> str:
        models = ", ".join(self.models)
        return f"<Multiverse of {models}: {len(self.members)} protocols; {self.path}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per headline figure and protocol.

        `model`, a column per knob, `run` (its directory), the parts of the figure's address, and
        value, n, ci_low, ci_high, chance and statistic; proportions are in [0, 1].
        """
        from pandas import DataFrame

        columns = ("value", "n", "ci_low", "ci_high", "chance", "statistic")
        return DataFrame(
            {"model": model, **self.members[number].choices}
            | {"run": str(self.path / self.members[number].path), **figure.key._asdict()}
            | {name: getattr(known, name) for name in columns}
            for figure in self.figures
            for model in self.models
            for number, known in self.curve(figure, model)
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the content of `multiverse.json`."""
        return Multiverse(self.members, self.forms, self.figures).to_json()

    def charts(self) -> dict[str, altair.TopLevelMixin]:
        """Returns the specification curves of the page as altair charts, by name."""
        from lmdiag.report.multiverse import multiverse_plots

        return {plot.name: notebook(plot) for _, plot in multiverse_plots(self)}

    def show(self, console: Console) -> None:
        """Prints the tables of `lmdiag multiverse`."""
        terminal.print_multiverse(self, console)


@in_python
def load_multiverse(path: str | Path) -> LoadedMultiverse:
    """Reads what `lmdiag multiverse` wrote.

    Args:
        path: the directory with `multiverse.json`, its `--output`.

    Raises:
        BadInput: there is none, or it is damaged.
    """
    return LoadedMultiverse(**vars(Multiverse.read(Path(path))), path=Path(path))
