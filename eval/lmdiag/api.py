"""The Python API: the commands' own code, for notebooks and programs.

    import lmdiag

    stimuli = lmdiag.load_stimuli("lmdiag", "neg136")
    model = lmdiag.load_model("demo:masked")
    predictions = model.predict(stimuli)
    print(lmdiag.measure(predictions, stimuli))

What `measure` and `compare` return prints as tables, and shows as such in a notebook.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import comparison, perturb, summary
from lmdiag.comparison import RESAMPLES, Comparison
from lmdiag.journal import NoJournal
from lmdiag.processes import Processes
from lmdiag.queries import Setting, collect, spread
from lmdiag.report.progress import Progress
from lmdiag.results import Run, load_run, signature
from lmdiag.schema import AGREEMENT, BadInput, Predictions, Protocol
from lmdiag.scoring import ask
from lmdiag.stimuli import Stimuli, load_verbs
from lmdiag.stimuli import load as load_stimuli
from lmdiag.suggestions import suggest

if TYPE_CHECKING:
    from rich.console import Console

    from lmdiag.measures import Scores
    from lmdiag.models import Model

__all__ = [
    "Comparisons", "LanguageModel", "Measures", "compare", "load_model", "load_stimuli", "measure",
]  # fmt: skip


def load_model(model_id: str, **options: Any) -> LanguageModel:
    """Loads a masked, causal or encoder-decoder model.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: fields of `lmdiag.models.LoadOptions`, e.g. revision, kind, dtype, unit, bos.

    Raises:
        BadInput: it cannot be loaded; the message says why and what to do.
    """
    from lmdiag import models

    return LanguageModel(models.load(model_id, models.LoadOptions(**options)))


class LanguageModel:
    """A model that predicts the words of stimuli.

    Attributes:
        model: the model itself, for questions that are no stimuli.
        info: what a run says about it.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.info = model.info

    def __repr__(self) -> str:
        return f"LanguageModel({self.info.id!r}, kind={self.info.kind!r})"

    def predict(
        self,
        stimuli: Stimuli,
        *,
        perturbation: str = "none",
        run: int = 0,
        seed: int = 0,
        top: int = 5,
        batch_size: int | None = None,
        quiet: bool = True,
    ) -> Predictions:
        """Returns a prediction for each row; rows that share a context ask once.

        Args:
            stimuli: the rows.
            perturbation: "none", or one of `lmdiag.perturb.NAMES`.
            run: number of the shuffle, for the shuffled perturbations.
            seed: of the shuffles.
            top: length of the lists of top words.
            batch_size: contexts in a batch; None for what suits the device.
            quiet: no progress bar.

        Raises:
            BadInput: a context is too long for the model, or its logits are no numbers.
        """
        if perturbation != "none":
            stimuli = perturb.perturb(stimuli, perturbation, run, seed)
        if stimuli.task == AGREEMENT:
            self.model.set_verbs(load_verbs(stimuli.source, revision=stimuli.revision))
        setting = Setting(stimuli, perturbation, run)
        kind, cased = self.info.kind, self.info.cased
        questions = collect([setting], kind=kind, cased=cased)
        found = ask(
            self.model,
            questions,
            top=top,
            batch_size=batch_size,
            journal=NoJournal(),
            processes=Processes(alone=True),
            progress=partial(Progress, label=self.info.id, quiet=quiet),
        )
        answers = {(q.query, q.number): answer for q, answer in zip(questions, found, strict=True)}
        return replace(spread(setting, answers, kind=kind, cased=cased), model=self.info)


