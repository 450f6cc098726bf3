"""The records that the stages of lmdiag hand to each other.

Data flows one way: stimuli -> questions -> answers -> predictions -> scores -> results.
Log-probabilities are natural logarithms (nats) everywhere; surprisal in bits is only for display.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, NamedTuple, Self, TypedDict, get_args, get_origin, get_type_hints

from lmdiag.spacing import has_space
from lmdiag.text import names_options

DIAGNOSTICS = ("cprag102", "role88", "neg136")
"""The three diagnostics of Ettinger (2020), the tasks of a run by default."""

TOP_CUTOFFS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0)
BOTTOM_CUTOFFS = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
"""Cumulative probabilities at which the curves of EW and MW are cut (Newman et al. 2021)."""

Number = Literal["singular", "plural"]
Kind = Literal["masked", "mntp", "causal", "seq2seq"]
"""What a model reads and where it answers; mntp is a masked model that answers one place before the
mask."""
WordState = Literal["scored", "censored", "unscorable"]
Fold = Literal["case", "accents", "forms"]
"""A difference between words that a tokenizer may ignore: `Vu` and `vu`, `vü` and `vu`, or
compatibility forms such as ligatures and letters of full width."""

WORD_COUNTS = ("frequency:", "ngram:")
"""How the names of models of word counts begin."""

UNCASED: tuple[Fold, ...] = ("case", "accents")
"""What uncased tokenizers ignore, as BERT's."""

SHARE_ROUNDING = 0.005
"""How far a published share of responses may be from the counted one."""

_LONGEST_MESSAGE = 2000
"""Characters of an error message."""


@cache
def field_types(record: type) -> Mapping[str, Any]:
    """Returns name of a field of a record -> its type.

    The types are objects, also where the module of the record has them as texts.
    """
    return get_type_hints(record)


_OPTION_RECORDS: list[type] = []
"""All subclasses of `Options` that are imported."""

_OPTION = re.compile(
    r"`[^`]*`"  # a command
    # an option, which does not stand within the name of a folder
    r"|(?<![\w.-])--(?P<name>[a-z]+(?:-[a-z]+)*)(?: (?P<value>[\w-]+))?"
)


@cache
def _choices_of_options(n_records: int) -> dict[str, set[str]]:
    """Returns option -> its choices; a flag has an empty set.

    Options that take any text or number are left out. `n_records` is `len(_OPTION_RECORDS)`, so
    that the cached result is not used once more records are imported.
    """
    choices_of: dict[str, set[str]] = {}
    for record in _OPTION_RECORDS[:n_records]:
        try:
            types = field_types(record)
        except NameError:  # a record whose types are imported for type checkers only
            continue
        for name, field_type in types.items():
            parts = [field_type, *get_args(field_type)]  # of `Literal[...] | None`, each part
            literals = [part for part in parts if get_origin(part) is Literal]
            choices = {choice for literal in literals for choice in get_args(literal)}
            if choices or field_type is bool:
                choices_of.setdefault(name, set()).update(choices)
    return choices_of


def as_parameters(message: str) -> str:
    """Returns a message with options written as parameters, unless a command runs.

    >>> from lmdiag.models import LoadOptions
    >>> as_parameters("try --dtype float32, or --allow-pickle, or another --device-map")
    "try dtype='float32', or allow_pickle=True, or another device_map"
    >>> as_parameters("the run in results/demo--causal")
    'the run in results/demo--causal'
    """
    if names_options.get():
        return message
    choices_of = _choices_of_options(len(_OPTION_RECORDS))

    def parameter(option: re.Match[str]) -> str:
        """Returns an option, and the word after it, as a parameter; a command as it is."""
        if not option["name"]:
            return option[0]
        name = option["name"].replace("-", "_")
        next_word = option["value"]
        if next_word in choices_of.get(name, ()):
            return f"{name}={next_word!r}"
        is_flag = name in choices_of and not choices_of[name]
        text = f"{name}=True" if is_flag else name
        return f"{text} {next_word}" if next_word else text

    return _OPTION.sub(parameter, message)


