"""The Python API: the commands' own code, for notebooks and programs.

    import lmdiag

    stimuli = lmdiag.load_stimuli("lmdiag", "neg136")
    model = lmdiag.load_model("demo:masked")
    predictions = model.predict(stimuli)
    print(lmdiag.measure(predictions, stimuli))
    print(model.surprisals("A robin is a bird."))

What `measure` and `compare` return prints as tables, shows as such in a notebook, and has a method
`to_frame` that gives a pandas table, as predictions and finished runs (`load_run`) do. Measures
(`chart`), finished runs and multiverses (`load_multiverse`; `charts`) give altair charts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast, overload

from lmdiag import perturb, stimuli
from lmdiag.analysis.designs import PARTS_OF, Analysis, analyse_table
from lmdiag.analysis.fit import HumanFit, fit_surprisals
from lmdiag.analysis.human import own_surprisals, read_human, read_surprisals
from lmdiag.analysis.items import is_table_file, items_of, labels_of
from lmdiag.analysis.procedures import SURPRISAL, Procedure, ProcedureKeywords
from lmdiag.analysis.rows import with_numbers
from lmdiag.analysis.selection import check_table
from lmdiag.checking import check
from lmdiag.comparison import Comparisons, compare_runs, unlike_first
from lmdiag.elicitation import wording_of
from lmdiag.evaluation import Measures
from lmdiag.frequencies import log_frequencies
from lmdiag.keywords import (
    Asking,
    AskingKeywords,
    Batching,
    BatchingKeywords,
    DataKeywords,
    DataOptions,
    LayerKeywords,
    LayerOptions,
    Recording,
    RecordingKeywords,
    Running,
    RunningKeywords,
    Seeded,
    SeedKeywords,
    check_names,
    check_whole,
    taken,
    with_fields,
)
from lmdiag.measures import folds_for
from lmdiag.models.loading.options import LoadKeywords, LoadOptions
from lmdiag.multiverse import Multiverse
from lmdiag.norms import ClozeNorms, responses_of
from lmdiag.protocol import (
    Predictions,
    Protocol,
    QueryOptions,
    bos_remark,
    checked_ranks,
    checked_threshold,
    query_options,
)
from lmdiag.questions import Setting
from lmdiag.results import Run, Runs, load_run
from lmdiag.results.items import Per, TaskPredictions, items_of_predictions
from lmdiag.results.models import model_labels
from lmdiag.rules import effective
from lmdiag.runs.asking import (
    control_warning,
    predict,
    predict_layers,
    row_texts,
    start_warning,
)
from lmdiag.runs.journal import kept_answers
from lmdiag.runs.surprisals import (
    ask_about_words,
    layer_surprisals,
    shared_warning,
    word_surprisals,
)
from lmdiag.stimuli import Stimuli, load_verbs
from lmdiag.stimuli.reading.columns import ANALYSED_COLUMNS
from lmdiag.stimuli.reading.steps import read_frame_rows
from lmdiag.table_files import MEMORY
from lmdiag.text import as_parameters, first_few
from lmdiag.types import (
    WHOLE_SENTENCE,
    BadInput,
    Coding,
    DesignOptions,
    FactorKeywords,
    FactorOptions,
    OnProgress,
    ReadingKeywords,
    TableKeywords,
    TableOptions,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.models import Model
    from lmdiag.runs.inputs import Inputs
    from lmdiag.runs.surprisals import WordColumn

    Analysable: TypeAlias = Run | DataFrame | str | Path | Predictions

__all__ = [
    "Comparisons", "LanguageModel", "Measures", "Runs", "TaskPredictions", "analyse", "check",
    "cloze", "compare", "fit", "load_model", "load_multiverse", "load_run", "load_stimuli",
    "measure", "run",
]  # fmt: skip

load_stimuli = stimuli.load
load_multiverse = Multiverse.read


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Seeded, Asking):
    """How predictions are made.

    Attributes:
        perturbation: "none", or one of `lmdiag.perturb.names()`
        run: number of the shuffle, for the shuffled perturbations
        top: length of the lists of top words
    """

    perturbation: str = "none"
    run: int = 0
    top: int = 5

    def __post_init__(self) -> None:
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


class FitKeywords(ProcedureKeywords, ReadingKeywords, LayerKeywords, AskingKeywords, total=False):
    """Keywords of `fit`: a procedure, how the table is read, and how models are asked."""


class ClozeKeywords(TableKeywords, LayerKeywords, RecordingKeywords, total=False):
    """Keywords of `cloze`: how the table is read, and how models are asked."""


class RunKeywords(
    DataKeywords, FactorKeywords, RunningKeywords, LoadKeywords, TableKeywords, total=False
):
    """Keywords of `run` but for `layers`."""

    k: Sequence[int]
    threshold: float
    name: str | None
    on_progress: OnProgress | None


class LayeredRunKeywords(RunKeywords, LayerKeywords, total=False):
    """All keywords of `run`."""


def _expect(name: str, value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Refuses an argument of another type than `kinds`, which a message calls `what`."""
    if not isinstance(value, kinds):
        raise BadInput(f"{name} must be {what}, not {type(value).__name__}")


