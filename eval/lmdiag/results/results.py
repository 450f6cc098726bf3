"""The results of a run: figures, their addresses, and the content of `results.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from lmdiag import diagnostics, stats
from lmdiag.asking.protocol import Protocol
from lmdiag.diagnostics import Diagnostic
from lmdiag.files.reading import MAX_DOCUMENT, read_json
from lmdiag.measures.scores import Statistic, match_rule
from lmdiag.text import first_problem, type_adapter
from lmdiag.types import BadInput, DesignOptions, ModelInfo, TableOptions

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

RESULTS = "results.json"
PREDICTIONS = "predictions.parquet"
REPORT = "report.html"
"""Files of a run."""

VersusChance = Literal["above", "below", "not distinguishable"]
"""Where a figure lies against the chance level, by a two-sided test at the 5% level."""

CHANCE_SIGNS: Mapping[VersusChance, str] = {"above": "↑", "below": "↓", "not distinguishable": "≈"}
"""Sign of each result of the test against the chance level, wherever figures are shown."""

CHANCE_LEGEND = (
    "↑ above chance, ↓ below chance, ≈ not distinguishable from chance "
    "(exact binomial test; for EW and MW, t test)"
)
"""What the signs mean, in the same words everywhere."""


class FigureKey(NamedTuple):
    """The address of a figure; break-down and level are "" for a measure as a whole."""

    task: str
    setting: str
    measure: str
    by: str = ""
    level: str = ""


@dataclass(frozen=True)
class Figure:
    """A value and how certain it is; what is undefined is None.

    Attributes:
        value: in its own unit, a proportion or share in [0, 1].
        n: number of items (rows, contrasts or contexts) that it is over.
        ci_low, ci_high: 95% interval.
        chance: value that guessing gives, a mean over the items that are not tied.
        n_tied: number of items that are tied, which are in n; None for a measure without ties.
        sd, runs: standard deviation over the shuffles of a shuffled setting, and their number.
        not_defined: why no item has a value.
        statistic: how the values of the items became this value.
        by: break-down -> level -> its figure; {} for a level.
    """

    value: float | None
    n: int | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    chance: float | None = None
    n_tied: int | None = None
    sd: float | None = None
    runs: int | None = None
    not_defined: str | None = None
    statistic: Statistic | None = None
    by: dict[str, dict[str, Figure]] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        """Returns an attribute: `figure["value"]` is `figure.value`."""
        return getattr(self, key)

    @property
    def is_percent(self) -> bool:
        """Whether it is a proportion or a share, which is shown in percent."""
        return self.statistic in ("proportion", "share")

    @property
    def versus_chance(self) -> VersusChance | None:
        """Whether the figure is above or below its chance level, or not distinguishable from it.

        A proportion is tested exactly, see `p_chance`. A mean of shares is distinguishable if its t
        interval does not contain the chance level. None if the figure has no value or no chance
        level, or all items are tied.
        """
        if self.value is None or self.chance is None or not self._n_untied:
            return None
        if self.p_chance is not None:
            is_different = self.p_chance < 0.05
        elif self.ci_low is None or self.ci_high is None:  # a single item
            is_different = False
        else:
            is_different = not self.ci_low <= self.chance <= self.ci_high
        if not is_different:
            return "not distinguishable"
        return "above" if self._share_of_untied > self.chance else "below"

    @property
    def p_chance(self) -> float | None:
        """Two-sided p of the exact binomial test of a proportion against its chance level.

        The test is over the items that are not tied. None without a chance level, if all items are
        tied, and for a mean of shares, which is not a count of successes; a mean of 0 or 1, of
        which all shares are 0 or all are 1, is such a count, and is tested.
        """
        if self.value is None or self.chance is None or not self._n_untied:
            return None
        if self.statistic == "share" and self.value not in (0, 1):
            return None
        return stats.chance_p(self._share_of_untied, self._n_untied, self.chance)

    @property
    def _n_untied(self) -> int:
        """The number of items that are not tied."""
        return (self.n or 0) - (self.n_tied or 0)

    @property
    def _share_of_untied(self) -> float:
        """The value over the items that are not tied.

        `value` is over all items, of which the tied ones have the value 0: a value of 0.6 over 10
        items, of which 4 are tied, is 6 / 6 = 1.0 over the others.
        """
        total = (self.value or 0.0) * (self.n or 0)
        return total / self._n_untied

    @property
    def chance_sign(self) -> str:
        """The sign that stands beside the figure, of `CHANCE_SIGNS`; "" without a chance level."""
        return CHANCE_SIGNS[self.versus_chance] if self.versus_chance else ""

    def at(self, by: str, level: str) -> Figure | None:
        """Returns the figure at a level of a break-down; None if there is no such level.

        Without a break-down, "", this is the figure itself.
        """
        return self.by.get(by, {}).get(level) if by else self

    def to_json(self, *, is_level: bool = True) -> dict[str, Any]:
        """Returns plain JSON values by name; fields of some figures alone are left out if None.

        Args:
            is_level: whether the figure is that of a level, which has no break-downs of its own.
        """
        values: dict[str, Any] = dict(vars(self))
        values["by"] = None
        if not is_level:
            values["by"] = {
                by: {level: figure.to_json() for level, figure in levels.items()}
                for by, levels in self.by.items()
            }
        values["versus_chance"] = self.versus_chance
        values["p_chance"] = self.p_chance
        always = ("value", "n", "ci_low", "ci_high", "chance")
        return {
            name: value for name, value in values.items() if name in always or value is not None
        }


@dataclass(frozen=True)
class UnscoredWord:
    """A row without a log-probability: its id, and its target or unknown words of its sentence."""

    id: str
    word: str


@dataclass(frozen=True)
class SettingResults:
    """The figures of one task in one setting.

    Attributes:
        measures: name -> figure over all items, with its break-downs.
        unscorable: rows left out because the tokenizer cannot represent the word.
        signature: what makes the figures comparable; see `lmdiag.results.signature`.
        censored: rows left out because the model returns more probable words only.
        shared_tokens: words of sentences without a token of their own, each with the word before
            it, whose last token covers both: they have no surprisal.
        without_first: number of whole sentences whose first word has no probability, since nothing
            stands before it; it is left out of their sums.
        first_word_contrasts: number of contrasts whose sentences differ in such first words.
        equal_contrasts: number of contrasts left out because a good and a bad row have the same
            text or the same tokens.
        not_computed: a line for each measure that cannot be computed, and why.
    """

    measures: dict[str, Figure]
    unscorable: list[UnscoredWord] = field(default_factory=list)
    signature: str = ""
    censored: list[UnscoredWord] = field(default_factory=list)
    shared_tokens: list[UnscoredWord] = field(default_factory=list)
    without_first: int = 0
    first_word_contrasts: int = 0
    equal_contrasts: int = 0
    not_computed: list[str] = field(default_factory=list)

    def figures(self, task: str, setting: str) -> Iterator[tuple[FigureKey, Figure]]:
        """Yields all figures with their addresses, a whole measure before its levels."""
        for name, measure in self.measures.items():
            yield FigureKey(task, setting, name), measure
            for by, levels in measure.by.items():
                for level, figure in levels.items():
                    yield FigureKey(task, setting, name, by, level), figure

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values: the fields that are not empty (0, "" or []), by name.

        The signature, measures and unscorable rows come first and are there even if empty.
        """
        document = asdict(replace(self, measures={}))  # figures have their own `to_json`
        document["measures"] = {
            name: figure.to_json(is_level=False) for name, figure in self.measures.items()
        }
        always = ("signature", "measures", "unscorable")
        names_in_order = dict.fromkeys((*always, *document))
        return {name: document[name] for name in names_in_order if name in always or document[name]}


