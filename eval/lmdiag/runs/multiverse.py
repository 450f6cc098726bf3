"""One model asked by every combination of knobs: each is an ordinary run, the weights stay loaded.

Combinations that would ask exactly the same are one, and so are batches that several combinations
share. Batches are compared, not single questions: with other neighbours in its batch, an answer may
differ in its last bits from the one that the run alone would get.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, product
from typing import TYPE_CHECKING, Any

from lmdiag import results
from lmdiag.protocol import APPLICABLE, KNOB_VALUES, KNOBS, asking_of
from lmdiag.questions import collect_parts
from lmdiag.results import Run
from lmdiag.results.multiverse import Questions
from lmdiag.runs.asking import plan_parts
from lmdiag.runs.journal import Journal
from lmdiag.runs.memory import Memory, Remembering
from lmdiag.runs.run import RunOptions, load_everywhere, run_loaded
from lmdiag.suggestions import suggest
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


@dataclass(frozen=True)
class FinishedMember:
    """A run of a multiverse; None on all processes but the first."""

    choices: dict[str, str]
    run: Run | None


@dataclass
class _Variant:
    """A combination that is to be asked.

    Attributes:
        choices: knob -> choice.
        options: the same as options.
        model: with these options.
        batches: key and number of questions of each batch.
    """

    choices: dict[str, str]
    options: LoadOptions
    model: Model
    batches: list[tuple[bytes, int]]


def run_members(
    model_id: str,
    options: LoadOptions,
    inputs: Inputs,
    knobs: OpenKnobs,
    run_options: RunOptions,
    processes: Processes,
    *,
    alone: bool = True,
) -> tuple[list[FinishedMember], Questions]:
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
    members: list[FinishedMember] = []
    counts = Questions(0, 0, 0)
    weights = _Weights(model_id, options, processes)
    if alone and weights.kind != "causal":
        _refuse_prompts(model_id, knobs)
    tried = [*_combinations(weights.kind, inputs.asks, knobs)]
    _refuse_coarse(options, tried)
    for _, group in groupby(tried, key=lambda fields: fields.get("unit")):
        variants, counted = _variants(weights, options, [*group], inputs, run_options.batch_size)
        counts += counted
        members += _run_variants(
            weights, variants, inputs, run_options, processes, warns=not members
        )
        del variants  # so that their weights are gone before those of the next unit are read
    return members, counts


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
    weights: _Weights,
    variants: Sequence[_Variant],
    inputs: Inputs,
    run_options: RunOptions,
    processes: Processes,
    *,
    warns: bool,
) -> list[FinishedMember]:
    """Runs the combinations of one unit, which share the answers to equal batches."""
    info = weights.info
    identity = json.dumps([results.identity(info, inputs.protocol, "")])
    slug = results.model_slug(info.id, info.revision, run_options.name)
    memory = Memory(
        (batch for variant in variants for batch in variant.batches),
        Journal(run_options.output / slug / "shared", processes.rank, identity),
    )
    members: list[FinishedMember] = []
    for variant in variants:
        if processes.first and not run_options.quiet:
            print(f"lmdiag: {_in_words(variant.choices)}", file=sys.stderr)
        run = run_loaded(
            Remembering(variant.model, memory) if weights.reusable else variant.model,
            replace(inputs, protocol=replace(inputs.protocol, **asking_of(variant.options))),
            run_options,
            processes,
            warns=warns and not members,
        )
        memory.share(processes)
        members.append(FinishedMember(variant.choices, run))
    if processes.first:
        memory.forget()
    return members


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


class _Weights:
    """The weights of a model, which stay loaded as long as its options allow it."""

    def __init__(self, model_id: str, options: LoadOptions, processes: Processes) -> None:
        from lmdiag.models import Reconfigurable, load

        self._id, self._processes = model_id, processes
        self._model: Model | None = load_everywhere(partial(load, model_id, options), processes)
        self.info = self._model.info
        self.kind = self.info.kind
        self.reusable = isinstance(self._model, Reconfigurable)

    def asked(self, options: LoadOptions) -> Model:
        """Returns the model with other options."""
        model: Any = self._model
        with self._processes.shared_errors():
            variant = model.with_options(options) if self.reusable else None
        if variant is None:
            from lmdiag.models import load

            del model
            self._model = None
            loads = partial(load, self._id, options)
            self._model = variant = load_everywhere(loads, self._processes)
        return variant

    def batches(
        self, model: Any, inputs: Inputs, batch_size: int | None
    ) -> tuple[list[tuple[bytes, int]], int]:
        """Returns key and number of questions of each batch of a run; the number of questions."""
        if inputs.verbs:
            model.set_verbs(inputs.verbs)
        parts = collect_parts(inputs.settings, kind=self.kind, cased=self.info.cased)
        with self._processes.shared_errors():
            encoded = [model.encode(question) for question in chain.from_iterable(parts)]
        batches: list[tuple[bytes, int]] = []
        if self._processes.first:
            sizes = [*map(len, parts)]
            for number, batch in enumerate(plan_parts(model, encoded, sizes, batch_size)):
                own = f"{id(model)} {number}".encode()
                chosen = [encoded[index] for index in batch]
                key = model.key(chosen, inputs.protocol.top) if self.reusable else own
                batches.append((key, len(batch)))
        return self._processes.share(batches), len(encoded)


def _variants(
    weights: _Weights,
    options: LoadOptions,
    tried: Sequence[Mapping[str, Any]],
    inputs: Inputs,
    batch_size: int | None,
) -> tuple[list[_Variant], Questions]:
    """Returns the combinations of one unit that ask something different, and how much they ask."""
    distinct: dict[tuple[tuple[bytes, int], ...], _Variant] = {}
    n_combinations = n_questions = 0
    for fields in tried:
        chosen = replace(options, **fields)
        try:
            model = weights.asked(chosen)
        except BadInput:
            if fields.get("bos") == "always" and n_combinations:
                continue  # the tokenizer does not have the token, or the prompt begins with it
            raise
        try:
            batches, count = weights.batches(model, inputs, batch_size)
        except BadInput as error:
            how = _in_words(_choices(fields))
            raise type(error)(f"{error} (asked with {how}; --knobs leaves knobs out)") from None
        variant = _Variant(_choices(fields), chosen, model, batches)
        first = distinct.setdefault(tuple(batches), variant)
        if first.options.bos == chosen.bos:  # else another name for what auto does
            n_combinations, n_questions = n_combinations + 1, n_questions + count
    variants = [*distinct.values()]
    _name_bos(variants)
    sizes = dict(batch for variant in variants for batch in variant.batches)
    return variants, Questions(n_combinations, n_questions, sum(sizes.values()))


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
