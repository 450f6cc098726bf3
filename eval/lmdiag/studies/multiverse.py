"""The figures of models in every protocol that was asked: the content of `multiverse.json`.

A *member* of a multiverse is a finished run of one model by one protocol; its *choices* say what
distinguishes the protocol from those of the other members. The figures of a model in ascending
order, with the choices of each, are a specification curve.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.asking.protocol import KNOBS
from lmdiag.files.reading import has_file
from lmdiag.presentable import Presentable
from lmdiag.results import Figure, FigureKey, Run, load_runs
from lmdiag.results.results import read_record
from lmdiag.studies.comparison import (
    ALPHA,
    Comparison,
    ScoredPair,
    compare_pairs,
    scored_pair,
)
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from pandas import DataFrame

MULTIVERSE = "multiverse.json"
MULTIVERSE_PAGE = "multiverse.html"

_OF_FIGURE = ("value", "n", "n_tied", "ci_low", "ci_high", "chance", "statistic")
"""Fields of a figure that the table of a multiverse has."""
_OF_DIFFERENCE = (
    "n", "n_tied", "difference", "ci_low", "ci_high", "p", "p_adjusted", "n_tests", "test",
)  # fmt: skip
"""Fields of a comparison that the file has."""

MemberPair = tuple[int, int]
"""Numbers of two members: of the first model, which is the base, and of another one."""


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
class Headline:
    """The address of a headline figure, and its label."""

    task: str
    setting: str
    measure: str
    by: str
    level: str
    label: str

    @property
    def key(self) -> FigureKey:
        """The address."""
        return FigureKey(self.task, self.setting, self.measure, self.by, self.level)


@dataclass(frozen=True, repr=False)
class Multiverse(Presentable):
    """The headline figures of some models in every protocol; they are those of the runs.

    Attributes:
        members: the runs, those of the first model first.
        forms: task -> form of its data, see `lmdiag.stimuli.Stimuli`.
        figures: which figures, in the order of a report.
        path: directory of the file and of the runs.
    """

    members: list[Member]
    forms: dict[str, str]
    figures: list[Headline]
    schema_version: Literal[1] = 1
    path: Path = Path()

    def __repr__(self) -> str:
        models = ", ".join(self.models)
        return f"<Multiverse of {models}: {len(self.members)} protocols; {self.path}>"

    @property
    def models(self) -> list[str]:
        """Labels of the models; the first is the one that the others are compared with."""
        return [*dict.fromkeys(member.model for member in self.members)]

    @cached_property
    def runs(self) -> list[Run]:
        """The run of each member."""
        return load_runs(self.path / member.path for member in self.members)

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

    def curve(self, headline: Headline, model: str) -> list[tuple[int, Figure]]:
        """Returns the specification curve of a model: members and figures in ascending order."""
        numbers = self.numbers_of(model)
        figures = [(number, self.runs[number].results.figure(headline.key)) for number in numbers]
        defined = [(n, figure) for n, figure in figures if figure and figure.value is not None]
        return sorted(defined, key=lambda entry: (entry[1].value, entry[0]))

    def range_of(self, headline: Headline, model: str) -> dict[str, Any]:
        """Returns lowest, median and highest value, and `effects`; {} where none is defined."""
        curve = self.curve(headline, model)
        if not curve:
            return {}
        values = [figure.value or 0.0 for _, figure in curve]
        effects = effects_of([self.members[number].choices for number, _ in curve], values)
        median = statistics.median(values)
        return {"lowest": values[0], "median": median, "highest": values[-1], "effects": effects}

    @cached_property
    def _compared(self) -> dict[FigureKey, dict[MemberPair, Comparison]]:
        """The differences of each figure, in ascending order.

        Members are compared that have the same choice of every knob that is open for both models;
        a knob that is open for one of the two only takes each of its values.
        """
        compared = {}
        reference, *others = self.models
        for key in (headline.key for headline in self.figures):
            comparisons: dict[MemberPair, Comparison] = {}
            for new in others:
                pairs = self._scored_pairs(reference, new, key)
                comparisons |= zip(pairs, compare_pairs([*pairs.values()], seed=0), strict=True)
            defined = {
                pair: comparison
                for pair, comparison in comparisons.items()
                if comparison.n and not math.isnan(comparison.difference)
            }
            ordered = sorted(defined, key=lambda pair: (defined[pair].difference, pair))
            compared[key] = {pair: defined[pair] for pair in ordered}
        return compared

    def _scored_pairs(
        self, reference: str, new: str, key: FigureKey
    ) -> dict[MemberPair, ScoredPair]:
        """The scores of members of two models that agree in the knobs open for both."""
        shared_knobs = self.choices(reference).keys() & self.choices(new).keys()
        pairs = {}
        for a, b in product(self.numbers_of(reference), self.numbers_of(new)):
            choices_a = self.members[a].choices
            choices_b = self.members[b].choices
            if any(choices_a[knob] != choices_b[knob] for knob in shared_knobs):
                continue
            if pair := scored_pair(self.runs[a], self.runs[b], key):
                pairs[a, b] = pair
        return pairs

    def differences(self, headline: Headline, new: str) -> dict[MemberPair, Comparison]:
        """Returns the differences of a model from the first one, in ascending order.

        p is adjusted over all pairs of these two models for this figure.
        """
        compared = self._compared[headline.key]
        return {pair: x for pair, x in compared.items() if self.members[pair[1]].model == new}

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values, with the figures and differences of the runs."""
        from pydantic_core import to_jsonable_python

        document = asdict(self)
        del document["path"]
        reference, *others = self.models
        for headline, content in zip(self.figures, document["figures"], strict=True):
            figures = [run.results.figure(headline.key) for run in self.runs]
            content["values"] = [
                figure and replace(figure, not_defined=None).to_json() for figure in figures
            ]
            content["differences"] = [
                {"base": base, "new": new}
                | {name: getattr(comparison, name) for name in _OF_DIFFERENCE}
                for (base, new), comparison in self._compared[headline.key].items()
            ]
            ranges = {model: self.range_of(headline, model) for model in (reference, *others)}
            content["ranges"] = [{"model": model} | x for model, x in ranges.items() if x]
            content["comparisons"] = [
                {"base": reference, "new": new}
                | counts_of(self.differences(headline, new).values())
                for new in others
            ]
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per headline figure and protocol.

        `model`, a column per knob, `run` (its directory), the parts of the figure's address, and
        value, n, n_tied, ci_low, ci_high, chance and statistic; proportions are in [0, 1].
        """
        from pandas import DataFrame

        return DataFrame(
            {"model": model, **self.members[number].choices}
            | {"run": str(self.path / self.members[number].path), **headline.key._asdict()}
            | {name: figure[name] for name in _OF_FIGURE}
            for headline in self.figures
            for model in self.models
            for number, figure in self.curve(headline, model)
        )

    @classmethod
    def read(cls, folder: str | Path) -> Multiverse:
        """Reads what `lmdiag multiverse` wrote; figures and differences are those of the runs.

        Args:
            folder: the directory with `multiverse.json`, its `--output`.

        Raises:
            BadInput: see `read_record`; or a member is not the run at its path.

        Of `lmdiag multiverse demo --model demo:causal --tasks neg136 --knobs unit --output knobs`:

        >>> import lmdiag
        >>> lmdiag.load_multiverse("knobs")
        <Multiverse of demo:causal: 2 protocols; knobs>
        """
        folder = Path(folder)
        if not has_file(folder / MULTIVERSE):
            raise BadInput(f"{folder} has no {MULTIVERSE}; `lmdiag multiverse` writes it")
        multiverse = replace(read_record(cls, folder / MULTIVERSE), path=folder)
        for member, run in zip(multiverse.members, multiverse.runs, strict=True):
            run_identity = run.results.signature, run.results.model.commit
            if run_identity != (member.signature, member.commit):
                where = f"{folder / MULTIVERSE} was not made of the run in {run.path}"
                raise BadInput(f"{where}: run `lmdiag multiverse` again")
        return multiverse

    def validation_errors(self) -> Iterator[str]:
        """Yields what is wrong beyond the types of the values, with the field."""
        if not self.members:
            yield "members: there are none"
        for member in self.members:
            if unknown := member.choices.keys() - KNOBS.keys():
                yield f"members: there is no knob {sorted(unknown)[0][:100]!r}"
            if Path(member.path).is_absolute() or ".." in Path(member.path).parts:
                yield f"members: the path {member.path[:100]!r} leads out of the folder"


def counts_of(differences: Collection[Comparison]) -> dict[str, int]:
    """Returns in how many protocols the new model's figure is higher, lower or equal, or p < .05.

    `rejected` counts p, `adjusted` p adjusted by Holm's method over the protocols, whose distinct
    tests `n_tests` counts.
    """
    values = [comparison.difference for comparison in differences]
    return {
        "higher": sum(value > 0 for value in values),
        "lower": sum(value < 0 for value in values),
        "equal": sum(value == 0 for value in values),
        "rejected": sum(comparison.p < ALPHA for comparison in differences),
        "adjusted": sum(comparison.p_adjusted < ALPHA for comparison in differences),
        "n_tests": max((comparison.n_tests for comparison in differences), default=0),
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
                other_choices = frozenset(choices.items() - {(knob, choices[knob])})
                by_choice.setdefault(choices[knob], {})[other_choices] = value
        moves = []
        for a, b in combinations(by_choice.values(), 2):
            common = sorted(a.keys() & b.keys(), key=sorted)  # of all other knobs
            if common:
                moves.append(abs(statistics.fmean(a[item] - b[item] for item in common)))
        if moves:
            effects[knob] = max(moves)
    return effects


def multiverse_of(
    models: Mapping[str, Sequence[tuple[dict[str, str], Run]]], headlines: DataFrame, folder: Path
) -> Multiverse:
    """Returns the multiverse of some runs in a folder, on the same rows.

    Args:
        models: label of each model -> choices and run of its members, the default protocol first.
        headlines: figures of all these runs, see `lmdiag.report.selections.headlines`.
        folder: that holds the run directories.
    """
    members = []
    forms = dict[str, str]()
    for label, members_of_model in models.items():
        for choices, run in members_of_model:
            info = run.results.model
            path = run.path.relative_to(folder).as_posix()
            model_facts = info.id, info.revision, info.commit, info.kind
            members.append(Member(label, *model_facts, choices, path, run.results.signature))
            forms |= {
                task: model_facts.form for task, model_facts in run.results.data.tasks.items()
            }
    addresses = headlines[[*FigureKey._fields, "heading"]].drop_duplicates()
    figures = [Headline(*address) for address in addresses.itertuples(index=False, name=None)]
    return Multiverse(members, forms, figures, path=folder)