def _names(names: str | Sequence[Any]) -> tuple[Any, ...]:
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


_STIMULI = "stimuli, as lmdiag.load_stimuli makes them of a file, a DataFrame or a list of dicts"


@with_fields(LoadOptions)
def load_model(model_id: str | Path, **options: Unpack[LoadKeywords]) -> LanguageModel:
    """Loads a masked, causal or encoder-decoder model.

    Args:
        model_id: Hub id, local folder, or `demo:masked` / `demo:causal`; with `server`, the name of
            the model there.
        options: fields of `lmdiag.models.LoadOptions`, e.g. revision, dtype, unit, bos, chat.

    Raises:
        BadInput: it cannot be loaded, or an option is not allowed; names the remedy.

    >>> import lmdiag
    >>> lmdiag.load_model("demo:causal")
    LanguageModel('demo:causal', kind='causal')
    """
    from lmdiag import models

    _expect("model_id", model_id, (str, Path), "a Hub id, a folder, demo:masked or demo:causal")
    load_options = LoadOptions.from_keywords(options)
    return LanguageModel(models.load(str(model_id), load_options), load_options)


def _loaded(
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel],
    **options: Unpack[LoadKeywords],
) -> Iterator[LanguageModel]:
    """Yields models, each of those that are named loaded when its turn comes."""
    for model in [models] if isinstance(models, str | Path | LanguageModel) else models:
        yield load_model(model, **options) if isinstance(model, str | Path) else model


