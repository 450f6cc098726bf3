"""The figures of models in every protocol that was asked: the content of `multiverse.json`.

A *member* of a multiverse is a finished run of one model by one protocol; its *choices* say what
distinguishes the protocol from those of the other members. The figures of a model in ascending
order, with the choices of each, are a specification curve.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag.comparison import compare_pairs, scored_pair
from lmdiag.files import has_file
from lmdiag.printable import Printable
from lmdiag.protocol import KNOBS
from lmdiag.results import Figure, FigureKey, Run, read_results
from lmdiag.results.results import read_record
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    import altair
    from pandas import DataFrame
    from rich.console import Console

MULTIVERSE = "multiverse.json"
MULTIVERSE_PAGE = "multiverse.html"
_STORED = ("value", "n", "ci_low", "ci_high", "chance", "statistic")
"""Fields of a figure: all but those of break-downs."""

ALPHA = 0.05
"""A test whose p is below this rejects."""


class MemberRun(NamedTuple):
    """A run of a multiverse: its choice of each knob; no run on all processes but the first."""

    choices: dict[str, str]
    run: Run | None


@dataclass(frozen=True)
class Member:
    """A run of one model by one protocol. The first member of a model has the default protocol.

    Attributes:
        model: label of the model, which distinguishes it from the other models.
        id, revision, commit, kind: of the model, see `ModelInfo`.
        choices: knob -> choice, for every knob that is open for the model.
        path: of the run directory, relative to the file.
        signature: see `lmdiag.results.signature`.
    """

    model: str
    id: str
    revision: str | None
    commit: str
    kind: Kind
    choices: dict[str, str]
    path: str
    signature: str


@dataclass(frozen=True)
class MemberDifference:
    """The same figure of two members, `a` of the first model and `b` of another one.

    The other fields are those of `lmdiag.comparison.Comparison`; p is adjusted over all pairs of
    these two models for this figure. Undefined is None.
    """

    a: int
    b: int
    n: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None
    n_tests: int
    test: str


@dataclass(frozen=True)
class MultiverseFigure:
    """A headline figure in all protocols.

    Attributes:
        task, setting, measure, by, level: its address.
        label: in words.
        values: the figure of each member, in their order; None where it is not defined.
        differences: of the first model and each other one, in ascending order.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    label: str
    values: list[Figure | None]
    differences: list[MemberDifference]

    @property
    def key(self) -> FigureKey:
        """Its address."""
        return FigureKey(self.task, self.setting, self.measure, self.by, self.level)