class Shown:
    """Prints as a table, and shows as one in a notebook."""

    def show(self, console: Console) -> None:
        """Prints the table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._printed().export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._printed().export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def _printed(self) -> Console:
        from rich.console import Console

        console = Console(file=io.StringIO(), record=True, width=100, highlight=False)
        self.show(console)
        return console


class Measures(Shown, Mapping[str, Any]):
    """The measures of a task: name -> value, n, ci_low, ci_high and `by` (SPEC 8).

    Attributes:
        stimuli, predictions: what was measured.
        protocol: k and threshold.
        cased: whether words were compared exactly, else case-blind.
        signature: makes two of them comparable exactly when equal.
        unscorable: rows whose word the tokenizer cannot spell, as id and word.
    """

    def __init__(
        self, predictions: Predictions, stimuli: Stimuli, protocol: Protocol, cased: bool
    ) -> None:
        self.stimuli, self.predictions = stimuli, predictions
        self.protocol, self.cased = protocol, cased
        self.signature = signature(protocol, stimuli.fingerprint)
        self._kind = predictions.model.kind if predictions.model else "masked"
        found = summary.evaluate(stimuli, [predictions], protocol, cased, self._kind)
        self._measures: dict[str, Any] = found["measures"]
        self.unscorable: list[dict[str, str]] = found["unscorable"]

    def __getitem__(self, name: str) -> Any:
        if name not in self._measures:
            raise KeyError(f"no measure {name!r}{suggest(name, self._measures)}")
        return self._measures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._measures)

    def __len__(self) -> int:
        return len(self._measures)

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """Name -> the values of the single items behind a measure."""
        found = summary.scores(
            self.stimuli, self.predictions, self.protocol, self.cased, self._kind
        )
        return {one.name: one for one in found}

    def show(self, console: Console) -> None:
        """Prints the tables of the task."""
        from lmdiag.report.terminal import print_measures

        print_measures(
            self.stimuli.task,
            self._measures,
            console,
            setting=self.predictions.perturbation,
            signature=self.signature,
            unscorable=self.unscorable,
        )


def measure(
    predictions: Predictions,
    stimuli: Stimuli,
    *,
    k: Sequence[int] = (1, 5),
    threshold: float = 0.01,
    cased: bool | None = None,
) -> Measures:
    """Returns the measures of a task (SPEC 4).

    Args:
        predictions: in the order of the rows.
        stimuli: the rows.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        cased: compare words exactly, else case-blind; None for what fits the model's tokenizer.

    Raises:
        BadInput: the predictions do not belong to the rows.
    """
    if cased is None:
        cased = predictions.model is None or predictions.model.cased
    protocol = Protocol(tasks=(stimuli.task,), k=tuple(sorted(set(k))), threshold=threshold)
    return Measures(predictions, stimuli, protocol, cased)


class Comparisons(Shown, Sequence[Comparison]):
    """Comparisons of two models, one a measure; `a` and `b` name the models."""

    def __init__(self, a: str, b: str, found: Sequence[Comparison]) -> None:
        self.a, self.b = a, b
        self._found = list(found)

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def show(self, console: Console) -> None:
        """Prints a table a task and setting."""
        from lmdiag.report.paired import print_comparisons

        console.print(f"A  {self.a}\nB  {self.b}", markup=False)
        print_comparisons(self._found, console)


def compare(
    a: Measures | Run | str | Path,
    b: Measures | Run | str | Path,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparisons:
    """Compares two models on the same rows, item by item (SPEC 4).

    Args:
        a, b: both what `measure` returned, or both finished runs or their directories.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        BadInput: they were not measured on the same data in the same way.
    """
    if isinstance(a, Measures) and isinstance(b, Measures):
        return _compare_measures(a, b, seed, resamples)
    if isinstance(a, Measures) or isinstance(b, Measures):
        raise BadInput("compare takes two of what `measure` returned, or two runs, not one of each")
    first, second = (run if isinstance(run, Run) else load_run(run) for run in (a, b))
    names = [run.results["model"]["id"] for run in (first, second)]
    found = comparison.compare(first, second, seed=seed, resamples=resamples)
    return Comparisons(names[0], names[1], found)


def _compare_measures(a: Measures, b: Measures, seed: int, resamples: int) -> Comparisons:
    if a.signature != b.signature:
        raise BadInput(
            f"cannot compare {a.signature} with {b.signature}: measure both on the same rows, "
            "with the same k and threshold"
        )
    setting = a.predictions.perturbation
    pairs = [
        (a.stimuli.task, setting, scores, b.scores[name])
        for name, scores in a.scores.items()
        if name in b.scores and comparison.is_compared(name)
    ]
    found = comparison.compare_pairs(pairs, seed=seed, resamples=resamples)
    names = [one.predictions.model.id if one.predictions.model else "?" for one in (a, b)]
    return Comparisons(names[0], names[1], found)
