"""The records that the stages of lmdiag hand to each other.

Data flows one way: stimuli -> questions -> answers -> predictions -> scores -> results.
Log-probabilities are natural logarithms (nats) everywhere; surprisal in bits is only for display.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from pandas import DataFrame

DIAGNOSTICS = ("cprag102", "role88", "neg136")
"""The three diagnostics of Ettinger (2020), the tasks of a run by default."""

AGREEMENT = "agreement"
"""The minimal pairs of Newman et al. (2021)."""

Number = Literal["singular", "plural"]
Kind = Literal["masked", "causal", "seq2seq"]
Unit = Literal["token", "word"]
Bos = Literal["auto", "always", "never"]
Pll = Literal["within-word", "original"]
FinalPeriod = Literal["always", "never"]
FirstLetter = Literal["as-is", "upper", "lower"]
WordState = Literal["scored", "censored", "unscorable"]

_LONGEST_MESSAGE = 2000
"""Characters of an error message."""


class BadInput(Exception):
    """Something the user gave cannot be used.

    The message is one line that names the thing and says what to do; commands print it and exit 2.
    Of a message that quotes a very long text only the beginning and the end are kept.
    """

    def __init__(self, message: str) -> None:
        half = _LONGEST_MESSAGE // 2
        is_long = len(message) > 2 * half
        super().__init__(f"{message[:half]} … {message[-half:]}" if is_long else message)


class Query(NamedTuple):
    """A distinct (context, right_context): what a model is asked once, however many rows share it.

    Attributes:
        context: text left of the blank, without a trailing space.
        right_context: text right of the blank; "" where the blank ends the sentence.
    """

    context: str
    right_context: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A query together with all that is to be read off at its blank.

    Attributes:
        query: the text around the blank.
        words: the distinct candidate words to score there, in order of first appearance.
        number: the right number of the verb at the blank, for EW and MW; None outside agreement.
    """

    query: Query
    words: tuple[str, ...]
    number: Number | None = None


class Sentence(NamedTuple):
    """A text whose words are all scored; a model is asked it once, however many rows share it.

    Attributes:
        text: the sentence, or a text of any length.
        cuts: ascending positions in the text, in characters, where a word is cut in two, since a
            region of the sentence begins there.
    """

    text: str
    cuts: tuple[int, ...] = ()


class WordSpan(NamedTuple):
    """A word of a sentence, or a part of one where a region begins within it.

    Attributes:
        start, end: its position in the text, in characters.
        log_prob: nats; None for a word without anything before it (a causal model without a
            beginning-of-sequence token), and for one that the tokenizer cannot represent.
        n_tokens: its sub-tokens; 0 where the tokenizer cannot represent it, and, with a log_prob of
            0, where a token of the word before it covers all of it.
    """

    start: int
    end: int
    log_prob: float | None
    n_tokens: int


