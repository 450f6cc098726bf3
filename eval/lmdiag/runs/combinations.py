"""One model asked by every combination of knobs, which are settings of how a model is asked.

Each combination is an ordinary run, and the weights stay loaded. Combinations that would ask
exactly the same are one, and a question that several combinations share is asked once: their runs
share one journal.
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
from lmdiag.asking.protocol import KNOBS, QueryOptions
from lmdiag.asking.questions import distinct_questions
from lmdiag.asking.rules import Case, applicable_knobs, refusal
from lmdiag.runs.journal import Journal
from lmdiag.runs.run_model import RunOptions, load_everywhere, run_model
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.results import Run
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.processes import Processes

_TOO_COARSE = ("8bit", "4bit", "bfloat16", "float16")
"""Types of weights whose probabilities are too inexact for the search over whole words."""

KnobValues = Mapping[str, Sequence[Mapping[str, Any]]]
"""Knob that varies -> the fields of `LoadOptions` for each of its values, the default first."""


def run_members(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    values: KnobValues,
    run_options: RunOptions,
    processes: Processes,
) -> list[tuple[dict[str, str], Run]]:
    """Runs one model by every combination of knobs.

    Finished runs are read back, interrupted ones resumed. Combinations that ask the same questions
    as an earlier one are left out.

    Args:
        model_id, options, inputs, run_options, processes: see `run_model`. In `options` and
            `inputs`, all knobs are at their default.
        values: the knobs that vary, with their values; a knob that does not apply to the model is
            left out.

    Returns:
        a pair for each combination: the choices of the knobs, as {"unit": "word", "bos": "never"},
        and the run; [] on all processes but the first.
    """
    model = load_everywhere(model_id, options, processes)
    knobs = _varied_knobs(model.info, inputs.asks, values, options, processes)
    slug = results.model_slug(model.info.id, model.info.revision, run_options.name)
    shared_folder = run_options.output / slug / "shared"
    members: list[tuple[dict[str, str], Run]] = []
    choices_so_far = list[dict[str, str]]()
    keys_so_far = set[tuple[str, ...]]()
    for fields in _combinations({knob: values[knob] for knob in knobs}):
        # first the model with the options of the combination, and the keys of its questions, by
        # which a combination is recognised that asks the same as an earlier one
        try:
            member_options = replace(options, **fields)
            with processes.shared_errors():
                variant = model.with_options(member_options)
            if variant is None:  # the unit needs weights of another dtype
                del model  # frees its memory before the other weights are loaded
                variant = model = load_everywhere(model_id, member_options, processes)
            choices = {knob: _choice(knob, member_options, variant, inputs.asks) for knob in knobs}
            if choices in choices_so_far:
                continue  # of this model, `bos` auto is the same as always, or as never
            with processes.shared_errors():
                member_inputs = inputs.asked_by(member_options)
                keys = _question_keys(variant, member_inputs)
        except BadInput as error:
            # The tokenizer may lack the token, or the prompt may begin with it. This is an error
            # only if no combination could be asked so far.
            if fields.get("bos") in ("always", "eos") and keys_so_far:
                continue
            asked_with = f"asked with {_choices_text(fields)}; --knobs leaves knobs out"
            # the type stays `SharedError` if all processes have the error
            raise type(error)(f"{error} ({asked_with})") from None
        choices_so_far.append(choices)
        if keys in keys_so_far:
            continue  # the combination asks the same as an earlier one
        keys_so_far.add(keys)
        if processes.is_first and not run_options.quiet:
            print(f"lmdiag: {_choices_text(choices) or 'the one protocol'}", file=sys.stderr)
        # All combinations with the same weights have one owner: the model, and the protocol with
        # every knob at its default. Knobs and data are not in it: the keys of questions tell them.
        owner = json.dumps([results.identity(variant.info, inputs.protocol, fingerprint="")])
        journal = Journal(shared_folder, processes.rank, owner)
        run = run_model(
            model_id, member_options, member_inputs, run_options, processes,
            loaded=variant, journal=journal,
            warns=len(keys_so_far) == 1,  # the warnings are those of the rows and the model: once
        )  # fmt: skip
        if run is not None:  # None on all processes but the first
            members.append((choices, run))
    if processes.is_first:
        shutil.rmtree(shared_folder, ignore_errors=True)
    return members


def _varied_knobs(
    info: ModelInfo, asks: str, values: KnobValues, options: LoadOptions, processes: Processes
) -> list[str]:
    """Returns the knobs that vary and apply to a model; a line names prompts that do not apply.

    `BadInput` if `unit` varies and the weights are too coarse: the search over words needs float32.

    Args:
        asks: what the rows ask, "word" or "sentence".
        values: the knobs that vary, if they apply.
        options: how the model was loaded.
    """
    possible_knobs = applicable_knobs(asks, info.kind, counts_words=info.counts_words)
    knobs = [knob for knob in possible_knobs if knob in values]
    for knob, choices in values.items() if processes.is_first else ():
        if knob not in knobs and KNOBS[knob].is_text and len(choices) > 1:
            print(f"lmdiag: {info.id} is not causal: it is asked without a {knob}", file=sys.stderr)
    precision = options.quantization or options.dtype
    if precision in _TOO_COARSE and "unit" in knobs:
        raise BadInput(
            f"unit word needs float32, not {precision}: use --dtype float32, or leave unit out of "
            "--knobs"
        )
    return knobs


def _combinations(values: KnobValues) -> Iterator[dict[str, Any]]:
    """Yields the fields of `LoadOptions` for each combination of values, the default one first.

    Combinations that a rule of `asking.rules` refuses are left out.

    >>> values = {"unit": [{"unit": "token"}, {"unit": "word"}], "pll": [{"pll": "original"}]}
    >>> [*_combinations(values)]
    [{'unit': 'token', 'pll': 'original'}, {'unit': 'word', 'pll': 'original'}]
    """
    for fields_of_knobs in product(*values.values()):
        fields: dict[str, Any] = {}
        for fields_of_knob in fields_of_knobs:
            fields |= fields_of_knob
        problem = refusal(Case(given=QueryOptions(**fields).stored()))
        if not problem:
            yield fields


def _question_keys(model: Model, inputs: Inputs) -> tuple[str, ...]:
    """Returns the keys of all questions, as `Model.key` makes them.

    Two combinations with equal keys ask the model exactly the same.
    """
    if inputs.verbs:
        model.set_verbs(inputs.verbs)
    parts = distinct_questions(inputs.settings, kind=model.info.kind, cased=model.info.cased)
    encoded = [model.encode(question) for part in parts for question in part]
    return tuple(model.key(question, inputs.protocol.top) for question in encoded)


def _choice(knob: str, options: LoadOptions, model: Model, asks: str) -> str:
    """Returns the name of a knob's value in a multiverse, e.g. "word" for the knob "unit".

    The value "auto" of `bos` is named by what it does with this model, "always" or "never".

    Args:
        knob: name of the knob, a key of `KNOBS`.
        options: how the model is asked.
        model: the loaded model.
        asks: what the rows ask, "word" or "sentence".
    """
    if knob == "bos" and options.bos == "auto":
        is_sentence = asks == "sentence" and options.elicitation == "probability"
        has_bos = model.info.sentence_bos if is_sentence else model.info.bos
        return "always" if has_bos else "never"
    return KNOBS[knob].choice(options)


def _choices_text(choices: Mapping[str, Any]) -> str:
    """Returns knobs and their choices as text, without empty choices.

    >>> _choices_text({"unit": "word", "prompt": "", "bos": "never"})
    'unit word, bos never'
    """
    return ", ".join(f"{knob} {choice}" for knob, choice in choices.items() if choice)