class LanguageModel:
    """A model that predicts the words of stimuli and of texts.

    Threads may share it: their calls wait for each other.

    Attributes:
        model: the model itself, for questions that are not stimuli.
        info: the facts of the model that a run records.
        options: how it was loaded; predictions record those that decide what is asked.
    """

    def __init__(self, model: Model, options: LoadOptions) -> None:
        self.model = model
        self.info = model.info
        self.options = options
        self.lock = RLock()

    def __repr__(self) -> str:
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
        """Returns what `predict` returns after each of some layers, which are read in one pass.

        Args:
            stimuli: the rows.
            layers: "all", or numbers from 0 for the input of the first layer; they are returned in
                ascending order, and the last layer gives the ordinary predictions.

        Raises:
            BadInput: see `predict`; or the model does not have these layers.
        """
        return self._predict(stimuli, _names(layers), PredictOptions.of(how))

    def _predict(
        self, stimuli: Stimuli, layers: Sequence[int | str], options: PredictOptions
    ) -> list[TaskPredictions]:
        """Returns the ordinary predictions, or those after each of some layers."""
        _expect("stimuli", stimuli, Stimuli, _STIMULI)
        perturbation, run, seed = options.perturbation, options.run, options.seed
        if perturbation != perturb.NONE:
            stimuli = perturb.perturb(stimuli, perturbation, run, seed)
        pairs = None
        if stimuli.diagnostic.has_verbs:
            pairs = load_verbs(stimuli.source, revision=stimuli.revision)
        verbs = None if pairs is None else len(pairs)
        wording = wording_of(self.options)
        setting = Setting(stimuli, perturbation, run, wording, self.options.entropy)
        texts = row_texts([stimuli], self.info.kind)
        lines = control_warning(self.model, texts), start_warning(self.model, texts)
        asked = query_options(self._warn(stimuli.diagnostic.asks, *lines, level=4))
        asked |= {"prompt": self.model.prompt, "seed": seed, "verbs": verbs, "model": self.info}
        layered = self.model.at_layers(layers) if layers else None
        model = layered or self.model
        label = None if options.quiet else self.info.id
        facts = [repr(sorted(query_options(self.options).items())), self.model.prompt]
        kept = kept_answers(options.output, self.info, "blanks", facts)
        how: dict[str, Any] = {"top": options.top, "batch_size": options.batch_size, "label": label}
        with self.lock, kept as journal:
            if pairs is not None:
                model.set_verbs(pairs)
            if layered is None:
                (answered,), _ = predict(model, [setting], journal=journal, **how)
                return [TaskPredictions(**vars(answered) | asked, stimuli=stimuli)]
            by_layer, _ = predict_layers(model, [setting], journal=journal, **how)
        return [
            TaskPredictions(**vars(answered) | asked | {"layer": layer}, stimuli=stimuli)
            for layer, (answered,) in zip(layered.layers, by_layer, strict=True)
        ]

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
        given: dict[str, Any] = {**how}
        layers = taken(LayerOptions, given).layers
        batching = Batching.of(given)
        is_rows = isinstance(texts, Mapping) or hasattr(texts, "columns")
        if is_rows or not isinstance(texts, Iterable):
            what = type(texts).__name__
            raise BadInput(
                f"texts must be a text or several, such as a list or a column, not {what}"
            )
        texts = [texts] if isinstance(texts, str) else list(texts)
        named = {f"text {number}": text for number, text in enumerate(texts, start=1)}
        for name, text in named.items():
            if not isinstance(text, str):
                raise BadInput(f"{name} is {text!r}: give texts as strings")
        label = None if batching.quiet else self.info.id
        entropy = self.options.entropy
        ask: dict[str, Any] = {"entropy": entropy, "batch_size": batching.batch_size, "cuts": cuts}
        with self.lock:
            if layers:
                table = layer_surprisals(self.model.at_layers(layers), texts, **ask, label=label)
            else:
                table = word_surprisals(self.model, texts, **ask, label=label)
        scored = {f"text {number}" for number in table.dropna(subset="surprisal")["text"]}
        silent = [name for name, text in named.items() if text.strip() and name not in scored]
        without = f"no word with a surprisal: {first_few(silent)}" if silent else None
        shared = shared_warning(table)
        self._warn("sentence", control_warning(self.model, named), without, shared)
        words = table["word"]
        for name in columns:
            table[name] = words.str.len() if name == "length" else log_frequencies(words, language)
        return table if entropy else table.drop(columns="entropy")

    def _warn(self, asks: str, *lines: str | None, level: int = 3) -> LoadOptions:
        """Warns where the method that calls this was called; returns the options with an effect.

        `level` is the number of calls from there to here, and one.
        """
        options, ineffective = effective(self.options, self.info, asks)
        remark = bos_remark(self.options, self.info, asks)
        for line in filter(None, (*ineffective, remark, self.model.warning, *lines)):
            warnings.warn(as_parameters(line), stacklevel=level)
        return options


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
        cased: compare words exactly, else without case and accents; None for the words that the
            model's tokenizer reads alike.

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
    _expect("predictions", predictions, Predictions, "what LanguageModel.predict returns")
    _expect("stimuli", stimuli, Stimuli, _STIMULI)
    perturbation = predictions.perturbation
    asked = query_options(predictions)
    if perturb.is_shuffled(stimuli.task, perturbation):
        asked["shuffles"] = 1
    protocol = Protocol(
        tasks=(stimuli.task,),
        perturb=() if perturbation == perturb.NONE else (perturbation,),
        seed=predictions.seed,
        verbs=predictions.verbs,
        k=checked_ranks(k),
        threshold=checked_threshold(threshold),
        **asked,
    )
    return Measures(predictions, stimuli, protocol, folds_for(predictions.model, cased))


