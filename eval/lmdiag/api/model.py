"""Models that are loaded, asked and measured."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Unpack

from lmdiag.api.arguments import as_names, check_type
from lmdiag.asking.elicitation import wording_of
from lmdiag.asking.protocol import (
    Predictions,
    Protocol,
    bos_remark,
    checked_ranks,
    checked_threshold,
    query_options,
)
from lmdiag.asking.questions import Setting
from lmdiag.asking.rules import reset_ineffective
from lmdiag.frequencies import log_frequencies
from lmdiag.measures import folds_for
from lmdiag.models.loading.load_options import LoadKeywords, LoadOptions
from lmdiag.options import (
    Asking,
    AskingKeywords,
    Batching,
    BatchingKeywords,
    LayerKeywords,
    LayerOptions,
    Seeded,
    SeedKeywords,
    check_names,
    check_whole,
    pop_options,
    with_fields,
)
from lmdiag.results.item_rows import TaskPredictions
from lmdiag.results.measured import Measures
from lmdiag.runs.asking import control_warning, predict, predict_layers, row_texts, start_warning
from lmdiag.runs.journal import kept_answers
from lmdiag.runs.surprisals import layer_surprisals, shared_tokens_warning, word_surprisals
from lmdiag.stimuli import Stimuli, load_verbs, perturbations
from lmdiag.text import first_few
from lmdiag.types import BadInput, as_parameters

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.models import Model
    from lmdiag.runs.surprisals import WordColumn

_STIMULI = "stimuli, as lmdiag.load_stimuli makes them of a file, a DataFrame or a list of dicts"


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Seeded, Asking):
    """How predictions are made.

    Attributes:
        perturbation: "none", or one of `lmdiag.stimuli.perturbations.names()`
        run: number of the shuffle, for the shuffled perturbations
        top: length of the lists of top words
    """

    perturbation: str = "none"
    run: int = 0
    top: int = 5

    def __post_init__(self) -> None:
        """Raises `BadInput` for a length or a number that is not a whole number from 1 or 0 up."""
        super().__post_init__()
        check_whole(1, top=self.top)
        check_whole(0, run=self.run)


class PredictKeywords(SeedKeywords, AskingKeywords, total=False):
    """Keywords of `LanguageModel.predict`."""

    perturbation: str
    run: int
    top: int


class SurprisalKeywords(LayerKeywords, BatchingKeywords, total=False):
    """Keywords of `LanguageModel.surprisals` that other functions have, too."""


@with_fields(LoadOptions)
def load_model(model_id: str | Path, **options: Unpack[LoadKeywords]) -> LanguageModel:
    """Loads a masked, causal or encoder-decoder model.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`; `frequency:en`, word
            frequency in a language; `ngram:FILE`, an n-gram model; with `server`, the name of the
            model there.
        options: fields of `lmdiag.models.LoadOptions`, e.g. revision, dtype, unit, bos, chat.

    Raises:
        BadInput: it cannot be loaded, or an option is not allowed; names the remedy.

    >>> import lmdiag
    >>> lmdiag.load_model("demo:causal")
    LanguageModel('demo:causal', kind='causal')
    """
    from lmdiag import models

    check_type("model_id", model_id, (str, Path), "a Hub id, a folder, demo:masked or demo:causal")
    load_options = LoadOptions.from_keywords(options)
    return LanguageModel(models.load(str(model_id), load_options), load_options)


def load_in_turn(
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel],
    **options: Unpack[LoadKeywords],
) -> Iterator[LanguageModel]:
    """Yields models in order; those that are given by name are loaded when it is their turn.

    So only one of them is in memory at a time, unless the caller keeps them.

    Args:
        models: names, see `load_model`, or loaded models; one or several.
        options: how those that are given by name are loaded.
    """
    for model in [models] if isinstance(models, str | Path | LanguageModel) else models:
        yield load_model(model, **options) if isinstance(model, str | Path) else model


class LanguageModel:
    """A model that predicts the words of stimuli and of texts.

    Threads may share it: their calls wait for each other.

    Attributes:
        model: the model itself, for questions that are not stimuli.
        info: the facts of the model that a run records.
        options: how it was loaded; predictions record those that decide what is asked.
        lock: held while the model is asked.
    """

    def __init__(self, model: Model, options: LoadOptions) -> None:
        """Wraps a model that is loaded with these options; `load_model` does both."""
        self.model = model
        self.info = model.info
        self.options = options
        self.lock = RLock()

    def __repr__(self) -> str:
        """Returns for example "LanguageModel('gpt2', kind='causal')"."""
        return f"LanguageModel({self.info.id!r}, kind={self.info.kind!r})"

    @with_fields(PredictOptions, keywords=PredictKeywords)
    def predict(self, stimuli: Stimuli, **how: Unpack[PredictKeywords]) -> TaskPredictions:
        """Returns a prediction for each row; rows with the same context are one question.

        Args:
            stimuli: the rows.

        Raises:
            BadInput: a context is too long for the model, or its logits are NaN or infinite.
        """
        [predictions] = self._predict(stimuli, (), PredictOptions.of(how))
        return predictions

    @with_fields(PredictOptions, keywords=PredictKeywords)
    def predict_layers(
        self,
        stimuli: Stimuli,
        layers: str | Sequence[int | str] = "all",
        **how: Unpack[PredictKeywords],
    ) -> list[TaskPredictions]:
        """Returns what `predict` returns, once for each of some layers.

        The model reads each row once, and answers after every layer.

        Args:
            stimuli: the rows.
            layers: "all", or numbers from 0 for the input of the first layer; they are returned in
                ascending order, and the last layer gives the ordinary predictions.

        Raises:
            BadInput: see `predict`; or the model does not have these layers.
        """
        return self._predict(stimuli, as_names(layers), PredictOptions.of(how))

    def _predict(
        self, stimuli: Stimuli, layers: Sequence[int | str], options: PredictOptions
    ) -> list[TaskPredictions]:
        """Returns the predictions of the model for stimuli: one record, or one for each layer.

        Warns of options without an effect and of texts that the model reads in an unexpected way.

        Args:
            stimuli: the rows, unperturbed.
            layers: numbers of layers after which the model answers, or "all"; () for the ordinary
                answer after the last one.
            options: the perturbation, how batches are made, and where answers are kept.
        """
        check_type("stimuli", stimuli, Stimuli, _STIMULI)
        if options.perturbation != perturbations.NONE:
            stimuli = perturbations.perturb(
                stimuli, options.perturbation, options.run, options.seed
            )
        verb_pairs = None
        if stimuli.diagnostic.has_verbs:
            verb_pairs = load_verbs(stimuli.source, revision=stimuli.revision)
        setting = Setting(
            stimuli, options.perturbation, options.run, wording_of(self.options),
            self.options.entropy,
        )  # fmt: skip
        texts = row_texts([stimuli], self.info.kind)
        warning_lines = control_warning(self.model, texts), start_warning(self.model, texts)
        # level 4: `_warn`, this method, `predict`, and above them the code of the user
        effective_options = self._warn(stimuli.diagnostic.asks, *warning_lines, level=4)
        # what predictions record beside the answers
        recorded_options = query_options(effective_options) | {
            "prompt": self.model.prompt,
            "seed": options.seed,
            "verbs": None if verb_pairs is None else len(verb_pairs),
            "model": self.info,
        }
        layers_model = self.model.at_layers(layers) if layers else None
        model = layers_model or self.model
        # what decides the answers, beside the model
        journal_key = [repr(sorted(query_options(self.options).items())), self.model.prompt]
        opened_journal = kept_answers(options.output, self.info, "blanks", journal_key)
        ask_options: dict[str, Any] = {
            "top": options.top,
            "batch_size": options.batch_size,
            "label": None if options.quiet else self.info.id,  # None shows no progress
        }
        with self.lock, opened_journal as journal:
            if verb_pairs is not None:
                model.set_verbs(verb_pairs)
            # both functions return predictions for each setting, here one, and a number of contexts
            if layers_model is None:
                [predictions], _ = predict(model, [setting], journal=journal, **ask_options)
                return [TaskPredictions(**vars(predictions) | recorded_options, stimuli=stimuli)]
            by_layer, _ = predict_layers(model, [setting], journal=journal, **ask_options)
        records = []
        for layer, [predictions] in zip(layers_model.layers, by_layer, strict=True):
            fields = vars(predictions) | recorded_options | {"layer": layer}
            records.append(TaskPredictions(**fields, stimuli=stimuli))
        return records

    @with_fields(LayerOptions, Batching, keywords=SurprisalKeywords)
    def surprisals(
        self,
        texts: str | Iterable[str],
        *,
        columns: Sequence[WordColumn] = (),
        language: str = "en",
        cuts: Sequence[Sequence[int]] = (),
        **how: Unpack[SurprisalKeywords],
    ) -> DataFrame:
        """Returns a pandas table with the surprisal of every word, as `lmdiag surprisal` writes it.

        Args:
            texts: a sentence or a text of any length, or several.
            columns: "length" (characters), "log_frequency" (log2 of the proportion of the word, by
                wordfreq).
            language: of the frequencies.
            cuts: of each text, ascending positions, in characters, at which a word begins without a
                space before it, as in Chinese; () for none.

        Returns:
            a row per word, with several layers for each `layer`: `text` (number of the text, from
            1), `position` (of the word, from 1), `word`, `start` (place of its first character in
            the text, from 0), `surprisal` (bits; NaN for a word without a probability), `n_tokens`
            (0 for a word that the tokenizer cannot represent or without a token of its own) and, of
            a model loaded with `entropy=True`, `entropy` (bits, over tokens, before the first token
            of the word). Where a token covers several words, `shares_token` is "next" for the word
            in which it begins, and "previous" for the others, which have no surprisal.

        Raises:
            BadInput: the model is an encoder-decoder, or something is not a text.
        """
        check_names(self.surprisals, how)
        keywords: dict[str, Any] = {**how}
        layers = pop_options(LayerOptions, keywords).layers
        batching = Batching.of(keywords)
        text_of_name = _texts_by_name(texts)
        all_texts = [*text_of_name.values()]
        ask_options: dict[str, Any] = {
            "entropy": self.options.entropy,
            "batch_size": batching.batch_size,
            "cuts": cuts,
            "label": None if batching.quiet else self.info.id,  # None shows no progress
        }
        with self.lock:
            if layers:
                table = layer_surprisals(self.model.at_layers(layers), all_texts, **ask_options)
            else:
                table = word_surprisals(self.model, all_texts, **ask_options)
        self._warn(
            "sentence",
            control_warning(self.model, text_of_name),
            _unscored_warning(table, text_of_name),
            shared_tokens_warning(table),
        )
        words = table["word"]
        for name in columns:
            if name == "length":
                # a letter with an accent is one character, also if it is typed as two
                table[name] = words.str.normalize("NFC").str.len()
            else:
                table[name] = log_frequencies(words, language)
        return table if self.options.entropy else table.drop(columns="entropy")

    def _warn(self, asks: str, *lines: str | None, level: int = 3) -> LoadOptions:
        """Warns of options without an effect, and of `lines`; returns the effective options.

        An option without an effect, as `bos` for a masked model, has its default in the result.

        Args:
            asks: what a row asks of the model, "word" or "sentence".
            lines: further warnings; None for a warning that does not apply.
            level: `stacklevel` of the warnings, so that they name the line of the user's own code.
                It is 3 if that code has called the method that calls this one.
        """
        options, ineffective = reset_ineffective(self.options, self.info, asks)
        remark = bos_remark(self.options, self.info, asks)
        for line in filter(None, (*ineffective, remark, self.model.warning, *lines)):
            warnings.warn(as_parameters(line), stacklevel=level)
        return options


def _texts_by_name(texts: str | Iterable[str]) -> dict[str, str]:
    """Returns the name of a text in messages -> the text.

    `BadInput` for a table, or for a value that is not a string.

    >>> _texts_by_name(["It rains.", "It snows."])
    {'text 1': 'It rains.', 'text 2': 'It snows.'}
    """
    is_table = isinstance(texts, Mapping) or hasattr(texts, "columns")
    if is_table or not isinstance(texts, Iterable):
        given_type = type(texts).__name__
        raise BadInput(
            f"texts must be a text or several, such as a list or a column, not {given_type}"
        )
    all_texts = [texts] if isinstance(texts, str) else list(texts)
    text_of_name = {f"text {number}": text for number, text in enumerate(all_texts, start=1)}
    for name, text in text_of_name.items():
        if not isinstance(text, str):
            raise BadInput(f"{name} is {text!r}: give texts as strings")
    return text_of_name


def _unscored_warning(table: DataFrame, text_of_name: Mapping[str, str]) -> str | None:
    """Returns one line about the texts in which no word has a surprisal; None without such texts.

    Texts of white space alone, which have no words, are not named. For example "no word with a
    surprisal: text 2".

    Args:
        table: surprisals of words, of which `text` has the number of the text, from 1.
        text_of_name: the texts in order, by "text NUMBER".
    """
    scored_names = {f"text {number}" for number in table.dropna(subset="surprisal")["text"]}
    unscored_names = [
        name for name, text in text_of_name.items() if text.strip() and name not in scored_names
    ]
    return f"no word with a surprisal: {first_few(unscored_names)}" if unscored_names else None


def measure(
    predictions: Predictions,
    stimuli: Stimuli,
    *,
    k: Sequence[int] = (1, 5),
    threshold: float = 0.01,
    cased: bool | None = None,
) -> Measures:
    """Returns the measures of a task (docs/specification.md, section 4).

    Args:
        predictions: in the order of the rows.
        stimuli: the rows, unperturbed.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        cased: True to compare words exactly, False to compare them without case and accents; None
            to count words as equal that the model's tokenizer reads alike.

    Raises:
        BadInput: the predictions do not belong to the rows, k is not a list of integers from 1 up,
            or the threshold is not a number from 0 up to below 1.

    >>> import lmdiag
    >>> stimuli = lmdiag.load_stimuli("demo", "role88")
    >>> predictions = lmdiag.load_model("demo:causal").predict(stimuli)
    >>> measures = lmdiag.measure(predictions, stimuli)
    >>> measures["sensitivity"]["n"]
    16
    """
    check_type("predictions", predictions, Predictions, "what LanguageModel.predict returns")
    check_type("stimuli", stimuli, Stimuli, _STIMULI)
    perturbation = predictions.perturbation
    recorded_options = query_options(predictions)
    if perturbations.is_shuffled(stimuli.task, perturbation):
        recorded_options["shuffles"] = 1  # predictions are those of one shuffle
    protocol = Protocol(
        tasks=(stimuli.task,),
        perturb=() if perturbation == perturbations.NONE else (perturbation,),
        seed=predictions.seed,
        verbs=predictions.verbs,
        k=checked_ranks(k),
        threshold=checked_threshold(threshold),
        **recorded_options,
    )
    return Measures(predictions, stimuli, protocol, folds_for(predictions.model, cased))
