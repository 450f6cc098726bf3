"""The Python API: the commands' own code, for notebooks and programs.

    import lmdiag

    stimuli = lmdiag.load_stimuli("lmdiag", "neg136")
    model = lmdiag.load_model("demo:masked")
    predictions = model.predict(stimuli)
    print(lmdiag.measure(predictions, stimuli))

What `measure` and `compare` return prints as tables, shows as such in a notebook, and has a method
`to_frame` that gives a pandas table, as predictions and finished runs (`load_run`) do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag import comparison, perturb
from lmdiag.comparison import RESAMPLES
from lmdiag.controls import control_warning
from lmdiag.journal import NoJournal
from lmdiag.measured import Comparisons, Measures
from lmdiag.processes import Processes
from lmdiag.queries import Setting, collect, spread
from lmdiag.report.progress import Progress
from lmdiag.results import Run, load_run
from lmdiag.schema import (
    AGREEMENT,
    BadInput,
    Predictions,
    Protocol,
    checked_ranks,
    checked_threshold,
)
from lmdiag.scoring import ask
from lmdiag.stimuli import Stimuli, load_verbs
from lmdiag.stimuli import load as load_stimuli

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model

__all__ = [
    "Comparisons", "LanguageModel", "Measures", "compare", "load_model", "load_run", "load_stimuli",
    "measure",
]  # fmt: skip


def load_model(model_id: str, **options: Any) -> LanguageModel:
    """Loads a masked, causal or encoder-decoder model.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`.
        options: fields of `lmdiag.models.LoadOptions`, e.g. revision, kind, dtype, unit, bos.

    Raises:
        BadInput: it cannot be loaded, or an option is not allowed; the message says why and what to
            do.
    """
    from lmdiag import models

    asked = models.LoadOptions.from_keywords(options)
    return LanguageModel(models.load(model_id, asked), asked)


class LanguageModel:
    """A model that predicts the words of stimuli.

    Attributes:
        model: the model itself, for questions that are no stimuli.
        info: what a run says about it.
        options: how it was loaded; its `unit` and `bos` travel with the predictions.
    """

    def __init__(self, model: Model, options: LoadOptions) -> None:
        self.model = model
        self.info = model.info
        self.options = options

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
            perturbation: "none", or one of `lmdiag.perturb.names()`.
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
        verbs = self._set_verbs(stimuli) if stimuli.task == AGREEMENT else None
        setting = Setting(stimuli, perturbation, run)
        if line := control_warning(self.model, [setting]):
            warnings.warn(line, stacklevel=2)
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
        return replace(
            spread(setting, answers, kind=kind, cased=cased),
            model=self.info,
            unit=self.options.unit,
            bos=self.options.bos,
            seed=seed,
            verbs=verbs,
        )

    def _set_verbs(self, stimuli: Stimuli) -> int:
        """Has the model say EW and MW over the verbs of the data; returns how many there are."""
        pairs = load_verbs(stimuli.source, revision=stimuli.revision)
        self.model.set_verbs(pairs)
        return len(pairs)


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
        stimuli: the rows, unperturbed.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        cased: compare words exactly, else case-blind; None for what fits the model's tokenizer.

    Raises:
        BadInput: the predictions do not belong to the rows, k is not a list of integers from 1 up,
            or the threshold is not a number from 0 up to below 1.
    """
    if cased is None:
        cased = predictions.model is None or predictions.model.cased
    protocol = Protocol(
        tasks=(stimuli.task,),
        k=checked_ranks(k),
        threshold=checked_threshold(threshold),
        **_asked(predictions, stimuli.task),
    )
    return Measures(predictions, stimuli, protocol, cased)


def _asked(predictions: Predictions, task: str) -> dict[str, Any]:
    """How predictions were asked for, as the fields of a protocol; a single shuffle is one run."""
    perturbation = predictions.perturbation
    asked: dict[str, Any] = {"shuffles": 1} if perturb.is_shuffled(task, perturbation) else {}
    asked |= {name: getattr(predictions, name) for name in ("unit", "bos", "seed", "verbs")}
    return asked | {"perturb": () if perturbation == perturb.NONE else (perturbation,)}


Comparable = Measures | Run | str | Path


def compare(
    first: Comparable, *others: Comparable, seed: int = 0, resamples: int = RESAMPLES
) -> Comparisons:
    """Compares the first model with each of the others on the same rows, item by item (SPEC 4).

    Args:
        first, others: all what `measure` returned, or all finished runs or their directories.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        BadInput: fewer than two are given, or they were not measured on the same data in the same
            way; the differing parts of their signatures are named.
    """
    given = (first, *others)
    if len(given) < 2:
        raise BadInput("compare takes two or more of what `measure` returned, or runs; give others")
    measured = [one for one in given if isinstance(one, Measures)]
    if len(measured) == len(given):
        return _compare_measures(measured, seed, resamples)
    if measured:
        raise BadInput("compare takes what `measure` returned, or runs, not some of each")
    runs = [one if isinstance(one, Run) else load_run(one) for one in given]  # type: ignore[arg-type]
    found = comparison.compare(*runs, seed=seed, resamples=resamples)
    return Comparisons([run.results["model"]["id"] for run in runs], found)


def _compare_measures(given: Sequence[Measures], seed: int, resamples: int) -> Comparisons:
    first, *others = given
    for i, other in enumerate(others, start=1):
        if different := comparison.differing(first.signature, other.signature):
            raise BadInput(
                f"the first ({first.name}) and number {i + 1} ({other.name}) cannot be compared: "
                f"their signatures differ in {different}; measure both on the same rows, asked and "
                "scored in the same way"
            )
    pairs = [
        pair
        for i, other in enumerate(others, start=1)
        for pair in comparison.paired_scores(
            first.stimuli.task,
            first.predictions.perturbation,
            first.scores,
            other.scores,
            unlike=comparison.sides_differ(first.kind, other.kind),
            second=i,
        )
    ]
    found = comparison.compare_pairs(pairs, seed=seed, resamples=resamples)
    return Comparisons([one.name for one in given], found)
