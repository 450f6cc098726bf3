"""How a model is loaded and queried; the same checks for the command and for the Python API."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from lmdiag.models.tokens.framing import SLOT
from lmdiag.schema import BadInput, Bos, FinalPeriod, FirstLetter, Pll, Unit
from lmdiag.suggestions import suggest

KindOption = Literal["auto", "masked", "causal", "seq2seq"]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "float64"]
Packing = Literal["auto", "always", "never"]
Quantization = Literal["8bit", "4bit"]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": get_args(KindOption),
    "dtype": get_args(Dtype),
    "bos": get_args(Bos),
    "unit": get_args(Unit),
    "pll": get_args(Pll),
    "final_period": get_args(FinalPeriod),
    "first_letter": get_args(FirstLetter),
    "packing": get_args(Packing),
    "quantization": get_args(Quantization),
}
"""Option -> its allowed values."""

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways to spread a model over devices; any other `device_map` is the name of one device."""

_FLAGS = ("trust_remote_code", "allow_pickle", "tp", "chat")

INSTRUCTION = "Complete the sentence."
"""The user's turn in a chat, where no other is given."""

_OPTIONAL = (
    "revision", "device", "device_map", "quantization", "attention", "server", "tokenizer",
)  # fmt: skip

IN_FLIGHT = 8
"""Requests at the same time, where no other number is given."""


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded and queried.

    Attributes:
        revision: branch, tag or commit on the Hub.
        kind: masked, causal or seq2seq; auto follows the model's configuration.
        dtype: of the weights; auto is the checkpoint's own on accelerators, and float32 on the CPU,
            where half precision is slow, and for unit word, which needs it.
        device: where the model goes, e.g. "cuda:1"; None for the accelerator if there is one.
        device_map: one of `DEVICE_MAPS` spreads the layers over all devices (accelerate); the name
            of a device puts all of them there.
        bos: whether a causal model's context begins with its beginning-of-sequence token; auto
            does what the tokenizer does by default, and for whole sentences takes the token where
            there is one.
        pll: which tokens a masked model does not see where a sentence is scored; see
            `lmdiag.models.tokens.sentences`.
        unit: what the top-k list is over: vocabulary items (token) or complete words (word).
        prompt: text around every context, with `{context}` in it (causal models); "" for none.
        chat: have the assistant's turn of the model's chat template begin with the context.
        instruction: the user's turn before it.
        final_period: whether a period ends a sentence whose blank is its last word (models that see
            both sides).
        first_letter: case of the first letter of every context.
        trust_remote_code: run code that comes with the model.
        allow_pickle: read weights that are not safetensors.
        quantization: "8bit" or "4bit" by bitsandbytes; None without.
        attention: attention implementation, e.g. "eager" or "sdpa"; None for transformers' choice.
        packing: several contexts in one row: auto, always or never.
        tp: split each layer over the processes (tensor parallel).
        server: address of an OpenAI-compatible completions endpoint that has the model; None for
            weights in this process.
        tokenizer: Hub id or folder of the tokenizer of the server's model; needed with `server`.
        in_flight: requests to the server at the same time.

    Raises:
        BadInput: an option has a value that is not allowed; names both, and a similar value.
    """

    revision: str | None = None
    kind: KindOption = "auto"
    dtype: Dtype = "auto"
    device: str | None = None
    device_map: str | None = None
    bos: Bos = "auto"
    pll: Pll = "within-word"
    prompt: str = ""
    chat: bool = False
    instruction: str = INSTRUCTION
    final_period: FinalPeriod = "always"
    first_letter: FirstLetter = "as-is"
    unit: Unit = "token"
    trust_remote_code: bool = False
    allow_pickle: bool = False
    quantization: Quantization | None = None
    attention: str | None = None
    packing: Packing = "auto"
    tp: bool = False
    server: str | None = None
    tokenizer: str | None = None
    in_flight: int = IN_FLIGHT

    def __post_init__(self) -> None:
        for option in fields(self):
            _check(option.name, getattr(self, option.name))
        self._check_framing()
        if self.server is None and (self.tokenizer is not None or self.in_flight != IN_FLIGHT):
            raise BadInput("options tokenizer and in_flight are for a server: give server, too")

    def _check_framing(self) -> None:
        """Refuses a prompt, an instruction and options of a chat that cannot be meant."""
        if self.prompt and self.prompt.count(SLOT) != 1:
            raise BadInput(
                f"option prompt must be a text, or a file with a text, that has {SLOT} in it once, "
                f"where the context goes, not {reprlib.repr(self.prompt)}"
            )
        if SLOT in self.instruction:
            raise BadInput(
                f"option instruction must not have {SLOT} in it: the context begins the answer"
            )
        if self.chat and (self.prompt or self.bos != "auto"):
            other = "prompt" if self.prompt else "bos"
            raise BadInput(
                f"options chat and {other} exclude each other: the chat template decides what "
                f"stands before a context; leave {other} out"
            )

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any]) -> LoadOptions:
        """Returns the options that keyword arguments name.

        Raises:
            BadInput: a name is not an option, or a value is not allowed.
        """
        known = [option.name for option in fields(cls)]
        for name in keywords:
            if name not in known:
                raise BadInput(
                    f"unknown option {name!r}{suggest(name, known)}: choose from {', '.join(known)}"
                )
        return cls(**keywords)


def _check(name: str, value: object) -> None:
    """Refuses a value that the option does not allow."""
    if value is None and name in _OPTIONAL:
        return
    if name == "in_flight":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadInput(
                f"option {name} must be a whole number from 1 up, not {reprlib.repr(value)}"
            )
    elif name in _FLAGS:
        if not isinstance(value, bool):
            raise BadInput(f"option {name} must be True or False, not {reprlib.repr(value)}")
    elif not isinstance(value, str):
        raise BadInput(f"option {name} must be a string, not {reprlib.repr(value)}")
    elif name in CHOICES and value not in CHOICES[name]:
        raise BadInput(
            f"option {name} must be one of {', '.join(CHOICES[name])}, not "
            f"{reprlib.repr(value)}{suggest(value, CHOICES[name])}"
        )
