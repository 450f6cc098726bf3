"""`lmdiag compare`: runs on the same rows, measure by measure, with paired statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Count, DataOfRuns, Json, Names, Seed
from lmdiag.protocol import KNOBS
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.comparison import Comparison
    from lmdiag.results import Run


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Runs, and how they are compared."""

    runs: tuple[Path, ...] = field(kw_only=False)
    """run directories on the same data, or folders that have them; the first run is compared with
    each of the others"""
    data: DataOfRuns = None
    across: Annotated[
        Names, Parameter(help=f"options in which the runs may differ: {', '.join(KNOBS)}")
    ] = ()
    tasks: tuple[str, ...] = ()
    """tasks to compare; p-values are adjusted over what is compared (default: all)"""
    measures: tuple[str, ...] = ()
    """measures to compare, e.g. accuracy or sensitivity@0.01 (default: all)"""
    resamples: Count = 10_000
    """number of bootstrap resamples"""
    seed: Seed = 0
    """random seed of the bootstrap and of permutations"""
    json: Json = False


def main(options: Options) -> int:
    """Compares and prints."""
    from lmdiag.comparison import compare_runs
    from lmdiag.display import Comparisons
    from lmdiag.report.terminal import output_console
    from lmdiag.results import load_run, run_folders

    paths = run_folders(options.runs)
    if len(paths) < 2:
        raise BadInput("compare takes two or more run directories, or a folder that has them")
    runs = [load_run(path, options.data) for path in paths]
    names = ("seed", "resamples", "across", "tasks", "measures")
    comparisons = compare_runs(*runs, **{name: getattr(options, name) for name in names})
    for line in _not_compared(runs):
        say(f"lmdiag: not compared: {line}")
    if options.json:
        print(json.dumps(_document(runs, comparisons, options), allow_nan=False))
    else:
        signatures = [run.results.signature for run in runs]
        shown = Comparisons([*_names(runs)], comparisons, signatures, options.resamples)
        shown.show(output_console())
    return 0


def _not_compared(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a line for what cannot be compared, and why."""
    from lmdiag import diagnostics
    from lmdiag.comparison import CONTEXTUAL, PER_WORD, sides_differ

    first = runs[0].results
    unlike = [run for run in runs if sides_differ(first.model.kind, run.results.model.kind)]
    if not unlike:
        return
    pair = f"{runs[0].path} and {', '.join(str(run.path) for run in unlike)}"
    if any(diagnostics.get(task).has_verbs for task in first.tasks):
        names = " and ".join(CONTEXTUAL)
        yield f"{names} of {pair}: only one of the models sees what is right of the blank"
    if any(first.measure(task, "none", PER_WORD) for task in first.tasks):
        yield (
            f"{PER_WORD} of {pair}: the pseudo-log-likelihood of a masked model is not the "
            "probability of a sentence"
        )


def _document(runs: Sequence[Run], comparisons: Sequence[Comparison], options: Options) -> Any:
    """Returns what `--json` prints; undefined is null.

    The runs are named a, b, c and so on, and each difference is the first minus the second. If
    there are more than two runs, `pair` names the two of a comparison.
    """
    from pydantic_core import to_jsonable_python

    from lmdiag.report.labels import run_letter

    letters = [run_letter(i).lower() for i in range(len(runs))]
    models = {}
    for letter, run in zip(letters, runs, strict=True):
        facts = {name: getattr(run.results.model, name) for name in ("name", "commit", "server")}
        known = {name: fact for name, fact in facts.items() if fact is not None}
        models[letter] = {"model": run.results.model.id} | known
    records = [asdict(comparison) for comparison in comparisons]
    for record in records:
        second = record.pop("second")
        if len(runs) > 2:
            record["pair"] = ["a", letters[second]]
    signatures = [run.results.signature for run in runs]
    across = {"across": options.across, "signatures": signatures} if options.across else {}
    document = {
        "signature": signatures[0], **models, **across, "seed": options.seed,
        "resamples": options.resamples, "direction": "first minus second", "comparisons": records,
    }  # fmt: skip
    return to_jsonable_python(document, inf_nan_mode="null")


def _names(runs: Sequence[Run]) -> Iterator[str]:
    """Yields the models as tables name them, with what identifies their weights."""
    from lmdiag.report.labels import model_facts, model_label, short_commit

    for model, results in ((run.results.model, run.results) for run in runs):
        facts = f"{f'{model.id}, ' if model.name else ''}commit {short_commit(model.commit)}"
        if model.server is not None:
            facts = ", ".join(model_facts(model)[1:])
        yield f"{model_label(results)}  {facts}"