class WordScore(NamedTuple):
    """A candidate word at a blank.

    Attributes:
        log_prob: nats; None for a word that the tokenizer cannot represent (unscorable), and for a
            word below the list of a server that returns its most probable tokens only (censored).
        rank: 1 + the number of vocabulary items more probable than the word, its own first piece
            not counted; None where unscorable. In unit word: 1 + the number of complete words more
            probable, None also where the word is less probable than the last of the top list, for
            below it words are not counted.
        n_tokens: sub-tokens of the word at this blank; 0 where unscorable.
    """

    log_prob: float | None
    rank: int | None
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model predicts at one blank.

    Attributes:
        words: candidate word -> its score.
        top_words: the most probable items, best first; see `docs/specification.md` for how
            pieces of words are shown.
        top_log_probs: their log-probabilities in nats, parallel to `top_words`.
        agreement: the EW and MW of this context at every cut-off, in the order of
            `lmdiag.measures.AGREEMENT_LAYOUT`; None outside agreement.
    """

    words: dict[str, WordScore]
    top_words: tuple[str, ...]
    top_log_probs: tuple[float, ...]
    agreement: tuple[float | None, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values; floats keep every bit through `json`."""
        return {
            "words": {word: list(score) for word, score in self.words.items()},
            "top": [list(self.top_words), list(self.top_log_probs)],
            "agreement": None if self.agreement is None else list(self.agreement),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Answer:
        """Inverse of `to_json`."""
        agreement = record["agreement"]
        return cls(
            words={word: WordScore(*score) for word, score in record["words"].items()},
            top_words=tuple(record["top"][0]),
            top_log_probs=tuple(record["top"][1]),
            agreement=None if agreement is None else tuple(agreement),
        )


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """What a model says of a sentence: the words in their order; blanks separate them."""

    words: tuple[WordSpan, ...]

    @property
    def n_tokens(self) -> int:
        """Sub-tokens of the words that have a probability."""
        return sum(word.n_tokens for word in self.words if word.log_prob is not None)

    @property
    def log_prob(self) -> float | None:
        """Sum over the words that have a probability, nats.

        None where no word has one, and where the tokenizer cannot represent a word: the sum of the
        others would make the sentence too probable.
        """
        known = [word.log_prob for word in self.words if word.log_prob is not None]
        unknown = any(word.log_prob is None and not word.n_tokens for word in self.words)
        return sum(known) if known and not unknown else None

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values; floats keep every bit through `json`."""
        return {"spans": [list(word) for word in self.words]}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> SentenceAnswer:
        """Inverse of `to_json`."""
        return cls(tuple(WordSpan(*word) for word in record["spans"]))


@dataclass(frozen=True)
class ModelInfo:
    """The facts on a model that a run records.

    Attributes:
        id: Hub id, local folder or `demo:*` name, as given.
        revision: branch, tag or commit as asked for; None for the default.
        commit: the commit that was resolved (for a folder, a digest of its files).
        kind: masked, causal or seq2seq.
        architecture: class name of the model.
        dtype: of the weights, e.g. "float32"; softmax is float32 or better in any case.
        tokenizer: class name of the tokenizer.
        cased: whether the tokenizer tells "A" from "a"; decides how `expected` is compared.
        vocab_size: items over which the softmax runs.
        n_parameters: number of parameters.
        max_length: longest input in tokens; None where there is no limit.
        bos: whether a beginning-of-sequence token stands before the context (causal models).
        sentence_bos: whether one stands before a whole sentence (causal models).
        training_step: step of a training checkpoint where the revision names one.
        quantization: e.g. "8bit"; None without.
        attention: attention implementation in use.
        name: what the user calls the model in folders and tables; None for its id.
        server: address of the server that was asked, whose name for the model is `id`: commit,
            architecture, dtype and number of parameters are then not known. None for weights that
            were loaded.
    """

    id: str
    revision: str | None
    commit: str
    kind: Kind
    architecture: str
    dtype: str
    tokenizer: str
    cased: bool
    vocab_size: int
    n_parameters: int
    max_length: int | None
    bos: bool = False
    sentence_bos: bool = False
    training_step: int | None = None
    quantization: str | None = None
    attention: str | None = None
    name: str | None = None
    server: str | None = None


@dataclass(frozen=True)
class Protocol:
    """Everything that decides what is asked and how it is scored, apart from model and data.

    Attributes:
        tasks: names of configs, in order.
        perturb: names of perturbations; the unperturbed setting is always included.
        shuffles: runs of the shuffled settings (100 in Ettinger 2020, table 4).
        seed: of the shuffles and of the sample.
        unit: token or word, see `docs/specification.md`.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        bos: auto, always or never (causal models).
        pll: how the pieces of a word are masked in whole sentences (masked models); see
            `docs/specification.md`.
        prompt: text with `{context}` in it that stands around every context (causal models); "" for
            none. In a run with `chat`, what the model's chat template puts there.
        chat: whether a context is a turn of the assistant, to be continued.
        instruction: the user's turn before it; "" without `chat`.
        final_period: whether a period ends a sentence whose blank is its last word (models that see
            both sides).
        first_letter: case of the first letter of every context.
        limit: rows of a sample of each task, see `lmdiag.stimuli.sample`; None for all.
        verbs: number of verb pairs in the list for EW and MW; None outside agreement.
    """

    tasks: tuple[str, ...] = DIAGNOSTICS
    perturb: tuple[str, ...] = ()
    shuffles: int = 100
    seed: int = 0
    unit: Unit = "token"
    k: tuple[int, ...] = (1, 5)
    threshold: float = 0.01
    bos: Bos = "auto"
    pll: Pll = "within-word"
    prompt: str = ""
    chat: bool = False
    instruction: str = ""
    final_period: FinalPeriod = "always"
    first_letter: FirstLetter = "as-is"
    limit: int | None = None
    verbs: int | None = None

    @property
    def top(self) -> int:
        """Length of the top-k list that is kept: at least the paper's five."""
        return max(5, *self.k)


ASKED = (
    "unit", "bos", "pll", "prompt", "final_period", "first_letter", "seed", "verbs",
)  # fmt: skip
"""Fields of `Protocol` that predictions record, too."""


KNOBS = {
    "unit": "unit", "bos": "bos", "pll": "pll", "prompt": "prompt", "final-period": "period",
    "first-letter": "letter",
}  # fmt: skip
"""Option that decides how the same rows are asked -> its key in signatures."""


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
class Predictions:
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
        unit, bos, pll, prompt, final_period, first_letter, seed, verbs: see `Protocol`.
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
    unit: Unit = "token"
    bos: Bos = "auto"
    pll: Pll = "within-word"
    prompt: str = ""
    final_period: FinalPeriod = "always"
    first_letter: FirstLetter = "as-is"
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