class BadInput(Exception):
    """Something the user gave cannot be used.

    The message is one line that names the thing and says what to do; commands print it and exit 2.
    Elsewhere it names parameters in place of options. Of a message that quotes a very long text
    only the beginning and the end are kept.
    """

    def __init__(self, message: str) -> None:
        if len(message) > _LONGEST_MESSAGE:
            half = _LONGEST_MESSAGE // 2
            message = f"{message[:half]} … {message[-half:]}"
        super().__init__(message)

    def __str__(self) -> str:
        """Returns the message, with options in the form that the command or function has."""
        return as_parameters(super().__str__())


GAP_SPACES: Mapping[str, tuple[bool | None, bool | None]] = {
    "": (None, None),
    "both": (True, True),
    "before": (True, False),
    "after": (False, True),
    "none": (False, False),
}
"""Value of the column `gap_spaces` -> `space_before` and `space_after` of the row's query."""


class Query(NamedTuple):
    """A distinct (context, right_context): what a model is asked once, however many rows share it.

    Attributes:
        context: text left of the blank, without the space before the word.
        right_context: text right of the blank; "" where the blank ends the sentence.
        space_before, space_after: whether a space stands before and after the word, where the
            sentence was typed with its gap; None where `lmdiag.spacing` says so for each word.
    """

    context: str
    right_context: str = ""
    space_before: bool | None = None
    space_after: bool | None = None

    def around(self, word: str, end: str = "") -> tuple[str, str]:
        """Returns the text before a word at the blank and the text after it, with their spaces.

        `end` takes the place of an empty right context.

        >>> Query("She said", "to me.").around("yes"), Query("She said").around("yes", end=".")
        (('She said ', ' to me.'), ('She said ', '.'))
        """
        before = self.context
        space_before = self.space_before
        if space_before is None:
            space_before = has_space(before, word)
        if space_before:
            before += " "
        after = self.right_context or end
        # `end` is not of the typed sentence, whose gap says nothing of the space before it
        space_after = self.space_after if self.right_context else None
        if space_after is None:
            space_after = has_space(before + word, after)
        if space_after:
            after = f" {after}"
        return before, after


@dataclass(frozen=True, slots=True)
class Question:
    """A query together with all that is to be read off at its blank.

    Attributes:
        query: the text around the blank.
        words: the distinct candidate words to score there, in order of first appearance.
        number: the right number of the verb at the blank, for EW and MW; None outside agreement.
        entropy: whether the entropy of the distribution at the blank is read off, too.
    """

    query: Query
    words: tuple[str, ...]
    number: Number | None = None
    entropy: bool = False


class Sentence(NamedTuple):
    """A text whose words are all scored; a model is asked it once, however many rows share it.

    Attributes:
        text: the sentence, or a text of any length.
        cuts: ascending positions in the text, in characters, where a word is cut in two, since a
            region of the sentence begins or ends there.
        entropy: whether the entropy before each word is read off, too.
    """

    text: str
    cuts: tuple[int, ...] = ()
    entropy: bool = False


