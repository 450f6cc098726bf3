"""One model asked by every combination of knobs: each is an ordinary run, the weights stay loaded.

Combinations that would ask exactly the same are one, and a question that several combinations share
is asked once: their runs share one journal.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from lmdiag import results
from lmdiag.protocol import APPLICABLE, KNOB_VALUES, KNOBS, asking_of
from lmdiag.questions import collect
from lmdiag.results import Run
from lmdiag.results.multiverse import Members
from lmdiag.runs.journal import Journal
from lmdiag.runs.run import RunOptions, load_everywhere, run_loaded
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.processes import Processes


def run_members(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    knobs: Sequence[str],
    framings: Sequence[Mapping[str, Any]],
    run_options: RunOptions,
    processes: Processes,
) -> Members:
    """Runs one model by every combination; finished runs are read back, interrupted ones resumed.

    Args:
        model_id, run_options, processes: see `run_model`.
        options: how the model is loaded; the options of knobs have their defaults.
        inputs: what is asked; likewise.
        knobs: what varies; one that does not apply to the model is left out.
        framings: fields of `LoadOptions` for each value of the knob `prompt`, none first.

    Raises:
        BadInput: see `run_model`; a combination cannot be asked.
    """
    model = load_everywhere(model_id, options, processes)
    kind = model.info.kind
    if processes.first and len(framings) > 1 and "prompt" not in APPLICABLE[kind, inputs.asks]:
        print(f"lmdiag: {model_id} is not causal: it is asked without a prompt", file=sys.stderr)
    combinations = [*_combinations(kind, inputs.asks, knobs, framings)]
    coarse = options.quantization or options.dtype
    if coarse in ("8bit", "4bit", "bfloat16", "float16") and any(
        fields.get("unit") == "word" for fields in combinations
    ):
        raise BadInput(
            f"unit word needs float32, not {coarse}: use --dtype float32, or leave unit out of "
            "--knobs"
        )
    runs: list[tuple[dict[str, str], Run | None]] = []
    questions: list[tuple[str, ...]] = []  # of each combination, their keys
    names: list[dict[str, str]] = []
    folder = run_options.output / results.model_slug(
        model.info.id, model.info.revision, run_options.name
    ) / "shared"  # fmt: skip
    for fields in combinations:
        chosen = replace(options, **fields)
        try:
            with processes.shared_errors():
                variant = model.with_options(chosen)
            if variant is None:  # the unit needs weights of another dtype
                del model
                variant = model = load_everywhere(model_id, chosen, processes)
            choices = _choices(fields, variant, inputs.asks)
            if choices in names:
                continue  # another name for what bos auto does
            with processes.shared_errors():
                keys = _keys(variant, inputs)
        except BadInput as error:
            if chosen.bos == "always" and runs:
                continue  # the tokenizer does not have the token, or the prompt begins with it
            how = ", ".join(f"{name} {value}" for name, value in fields.items() if value)
            raise type(error)(f"{error} (asked with {how}; --knobs leaves knobs out)") from None
        is_new = keys not in questions
        names.append(choices)
        questions.append(keys)
        if not is_new:
            continue
        if processes.first and not run_options.quiet:
            how = ", ".join(f"{knob} {choice}" for knob, choice in choices.items())
            print(f"lmdiag: {how or 'the one protocol'}", file=sys.stderr)
        owner = json.dumps([results.identity(variant.info, inputs.protocol, "")])
        run = run_loaded(
            variant,
            replace(inputs, protocol=replace(inputs.protocol, **asking_of(chosen))),
            run_options,
            processes,
            journal=Journal(folder, processes.rank, owner),
            warns=not runs,
        )
        runs.append((choices, run))
    if processes.first:
        shutil.rmtree(folder, ignore_errors=True)
    n_questions, n_asked = (
        sum(map(len, questions)),
        len({key for keys in questions for key in keys}),
    )
    return Members(runs, len(names), n_questions, n_asked)


def _combinations(
    kind: Kind, asks: str, knobs: Sequence[str], framings: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yields the fields of `LoadOptions` of each combination, the defaults first."""
    values = [
        framings
        if knob == "prompt"
        else [{knob.replace("-", "_"): value} for value in KNOB_VALUES[knob]]
        for knob in APPLICABLE[kind, asks]
        if knob in knobs
    ]
    for parts in product(*values):
        fields = {name: value for part in parts for name, value in part.items()}
        if not fields.get("chat") or fields.get("bos", "auto") == "auto":
            yield fields  # a chat template decides what stands before a context


def _choices(fields: Mapping[str, Any], model: Model, asks: str) -> dict[str, str]:
    """Returns knob -> choice of a combination, with what `auto` does in its place."""
    has_bos = model.info.sentence_bos if asks == "sentence" else model.info.bos
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    if named.get("bos") == "auto":
        named["bos"] = "always" if has_bos else "never"
    if "chat" in named or "prompt" in named:
        named["prompt"] = "chat" if "chat" in named else named["prompt"] or "none"
    return {knob: named[knob] for knob in KNOBS if knob in named}


def _keys(model: Model, inputs: Inputs) -> tuple[str, ...]:
    """The keys of all questions."""
    if inputs.verbs:
        model.set_verbs(inputs.verbs)
    questions = collect(inputs.settings, kind=model.info.kind, cased=model.info.cased)
    top = inputs.protocol.top
    return tuple(model.key(model.encode(question), top) for question in questions)
