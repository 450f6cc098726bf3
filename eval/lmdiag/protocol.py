"""How a model is asked: the one record that all parts share, and the protocol of a run.

The command line, the loading of models, predictions and signatures take the knobs from
`QueryOptions`. A new knob is a field here, whose type has its choices and whose text is its help,
the place where it takes effect, and its text in `docs/protocol.md`.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from lmdiag.types import DIAGNOSTICS, BadInput, Kind, ModelInfo, WordSpan, WordState

if TYPE_CHECKING:
    from pandas import DataFrame

Unit = Literal["token", "word"]
Bos = Literal["auto", "always", "never"]
Pll = Literal["within-word", "original"]
FinalPeriod = Literal["always", "never"]
FirstLetter = Literal["as-is", "upper", "lower"]

INSTRUCTION = "Complete the sentence."
"""The user's turn in a chat, where no other is given."""


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """What a probability is about. The texts of the fields are the help of the command line."""

    unit: Unit = "token"
    """unit of the top-k list and of probabilities"""
    bos: Bos = "auto"
    """whether a causal model's context starts with the beginning-of-sequence token; auto: as the
    tokenizer does, and for whole sentences where it has one"""
    pll: Pll = "within-word"
    """what a masked model does not see where it scores a token of a whole sentence: the token and
    the later ones of its word, or the token alone"""


@dataclass(frozen=True, kw_only=True)
class QueryOptions(ScoringOptions):
    """Every knob: what a probability is about, and what stands around contexts."""

    prompt: str = ""
    """text around every context, with {context} in it (causal models)"""
    chat: bool = False
    """make the context the beginning of the assistant's turn in the model's chat template"""
    instruction: str = ""
    """with chat, the user's turn before it (default: Complete the sentence.)"""
    final_period: FinalPeriod = "always"
    """whether a period ends a sentence whose blank is its last word (models that see both sides)"""
    first_letter: FirstLetter = "as-is"
    """case of the first letter of every context"""

    def __post_init__(self) -> None:
        if self.chat and not self.instruction:
            object.__setattr__(self, "instruction", INSTRUCTION)


def query_options(record: QueryOptions) -> dict[str, Any]:
    """Returns the knobs of a record that has more fields, by name."""
    return {knob.name: getattr(record, knob.name) for knob in fields(QueryOptions)}


_SHORT = {"final_period": "period", "first_letter": "letter"}

KNOBS = {
    name.replace("_", "-"): _SHORT.get(name, name)
    for name in query_options(QueryOptions())
    if name not in ("chat", "instruction")  # which make the prompt
}
"""Option that decides how the same rows are asked -> its key in signatures."""

KNOB_VALUES = {
    option: values
    for option in KNOBS
    if (values := get_args(get_type_hints(QueryOptions)[option.replace("-", "_")]))
}
"""Knob -> its values, the default first; those of `prompt` are texts of the user."""


APPLICABLE: Mapping[tuple[Kind, str], tuple[str, ...]] = {
    ("causal", "word"): ("unit", "bos", "prompt", "first-letter"),
    ("masked", "word"): ("unit", "final-period", "first-letter"),
    ("seq2seq", "word"): ("unit", "final-period", "first-letter"),
    ("causal", "sentence"): ("unit", "bos"),
    ("masked", "sentence"): ("pll",),
    ("seq2seq", "sentence"): (),
}
"""Kind of model, and what rows ask -> the knobs that change what it is asked, or how."""

_REFUSED = {"word": ("prompt",), "sentence": ("prompt", "final-period", "first-letter")}
"""What rows ask -> knobs that are refused where they do not apply."""


def without_effect(query: QueryOptions, info: ModelInfo, asks: str) -> dict[str, str]:
    """Returns the knobs that are not at their default and cannot change any number.

    Args:
        query: all knobs.
        info: of the model.
        asks: what the rows ask, see `Diagnostic.asks`.

    Returns:
        field -> a line that says so.
    """
    lines = {}
    for option in KNOBS:
        name = option.replace("-", "_")
        value, default = getattr(query, name), getattr(QueryOptions(), name)
        applies = option in APPLICABLE[info.kind, asks] or option in _REFUSED[asks]
        is_caseless = option == "first-letter" and asks == "word" and not info.cased
        if value == default or (applies and not is_caseless):
            continue
        ever = any(option in APPLICABLE[info.kind, other] for other in ("word", "sentence"))
        kind = "an encoder-decoder" if info.kind == "seq2seq" else f"a {info.kind} model"
        rows = f"{kind} on {'whole sentences' if asks == 'sentence' else 'rows with a blank'}"
        where = "a model without capital letters" if applies else rows if ever else kind
        lines[name] = f"--{option} {value} has no effect with {where}: it is left out"
    return lines