class WordSpan(NamedTuple):
    """A word of a sentence, or a part of one where a region begins within it.

    Attributes:
        start, end: its position in the text, in characters.
        log_prob: nats; None for a word without anything before it (a causal model without a
            beginning-of-sequence token), and for one that the tokenizer cannot represent.
        n_tokens: its sub-tokens; 0 where the tokenizer cannot represent it, and, with a log_prob of
            0, where a token of the word before it covers all of it, see `shares_token`.
    """

    start: int
    end: int
    log_prob: float | None
    n_tokens: int

    @property
    def shares_token(self) -> bool:
        """Whether a token of the word before it covers all of it, so that it has no surprisal."""
        return self.log_prob == 0 and not self.n_tokens


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
        entropy: of the distribution over tokens at the blank, bits; None where not asked for.
    """

    words: dict[str, WordScore]
    top_words: tuple[str, ...]
    top_log_probs: tuple[float, ...]
    agreement: tuple[float | None, ...] | None = None
    entropy: float | None = None


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """What a model says of a sentence.

    Attributes:
        words: in their order; blanks separate them.
        entropies: of the distribution over tokens before the first token of each word, bits; None
            for a word without tokens or without anything before it. () where not asked for.
    """

    words: tuple[WordSpan, ...]
    entropies: tuple[float | None, ...] = ()

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
        log_probs = [word.log_prob for word in self.words if word.log_prob is not None]
        # a first word without anything before it has tokens, and does not count here
        has_unknown_word = any(word.log_prob is None and not word.n_tokens for word in self.words)
        return sum(log_probs) if log_probs and not has_unknown_word else None


@dataclass(frozen=True)
class ModelInfo:
    """The facts on a model that a run records.

    Attributes:
        id: Hub id, local folder or `demo:*` name, as given.
        revision: branch, tag or commit as asked for; None for the default.
        commit: the commit that was resolved (for a folder, a digest of its files).
        kind: see `Kind`.
        architecture: class name of the model.
        dtype: of the weights, e.g. "float32"; softmax is float32 or better in any case.
        tokenizer: class name of the tokenizer.
        cased: whether the tokenizer tells "A" from "a".
        vocab_size: items over which the softmax runs.
        n_parameters: number of parameters; 0 where it is not known, or there are none.
        max_length: longest input in tokens; None where there is no limit.
        n_layers: number of its layers; None where they are not found.
        bos: whether a beginning-of-sequence token stands before the context (causal models).
        sentence_bos: whether one stands before a whole sentence (causal models).
        tokenizer_bos: whether the tokenizer by itself puts special tokens before a text (causal
            models); None where it is not known.
        training_step: step of a training checkpoint where the revision names one.
        quantization: e.g. "8bit"; None without.
        attention: attention implementation in use.
        name: what the user calls the model in folders and tables; None for its id.
        server: address of the server that was asked, whose name for the model is `id`: commit,
            architecture, dtype and number of parameters are then not known. None for weights that
            were loaded.
        check_log_probs: of a model behind a server, the log-probability of each token of the
            contexts that are asked first, nats, which tell it from another model of its name; None
            for weights that were loaded, and in files of older versions.
        folds: which differences between words the tokenizer ignores, so that two words are the same
            for the model; None in files of older versions, see `word_folds`.
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
    tokenizer_bos: bool | None = None
    training_step: int | None = None
    quantization: str | None = None
    attention: str | None = None
    name: str | None = None
    server: str | None = None
    check_log_probs: tuple[float, ...] | None = None
    n_layers: int | None = None
    folds: tuple[Fold, ...] | None = None

    @property
    def counts_words(self) -> bool:
        """Whether it is a model of word counts, without weights and tokens."""
        return self.id.startswith(WORD_COUNTS)

    @property
    def word_folds(self) -> tuple[Fold, ...]:
        """The differences that are ignored where words are compared, see `folds`."""
        if self.folds is not None:
            return self.folds
        return () if self.cased else UNCASED


# ---- options -------------------------------------------------------------------------------------


def typed_words(options: Mapping[str, Any]) -> list[str]:
    """Returns options as the words of a command line.

    >>> typed_words({"critical": "word", "keep_case": True, "layers": ("0", "1")})
    ['--critical', 'word', '--keep-case', '--layers', '0', '1']
    """
    words: list[str] = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, str):
            words.append(value)
        elif value is not True:  # a flag has no value; other values are lists of texts
            words += value
    return words