@dataclass(frozen=True, repr=False)
class Multiverse(Printable):
    """All headline figures of some models in every protocol.

    Attributes:
        members: the runs, those of the first model first.
        figures: in the order of a report.
        forms: task -> form of its data, see `lmdiag.stimuli.Stimuli`.
        path: directory of the file and of the runs.
    """

    members: list[Member]
    forms: dict[str, str]
    figures: list[MultiverseFigure] = field(default_factory=list)
    schema_version: Literal[1] = 1
    path: Path = Path()

    def __repr__(self) -> str:
        models = ", ".join(self.models)
        return f"<Multiverse of {models}: {len(self.members)} protocols; {self.path}>"

    @property
    def models(self) -> list[str]:
        """Labels of the models; the first is the one that the others are compared with."""
        return [*dict.fromkeys(member.model for member in self.members)]

    def numbers_of(self, model: str) -> list[int]:
        """Returns the numbers of the members of a model, that of the default protocol first."""
        return [number for number, member in enumerate(self.members) if member.model == model]

    def choices(self, *models: str) -> dict[str, list[str]]:
        """Returns knob -> its choices, in order, for knobs with several, over some models."""
        choices: dict[str, dict[str, None]] = {knob: {} for knob in KNOBS}
        for member in self.members:
            for knob, choice in member.choices.items() if member.model in models else ():
                choices[knob][choice] = None
        return {knob: [*values] for knob, values in choices.items() if len(values) > 1}

    def curve(self, figure: MultiverseFigure, model: str) -> list[tuple[int, Figure]]:
        """Returns the specification curve of a model: members and figures in ascending order."""
        known = [(number, figure.values[number]) for number in self.numbers_of(model)]
        defined = [(n, value) for n, value in known if value and value.value is not None]
        return sorted(defined, key=lambda entry: (entry[1].value, entry[0]))

    def range_of(self, figure: MultiverseFigure, model: str) -> dict[str, Any]:
        """Returns lowest, median and highest value, and `effects`; {} where none is defined."""
        curve = self.curve(figure, model)
        if not curve:
            return {}
        values = [known.value or 0.0 for _, known in curve]
        effects = effects_of([self.members[number].choices for number, _ in curve], values)
        median = statistics.median(values)
        return {"lowest": values[0], "median": median, "highest": values[-1], "effects": effects}

    def differences(self, figure: MultiverseFigure, second: str) -> list[MemberDifference]:
        """Returns the differences of the first model and another one, in ascending order."""
        return [pair for pair in figure.differences if self.members[pair.b].model == second]

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values; `ranges` and `comparisons` follow from those of a figure."""
        document = asdict(self)
        del document["path"]
        first, *others = self.models
        for figure, content in zip(self.figures, document["figures"], strict=True):
            content["values"] = [value and value.to_json() for value in figure.values]
            ranges = {model: self.range_of(figure, model) for model in (first, *others)}
            content["ranges"] = [{"model": model} | x for model, x in ranges.items() if x]
            content["comparisons"] = [
                {"second": second} | counts_of(self.differences(figure, second))
                for second in others
            ]
        return document

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per headline figure and protocol.

        `model`, a column per knob, `run` (its directory), the parts of the figure's address, and
        value, n, ci_low, ci_high, chance and statistic; proportions are in [0, 1].
        """
        from pandas import DataFrame

        return DataFrame(
            {"model": model, **self.members[number].choices}
            | {"run": str(self.path / self.members[number].path), **figure.key._asdict()}
            | {name: getattr(known, name) for name in _STORED}
            for figure in self.figures
            for model in self.models
            for number, known in self.curve(figure, model)
        )

    def show(self, console: Console) -> None:
        """Prints the tables of `lmdiag multiverse`."""
        from lmdiag.report.terminal import print_multiverse

        print_multiverse(self, console)

    def charts(self) -> dict[str, altair.TopLevelMixin]:
        """Returns the specification curves of the page as altair charts, by name."""
        from lmdiag.report.charts.output import notebook
        from lmdiag.report.multiverse import multiverse_plots

        return {plot.name: notebook(plot) for _, plot in multiverse_plots(self)}

    @classmethod
    def read(cls, folder: str | Path) -> Multiverse:
        """Reads what `lmdiag multiverse` wrote; keys that are not known are ignored.

        Args:
            folder: the directory with `multiverse.json`, its `--output`.

        Raises:
            BadInput: the file is missing, not JSON or of another version, a value is missing or of
                the wrong type, a number of a member is not one, or a member is not the run at its
                path, with the same figures; names file and field.
        """
        folder = Path(folder)
        if not has_file(folder / MULTIVERSE):
            raise BadInput(f"{folder} has no {MULTIVERSE}; `lmdiag multiverse` writes it")
        multiverse = replace(read_record(cls, folder / MULTIVERSE), path=folder)
        for number, member in enumerate(multiverse.members):
            run = read_results(folder / member.path)
            is_same = (run.signature, run.model.commit) == (member.signature, member.commit)
            for figure in multiverse.figures:
                of_run = run.figure(figure.key)
                value = figure.values[number]
                is_same &= (of_run and of_run.value) == (value and value.value)
            if not is_same:
                made = f"{folder / MULTIVERSE} was not made of the run in {folder / member.path}"
                raise BadInput(f"{made}: run `lmdiag multiverse` again")
        return multiverse

    def validation_errors(self) -> Iterator[str]:
        """Yields what is wrong beyond the types of the values, with the field."""
        numbers = {*range(len(self.members))}
        if not numbers:
            yield "members: there are none"
        for member in self.members:
            if unknown := member.choices.keys() - KNOBS.keys():
                yield f"members: there is no knob {sorted(unknown)[0][:100]!r}"
            if Path(member.path).is_absolute() or ".." in Path(member.path).parts:
                yield f"members: the path {member.path[:100]!r} leads out of the folder"
        for figure in self.figures:
            if len(figure.values) != len(numbers):
                yield f"figures: {figure.label[:100]}: a member has no value"
            if not {n for pair in figure.differences for n in (pair.a, pair.b)} <= numbers:
                yield f"figures: {figure.label[:100]}: a difference has no member"