@dataclass(frozen=True)
class TaskData:
    """The rows of a task that were used: fingerprint and form of `Stimuli`, and their number."""

    fingerprint: str
    n: int
    form: str = ""


@dataclass(frozen=True)
class DataInfo:
    """The data set of a run, as the user named it, its commit, and the fingerprint of all tasks.

    `place` is the path of a file or directory from the run directory; "" for other data sets.
    """

    source: str
    revision: str | None
    fingerprint: str
    tasks: dict[str, TaskData]
    place: str = ""


@dataclass(frozen=True)
class Device:
    """What a run ran on: name of the device, and number of processes."""

    name: str
    processes: int


@dataclass(frozen=True)
class Results:
    """How a run was made, and all its figures.

    Attributes:
        signature: makes two runs comparable, see `lmdiag.results.comparable_part`.
        model, data, protocol: what was evaluated, on what, and how.
        versions, device, seconds, finished: packages, machine, duration of steps, ISO 8601 date.
        n_contexts: number of distinct contexts that were asked.
        tasks: task -> setting -> its figures.
        n_verbs: number of verbs that EW and MW are over, whose two forms are both single tokens;
            None where there are none.
        identity: what must be equal for two runs to share a directory.
        files: name -> SHA-256 of the files that the figures were computed from.
        design, table: how the user's own data are analysed and were read, as far as it was given.
        warnings: what looks wrong in the model's files, and, after the name of its task, in the
            user's own data, see `lmdiag.stimuli.designs.design`.
    """

    signature: str
    model: ModelInfo
    data: DataInfo
    protocol: Protocol
    versions: dict[str, str]
    device: Device
    seconds: dict[str, float]
    finished: str
    n_contexts: int
    tasks: dict[str, dict[str, SettingResults]]
    n_verbs: int | None = None
    identity: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    design: DesignOptions = field(default_factory=DesignOptions)
    table: TableOptions = field(default_factory=TableOptions)
    warnings: list[str] = field(default_factory=list)
    schema_version: Literal[1] = 1

    @property
    def layer(self) -> int | None:
        """Number of the layer after which the model answered; None where it is not known."""
        return self.model.n_layers if self.protocol.layer is None else self.protocol.layer

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns the declaration of a task: its rows, measures, tables and charts."""
        data = self.data.tasks.get(task)
        return diagnostics.get(task, data.form if data else "")

    @property
    def model_warnings(self) -> list[str]:
        """The warnings about the files of the model, without those about the data."""
        beginnings = tuple(f"{task}: " for task in self.data.tasks)  # of warnings of the data
        return [line for line in self.warnings if not line.startswith(beginnings)]

    def measure(self, task: str, setting: str, name: str) -> Figure | None:
        """Returns the figure of a measure over all items; None if the run does not have it."""
        settings = self.tasks.get(task, {})
        return settings[setting].measures.get(name) if setting in settings else None

    def figure(self, key: FigureKey) -> Figure | None:
        """Returns the figure at an address; None if the run does not have it."""
        measure = self.measure(key.task, key.setting, key.measure)
        return None if measure is None else measure.at(key.by, key.level)

    def figures(self) -> Iterator[tuple[FigureKey, Figure]]:
        """Yields all figures with their addresses."""
        for task, settings in self.tasks.items():
            for setting, results in settings.items():
                yield from results.figures(task, setting)

    def to_json(self) -> dict[str, Any]:
        """Returns the content of `results.json`: plain JSON values by name."""
        document = asdict(replace(self, tasks={}))  # settings have their own `to_json`
        document["design"] = self.design.stored()
        document["table"] = self.table.stored()
        document["protocol"]["match"] = match_rule(self.model.word_folds)
        document["tasks"] = {
            task: {setting: content.to_json() for setting, content in settings.items()}
            for task, settings in self.tasks.items()
        }
        return document

    def validation_errors(self) -> Iterator[str]:
        """Yields a line for each value that is impossible although it has the right type.

        For example "finished is not an ISO 8601 date". Such values are in files that were changed,
        or that another program wrote. Only the first line is shown, so that later checks rely on
        what earlier ones found to be right.
        """
        try:
            datetime.fromisoformat(self.finished)
        except ValueError:
            yield "finished is not an ISO 8601 date"
        if not self.protocol.k:
            yield "protocol.k: the list is empty"
        if not self.tasks or not all(self.tasks.values()):
            yield "tasks: there are none, or one has no settings"
        for task in self.tasks.keys() - self.data.tasks.keys():
            yield f"data.tasks.{task}: field required"
        for task, data in self.data.tasks.items():
            if data.form and data.form not in diagnostics.forms():
                yield f"data.tasks.{task}.form: {data.form!r:.60} is not a form of data"
        seen_keys = set[FigureKey]()
        for key, figure in self.figures():
            where = f"tasks.{key.task}.{key.setting}.measures.{key.measure}"
            # a level without a name has the key of the figure over all rows, which came before it
            if key in seen_keys or bool(key.by) != bool(key.level):
                yield f"{where}.by: a break-down or one of its levels has no name"
            seen_keys.add(key)
            if figure.statistic is None:
                yield f"{where}.statistic: field required"
            if figure.chance is not None:  # a proportion or a share
                n_rows = self.data.tasks[key.task].n
                are_in_unit = 0 <= figure.chance <= 1 and 0 <= (figure.value or 0) <= 1
                if not are_in_unit or not 0 <= (figure.n or 0) <= n_rows:
                    yield f"{where}: not a proportion in [0, 1] of at most all rows"
            if not 0 <= (figure.n_tied or 0) <= (figure.n or 0):
                yield f"{where}: n_tied is not a number of its items"


_DIGEST = "sha256"
"""Key of a file's own digest."""

