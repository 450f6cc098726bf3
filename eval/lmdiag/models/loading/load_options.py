"""How a model is loaded and queried; the same checks for the command and for the Python API."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from lmdiag.asking.elicitation import parse_wording
from lmdiag.asking.protocol import (
    Bos,
    Elicitation,
    FinalPeriod,
    FirstLetter,
    Pll,
    QueryOptions,
    Unit,
)
from lmdiag.asking.rules import Case, refusal
from lmdiag.models.tokens.framing import SLOT
from lmdiag.text import first_problem, suggest, type_adapter
from lmdiag.types import BadInput, field_types

KindOption = Literal["auto", "masked", "mntp", "causal", "seq2seq"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "float64"]
Quantization = Literal["8bit", "4bit"]

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways to spread a model over devices; any other `device_map` is the name of one device."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How weights are loaded. The texts of the fields are the help of the command line."""

    kind: KindOption = "auto"
    """kind of model; auto: from its configuration; mntp: masked, but answers one place before the
    mask"""
    dtype: Dtype = "auto"
    """data type of the weights; auto: the checkpoint's own on accelerators, float32 on the CPU,
    where half precision is slow, and for unit word, which needs it"""
    device_map: str | None = None
    """auto, balanced, balanced_low_0 or sequential spreads a large model over all devices; the name
    of a device puts it there"""
    quantization: Quantization | None = None
    """quantize the weights with bitsandbytes"""
    trust_remote_code: bool = False
    """allow code from the model's repository to run"""
    allow_pickle: bool = False
    """allow weights in other formats than safetensors"""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A model behind a server."""

    server: str | None = None
    """ask the model with this name at an OpenAI-compatible completions endpoint, e.g.
    http://localhost:8000/v1; the key is read from LMDIAG_SERVER_KEY or OPENAI_API_KEY"""
    tokenizer: str | None = None
    """Hub id or folder of the tokenizer of the server's model (needed with server)"""


class LoadKeywords(TypedDict, total=False):
    """The fields of `LoadOptions`, as keywords of Python."""

    revision: str | None
    device: str | None
    tp: bool
    kind: KindOption
    dtype: Dtype
    device_map: str | None
    quantization: Quantization | None
    trust_remote_code: bool
    allow_pickle: bool
    server: str | None
    tokenizer: str | None
    unit: Unit
    bos: Bos
    pll: Pll
    layer: int | None
    prompt: str
    chat: bool
    instruction: str
    final_period: FinalPeriod
    first_letter: FirstLetter
    elicitation: Elicitation
    choice_prompt: str
    entropy: bool


@dataclass(frozen=True, kw_only=True)
class LoadOptions(QueryOptions, Loading, Serving):
    """How a model is loaded and queried: the fields of the three records, and those below.

    Attributes:
        revision: branch, tag or commit on the Hub.
        device: where the model goes, e.g. "cuda:1"; None for the accelerator if there is one.
        tp: split each layer over the processes (tensor parallel).

    Raises:
        BadInput: an option has a value that is not allowed; names both, and a similar value.
    """

    revision: str | None = None
    device: str | None = None
    tp: bool = False

    def __post_init__(self) -> None:
        """Raises `BadInput` for values that are not allowed, or not together."""
        super().__post_init__()
        self._check_types()
        if self.prompt and self.prompt.count(SLOT) != 1:
            raise BadInput(
                f"option prompt must be a text, or a file with a text, that has {SLOT} in it once, "
                f"where the context goes, not {reprlib.repr(self.prompt)}"
            )
        parse_wording(self.choice_prompt)  # raises if it cannot be used
        # The configuration tells the kind later: rules that need it are then checked again.
        kind = None if self.kind == "auto" else self.kind
        if problem := refusal(Case(given=self.stored(), kind=kind)):
            raise BadInput(problem)
        if SLOT in self.instruction:
            raise BadInput(
                f"option instruction must not have {SLOT} in it: the context begins the answer"
            )

    def _check_types(self) -> None:
        """Raises `BadInput` for a value that the type of its option does not allow."""
        from pydantic import ValidationError

        for name, option_type in field_types(LoadOptions).items():
            try:
                type_adapter(option_type).validate_python(getattr(self, name), strict=True)
            except ValidationError as error:
                problem = first_problem(error)
                raise BadInput(f"option {name}: {problem.message}, not {problem.given}") from None
        if self.layer is not None and self.layer < 0:
            raise BadInput(f"option layer must be at least 0, not {self.layer}")

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any]) -> LoadOptions:
        """Returns the options of keyword arguments, or raises `BadInput` for an unknown name."""
        names = [option.name for option in fields(cls)]
        for name in keywords:
            if name not in names:
                suggestion = suggest(name, names)
                raise BadInput(
                    f"unknown option {name!r}{suggestion}: choose from {', '.join(names)}"
                )
        return cls(**keywords)
