"""Names of measures, models and commits as readers see them; checkpoints of one model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from lmdiag import diagnostics
from lmdiag.comparison import Comparison, differing
from lmdiag.protocol import KNOBS, Protocol, ScoringOptions, bos_remark
from lmdiag.report import numbers
from lmdiag.results import Results
from lmdiag.text import visible
from lmdiag.training_steps import trained_model
from lmdiag.types import ModelInfo

_SPELLED = {
    "surprisal": "mean surprisal, bits",
    "surprisal_per_word": "mean surprisal per word, bits",
    "rank": "median rank",
    "spearman": "Spearman, log p and cloze",
    "pearson": "Pearson, log p and cloze",
    "ew": "EW",
    "mw": "MW",
    "tse": "TSE",
    "sensitivity_mean": "sensitivity, mean per token",
    "suite_accuracy": "suite accuracy",
    "prediction_accuracy": "prediction accuracy",
    "position_bias": "position bias",
    "labels_mass": "mass on labels",
}
"""Measures with another spelling; all others go by their name in the results."""


def measure_label(measure: str) -> str:
    """Returns the name of a measure as readers see it.

    >>> measure_label("accuracy@5"), measure_label("sensitivity@0.01"), measure_label("mw@top=0.1")
    ('accuracy@5', 'sensitivity@0.01', 'MW, top 0.1')
    """
    name, _, cutoff = measure.partition("@")
    if "=" in cutoff:
        return f"{_SPELLED.get(name, name)}, {cutoff.replace('=', ' ')}"
    return _SPELLED.get(measure, measure)


# ---- models --------------------------------------------------------------------------------------


def short_commit(commit: str) -> str:
    """Returns the beginning of a commit, or of the checksum of a local folder."""
    return commit.removeprefix("sha256:")[:12]


def model_facts(model: ModelInfo) -> list[str]:
    """Returns what a model is, in a few words each.

    Of a model behind a server only the server's name for it is known.
    """
    if model.server is not None:
        return [model.kind, f"asked through {model.server}", "commit and precision not known"]
    size, commit = f"{numbers.count(model.n_parameters)} parameters", short_commit(model.commit)
    facts = (model.kind, size, model.dtype, model.quantization, f"commit {commit}")
    return [fact for fact in facts if fact]


def model_label(results: Results) -> str:
    """Returns the name of a model (`--name`, else its id), with the revision if one was given."""
    model = results.model
    revision = f"@{model.revision}" if model.revision else ""
    return visible(f"{model.name or model.id}{revision}")


def asked(results: Results) -> str:
    """Returns what the models of a run are asked: `contexts` or `sentences`."""
    asks = {results.diagnostic(task).asks for task in results.tasks}
    return "sentences" if asks == {"sentence"} else "contexts"


def framing_facts(protocol: Protocol) -> list[tuple[str, str]]:
    """Returns what the contexts of a run were put into and how they were changed: name and text.

    >>> framing_facts(Protocol(prompt="Complete: {context}", final_period="never"))
    [('prompt', 'Complete: {context}'), ('final period', 'never')]
    """
    facts = {"instruction": protocol.instruction}
    for option, knob in KNOBS.items():
        if knob.is_changed(protocol) and knob.name not in vars(ScoringOptions()):
            name = f"{knob.template} template" if knob.has_template(protocol) else option
            facts[name.replace("-", " ")] = getattr(protocol, knob.name).replace("\n", "⏎")
    return [(name, visible(text)) for name, text in facts.items() if text]


def remark_on_bos(results: Results) -> str:
    """Returns what `bos_remark` says of a run."""
    asks = "sentence" if asked(results) == "sentences" else "word"
    return visible(bos_remark(results.protocol, results.model, asks))


# ---- several runs --------------------------------------------------------------------------------


def run_letter(number: int) -> str:
    """Returns the name of a run in tables of comparisons: A to Z, then AA, AB and so on.

    >>> [run_letter(number) for number in (0, 1, 25, 26, 27)]
    ['A', 'B', 'Z', 'AA', 'AB']
    """
    first, last = divmod(number, 26)
    return (run_letter(first - 1) if first else "") + chr(ord("A") + last)


def asked_differently(signatures: Sequence[str]) -> list[str]:
    """Returns a line for each run that was asked otherwise than the first one.

    >>> asked_differently(["unit:token", "unit:word|bos:never"])
    ['A and B were asked differently: unit (token and word); bos (auto and never)']
    """
    missing = {knob.key: knob.default or "none" for knob in KNOBS.values()}
    parts = [differing(signatures[0], signature, missing) for signature in signatures]
    return [
        f"A and {run_letter(number)} were asked differently: {'; '.join(different.values())}"
        for number, different in enumerate(parts)
        if different
    ]


def are_checkpoints(runs: Sequence[Results]) -> bool:
    """Returns whether the runs are several training steps of one model."""
    steps = {run.model.training_step for run in runs} - {None}
    models = {trained_model(run.model.id, run.model.revision) for run in runs}
    return len(runs) > 1 and len(steps) == len(runs) and len(models) == 1


def training_order(runs: Sequence[Results]) -> list[int]:
    """Returns the positions of checkpoints in the order of training; of other runs, as given."""
    ordered = are_checkpoints(runs)
    return sorted(range(len(runs)), key=lambda i: ordered and (runs[i].model.training_step or 0))


def run_labels(runs: Sequence[Results]) -> list[str]:
    """Returns names that tell runs apart: steps, models, and dtypes or commits where needed."""
    if are_checkpoints(runs):
        return [f"step {run.model.training_step}" for run in runs]
    labels = [model_label(run) for run in runs]
    for key in ("dtype", "quantization", "commit"):
        details = [short_commit(visible(getattr(run.model, key) or "")) for run in runs]
        names = Counter(label for label, _ in {*zip(labels, details, strict=True)})
        labels = [
            f"{label} ({detail})" if names[label] > 1 and detail else label
            for label, detail in zip(labels, details, strict=True)
        ]
    numbered = enumerate(labels, start=1)
    return [f"{label} #{i}" if labels.count(label) > 1 else label for i, label in numbered]


# ---- comparisons ---------------------------------------------------------------------------------


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Returns how the columns of a table of comparisons were computed, and on what."""
    few = "; none for fewer than 8 items" if any(c.n < 8 for c in comparisons) else ""
    n_tests = max((c.n_tests for c in comparisons), default=0)
    tests = {
        "mcnemar": "McNemar's score test where each item is right or wrong (m)",
        "sign-flip": "sign-flip test of a mean over items (s)",
        "permutation": "permutation test of a median or a correlation (p), without an interval",
    }  # the first letter stands beside p
    made = {c.test for c in comparisons}
    present = "; ".join(text for name, text in tests.items() if name in made)
    lines = {
        f"95% intervals have the differences that the test of p does not reject at 5%{few}":
            any(not math.isnan(c.ci_low) for c in comparisons),
        f"p: {present}": present,
        f"{numbers.UNDEFINED}: the two do not differ in any item, so there is nothing to test":
            "none" in made,
        f"p adj.: by Holm's method over the {n_tests} distinct tests": n_tests > 1,
    }  # fmt: skip
    same = dict.fromkeys((c.measure, c.same_as) for c in comparisons if c.same_as)
    return [line for line, is_needed in lines.items() if is_needed] + [
        f"{measure_label(measure)} has the same numbers as {measure_label(other)} by construction: "
        "one test"
        for measure, other in same
    ]


def p_text(comparison: Comparison) -> str:
    """Returns the p-value of a comparison with the letter of its test, e.g. `.043 m`."""
    p = numbers.p_value(comparison.p)
    return p if p == numbers.UNDEFINED else f"{p} {comparison.test[0]}"


def comparison_label(comparison: Comparison) -> str:
    """Returns what was compared: the measure, and the level of a break-down."""
    by, level = comparison.by, comparison.level
    words = diagnostics.get(comparison.task).level_label(by, level) if by else ""
    return ", ".join(filter(None, (measure_label(comparison.measure), words)))