@with_fields(LayerOptions, Asking, Procedure, TableOptions, keywords=FitKeywords)
def fit(
    human: str | Path | DataFrame,
    *,
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel] = (),
    surprisal: str | Sequence[str] = (),
    profile: str | None = None,
    on_progress: OnProgress | None = None,
    **procedure: Unpack[FitKeywords],
) -> HumanFit:
    """Fits human measures with and without surprisals (docs/specification.md, section 10).

    Args:
        human: a table with a row per word, or per word and reader: a file or a DataFrame; or a run
            directory, whose items are the rows.
        models: models that are asked, in order; a model of another thread is waited for.
        surprisal: columns of the table, or files, with surprisals that were made elsewhere; without
            models, its column `surprisal` if none is named.
        profile: a published procedure, of `lmdiag.analysis.procedures.PROFILES`.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the call; with `output`, it can be resumed.
        procedure: fields of `lmdiag.analysis.procedures.Procedure`, e.g. response="time", and how
            the table is read, fields of `lmdiag.types.TableOptions`, e.g. columns={"word": "ia"}.

    Raises:
        BadInput: a column or a value cannot be used (column and row are named), or there are
            neither models nor surprisals.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> words = "The key to the old cabinets was on a table near the door".split()
    >>> human = DataFrame({"position": range(1, 14), "word": words})
    >>> human["surprisal"] = [2.5, 9, 1, 1.5, 7, 8, 3, 2, 3, 6, 5, 1, 4]
    >>> human["rt"] = [260, 300, 240, 250, 310, 330, 255, 245, 260, 290, 280, 235, 275]
    >>> lmdiag.fit(human, response="rt", controls=["length"], lags=0).to_frame()["n"].tolist()
    [13]
    """
    from pandas import DataFrame

    _expect("human", human, (str, Path, DataFrame), "a file, a DataFrame or a run directory")
    given: dict[str, Any] = {**procedure}
    layers = taken(LayerOptions, given).layers
    asking = taken(Asking, given)
    fields = Procedure.__dataclass_fields__
    reading = {name: given.pop(name) for name in READING & given.keys() - fields.keys()}
    if unknown := given.keys() - fields.keys():
        raise BadInput(f"fit has no option {min(unknown)!r}: choose from {', '.join(fields)}")
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    options = TableOptions.of(reading)
    table = read_human(human, profile, Procedure(**given), options)
    files = [surprisal] if isinstance(surprisal, str) else surprisal
    if [*files] == [SURPRISAL]:
        files = ()
    sources = [read_surprisals(table, source) for source in files]
    if models:
        check_table(table)  # before any model is loaded
    infos = []
    options_of: list[QueryOptions] = []
    answers = []
    for model in _loaded(models):
        how: dict[str, Any] = {"output": asking.output, "batch_size": asking.batch_size}
        how |= {"label": None if asking.quiet else model.info.id, "layers": layers}
        how["on_progress"] = on_progress
        with model.lock:
            of_model = ask_about_words(model.model, model.options, table, **how)
        answers += [source for source, _ in of_model]
        infos += [model.info] * len(of_model)
        options_of += [asked for _, asked in of_model]
    named = zip(answers, model_labels(infos, options_of), strict=True)
    sources += [source._replace(name=label) for source, label in named]
    if not sources and SURPRISAL in table.frame.columns:
        table, sources = own_surprisals(table)
    if not sources:
        raise BadInput("no surprisals: name a model to ask, or a column or file with surprisals")
    return fit_surprisals(table, sources)


@with_fields(LayerOptions, Recording, TableOptions, keywords=ClozeKeywords)
def cloze(
    responses: str | Path | DataFrame,
    *,
    models: str | Path | LanguageModel | Iterable[str | Path | LanguageModel],
    response: str = "",
    on_progress: OnProgress | None = None,
    **reading: Unpack[ClozeKeywords],
) -> ClozeNorms:
    """Runs models on the words that people gave at blanks (specification, section 4).

    Args:
        responses: a table with a row per response, or per word with its count or cloze, see
            `lmdiag.stimuli.responses.response_rows`: a file or a DataFrame.
        models: models that are asked, in order; those that are named are asked in unit word, and
            after several layers in unit token.
        response: column of the responses or words; "" for `response`, `word` or `target`.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the run; the same call resumes it.
        reading: how the table is read, fields of `lmdiag.types.TableOptions`, e.g. filter, and
            keep_case.

    Raises:
        BadInput: a column or value cannot be used (column and row are named), or the models were
            asked differently.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> said = DataFrame({"item": 1, "context": "A robin is a", "response": ["bird", "pet"]})
    >>> lmdiag.cloze(said, models="demo:causal")
    <ClozeNorms of rows.jsonl by demo:causal>
    """
    from pandas import DataFrame

    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run import RunOptions, run_layers, run_model

    _expect("responses", responses, (str, Path, DataFrame), "a file or a DataFrame")
    given: dict[str, Any] = {**reading}
    layers = taken(LayerOptions, given).layers
    recording = taken(Recording, given)
    table = responses_of(responses, TableOptions.of(given), response)
    source = responses if isinstance(responses, DataFrame) else str(responses)
    inputs = load_inputs(source, Protocol(tasks=()), table=table, responses=True)
    inputs = _with_saved_rows(inputs, source, recording.output)
    how = RunOptions(on_progress=on_progress, **vars(recording))
    runs: list[Run] = []
    for model in _loaded(models, unit="token" if layers else "word"):
        name, options, asked = model.info.id, model.options, inputs.asked_by(model.options)
        with model.lock:
            if layers:
                of_model = name, options, layers, asked, how
                runs += run_layers(*of_model, loaded=model.model)
            elif run := run_model(name, options, asked, how, loaded=model.model):
                runs.append(run)
    if not runs:
        raise BadInput("no model is named that is asked: give --model, or models in Python")
    return ClozeNorms(runs, ("layer",) if layers else ())


