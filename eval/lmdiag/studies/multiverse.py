"""Multiverses: figures of models in runs (members) by all combinations of options (knobs).

A *member* of a multiverse is a finished run of one model by one protocol; its *choices* say what
distinguishes the protocol from those of the other members. The figures of a model in ascending
order, with the choices of each, are a specification curve. `multiverse.json` has all of these.

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

_FIGURE_FIELDS = ("value", "n", "n_tied", "ci_low", "ci_high", "chance", "statistic")
"""Fields of a figure that the table of a multiverse has."""
_COMPARISON_FIELDS = (
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
        """Returns knob (an option of how a model is asked) -> its choices in some models.

        For example {"unit": ["token", "word"]}. Knobs of which these models have a single choice
        are left out.

        Args:
            models: labels of models.
        """
        # knob -> its choices as keys, so that each is there once, in the order of the members
        choices: dict[str, dict[str, None]] = {knob: {} for knob in KNOBS}
        for member in self.members:
            if member.model in models:
                for knob, choice in member.choices.items():
                    choices[knob][choice] = None
        return {knob: [*values] for knob, values in choices.items() if len(values) > 1}

    def curve(self, headline: Headline, model: str) -> list[tuple[int, Figure]]:
        """Returns the specification curve of a model: number of a member and figure, ascending.

        Members in which the figure is undefined are left out.
        """
        curve = []
        for number in self.numbers_of(model):
            figure = self.runs[number].results.figure(headline.key)
            if figure and figure.value is not None:
                curve.append((number, figure))
        return sorted(curve, key=lambda point: (point[1].value, point[0]))

    def range_of(self, headline: Headline, model: str) -> dict[str, Any]:
        """Returns the `lowest`, `median` and `highest` value of a figure over the protocols.

        `effects` are those of the knobs, see `effects_of`. {} if no member has a value.
        """
        curve = self.curve(headline, model)
        if not curve:
            return {}
        values = [figure.value or 0.0 for _, figure in curve]  # never None: a curve has values
        effects = effects_of([self.members[number].choices for number, _ in curve], values)
        median = statistics.median(values)
        return {"lowest": values[0], "median": median, "highest": values[-1], "effects": effects}

    @cached_property
    def _differences(self) -> dict[FigureKey, dict[MemberPair, Comparison]]:
        """Figure -> numbers of two members -> their difference in it, in ascending order.

        A member is the run of a model in one protocol. The base member is one of the first model,
        the new member one of another model. Both have the same choice of every knob (option of how
        models are asked) that varies for both models. A knob that varies for only one of the models
        takes each of its values. Undefined differences are left out.
        """
        differences = {}
        reference, *other_models = self.models
        for headline in self.figures:
            comparisons: dict[MemberPair, Comparison] = {}
            for new in other_models:
                pairs = self._scored_pairs(reference, new, headline.key)
                # `compare_pairs` returns a comparison for each pair, in their order
                comparisons |= zip(pairs, compare_pairs([*pairs.values()], seed=0), strict=True)
            defined = {
                pair: comparison
                for pair, comparison in comparisons.items()
                if comparison.n and not math.isnan(comparison.difference)
            }
            ordered = sorted(defined, key=lambda pair: (defined[pair].difference, pair))
            differences[headline.key] = {pair: defined[pair] for pair in ordered}
        return differences

    def _scored_pairs(
        self, reference: str, new: str, key: FigureKey
    ) -> dict[MemberPair, ScoredPair]:
        """Numbers of two members -> the scores of both for a figure.

        A member is the run of a model in one protocol. The first member is one of the model
        `reference`, the second one of `new`. Only members are paired that agree in the knobs
        (options of how models are asked) that vary for both models, since a difference is to be one
        of the models. For example, {(0, 4): scores} for the members 0 and 4, both with unit "word".
        """
        shared_knobs = self.choices(reference).keys() & self.choices(new).keys()
        pairs = {}
        for a, b in product(self.numbers_of(reference), self.numbers_of(new)):
            choices_a = self.members[a].choices
            choices_b = self.members[b].choices
            if any(choices_a[knob] != choices_b[knob] for knob in shared_knobs):
                continue
            pair = scored_pair(self.runs[a], self.runs[b], key)
            if pair:
                pairs[a, b] = pair
        return pairs

    def differences(self, headline: Headline, new: str) -> dict[MemberPair, Comparison]:
        """Returns numbers of two members -> their difference, for a model and the first one.

        They are in ascending order. p is adjusted over all pairs of these two models for this
        figure.
        """
        differences = {}
        for (base_number, new_number), comparison in self._differences[headline.key].items():
            if self.members[new_number].model == new:
                differences[base_number, new_number] = comparison
        return differences

    def to_json(self) -> dict[str, Any]:
        """Returns the multiverse as plain JSON values, with all figures and differences."""
        from pydantic_core import to_jsonable_python

        document = asdict(self)
        del document["path"]  # where the file lies is not in the file
        for headline, content in zip(self.figures, document["figures"], strict=True):
            content |= self._json_numbers(headline)
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain

    def _json_numbers(self, headline: Headline) -> dict[str, Any]:
        """The numbers of a figure in the JSON document.

        `values` has the figure of each member (a run of a model in one protocol); `differences`
        those of pairs of members, as {"base": 0, "new": 4, "difference": 0.1, ...}; `ranges` the
        range of each model over its protocols; and `comparisons` counts of differences by model.
        """
        reference, *other_models = self.models
        values = []
        for run in self.runs:
            figure = run.results.figure(headline.key)
            # without the text that says why a figure is undefined
            values.append(figure and replace(figure, not_defined=None).to_json())
        differences = []
        for (base_number, new_number), comparison in self._differences[headline.key].items():
            numbers = {name: getattr(comparison, name) for name in _COMPARISON_FIELDS}
            differences.append({"base": base_number, "new": new_number} | numbers)
        ranges = []
        for model in self.models:
            range_of_model = self.range_of(headline, model)
            if range_of_model:
                ranges.append({"model": model} | range_of_model)
        comparisons = []
        for new in other_models:
            counts = counts_of(self.differences(headline, new).values())
            comparisons.append({"base": reference, "new": new} | counts)
        return {
            "values": values,
            "differences": differences,
            "ranges": ranges,
            "comparisons": comparisons,
        }

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per headline figure and protocol.

        `model`, a column per knob, `run` (its directory), the parts of the figure's address, and
        value, n, n_tied, ci_low, ci_high, chance and statistic; proportions are in [0, 1].
        """
        from pandas import DataFrame

        records = []
        for headline in self.figures:
            for model in self.models:
                for number, figure in self.curve(headline, model):
                    member = self.members[number]
                    record: dict[str, Any] = {"model": model, **member.choices}
                    record["run"] = str(self.path / member.path)
                    record |= headline.key._asdict()
                    record |= {name: figure[name] for name in _FIGURE_FIELDS}
                    records.append(record)
        return DataFrame(records)

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
        """Yields a line for each wrong value that has the right type, beginning with its field.

        For example, "members: there is no knob 'unt'". The file may be that of a stranger.
        """
        if not self.members:
            yield "members: there are none"
        for member in self.members:
            unknown_knobs = sorted(member.choices.keys() - KNOBS.keys())
            if unknown_knobs:
                yield f"members: there is no knob {unknown_knobs[0][:100]!r}"
            if Path(member.path).is_absolute() or ".." in Path(member.path).parts:
                yield f"members: the path {member.path[:100]!r} leads out of the folder"