@dataclass(frozen=True, kw_only=True)
class Options:
    """A record of options.

    Messages of commands name options (`--unit word`). Those of the Python API name parameters
    (`unit='word'`), which follow from the types of the fields of all records.
    """

    def __init_subclass__(cls) -> None:
        """Adds the new record to `_OPTION_RECORDS`, from which `as_parameters` knows its fields."""
        super().__init_subclass__()
        _OPTION_RECORDS.append(cls)

    def stored(self) -> dict[str, Any]:
        """Returns name -> value of the fields that are not at their default.

        >>> TableOptions(critical=("verb",)).stored()
        {'critical': ('verb',)}
        """
        changed = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                changed[field.name] = value
        return changed

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Returns the record that the keyword arguments of a function of the Python API fill.

        A tuple may be given as a list, as one text, or, of pairs NAME=VALUE, as a mapping.
        `BadInput` for a name that is not a field.

        >>> TableOptions.of({"columns": {"target": "form"}, "wide": "bad", "sheet": 2}).stored()
        {'columns': ('target=form',), 'wide': ('bad',), 'sheet': '2'}
        """
        declared = cls.__dataclass_fields__
        unknown_names = given.keys() - declared.keys()
        if unknown_names:
            raise BadInput(f"no option {min(unknown_names)!r}: choose from {', '.join(declared)}")
        values = {}
        for name, value in given.items():
            if isinstance(value, Mapping):  # becomes texts NAME=VALUE
                pairs = []
                for key, part in value.items():
                    is_list = isinstance(part, list | tuple)
                    text = ",".join(map(str, part)) if is_list else part
                    pairs.append(f"{key}={text}")
                value = pairs
            # the default tells the type of a field: () of several texts, "" of a single one
            default = declared[name].default
            if default == ():
                value = (value,) if isinstance(value, str) else tuple(value)
            elif default == "" and isinstance(value, int):
                value = str(value)  # a region or a sheet may be given by its number
            values[name] = value
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """How a user's own table is read, in this order; docs/specification.md, section 1."""

    columns: tuple[str, ...] = ()
    """which column is what, NAME=COLUMN, e.g. context=text target=form; a range of columns:
    region=R01..R12; several columns that tell texts apart: text=sentence text=condition"""
    filter: tuple[str, ...] = ()
    """rows to keep: COLUMN=VALUE[,VALUE] or COLUMN!=VALUE"""
    good: str = ""
    """with contrast, which rows are good: COLUMN=VALUE"""
    contrast: tuple[str, ...] = ()
    """columns whose values tell the contrasts apart, of which one row each is good"""
    wide: tuple[str, ...] = ()
    """columns that have the text of one condition each: a row becomes a row per column"""
    split: tuple[str, ...] = ()
    """column that names several conditions at once, COLUMN=SEPARATOR:NAME,NAME"""
    gap: str = ""
    """what stands for the missing word in a sentence, or the column that says so for each row
    (default: ___, [MASK], {} and the like)"""
    separator: str = ""
    """what separates the regions of a sentence (default: |)"""
    critical: tuple[str, ...] = ()
    """column with the position (from 1; from 0 by COLUMN:0) or the word of the critical word of a
    sentence, whose surprisal is then the response; or one for each of the wide columns"""
    sheet: str = ""
    """sheet of an Excel file: its name, or its number from 1 (default: the first with a table)"""
    keep_case: bool = False
    """count responses that differ in letter case as different words, and ask them so"""
    language: str = ""
    """language whose apostrophes say where no space stands between parts of a sentence: ca, en, fr,
    it or nl (default: a rule for most texts)"""

    def with_further(self, other: TableOptions) -> TableOptions:
        """Returns the options together with those of another record.

        Lists are joined. Where an option has a single value, that of the other record counts if it
        is given.

        >>> first = TableOptions(columns=("item=nr",), gap="__")
        >>> first.with_further(TableOptions(columns=("context=text",), gap="_")).stored()
        {'columns': ('item=nr', 'context=text'), 'gap': '_'}
        """
        combined = self.stored()
        for name, value in other.stored().items():
            if isinstance(value, tuple):
                combined[name] = (*combined.get(name, ()), *value)
            else:
                combined[name] = value
        return TableOptions(**combined)