Record = TypeVar("Record", bound=Any)


def read_record(kind: type[Record], file: Path, most: int = MAX_DOCUMENT) -> Record:
    """Reads a record from a JSON file, e.g. `results.json`; unknown keys are ignored.

    `BadInput` names file and field if it is not such a file, or the record has `validation_errors`.

    Args:
        kind: class of the record.
        file: as `with_digest` writes it; the digest may be missing.
        most: bytes that the file may have.
    """
    from pydantic import ValidationError

    document = read_json(file, most)
    if isinstance(document, dict):
        digest = document.pop(_DIGEST, None)
        if digest is not None and digest != _digest_of(document):
            what_differs = f"its {_DIGEST} is of another content"
            raise BadInput(f"{file} is not as lmdiag wrote it ({what_differs})")
        table = document.get("table")
        if isinstance(table, dict) and isinstance(table.get("critical"), str):
            table["critical"] = [table["critical"]]  # earlier runs have one column, and no list
    # as JSON, in which a strict check takes a list for a tuple; in Python values it does not
    try:
        adapter = type_adapter(kind)  # type: ignore[arg-type]  # a class is hashable
        record: Record = adapter.validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise BadInput(f"{file}: {first_problem(error)}") from None
    for problem in record.validation_errors():
        raise BadInput(f"{file}: {problem}")
    return record


