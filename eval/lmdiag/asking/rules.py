"""Where an option of models does not apply, and what happens to it there.

`RULES` is the one table, for commands and Python alike; `docs/specification.md` ("Where options
apply") shows it. What the files of a model or the rows may lack, such as a chat template or
contrasts, is refused where it is looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

from lmdiag.asking.protocol import KNOBS, Asks, QueryOptions
from lmdiag.types import Kind, ModelInfo

_Outcome = Literal["refused", "left out"]
_Options = TypeVar("_Options", bound=QueryOptions)

KINDS: dict[Kind, str] = {
    "causal": "a causal model",
    "masked": "a masked model",
    "mntp": "an mntp model",
    "seq2seq": "an encoder-decoder",
}
"""Kind of model -> as messages call it."""

ROWS: dict[Asks, str] = {"sentence": "whole sentences", "word": "rows with a blank"}
"""What rows ask -> as messages call them."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is known where options are checked.

    Attributes:
        given: options that are not at their default.
        kind: of the model; None if it is not known yet.
        asks: what the rows ask, see `Diagnostic.asks`; None if that is not known yet.
        cased: whether the model tells "A" from "a".
        counts_words: whether it is a model of word counts.
    """

    given: Collection[str]
    kind: Kind | None = None
    asks: str | None = None
    cased: bool = True
    counts_words: bool = False


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Options, and where they do not apply: where everything that the rule names is true.

    Attributes:
        options: fields of `LoadOptions`, and layers of which several are asked; each by itself.
        why: the reason.
        outcome: whether the option is refused, or left out with a line.
        beside: an option that is given.
        without: an option that is not given.
        kinds: the kind of the model is one of these; () for any.
        asks: what the rows ask; None for anything.
        uncased: the model does not tell "A" from "a".
        counts_words: it is a model of word counts.
    """

    options: tuple[str, ...]
    why: str
    outcome: _Outcome = "refused"
    beside: str = ""
    without: str = ""
    kinds: tuple[Kind, ...] = ()
    asks: Asks | None = None
    uncased: bool = False
    counts_words: bool = False

    def holds(self, case: Case) -> bool:
        """Returns whether everything that the rule names is true of a case.

        Something that is not known yet, as the kind of the model, counts as not true; a model that
        is not known yet is cased, see the default in `Case`.
        """
        return (
            (not self.beside or self.beside in case.given)
            and (not self.without or self.without not in case.given)
            and (not self.kinds or case.kind in self.kinds)
            and (not self.asks or self.asks == case.asks)
            and not (self.uncased and case.cased)
            and (not self.counts_words or case.counts_words)
        )

    def place(self, kind: Kind | None = None) -> str:
        """Returns where the rule holds, in words for messages.

        Args:
            kind: of the model, to name this kind alone; None to name all kinds of the rule.

        >>> RULES[-1].place()
        'with a model without capital letters on rows with a blank'
        """
        # named below only if the rule is about kinds
        kinds = [KINDS[named_kind] for named_kind in ([kind] if kind else self.kinds)]
        parts = (
            f"beside {flag(self.beside)}" if self.beside else "",
            f"without {flag(self.without)}" if self.without else "",
            f"with {' or '.join(kinds)}" if self.kinds else "",
            "with a model without capital letters" if self.uncased else "",
            "with a model of word counts" if self.counts_words else "",
            f"on {ROWS[self.asks]}" if self.asks else "",
        )
        return " ".join(filter(None, parts))


_NOT_CAUSAL: tuple[Kind, ...] = ("masked", "mntp", "seq2seq")

RULES = (
    Rule(
        options=(
            *("kind", "dtype", "device_map", "quantization", "allow_pickle", "tp", "revision"),
            *("server", "layer", "layers", "chat", "prompt", "elicitation"),
        ),
        counts_words=True,
        why="it has words and how often they occur, and neither weights nor tokens",
    ),
    Rule(
        options=("instruction",),
        without="chat",
        why="it is the user's turn of a chat",
    ),
    Rule(
        options=("choice_prompt",),
        without="elicitation",
        why="it is the text of a choice",
    ),
    Rule(
        options=("server",),
        without="tokenizer",
        why="texts become tokens by the tokenizer of the server's model",
    ),
    Rule(
        options=("tokenizer",),
        without="server",
        why="it is for a model behind a server",
    ),
    Rule(
        options=("prompt", "bos"),
        beside="chat",
        why="the chat template decides what stands before a context",
    ),
    Rule(
        options=("prompt", "instruction", "unit", "first_letter", "entropy"),
        beside="elicitation",
        why="a choice has a text of its own (--choice-prompt), and its labels are scored by their "
        "tokens",
    ),
    Rule(
        options=("unit", "entropy"),
        beside="server",
        why="it needs the whole distribution, and a server tells its most probable tokens only",
    ),
    Rule(
        options=("layer", "layers"),
        beside="server",
        why="a server tells the answer of the last layer only",
    ),
    Rule(
        options=("revision", "dtype", "device_map", "quantization", "allow_pickle", "tp"),
        beside="server",
        why="it is for weights in this process",
    ),
    Rule(
        options=("server",),
        kinds=_NOT_CAUSAL,
        why="a server continues a text",
    ),
    Rule(
        options=("chat", "prompt", "elicitation"),
        kinds=_NOT_CAUSAL,
        why="it is for models that continue a text",
    ),
    Rule(
        options=("bos", "first_letter"),
        counts_words=True,
        outcome="left out",
        why="words are looked up as the model has them",
    ),
    Rule(
        options=("chat", "prompt", "final_period", "first_letter"),
        asks="sentence",
        why="it is for data with a blank",
    ),
    Rule(
        options=("bos",),
        kinds=_NOT_CAUSAL,
        outcome="left out",
        why="its tokenizer's special tokens stand around a text in any case",
    ),
    Rule(
        options=("unit",),
        kinds=("masked", "mntp"),
        asks="sentence",
        outcome="left out",
        why="no boundary of a word has to be corrected",
    ),
    Rule(
        options=("pll",),
        kinds=("causal", "seq2seq"),
        outcome="left out",
        why="it is for models that mask the tokens of a sentence",
    ),
    Rule(
        options=("pll",),
        asks="word",
        outcome="left out",
        why="it is for whole sentences",
    ),
    Rule(
        options=("final_period",),
        kinds=("causal",),
        asks="word",
        outcome="left out",
        why="nothing to the right of a blank is read",
    ),
    Rule(
        options=("first_letter",),
        uncased=True,
        asks="word",
        outcome="left out",
        why="both cases are the same tokens",
    ),
)
"""In the order in which they are tried."""