class ReadingKeywords(TypedDict, total=False):
    """The fields of `TableOptions` but for `filter`, as keywords of Python."""

    columns: str | Sequence[str] | Mapping[str, str]
    good: str
    contrast: str | Sequence[str]
    wide: str | Sequence[str]
    split: str | Sequence[str]
    gap: str
    separator: str
    critical: str | Sequence[str]
    sheet: str
    keep_case: bool
    language: str


class TableKeywords(ReadingKeywords, total=False):
    """The fields of `TableOptions`, as keywords of Python."""

    filter: str | Sequence[str]


AS_IT_IS = TableOptions()
"""A table whose columns have the names of the specification."""

OnProgress = Callable[[float, int], object]
"""Called with the numbers of contexts or sentences that are answered and of all. What it raises
ends the run; answers so far are kept, and the same call resumes it."""

Coding = Literal["sum", "treatment", "difference"]
"""Contrasts of a factor: levels against their mean, against the first, or each against the one
before it. Two levels are -0.5 and 0.5; with "treatment", 0 and 1."""


WHOLE_SENTENCE = "sentence"
"""What stands for the whole sentence in the place of a region."""


@dataclass(frozen=True, kw_only=True)
class FactorOptions(Options):
    """The factors of a user's own data; what is not given is found in the data."""

    conditions: tuple[str, ...] = ()
    """columns of the conditions (default: those with 2 to 6 levels that differ within items)"""
    item: tuple[str, ...] = ()
    """columns that name the items, several where numbers begin anew (default: item)"""
    region: str = ""
    """number or name of the region whose surprisal is the response; all: each by itself; sentence:
    the whole sentence (default: the critical word of --critical, else the sentence)"""
    levels: tuple[str, ...] = ()
    """order of the levels of columns, COLUMN=a,b,c (default: alphabetical; numbers by size)"""


class FactorKeywords(TypedDict, total=False):
    """The fields of `FactorOptions`, as keywords of Python."""

    conditions: str | Sequence[str]
    item: str | Sequence[str]
    region: str | int
    levels: str | Sequence[str] | Mapping[str, Sequence[object]]


@dataclass(frozen=True, kw_only=True)
class DesignOptions(FactorOptions):
    """How the items of a user's own data are analysed, and how effects are shown."""

    coding: Coding = "sum"
    """of conditions in a formula: sum (-0.5 and 0.5), treatment (0 and 1) or difference (each level
    less the one before it; then also in the tests of more than two levels)"""
    by: str = ""
    """column that differs between items only: effects at each of its levels"""

    def given(self) -> dict[str, Any]:
        """Returns the fields that are not at their default, as arguments of `lmdiag.analyse`.

        >>> DesignOptions(levels=("gap=no,yes",)).given()
        {'levels': {'gap': ['no', 'yes']}}
        """
        arguments = self.stored()
        orders = {}
        for text in self.levels:
            column, _, levels = text.rpartition("=")  # a column may have "=" in its name
            if not column:
                raise BadInput(f"--levels {text!r}: write COLUMN=a,b,c")
            orders[column] = levels.split(",")
        if orders:
            arguments["levels"] = orders
        return arguments

    def columns(self) -> list[str]:
        """Returns all columns that the options name, each once.

        >>> DesignOptions(conditions=("gap",), levels=("gap=no,yes",), by="list").columns()
        ['gap', 'list']
        """
        columns_with_order = self.given().get("levels", ())
        names = (*self.conditions, *self.item, self.by, *columns_with_order)
        return list(dict.fromkeys(name for name in names if name))


FOUND_DESIGN = DesignOptions()
"""The design that the data show by themselves."""
