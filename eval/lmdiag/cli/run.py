"""`lmdiag run`, and `accelerate launch eval/run.py`: ask models and score their answers."""

from __future__ import annotations

import argparse
import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.cli.wanted import Wanted, wanted_models
from lmdiag.collector import uncollected
from lmdiag.models.loading.options import CHOICES
from lmdiag.schema import DIAGNOSTICS, BadInput, Protocol

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions
    from lmdiag.processes import Processes
    from lmdiag.running import Material

PERTURBATIONS = ("shuf", "trunc", "shuf_trunc", "obj", "sub", "both")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    asked = parser.add_argument_group("models and data")
    asked.add_argument(
        "--model", nargs="+", required=True, metavar="M",
        help="one or several models: Hub ids, local folders, demo:masked, demo:causal",
    )  # fmt: skip
    asked.add_argument(
        "--revision", nargs="+", metavar="R", help="branches, tags or commits of each model"
    )
    asked.add_argument(
        "--name", nargs="+", metavar="NAME",
        help="name of each model in folders and tables (default: its id or folder)",
    )  # fmt: skip
    asked.add_argument(
        "--data",
        default="lmdiag",
        help="data set: a built directory, a Hub id, a file of your own rows, or demo (default: "
        "the directory lmdiag, or the published items, which are built on first use)",
    )
    asked.add_argument(
        "--data-revision", metavar="R", help="branch, tag or commit of the Hub data set"
    )
    asked.add_argument(
        "--tasks",
        nargs="+",
        metavar="T",
        help="configs of the data set to run (default: the three diagnostics)",
    )
    asked.add_argument(
        "--perturb", nargs="+", default=["none"], metavar="P",
        choices=("none", "all", *PERTURBATIONS),
        help=f"none, all, or any of {', '.join(PERTURBATIONS)} (default: none)",
    )  # fmt: skip
    asked.add_argument(
        "--shuffles",
        type=positive,
        default=100,
        metavar="N",
        help="number of shuffles of shuf and shuf_trunc (default: %(default)s)",
    )
    asked.add_argument(
        "--seed",
        type=int,
        default=0,
        help="random seed of the shuffles and of the sample (default: %(default)s)",
    )
    asked.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="a sample of N rows of each task, even over its break-downs",
    )
    asked.add_argument(
        "--verbs",
        metavar="FILE",
        help="csv file of singular,plural verb forms for EW and MW (default: the data set's)",
    )

    scored = parser.add_argument_group("scoring")
    scored.add_argument(
        "--unit",
        choices=CHOICES["unit"],
        default="token",
        help="unit of the top-k list and of probabilities (default: %(default)s)",
    )
    scored.add_argument(
        "--k", type=positive, nargs="+", default=[1, 5], help="ranks k of accuracy@k (default: 1 5)"
    )
    scored.add_argument(
        "--threshold",
        type=probability,
        default=0.01,
        metavar="P",
        help="probability difference P of sensitivity@P (default: %(default)s)",
    )
    scored.add_argument(
        "--bos",
        choices=CHOICES["bos"],
        default="auto",
        help="whether a causal model's context starts with the beginning-of-sequence token "
        "(default: auto, as the tokenizer does)",
    )

    loaded = parser.add_argument_group("loading the model")
    loaded.add_argument(
        "--kind",
        choices=CHOICES["kind"],
        default="auto",
        help="kind of model (default: auto, from its configuration)",
    )
    loaded.add_argument(
        "--dtype",
        choices=CHOICES["dtype"],
        default="auto",
        help="data type of the weights (default: auto; float32 on CPUs)",
    )
    loaded.add_argument(
        "--device-map", metavar="auto", help="spread a large model over all devices"
    )
    loaded.add_argument(
        "--tp", action="store_true", help="split each layer over the processes (tensor parallelism)"
    )
    loaded.add_argument(
        "--quantization",
        choices=CHOICES["quantization"],
        help="quantize the weights with bitsandbytes",
    )
    loaded.add_argument(
        "--attn-implementation",
        metavar="A",
        help="attention implementation, e.g. sdpa, eager, flash_attention_2",
    )
    loaded.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="allow code from the model's repository to run",
    )
    loaded.add_argument(
        "--allow-pickle",
        action="store_true",
        help="allow weights in other formats than safetensors",
    )

    run = parser.add_argument_group("running")
    run.add_argument(
        "--batch-size",
        type=auto_or_positive,
        default=None,
        metavar="auto|N",
        help="contexts per batch (default: auto)",
    )
    run.add_argument(
        "--output",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="directory for results (default: %(default)s)",
    )
    run.add_argument(
        "--overwrite",
        action="store_true",
        help="discard an earlier run of the same model and protocol",
    )
    run.add_argument("--quiet", action="store_true", help="do not show progress")
    run.add_argument(
        "--json",
        action="store_true",
        help="print the results as one JSON document instead of tables",
    )


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def probability(text: str) -> float:
    """A number from 0 up to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, not {text!r}")
    return value


def auto_or_positive(text: str) -> int | None:
    """`auto`, or a whole number from 1."""
    return None if text == "auto" else positive(text)


def main(args: argparse.Namespace) -> int:
    """Runs every model at every revision; one that fails does not stop the rest."""
    wanted = wanted_models(args)
    with uncollected():
        warm_up = threading.Thread(target=_import_models, daemon=True)
        warm_up.start()  # the slow imports run while the data are read; bad data end the run before
        material, processes = _prepare(args, warm_up)
        gc.freeze()  # what was imported stays, see `running`
    failures: list[tuple[str, BadInput]] = []
    documents = []
    with processes.ended_with_others():
        for each in wanted:
            try:
                documents.append(_run_one(args, each, material, processes))
            except BadInput as error:
                at = "" if each.revision is None else f" at {each.revision}"
                failures.append((f"{each.model}{at}", error))
        if processes.first and args.json and documents:
            _print_json(documents)
        processes.close()
    return _conclude(failures, len(wanted), processes)


def _prepare(args: argparse.Namespace, warm_up: threading.Thread) -> tuple[Material, Processes]:
    """Loads the data, and joins the other processes; with several, they share errors in the data.

    A single process reports errors in the data at once, before the slow imports end.
    """
    from lmdiag.processes import Processes, announced

    if announced() == 1:
        material = _material(args)
        warm_up.join()
        return material, Processes(together=args.tp)
    warm_up.join()
    processes = Processes(together=args.tp)
    try:
        with processes.shared_errors():
            material = _material(args)
    except BadInput:
        processes.close()
        raise
    return material, processes


def stopped(args: argparse.Namespace) -> str:
    """Says what is left of an interrupted run."""
    without = " without --overwrite" if args.overwrite else ""
    return f"answers saved so far are kept; run the same command again{without} to continue"


def _import_models() -> None:
    import lmdiag.models.loading.checks  # noqa: F401


def _material(args: argparse.Namespace) -> Material:
    """Loads what is asked of every model."""
    from lmdiag.running import gather_material

    tasks = tuple(dict.fromkeys(args.tasks or _default_tasks(args)))
    protocol = Protocol(
        tasks=tasks,
        perturb=tuple(_perturbations(args.perturb, tasks)),
        shuffles=args.shuffles,
        seed=args.seed,
        unit=args.unit,
        k=tuple(sorted(set(args.k))),
        threshold=args.threshold,
        bos=args.bos,
        limit=args.limit,
    )
    return gather_material(args.data, protocol, revision=args.data_revision, verbs=args.verbs)


def _default_tasks(args: argparse.Namespace) -> list[str]:
    """The three diagnostics where the data set has them, else all it has."""
    from lmdiag import stimuli

    found = stimuli.tasks(args.data, revision=args.data_revision)
    return [task for task in found if task in DIAGNOSTICS] or found


def _perturbations(names: list[str], tasks: tuple[str, ...]) -> Iterator[str]:
    """The perturbations that are asked for, in a fixed order; `all` means those the tasks allow."""
    from lmdiag import diagnostics

    if "none" in names and len(names) > 1:
        raise BadInput("--perturb none goes with no other perturbation: leave it out")
    for name in PERTURBATIONS:
        if name in names or (
            "all" in names and any(diagnostics.get(t).perturbation(name) for t in tasks)
        ):
            yield name


def _options(args: argparse.Namespace, revision: str | None) -> LoadOptions:
    from lmdiag.models import LoadOptions

    return LoadOptions(
        revision=revision,
        kind=args.kind,
        dtype=args.dtype,
        device_map=args.device_map,
        bos=args.bos,
        unit=args.unit,
        trust_remote_code=args.trust_remote_code,
        allow_pickle=args.allow_pickle,
        quantization=args.quantization,
        attention=args.attn_implementation,
        tp=args.tp,
    )


def _run_one(
    args: argparse.Namespace, wanted: Wanted, material: Material, processes: Processes
) -> dict[str, object]:
    """Runs one model and shows its tables; returns its results (empty but on the first process)."""
    from dataclasses import replace

    from lmdiag.running import run_model

    path, found = run_model(
        wanted.model,
        replace(_options(args, wanted.revision), device=processes.device),
        material,
        processes=processes,
        output=args.output,
        name=wanted.name,
        batch_size=args.batch_size,
        overwrite=args.overwrite,
        quiet=args.quiet,
    )
    if processes.first and args.json:
        from lmdiag.cli.exits import say

        for task, rows in material.stimuli.items():
            if not rows.compared:  # the tables say it, too
                say(f"lmdiag: nothing was compared in {task}: no columns good and contrast")
    if found is not None and not args.json:
        from lmdiag.hub.text import visible
        from lmdiag.report.terminal import print_results
        from lmdiag.results import saved_files

        print_results(found)
        print(f"\nSaved in {visible(str(path))}: {', '.join(saved_files(path))}")
    return {} if found is None else found.to_json()


def _print_json(documents: list[dict[str, object]]) -> None:
    """Prints one JSON document: the results, or a list of them where several models ran."""
    import json

    print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1))


def _conclude(failures: list[tuple[str, BadInput]], wanted: int, processes: Processes) -> int:
    """Lists what failed; a single model's failure is bad input, one of several is exit code 1."""
    if not failures:
        return 0
    if wanted == 1:
        raise failures[0][1]
    if processes.first:
        from lmdiag.cli.exits import say

        print(f"\n{len(failures)} of {wanted} runs failed:", file=sys.stderr)
        for name, error in failures:
            say(f"  {name}: {error}")
    return 1 if processes.first else 0