def flag(option: str) -> str:
    """Returns the name of an option in commands, e.g. "--first-letter" for "first_letter".

    In messages of Python functions, `lmdiag.text.as_parameters` turns it into Python's name.
    """
    return f"--{option.replace('_', '-')}"


_VALUES = {"elicitation": "choice", "server": "ADDRESS", "tokenizer": "ID"}
"""Option that another one needs -> the value that it takes."""


def refusal(case: Case) -> str:
    """Returns a line about the first given option that is refused, with the remedy; "" for none.

    For example, "--prompt cannot be used with a masked model: it is for models that continue a
    text; leave --prompt out".
    """
    for rule, option in _rules_that_hold("refused", case):
        problem = f"{flag(option)} cannot be used {rule.place(case.kind)}: {rule.why}"
        remedy = f"leave {flag(option)} out"
        if rule.without:
            missing_option = f"{flag(rule.without)} {_VALUES.get(rule.without, '')}".rstrip()
            remedy = f"give {missing_option}, too"
        return f"{problem}; {remedy}"
    return ""


def reset_ineffective(query: _Options, info: ModelInfo, asks: str) -> tuple[_Options, list[str]]:
    """Returns the options, of which those that cannot change any number are set to their default.

    For example, `bos` of a masked model becomes "auto". So two runs that differ in such an option
    alone have the same signature.

    Args:
        query: the options that the user gives.
        info: of the model.
        asks: what the rows ask, "word" or "sentence".

    Returns:
        the options, and a line about each that was given without effect.
    """
    case = Case(  # `stored` has the options that are not at their default
        given=query.stored(), kind=info.kind, asks=asks, cased=info.cased,
        counts_words=info.counts_words,
    )  # fmt: skip
    lines: dict[str, str] = {}
    for rule, option in _rules_that_hold("left out", case):
        if option not in lines:
            value = getattr(query, option)
            problem = f"{flag(option)} {value} has no effect {rule.place(case.kind)}"
            lines[option] = f"{problem}: {rule.why}; it is left out"
    defaults = {option: getattr(QueryOptions(), option) for option in lines}
    return replace(query, **defaults), [*lines.values()]


def applicable_knobs(
    asks: str, kind: Kind | None = None, *, counts_words: bool = False
) -> list[str]:
    """Returns the names of the knobs that can change how a model is asked, as `KNOBS` has them.

    >>> applicable_knobs("sentence", "masked")
    ['pll', 'layer']

    Args:
        asks: what the rows ask, "word" or "sentence".
        kind: of the model; None for the options that apply to any kind.
        counts_words: whether it is a model of word counts.
    """
    kinds = [kind] if kind else get_args(Kind)
    # given=(): each knob is tried alone, so that no rule about another option holds
    cases = [
        Case(given=(), kind=model_kind, asks=asks, counts_words=counts_words)
        for model_kind in kinds
    ]
    return [
        option for option, knob in KNOBS.items() if any(_applies(knob.name, case) for case in cases)
    ]


def _applies(option: str, case: Case) -> bool:
    """Whether an option can be used in a case.

    It cannot if a rule of `RULES` excludes the option, or another option without which it is
    refused: `choice_prompt` needs `elicitation`, which a masked model does not have.
    """
    names = {option, *required_options(option)}
    for rule in RULES:
        # rules with `without` exclude nothing: they say which other option must be given
        if not rule.without and names & {*rule.options} and rule.holds(case):
            return False
    return True


def required_options(option: str) -> list[str]:
    """Returns the options without which an option is refused, e.g. ["chat"] for "instruction"."""
    return [rule.without for rule in RULES if option in rule.options and rule.without]


def _rules_that_hold(outcome: _Outcome, case: Case) -> Iterator[tuple[Rule, str]]:
    """Yields each rule that holds in a case and has an outcome, with each given option of the rule.

    `outcome` is "refused" or "left out"; rules with the other outcome are passed over.
    """
    for rule in RULES:
        if rule.outcome == outcome and rule.holds(case):
            for option in rule.options:
                if option in case.given:
                    yield rule, option