def counts_of(differences: Sequence[MemberDifference]) -> dict[str, int]:
    """Returns in how many protocols the first model is ahead, behind or equal, and where p < .05.

    `rejected` counts p, `adjusted` p adjusted by Holm's method over the protocols, whose distinct
    tests `n_tests` counts.
    """
    values = [pair.difference for pair in differences]
    return {
        "ahead": sum(value > 0 for value in values),
        "behind": sum(value < 0 for value in values),
        "equal": sum(value == 0 for value in values),
        "rejected": sum(x.p is not None and x.p < ALPHA for x in differences),
        "adjusted": sum(x.p_adjusted is not None and x.p_adjusted < ALPHA for x in differences),
        "n_tests": max((x.n_tests for x in differences), default=0),
    }


def effects_of(members: Sequence[Mapping[str, str]], values: Sequence[float]) -> dict[str, float]:
    """Returns knob -> how far it moves a figure.

    Of each two choices of a knob, the values are averaged over the combinations of all other knobs
    that were asked with both; the effect is the largest difference of two such means. A knob
    without two such choices has none.

    Args:
        members: the choices of each member.
        values: the figure of each.

    >>> effects_of([{"unit": "token"}, {"unit": "word"}], [0.5, 1.0])
    {'unit': 0.5}
    """
    effects = {}
    for knob in KNOBS:
        by_choice: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for choices, value in zip(members, values, strict=True):
            if knob in choices:
                others = frozenset(choices.items() - {(knob, choices[knob])})
                by_choice.setdefault(choices[knob], {})[others] = value
        moves = [
            abs(statistics.fmean(a[x] - b[x] for x in common))
            for a, b in combinations(by_choice.values(), 2)
            if (common := sorted(a.keys() & b.keys(), key=sorted))
        ]
        if moves:
            effects[knob] = max(moves)
    return effects


def multiverse_of(
    models: Mapping[str, Sequence[MemberRun]], headlines: DataFrame, folder: Path
) -> Multiverse:
    """Returns the headline figures of all members, and where several models differ.

    Args:
        models: label of each model -> its runs, that of the default protocol first, all on the
            same rows.
        headlines: figures of all these runs, see `lmdiag.report.selections.headlines`.
        folder: that holds the run directories.
    """
    members = list[Member]()
    runs = list[Run]()
    for label, of_model in models.items():
        for choices, run in of_model:
            if run:
                info = run.results.model
                path = run.path.relative_to(folder).as_posix()
                facts = info.id, info.revision, info.commit, info.kind
                members.append(Member(label, *facts, choices, path, run.results.signature))
                runs.append(run)
    forms = {task: facts.form for task, facts in runs[0].results.data.tasks.items()}
    multiverse = Multiverse(members, forms, path=folder)
    for (*address, label), rows in headlines.groupby([*FigureKey._fields, "heading"], sort=False):
        key = FigureKey(*address)
        values: list[Figure | None] = [None] * len(runs)
        for number, figure in zip(rows["run"], rows["figure"], strict=True):
            values[number] = Figure(**{name: figure[name] for name in _STORED})
        differences = _differences(multiverse, runs, key)
        multiverse.figures.append(MultiverseFigure(*key, label, values, differences))
    return multiverse


def _differences(
    multiverse: Multiverse, runs: Sequence[Run], key: FigureKey
) -> list[MemberDifference]:
    """One figure of the first model and each other one, in the protocols that they share.

    Members are compared that have the same choice of every knob that is open for both models; a
    knob that is open for one of the two only takes each of its values.
    """
    differences = []
    members = multiverse.members
    first, *others = multiverse.models
    for second in others:
        shared = multiverse.choices(first).keys() & multiverse.choices(second).keys()
        matched = [
            (a, b, pair)
            for a in multiverse.numbers_of(first)
            for b in multiverse.numbers_of(second)
            if all(members[a].choices[knob] == members[b].choices[knob] for knob in shared)
            and (pair := scored_pair(runs[a], runs[b], key)) is not None
        ]
        compared = compare_pairs([pair for *_, pair in matched], seed=0)
        for (a, b, _), of in zip(matched, compared, strict=True):
            if of.n and not math.isnan(of.difference):
                uncertain = (of.ci_low, of.ci_high, of.p, of.p_adjusted)
                low, high, p, adjusted = (None if math.isnan(x) else x for x in uncertain)
                differences.append(
                    MemberDifference(
                        a, b, of.n, of.difference, low, high, p, adjusted, of.n_tests, of.test
                    )
                )
    return sorted(differences, key=lambda pair: (pair.difference, pair.a, pair.b))
