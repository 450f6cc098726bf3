"""`lmdiag compare`: runs on the same rows, measure by measure, with paired statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Count, Names, Seed
from lmdiag.protocol import KNOBS
from lmdiag.types import BadInput, ModelInfo

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
    data: str | None = None
    """data set of the runs, if it has been moved since, or its id on the Hub (default: the one they
    were made on)"""
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
    json: bool = False
    """print one JSON document, nothing else"""


def main(options: Options) -> int:
    """Compares and prints."""
    from lmdiag.comparison import compare_runs
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
        _print_tables(runs, comparisons, options)
    return 0


def _not_compared(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a line for what cannot be compared, and why."""
    from lmdiag import diagnostics
    from lmdiag.comparison import CONTEXTUAL, PER_WORD, sides_differ

    kinds = [run.results.model.kind for run in runs]
    unlike = [run for run, kind in zip(runs, kinds, strict=True) if sides_differ(kinds[0], kind)]
    if not unlike:
        return
    pair = f"{runs[0].path} and {', '.join(str(run.path) for run in unlike)}"
    first = runs[0].results
    if any(diagnostics.get(task).has_verbs for task in first.tasks):
        yield (
            f"{' and '.join(CONTEXTUAL)} of {pair}: only one of the models sees what is right of "
            "the blank"
        )
    if any(first.measure(task, "none", PER_WORD) for task in first.tasks):
        yield (
            f"{PER_WORD} of {pair}: the pseudo-log-likelihood of a masked model is not the "
            "probability of a sentence"
        )


def _document(
    runs: Sequence[Run], comparisons: Sequence[Comparison], options: Options
) -> dict[str, Any]:
    """Returns what `--json` prints; undefined is null.

    The runs are named a, b, c and so on, and each difference is the first minus the second. If
    there are more than two runs, `pair` names the two of a comparison.
    """
    from lmdiag.report.labels import run_letter

    models = {run_letter(i).lower(): run.results.model for i, run in enumerate(runs)}
    signatures = [run.results.signature for run in runs]
    records = []
    for one in comparisons:
        values = asdict(one)
        second = [*models][values.pop("second")]
        pair = {"pair": ["a", second]} if len(runs) > 2 else {}
        records.append({key: _or_none(value) for key, value in values.items()} | pair)
    return {
        "signature": runs[0].results.signature,
        **{name: _identified(model) for name, model in models.items()},
        **({"across": [*options.across], "signatures": signatures} if options.across else {}),
        "seed": options.seed,
        "resamples": options.resamples,
        "direction": "first minus second",
        "comparisons": records,
    }


def _identified(model: ModelInfo) -> dict[str, str]:
    """Returns which model it was, as far as that is known."""
    served = {} if model.server is None else {"server": model.server}
    named = {} if model.name is None else {"name": model.name}
    return {"model": model.id, **named, "commit": model.commit, **served}


def _or_none(value: Any) -> Any:
    """Returns None for NaN, anything else unchanged."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _print_tables(runs: Sequence[Run], comparisons: Sequence[Comparison], options: Options) -> None:
    from lmdiag.display import Comparisons
    from lmdiag.report.formats.terminal import output_console
    from lmdiag.report.labels import model_facts, model_label, short_commit

    names = []
    for run in runs:
        model = run.results.model
        facts = f"{f'{model.id}, ' if model.name else ''}commit {short_commit(model.commit)}"
        if model.server is not None:
            facts = ", ".join(model_facts(model)[1:])
        names.append(f"{model_label(run.results)}  {facts}")
    signatures = [run.results.signature for run in runs]
    Comparisons(names, comparisons, signatures, options.resamples).show(output_console())
