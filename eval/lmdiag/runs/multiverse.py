"""One model asked by every combination of knobs: each is an ordinary run, the weights stay loaded.

Combinations that would ask exactly the same are one, and a question that several combinations share
is asked once: their runs share one journal.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import results
from lmdiag.protocol import APPLICABLE, KNOB_VALUES, KNOBS, asking_of
from lmdiag.questions import collect
from lmdiag.results import Run
from lmdiag.runs.journal import Journal
from lmdiag.runs.run import RunOptions, load_everywhere, run_loaded
from lmdiag.text import suggest
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from lmdiag.models import LoadOptions, Model
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.processes import Processes

NO_PROMPT, CHAT = "none", "chat"
"""Choices of `prompt` beside the texts of prompts, which have `{context}` in them."""


@dataclass(frozen=True)
class OpenKnobs:
    """What varies.

    Attributes:
        names: of the knobs, see `lmdiag.protocol.KNOBS`.
        prompts: texts to ask with, beside none.
        instruction: the user's turn, if the chat template is to be asked with, too; else None.
    """

    names: tuple[str, ...] = tuple(KNOBS)
    prompts: tuple[str, ...] = ()
    instruction: str | None = None

    def check(self, asks: str) -> None:
        """Refuses what nothing can be asked with.

        Args:
            asks: what the rows ask, see `Diagnostic.asks`.

        Raises:
            BadInput: a name is not a knob, does not apply to the rows, or is missing.
        """
        for name in self.names:
            if name not in KNOBS:
                raise BadInput(
                    f"--knobs {name}{suggest(name, KNOBS)}: choose from {', '.join(KNOBS)}"
                )
            known = [knob for (_, a), knobs in APPLICABLE.items() if a == asks for knob in knobs]
            if name not in known and self.names != tuple(KNOBS):
                rows = "whole sentences" if asks == "sentence" else "rows with a blank"
                raise BadInput(
                    f"--knobs {name} does not apply to {rows}: choose from "
                    f"{', '.join(dict.fromkeys(known))}"
                )
        given = "--prompt" if self.prompts else "--chat" if self.instruction is not None else ""
        if given and (asks == "sentence" or "prompt" not in self.names):
            reason = "is for rows with a blank" if asks == "sentence" else "is the knob prompt"
            raise BadInput(f"{given} {reason}: leave it out" + ("" if asks == "sentence" else
                           ", or add prompt to --knobs"))  # fmt: skip


class Members(NamedTuple):
    """The finished runs of one model.

    Attributes:
        runs: choices and run of each combination, the default first; no run on all processes but
            the first.
        combinations: of choices, those that ask the same as another one included.
        questions: of all combinations.
        asked: questions that are left where equal ones are asked once.
    """

    runs: list[tuple[dict[str, str], Run | None]]
    combinations: int
    questions: int
    asked: int


@dataclass
class _Variant:
    """A combination that is to be asked.

    Attributes:
        choices: knob -> choice.
        options: the same as options.
        model: with these options.
        keys: of its questions, see `Model.key`.
    """

    choices: dict[str, str]
    options: LoadOptions
    model: Model
    keys: tuple[str, ...]


def run_members(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    knobs: OpenKnobs,
    run_options: RunOptions,
    processes: Processes,
    *,
    alone: bool = True,
) -> Members:
    """Runs one model by every combination; finished runs are read back, interrupted ones resumed.

    Args:
        model_id, run_options, processes: see `run_model`.
        options: how the model is loaded; the options of knobs have their defaults.
        inputs: what is asked; likewise.
        knobs: what varies; a knob that does not apply to the model is left out.
        alone: whether it is the only model, so that prompts that do not apply are an error.

    Raises:
        BadInput: see `run_model`; or prompts are given for a model that is not causal.
    """
    from lmdiag.models import load

    members = Members([], 0, 0, 0)
    model = load_everywhere(partial(load, model_id, options), processes)
    if alone and model.info.kind != "causal":
        _refuse_prompts(model_id, knobs)
    tried = [*_combinations(model.info.kind, inputs.asks, knobs)]
    _refuse_coarse(options, tried)
    for _, group in groupby(tried, key=lambda fields: fields.get("unit")):
        combinations = [(_choices(fields), replace(options, **fields)) for fields in group]
        _, first = combinations[0]
        if model.with_options(first) is None:  # the unit needs another dtype
            del model
            model = load_everywhere(partial(load, model_id, first), processes)
        with processes.shared_errors():
            variants, *counts = _variants(model, combinations, inputs)
        runs = _run_variants(variants, inputs, run_options, processes, warns=not members.runs)
        sums = (old + new for old, new in zip(members[1:], counts, strict=True))
        members = Members(members.runs + runs, *sums)
        del variants  # so that their weights are gone before those of the next unit are read
    return members


def _refuse_prompts(model_id: str, knobs: OpenKnobs) -> None:
    if knobs.prompts or knobs.instruction is not None:
        given = "--prompt" if knobs.prompts else "--chat"
        raise BadInput(
            f"model {model_id} is not causal, and {given} is for models that continue a text: "
            "leave it out"
        )


def _refuse_coarse(options: LoadOptions, tried: Sequence[Mapping[str, Any]]) -> None:
    """Refuses half precision where unit `word` is among the combinations."""
    coarse = options.quantization or (
        options.dtype if options.dtype in ("bfloat16", "float16") else None
    )
    if coarse and any(fields.get("unit") == "word" for fields in tried):
        raise BadInput(
            f"unit word needs float32, not {coarse}: use --dtype float32, or leave unit out of "
            "--knobs"
        )


def _run_variants(
    variants: Sequence[_Variant],
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
    *,
    warns: bool,
) -> list[tuple[dict[str, str], Run | None]]:
    """Runs the combinations of one unit, which share a journal."""
    info = variants[0].model.info
    slug = results.model_slug(info.id, info.revision, run_options.name)
    owner = json.dumps([results.identity(info, inputs.protocol, "")])
    folder = run_options.output / slug / "shared"
    runs: list[tuple[dict[str, str], Run | None]] = []
    for variant in variants:
        if processes.first and not run_options.quiet:
            print(f"lmdiag: {_in_words(variant.choices)}", file=sys.stderr)
        run = run_loaded(
            variant.model,
            replace(inputs, protocol=replace(inputs.protocol, **asking_of(variant.options))),
            run_options,
            processes,
            journal=Journal(folder, processes.rank, owner),
            warns=warns and not runs,
        )
        runs.append((variant.choices, run))
    if processes.first:
        shutil.rmtree(folder, ignore_errors=True)
    return runs


def _in_words(choices: Mapping[str, str]) -> str:
    """Returns choices as text.

    >>> _in_words({"unit": "word", "bos": "never"})
    'unit word, bos never'
    """
    return ", ".join(f"{knob} {choice}" for knob, choice in choices.items()) or "the one protocol"


# ---- combinations --------------------------------------------------------------------------------


def _combinations(kind: Kind, asks: str, knobs: OpenKnobs) -> Iterator[dict[str, Any]]:
    """Yields the fields of `LoadOptions` of each combination, the defaults first."""
    prompts: list[dict[str, Any]] = [{"prompt": ""}, *({"prompt": p} for p in knobs.prompts)]
    if knobs.instruction is not None:
        prompts.append({"chat": True, "instruction": knobs.instruction})
    applicable = [knob for knob in APPLICABLE[kind, asks] if knob in knobs.names]
    values = [
        prompts
        if knob == "prompt"
        else [{knob.replace("-", "_"): value} for value in KNOB_VALUES[knob]]
        for knob in applicable
    ]
    for parts in product(*values):
        fields = {name: value for part in parts for name, value in part.items()}
        if not fields.get("chat") or fields.get("bos", "auto") == "auto":
            yield fields  # a chat template decides what stands before a context


def _variants(
    model: Model, combinations: Sequence[tuple[dict[str, str], LoadOptions]], inputs: Inputs
) -> tuple[list[_Variant], int, int, int]:
    """Returns the combinations of one unit that ask something different.

    Args:
        model: with the weights of all combinations.
        combinations: choices, and the same as options.
        inputs: what is asked.

    Returns:
        the combinations; the number of combinations with those that ask the same as another one;
        the number of questions of all of them; and of questions that are different.
    """
    distinct: dict[tuple[str, ...], _Variant] = {}
    n_combinations = n_questions = 0
    for choices, options in combinations:
        try:
            variant = model.with_options(options)
        except BadInput:
            if options.bos == "always" and n_combinations:
                continue  # the tokenizer does not have the token, or the prompt begins with it
            raise
        assert variant is not None  # the weights are those of the unit
        try:
            keys = _keys(variant, inputs)
        except BadInput as error:
            how = _in_words(choices)
            raise type(error)(f"{error} (asked with {how}; --knobs leaves knobs out)") from None
        first = distinct.setdefault(keys, _Variant(choices, options, variant, keys))
        if first.options.bos == options.bos:  # else another name for what auto does
            n_combinations, n_questions = n_combinations + 1, n_questions + len(keys)
    variants = [*distinct.values()]
    _name_bos(variants)
    asked = len({key for variant in variants for key in variant.keys})
    return variants, n_combinations, n_questions, asked


def _keys(model: Model, inputs: Inputs) -> tuple[str, ...]:
    """The keys of all questions."""
    if inputs.verbs:
        model.set_verbs(inputs.verbs)
    questions = collect(inputs.settings, kind=model.info.kind, cased=model.info.cased)
    top = inputs.protocol.top
    return tuple(model.key(model.encode(question), top) for question in questions)


def _choices(fields: Mapping[str, Any]) -> dict[str, str]:
    """Returns knob -> choice of the fields of a combination."""
    choices = {}
    for name, value in fields.items():
        if name == "chat":
            choices["prompt"] = CHAT
        elif name != "instruction":
            choices[name.replace("_", "-")] = value or NO_PROMPT
    return {knob: choices[knob] for knob in KNOBS if knob in choices}


def _name_bos(variants: Sequence[_Variant]) -> None:
    """Says what `auto` does: the one of always and never that asks the same."""
    kept = {variant.options.bos for variant in variants if not variant.options.chat}
    left = [name for name in ("always", "never") if name not in kept]
    auto = left[0] if len(left) == 1 else "auto"
    for variant in variants:
        if variant.choices.get("bos") == "auto":
            has_one = "always" if variant.model.info.bos else "never"
            is_template = variant.options.chat and auto != "auto"
            variant.choices["bos"] = has_one if is_template else auto