def counts_of(differences: Collection[Comparison]) -> dict[str, int]:
    """Returns counts of differences between two models, a difference per protocol.

    `higher`, `lower` and `equal` count those in which the new model's figure is so. `rejected`
    counts those with p < .05, `adjusted` those with p < .05 after Holm's method over all protocols,
    and `n_tests` the distinct tests of these.
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
    """Returns knob -> how far it moves a figure, 0 or more.

    Of each two choices of a knob, the values are averaged over the combinations of all other knobs
    that were asked with both; the effect is the largest difference of two such means. A knob
    without two such choices has no effect and is left out.

    Args:
        members: knob -> choice, of each member.
        values: the figure of each member.

    >>> effects_of([{"unit": "token"}, {"unit": "word"}], [0.5, 1.0])
    {'unit': 0.5}
    """
    effects = {}
    for knob in KNOBS:
        # choice of this knob -> choices of all other knobs -> value
        by_choice: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for choices, value in zip(members, values, strict=True):
            if knob in choices:
                other_choices = frozenset(choices.items() - {(knob, choices[knob])})
                by_choice.setdefault(choices[knob], {})[other_choices] = value
        mean_differences = []
        for values_a, values_b in combinations(by_choice.values(), 2):
            # combinations of the other knobs that were asked with both choices, in a fixed order
            common = sorted(values_a.keys() & values_b.keys(), key=sorted)
            if common:
                differences = [values_a[other] - values_b[other] for other in common]
                mean_differences.append(abs(statistics.fmean(differences)))
        if mean_differences:
            effects[knob] = max(mean_differences)
    return effects


def multiverse_of(
    models: Mapping[str, Sequence[tuple[dict[str, str], Run]]], headlines: DataFrame, folder: Path
) -> Multiverse:
    """Returns the multiverse of some runs in a folder, on the same rows.

    Args:
        models: label of each model -> choices (of its open knobs) and run of each member, that of
            the default protocol first.
        headlines: the headline figures of all these runs, a row per figure and run: task, setting,
            measure, by, level and heading.
        folder: that holds the run directories.
    """
    members = []
    forms = dict[str, str]()
    for label, members_of_model in models.items():
        for choices, run in members_of_model:
            info = run.results.model
            member = Member(
                model=label,
                id=info.id,
                revision=info.revision,
                commit=info.commit,
                kind=info.kind,
                choices=choices,
                path=run.path.relative_to(folder).as_posix(),
                signature=run.results.signature,
            )
            members.append(member)
            for task, task_data in run.results.data.tasks.items():
                forms[task] = task_data.form
    addresses = headlines[[*FigureKey._fields, "heading"]].drop_duplicates()
    figures = [Headline(*address) for address in addresses.itertuples(index=False, name=None)]
    return Multiverse(members, forms, figures, path=folder)
