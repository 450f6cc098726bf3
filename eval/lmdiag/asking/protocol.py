"""How a model is asked: the one record that all parts share, and the protocol of a run.

A new knob is a field of `QueryOptions`, whose type has its choices and whose text is its help, a
record in `KNOBS`, rules of where it does not apply (`lmdiag.asking.rules`), the place where it
takes effect, and its text in `docs/protocol.md`. The command line, the loading of models,
predictions, signatures, names of folders, reports and the multiverse read the field and the record.
"""

from __future__ import annotations

import hashlib
import numbers
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from lmdiag.types import (
    DIAGNOSTICS,
    BadInput,
    ModelInfo,
    Options,
    WordSpan,
    WordState,
    field_types,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Asks = Literal["word", "sentence"]
Unit = Literal["token", "word"]
Bos = Literal["auto", "always", "never", "eos"]
Pll = Literal["within-word", "original"]
FinalPeriod = Literal["always", "never"]
FirstLetter = Literal["as-is", "upper", "lower"]
Elicitation = Literal["probability", "choice"]

INSTRUCTION = "Complete the sentence."
"""The user's turn in a chat, where no other is given."""


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(Options):
    """What a probability is about. The texts of the fields are the help of the command line."""

    unit: Unit = "token"
    """unit of the top-k list and of probabilities"""
    bos: Bos = "auto"
    """whether a causal model's context starts with the beginning-of-sequence token; auto: as the
    tokenizer does, and for whole sentences where it has one; eos: with the end-of-sequence token,
    for tokenizers without another"""
    pll: Pll = "within-word"
    """what a masked model does not see where it scores a token of a whole sentence: the token and
    the later ones of its word, or the token alone"""
    layer: int | None = None
    """number of the layer after which the model answers, 0 for the input of the first one
    (default: the last layer)"""


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
    elicitation: Elicitation = "probability"
    """read the probabilities of words, or ask a causal model which row of a contrast is more likely
    (choice)"""
    choice_prompt: str = ""
    """with choice, the text of the question, or a file with it, with {options} in it"""
    entropy: bool = False
    """record the entropy over tokens at every blank, or before every word of a sentence (in bits,
    in the items of the run); no figure depends on it"""

    def __post_init__(self) -> None:
        """Sets the default instruction of a chat, so that signatures and reports show it.

        A choice has no instruction: its question is the user's turn.
        """
        if self.chat and not self.instruction and self.elicitation == "probability":
            object.__setattr__(self, "instruction", INSTRUCTION)  # the dataclass is frozen


def query_options(record: QueryOptions) -> dict[str, Any]:
    """Returns the fields of `QueryOptions` by name, of a record that may have further fields."""
    return {option.name: getattr(record, option.name) for option in fields(QueryOptions)}


# ---- knobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Knob:
    """A field of `QueryOptions` that decides how the same rows are asked.

    Attributes:
        name: name of the field.
        key: name of the knob in signatures and in names of folders.
        template: another field of `QueryOptions`, a flag. If it is set, the model's template of
            that name makes the text of this knob, as the chat template makes the prompt. "" if
            there is no such field.
        varies: whether a multiverse, which runs all combinations of knobs, varies this knob unless
            the user names other ones.
        is_in_model_name: whether the value is shown as a part of the model's name, as in
            "gpt2, layer 6".
        unset: name of the value if none is given.
    """

    name: str
    key: str
    template: str = ""
    varies: bool = True
    is_in_model_name: bool = False
    unset: str = "none"

    @property
    def option(self) -> str:
        """The knob's name on the command line and in a multiverse, e.g. "first-letter"."""
        return self.name.replace("_", "-")

    @property
    def default(self) -> Any:
        """The knob's value where none is given."""
        return getattr(QueryOptions(), self.name)

    @property
    def values(self) -> tuple[str, ...]:
        """The knob's values, the default first; () if they are texts or numbers of the user."""
        kind = field_types(QueryOptions)[self.name]
        return get_args(kind) if get_origin(kind) is Literal else ()

    @property
    def is_text(self) -> bool:
        """Whether the knob's values are texts of the user."""
        return field_types(QueryOptions)[self.name] is str

    def is_changed(self, query: QueryOptions) -> bool:
        """Returns whether the options have another value of this knob than its default."""
        return bool(getattr(query, self.name) != self.default)

    def has_template(self, query: QueryOptions) -> bool:
        """Returns whether a template of the model makes the knob's text.

        So it is with the prompt if `chat` is True.
        """
        return bool(self.template and getattr(query, self.template))

    def in_signature(self, query: QueryOptions) -> str:
        """Returns the knob's value as signatures have it; a text of the user becomes a digest."""
        value = getattr(query, self.name)
        return text_digest(value) if self.is_text else str(value)

    def choice(self, query: QueryOptions) -> str:
        """Returns the name of the knob's value in a multiverse, e.g. "word", "chat" or "none".

        "chat" is the name of a prompt that the model's chat template makes, "none" that of a text
        that is not given. A user chooses values by these names; `words` is what readers see.

        >>> KNOBS["prompt"].choice(QueryOptions(chat=True)), KNOBS["layer"].choice(QueryOptions())
        ('chat', 'last')
        """
        if self.has_template(query):
            return self.template  # the name of the template, since its text is long
        value = getattr(query, self.name)
        return self.unset if value in ("", None) else str(value)

    def words(self, query: QueryOptions) -> str:
        """Returns the knob's value as tables and messages name it.

        It differs from `choice` where the bare name would not say what it is: the value of a knob
        that is shown in the model's name has the knob before it, and a template is called one.

        >>> KNOBS["prompt"].words(QueryOptions(chat=True))
        'chat template'
        >>> KNOBS["layer"].words(QueryOptions(layer=6))
        'layer 6'
        >>> KNOBS["unit"].words(QueryOptions(unit="word"))  # as `choice`
        'word'
        """
        if self.is_in_model_name and self.is_changed(query):
            return f"{self.option} {self.choice(query)}"
        if self.has_template(query):
            return f"{self.template} template"
        return self.choice(query)


KNOBS = {
    knob.option: knob
    for knob in (
        Knob("unit", "unit"),
        Knob("bos", "bos"),
        Knob("pll", "pll"),
        Knob("prompt", "prompt", template="chat"),
        Knob("final_period", "period"),
        Knob("first_letter", "letter"),
        Knob("elicitation", "elicitation", varies=False),
        Knob("choice_prompt", "question", varies=False),
        Knob("layer", "layer", varies=False, is_in_model_name=True, unset="last"),
    )
}
"""Option -> its knob, in the order of signatures. `chat` and `instruction` make the prompt."""


def text_digest(text: str) -> str:
    """Returns 8 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def layer_numbers(layers: Iterable[str | int], n_layers: int) -> tuple[int, ...]:
    """Returns the layers that the user asks for, in ascending order, each once.

    Args:
        layers: numbers, from 0 for the input of the first layer; or "all" alone.
        n_layers: number of the last one.

    >>> layer_numbers(["6", "2"], 12), layer_numbers("all", 3)
    ((2, 6), (0, 1, 2, 3))
    """
    texts = [layers] if isinstance(layers, str) else [str(layer) for layer in layers]
    if texts == ["all"]:
        return tuple(range(n_layers + 1))
    for text in texts:
        if not text.isdecimal() or int(text) > n_layers:
            raise BadInput(f"there is no layer {text}: give all, or layers from 0 to {n_layers}")
    return tuple(sorted({int(text) for text in texts}))


TRAINED_WITH_BOS = {"Gemma": True, "Pythia": False}
"""Family whose tokenizer may say otherwise -> whether texts began with a special token in training;
`docs/protocol.md` has the sources."""


def bos_remark(query: QueryOptions, info: ModelInfo, asks: str) -> str:
    """Returns a warning about the beginning-of-sequence token, or "".

    There is a warning if texts begin with this token and the texts of the training did not, or the
    other way round; and if `--bos` contradicts the tokenizer. There is none for models that are not
    causal, and for chats, whose template decides how a text begins.

    Args:
        query: how the model is asked.
        info: facts on the model.
        asks: what the rows ask, "word" or "sentence".
    """
    if info.kind != "causal" or query.chat:
        return ""
    is_sentence = asks == "sentence" and query.elicitation == "probability"
    has_bos = info.sentence_bos if is_sentence else info.bos
    token = "beginning-of-sequence token"
    # without the organisation or the folder before the model's name
    names = f"{info.id} {info.architecture}".rpartition("/")[2].lower()
    # the tokenizers of these families may differ from the training, which decides
    for family, is_needed in TRAINED_WITH_BOS.items():
        if family.lower() not in names:
            continue
        if is_needed == has_bos:  # as in training, whatever the tokenizer does
            return ""
        if has_bos:
            problem = f"a {token}, but the published training data of {family} have none"
            remedy = "compare with --bos never"
        else:
            problem = f"no {token}, but {family} was trained with one and fails without it"
            remedy = "use --bos always"
        return f"model {info.id} reads {problem}: {remedy}"
    # for whole sentences, `--bos auto` adds the token, too
    if query.bos == "never" and info.tokenizer_bos:
        contradiction = f"leaves out the {token} that its tokenizer adds"
    elif query.bos == "always" and info.tokenizer_bos is False and not is_sentence:
        contradiction = f"adds a {token} that its tokenizer does not add"
    else:
        return ""
    return f"model {info.id}: --bos {query.bos} {contradiction}: compare with --bos auto"


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
        limit: rows of a sample of each task, see `stimulus_rows.sample`; None for all.
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

    `BadInput` unless they are integers from 1 up.
    """
    try:
        # `operator.index` takes integers of numpy, too, and refuses 1.0
        ranks = sorted({operator.index(rank) for rank in k})
    except TypeError:  # a rank is not an integer, or `k` is one number
        ranks = []
    # True would count as 1
    if not ranks or ranks[0] < 1 or any(isinstance(rank, bool) for rank in k):
        raise BadInput(f"k is {k!r}: give integers from 1 up, as in k=[1, 5]")
    return tuple(ranks)


def checked_threshold(threshold: Any) -> float:
    """Returns the threshold of sensitivity@threshold; `BadInput` unless it is in [0, 1)."""
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
        labels: per row, the log-probability (nats) of each label in the order in which the row has
            it, see `lmdiag.asking.elicitation`; empty but for choices.
        entropies: per row, the entropy at its blank (one value), or before each of `words`, bits,
            see `SentenceAnswer`; empty where not asked for.
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
    labels: list[list[float | None] | None] = field(default_factory=list)
    entropies: list[list[float | None] | None] = field(default_factory=list)
    model: ModelInfo | None = None
    seed: int = 0
    verbs: int | None = None

    def __repr__(self) -> str:
        """Returns one line with the model, the number of rows and the setting."""
        model = self.model.id if self.model else "unknown model"
        shuffle = f", run {self.run}, seed {self.seed}" if self.run or self.seed else ""
        setting = f"perturbation {self.perturbation}{shuffle}, unit {self.unit}, bos {self.bos}"
        return f"<Predictions of {model}: {len(self.id)} rows, {setting}>"

    def state(self, row: int) -> WordState:
        """Returns whether the word or sentence of a row was scored, or why not.

        A word without a log-probability is "censored" if the tokenizer can represent it: its
        probability is too low to be known. Otherwise it is "unscorable". Sentences without a
        log-probability are "unscorable", and so are words of which another program does not say the
        number of tokens.
        """
        if self.log_prob[row] is not None:
            return "scored"
        is_sentence = bool(self.words)
        if is_sentence or not self.n_tokens[row]:
            return "unscorable"
        return "censored"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with one row per stimulus row; log-probabilities are in nats.

        Of sentences, `words` has the words of each, see `WordSpan`.
        """
        from pandas import DataFrame

        if self.labels:
            names = ["id", "log_prob", "n_tokens", "labels"]
        elif self.words:
            names = ["id", "log_prob", "n_tokens", "words"]
        else:
            names = ["id", "log_prob", "rank", "n_tokens", "top_words", "top_log_probs"]
        if self.entropies:
            names.append("entropies")
        columns = {name: getattr(self, name) for name in names}
        return DataFrame(columns | {"perturbation": self.perturbation, "run": self.run})