@overload
def run(  # type: ignore[overload-overlap]  # a text is also an iterable of texts
    model: str | Path, data: Any = ..., **options: Unpack[RunKeywords]
) -> Run: ...


@overload
def run(model: Iterable[str | Path], data: Any = ..., **options: Unpack[RunKeywords]) -> Runs: ...


@overload
def run(
    model: str | Path | Iterable[str | Path],
    data: Any = ...,
    *,
    layers: str | Sequence[int | str],
    **options: Unpack[RunKeywords],
) -> Runs: ...


@with_fields(
    DataOptions, LayerOptions, FactorOptions, Running, LoadOptions, TableOptions,
    keywords=LayeredRunKeywords,
)  # fmt: skip
def run(
    model: str | Path | Iterable[str | Path],
    data: Any = "lmdiag",
    *,
    k: Sequence[int] = (1, 5),
    threshold: float = 0.01,
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Run | Runs:
    """Runs models as `lmdiag run` does, without its tables and page; returns the finished run.

    A finished run in the same directory is read back, an interrupted one is resumed.

    Args:
        model: Hub id, local folder, or `demo:masked` / `demo:causal`; or several of them, whose
            runs are returned as `Runs`, a list, as those of several `layers` are. The first that
            fails ends the call.
        data: a file of own rows; or rows in memory, as `load_stimuli` takes them, which are saved
            below `output`, so that the run can be opened later; or a built directory, a Hub id.
        k: ranks at which accuracy is measured.
        threshold: smallest difference in probability that counts for sensitivity@threshold.
        name: what to call the model in its folder and in tables; None for its id.
        on_progress: is called with the numbers of contexts or sentences that are answered and of
            all, for each model. What it raises ends the run; the same call resumes it.
        options: those below; fields of `lmdiag.types.FactorOptions`, the design of own data, which
            is stored with the run; of `lmdiag.models.LoadOptions`, e.g. dtype, unit, bos, chat; and
            of `lmdiag.types.TableOptions`, how a table of own rows is read.

    Raises:
        BadInput: see `lmdiag.runs.run.run_model`, or an option is not allowed.

    >>> import lmdiag
    >>> run = lmdiag.run("demo:causal", "demo", tasks="neg136")
    >>> run.path.as_posix()
    'results/demo--causal/neg136-token'
    >>> rows = [{"context": "A robin is a", "target": word} for word in ("bird", "tool")]
    >>> lmdiag.run(["demo:causal", "demo:masked"], rows, tasks="robins")
    <2 runs: demo:causal, demo:masked>
    """
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run import RunOptions, run_layers, run_model

    is_table = isinstance(model, Mapping) or hasattr(model, "columns")
    is_one = isinstance(model, str | Path) or is_table or not isinstance(model, Iterable)
    models_of_run: list[Any] = [model] if is_one else list(cast("Iterable[Any]", model))
    for model_id in models_of_run:
        _expect("model", model_id, (str, Path), "a Hub id, a folder, a demo model or several")
    if len(models_of_run) > 1 and name:
        raise BadInput("name is for one model: run several models without it")
    check_names(run, options)
    rows = taken(DataOptions, options)
    layers = taken(LayerOptions, options).layers
    design = DesignOptions(**taken(FactorOptions, options).stored())
    how = RunOptions(name=name, on_progress=on_progress, **vars(taken(Running, options)))
    table = taken(TableOptions, options)
    load_options = LoadOptions.from_keywords(options)
    protocol = Protocol(
        tasks=rows.tasks, perturb=rows.perturb, shuffles=rows.shuffles, seed=rows.seed,
        limit=rows.limit, k=checked_ranks(k), threshold=checked_threshold(threshold),
        **query_options(load_options),
    )  # fmt: skip
    if isinstance(data, str | Path):
        data = str(data)
    elif isinstance(data, Iterator):
        data = list(data)
    inputs = load_inputs(
        data, protocol, verbs=rows.verbs, allow_duplicates=rows.allow_duplicates, design=design,
        table=table,
    )  # fmt: skip
    inputs = _with_saved_rows(inputs, data, how.output)
    made: list[Run] = []
    for model_id in models_of_run:
        if layers:
            made += run_layers(str(model_id), load_options, layers, inputs, how)
        elif finished := run_model(str(model_id), load_options, inputs, how):
            made.append(finished)
    return made[0] if is_one and not layers else Runs(made)


def _with_saved_rows(inputs: Inputs, data: Any, output: Path) -> Inputs:
    """The inputs, of rows in memory with the file below `output` that keeps them."""
    if isinstance(data, str):
        return inputs
    [(task, rows)] = inputs.stimuli.items()
    file = stimuli.saved_rows(data, task, output)
    return replace(inputs, stimuli={task: replace(rows, source=str(file))})


@with_fields(TableOptions)
def analyse(
    source: Analysable | Sequence[Analysable],
    stimuli: Stimuli | None = None,
    *,
    response: str = "",
    conditions: Sequence[str] = (),
    formula: str = "",
    item: str | Sequence[str] = (),
    region: str | int = "",
    levels: Mapping[str, Sequence[object]] | None = None,
    coding: Coding = "sum",
    by: str = "",
    task: str = "",
    **reading: Unpack[TableKeywords],
) -> Analysis:
    """Analyses the conditions of items: cell means, effects over items, mixed models.

    Args:
        source: predictions; runs or their directories; or a table with a row per item and
            condition, made by `items()` or another program, or its file; or several of them.
        stimuli: the rows of predictions that are not from `LanguageModel.predict`.
        response: surprisal (bits), probability, log_odds (nats), correct, or a column of numbers;
            "" for the left side of the formula, else surprisal.
        formula: mixed model in lme4's notation, e.g. "surprisal ~ a * b + (1 | item)".
        conditions, item, region, coding, by: see `lmdiag.types.DesignOptions`.
        levels: column -> its levels in order; of others, alphabetical, numbers by size.
        task: of runs with several tasks.
        reading: how the rows are read, fields of `lmdiag.types.TableOptions`, e.g.
            filter="block=swap"; of runs, those that choose rows or divide conditions.

    What is not given is taken from the design that is stored with the first run.

    Raises:
        BadInput: there are no items, no conditions or no such columns; the formula cannot be
            fitted.

    >>> import lmdiag
    >>> from pandas import DataFrame
    >>> items = DataFrame({"item": [1, 1, 2, 2, 3, 3], "prime": ["related", "unrelated"] * 3})
    >>> items["surprisal"] = [4.0, 6.0, 5.0, 7.5, 3.0, 4.5]
    >>> analysis = lmdiag.analyse(items)
    >>> analysis
    <Analysis of surprisal by prime>
    >>> means = analysis.to_frame().dropna(subset="mean")
    >>> dict(zip(means["prime"], means["mean"]))
    {'related': 4.0, 'unrelated': 6.0}
    """
    from pandas import DataFrame

    sources: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise BadInput("source is empty: give predictions, runs or tables")
    for part in sources:
        what = "predictions, a run, its directory, a DataFrame or a table's file"
        _expect("source", part, (DataFrame, Predictions, Run, str, Path), what)
    parts = [
        x if isinstance(x, DataFrame | Predictions | Run) or is_table_file(x) else load_run(x)
        for x in sources
    ]
    runs = [part for part in parts if isinstance(part, Run)]
    given: dict[str, Any] = {
        "conditions": _names(conditions), "item": _names(item), "region": str(region),
        "levels": levels, "coding": coding if coding != "sum" else "", "by": by,
    }  # fmt: skip
    design = runs[0].results.design.given() if runs else {}
    design |= {name: value for name, value in given.items() if value}
    asked = {rows.diagnostic.asks for run in runs for rows in run.stimuli.values()}
    labels = labels_of(runs)
    if asked == {"sentence"}:
        design["not_compared"] = [labels[number] for number in unlike_first(runs)]
    value = response or formula.partition("~")[0].strip(" `") or "surprisal"
    options = TableOptions.of(reading)
    per: Per = "region" if design.get("region") else "row"
    if design.get("region") == WHOLE_SENTENCE:
        per = "sentence"
        design.pop("region")
    label_of_run = iter(labels)
    read = [
        _read_source(
            part, stimuli, options, value, per=per, task=task,
            label=next(label_of_run) if isinstance(part, Run) else "",
        )
        for part in parts
    ]  # fmt: skip
    table = items_of([frame for frame, _ in read])
    found = analyse_table(table, response=response, formula=formula, **design)
    notes = dict.fromkeys(note for _, lines in read for note in lines)
    is_of_runs = len(asked) == 1 and len(runs) == len(parts)
    what = PARTS_OF[asked.pop()] if is_of_runs else ""
    is_table = all(isinstance(part, DataFrame) or is_table_file(part) for part in parts)
    reads = found.reads if is_table else ()
    return replace(found, notes=(*notes, *found.notes), part=what, reads=reads)


def _read_source(
    source: Any,
    stimuli: Stimuli | None,
    options: TableOptions,
    response: str,
    *,
    per: Per,
    task: str,
    label: str,
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns the items of one source of `analyse` as a table, and how its rows were read."""
    from pandas import DataFrame

    table = source
    known = ANALYSED_COLUMNS
    name = MEMORY
    if isinstance(source, Run):
        table = items_of(source, task=task, per=per, labels=[label])
        known = frozenset()
        name = str(source.path)
    elif isinstance(source, Predictions):
        rows = getattr(source, "stimuli", None) or stimuli
        if rows is None:
            rule = "analyse takes predictions with their stimuli"
            raise BadInput(f"{rule}: analyse(predictions, stimuli)")
        table = items_of_predictions(source, rows, per)
    elif not isinstance(source, DataFrame):
        name = Path(source).name
    frame, notes = read_frame_rows(
        table, options, known, copies=True, text=response, reads=("good", "contrast")
    )
    if isinstance(table, DataFrame):
        frame = frame.set_axis(range(1, len(frame) + 1))
    return with_numbers(frame, response, name), notes


READING = TableOptions.__dataclass_fields__.keys()
"""Names of the options of tables."""

Comparable = Measures | Run | str | Path


@with_fields(Seeded)
def compare(
    base: Comparable,
    *new: Comparable,
    across: Sequence[str] = (),
    tasks: Sequence[str] = (),
    measures: Sequence[str] = (),
    **seeded: Unpack[SeedKeywords],
) -> Comparisons:
    """Compares a model with each of the others on the same rows, item by item.

    Differences are new minus base. The statistics are those of docs/specification.md, section 5.

    Args:
        base, new: results of `measure`, or finished runs or their directories; not both.
        across, tasks, measures: see `lmdiag.comparison.compare_runs`.

    Raises:
        BadInput: fewer than two are given, or they were not measured on the same data in the same
            way; the differing parts of their signatures are named.

    >>> import lmdiag
    >>> stimuli = lmdiag.load_stimuli("demo", "role88")
    >>> models = [lmdiag.load_model(name) for name in ("demo:masked", "demo:causal")]
    >>> base, new = (lmdiag.measure(model.predict(stimuli), stimuli) for model in models)
    >>> compared = lmdiag.compare(base, new)
    >>> compared
    <4 comparisons of demo:masked with demo:causal>
    """
    given = (base, *new)
    for model in given:
        what = "results of `measure`, finished runs or their directories"
        _expect("base and new", model, (Measures, Run, str, Path), what)
    if not new:
        raise BadInput("compare takes two or more results of `measure`, or two or more runs")
    if len({isinstance(model, Measures) for model in given}) > 1:
        raise BadInput("compare takes results of `measure`, or runs, but not both")
    runs = [
        x.run if isinstance(x, Measures) else x if isinstance(x, Run) else load_run(x)
        for x in given
    ]
    seed = Seeded.of(seeded).seed
    compared = compare_runs(*runs, seed=seed, across=across, tasks=tasks, measures=measures)
    return Comparisons(compared, runs, across, seed)