@dataclass(frozen=True, kw_only=True)
class Protocol(QueryOptions):
    """Everything that decides what is asked and how it is scored, apart from model and data.

    Attributes:
        tasks: names of configs, in order.
        perturb: names of perturbations; the unperturbed setting is always included.
        shuffles: runs of the shuffled settings (100 in Ettinger 2020, table 4).
        seed: of the shuffles and of the sample.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        prompt: in a run with `chat`, what the model's chat template puts around every context.
        limit: rows of a sample of each task, see `lmdiag.stimuli.rows.sample`; None for all.
        verbs: number of verb pairs in the list for EW and MW; None outside agreement.
    """

    tasks: tuple[str, ...] = DIAGNOSTICS
    perturb: tuple[str, ...] = ()
    shuffles: int = 100
    seed: int = 0
    k: tuple[int, ...] = (1, 5)
    threshold: float = 0.01
    limit: int | None = None
    verbs: int | None = None

    @property
    def top(self) -> int:
        """Length of the top-k list that is kept: at least the paper's five."""
        return max(5, *self.k)


def checked_ranks(k: Iterable[int]) -> tuple[int, ...]:
    """Returns the ranks of accuracy@k in ascending order, each once.

    Raises:
        BadInput: not a list of integers from 1 up.
    """
    try:
        ranks = sorted({operator.index(rank) for rank in k})
    except TypeError:
        ranks = []
    if not ranks or ranks[0] < 1 or any(isinstance(rank, bool) for rank in k):
        raise BadInput(f"k is {k!r}: give integers from 1 up, as in k=[1, 5]")
    return tuple(ranks)


def checked_threshold(threshold: Any) -> float:
    """Returns the threshold of sensitivity@threshold, a difference between two probabilities.

    Raises:
        BadInput: not a number from 0 up to, but not including, 1.
    """
    is_number = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not is_number or not 0 <= threshold < 1:
        raise BadInput(f"threshold is {threshold!r}: give a number from 0 up to below 1, as 0.01")
    return float(threshold)


@dataclass(frozen=True, repr=False)
class Predictions(QueryOptions):
    """Columns of `predictions.parquet`, one entry per stimulus row, in the rows' order.

    They record how the model was asked, so that measures of different questions are not compared.

    Attributes:
        id: row ids.
        log_prob: nats of the row's target; None where unscorable (or not given by other programs).
        rank, n_tokens: see `WordScore`; None where unknown.
        top_words, top_log_probs: see `Answer`; the second may be None where unknown.
        perturbation: setting, "none" for the unperturbed one.
        run: number of the shuffle, 0 outside the shuffled settings.
        agreement: per row, the EW and MW of its context, see `Answer`; empty where not asked.
        words: per row, the words of its sentence; empty where rows have a blank. For sentences,
            `log_prob` and `n_tokens` are sums over the words that have a probability, see
            `SentenceAnswer`.
        model: that made the predictions; None if another program made them.
        seed, verbs: see `Protocol`.
    """

    id: list[str]
    log_prob: list[float | None]
    rank: list[int | None]
    n_tokens: list[int | None]
    top_words: list[list[str] | None]
    top_log_probs: list[list[float] | None]
    perturbation: str = "none"
    run: int = 0
    agreement: list[tuple[float | None, ...] | None] = field(default_factory=list)
    words: list[tuple[WordSpan, ...] | None] = field(default_factory=list)
    model: ModelInfo | None = None
    seed: int = 0
    verbs: int | None = None

    def __repr__(self) -> str:
        who = self.model.id if self.model else "unknown model"
        shuffle = f", run {self.run}, seed {self.seed}" if self.run or self.seed else ""
        return (
            f"<Predictions of {who}: {len(self.id)} rows, perturbation {self.perturbation}{shuffle}"
            f", unit {self.unit}, bos {self.bos}>"
        )

    def state(self, row: int) -> WordState:
        """Returns whether the word of a row was scored, and why not; see `WordScore`.

        Predictions of other programs that do not give `n_tokens` count as unscorable where they
        have no log-probability. A sentence without one is unscorable.
        """
        if self.log_prob[row] is not None:
            return "scored"
        if self.words:
            return "unscorable"
        return "censored" if self.n_tokens[row] else "unscorable"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with one row per stimulus row; log-probabilities are in nats.

        Of sentences, `words` has the words of each, see `WordSpan`.
        """
        from pandas import DataFrame

        names = ["id", "log_prob", "rank", "n_tokens", "top_words", "top_log_probs"]
        if self.words:
            names = ["id", "log_prob", "n_tokens", "words"]
        columns = {name: getattr(self, name) for name in names}
        return DataFrame(columns | {"perturbation": self.perturbation, "run": self.run})