def _digest_of(document: Any) -> str:
    """Returns the SHA-256 of the values of a JSON file, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def with_digest(document: Mapping[str, Any]) -> bytes:
    """Returns the content of a JSON file with the SHA-256 of its values, for `read_record`."""
    document = {**document, _DIGEST: _digest_of(document)}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()


@contextmanager
def advising_to_overwrite() -> Iterator[None]:
    """Adds ": run again with --overwrite" to the message of a `BadInput` that the block raises.

    The block reads a file of a run that may be damaged.
    """
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{error}: run again with --overwrite") from None


def results_of_setting(
    stimuli: Stimuli, setting: str, content: SettingResults, model: ModelInfo | None = None
) -> Results:
    """Returns results with the figures of one setting alone, and nothing else that a run records.

    `model` is None for predictions of another program.
    """
    task = stimuli.task
    unknown_model = ModelInfo(
        id="", revision=None, commit="", kind="masked", architecture="", dtype="", tokenizer="",
        cased=True, vocab_size=0, n_parameters=0, max_length=None,
    )  # fmt: skip
    data_of_task = {task: TaskData(stimuli.fingerprint, len(stimuli), stimuli.form)}
    return Results(
        signature=content.signature,
        model=model or unknown_model,
        data=DataInfo("", None, stimuli.fingerprint, data_of_task),
        protocol=Protocol(tasks=(task,)),
        versions={},
        device=Device("", 0),
        seconds={},
        finished="",
        n_contexts=0,
        tasks={task: {setting: content}},
    )
