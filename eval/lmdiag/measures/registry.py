"""Which measures there are: a function says with `@register` what it returns and for which rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from lmdiag.measures.scores import Scores, Trials

ScoreFunction = Callable[..., "list[Scores]"]
"""Trials and, by name, those of `k` and `threshold` that it takes -> scores."""

Registered = TypeVar("Registered", bound=ScoreFunction)


@dataclass(frozen=True)
class Measure:
    """A function that scores, and the measures that it returns.

    Attributes:
        function: see `ScoreFunction`.
        labels: name without parameter -> words for readers, "" for the name itself. A name
            that ends in `@` is for measures with a parameter: `mass@` labels `mass@top=0.1`, and
            `mass` does not.
        of: names of the diagnostics and forms that have it, or what all rows ask that have it:
            `word`, `sentence` or `choice`.
        is_human: whether it is a figure of people, of the data alone.
        one_kind: why it is not compared between a causal model and one that sees both sides; ""
            where it is.
        is_pooled: whether it is over parts of items, which depend on each other: it has no interval
            and is not compared.
        shown_as: the measure that is shown and compared in its place, from which it differs by a
            constant for each item; "" for none.
    """

    function: ScoreFunction
    labels: Mapping[str, str]
    of: tuple[str, ...]
    is_human: bool = False
    one_kind: str = ""
    is_pooled: bool = False
    shown_as: str = ""

    def scores(self, trials: Trials, **options: Any) -> list[Scores]:
        """Returns its scores, of the options with those that the function takes."""
        own_options = _parameters(self.function) & options.keys()
        return self.function(trials, **{name: options[name] for name in own_options})


@cache
def _parameters(function: ScoreFunction) -> frozenset[str]:
    """The names of the parameters of a function."""
    return frozenset(signature(function).parameters)


REGISTRY: list[Measure] = []
"""All measures, in the order of their modules."""


def register(
    of: str | tuple[str, ...],
    /,
    *names: str,
    is_human: bool = False,
    one_kind: str = "",
    is_pooled: bool = False,
    shown_as: str = "",
    **labels: str,
) -> Callable[[Registered], Registered]:
    """Registers a function.

    Args:
        of, is_human, one_kind, is_pooled, shown_as: see `Measure`.
        names: of its measures, without a parameter: `accuracy` for `accuracy@5`.
        labels: name -> words for readers, of those that do not go by their name in words.
    """

    def add(function: Registered) -> Registered:
        diagnostics = (of,) if isinstance(of, str) else of
        labels_of_names = dict.fromkeys(names, "") | labels
        measure = Measure(
            function, labels_of_names, diagnostics, is_human=is_human, one_kind=one_kind,
            is_pooled=is_pooled, shown_as=shown_as,
        )  # fmt: skip
        REGISTRY.append(measure)
        return function

    return add


def measures_of(diagnostic: str, asks: str) -> list[Measure]:
    """Returns the measures of a diagnostic or form: those of all that ask this, then its own.

    Rows that are asked as a choice have those of choices alone.
    """
    names = ("choice",) if asks == "choice" else (asks, diagnostic)
    return [entry for name in names for entry in REGISTRY if name in entry.of]


def registered(name: str) -> Measure | None:
    """Returns the entry of a measure by its name, with or without a parameter; None without one."""
    base, parameter = MeasureName.of(name)
    names = {base, f"{base}@"} if parameter else {base}
    return next((entry for entry in REGISTRY if names & entry.labels.keys()), None)


def is_human(name: str) -> bool:
    """Returns whether a measure is a figure of people, which says nothing of perturbed rows."""
    entry = registered(name)
    return entry is not None and entry.is_human


def is_pooled(name: str) -> bool:
    """Returns whether a measure is over parts of items, see `Measure.is_pooled`."""
    entry = registered(name)
    return entry is not None and entry.is_pooled


def shown_as(name: str) -> str:
    """Returns the measure that is shown in the place of another one; "" for none."""
    entry = registered(name)
    return entry.shown_as if entry else ""


class MeasureName(NamedTuple):
    """The parts of a name: `ew@top=0.1` is `ew` at `top=0.1`, and `rank` has no parameter."""

    base: str
    parameter: str

    @classmethod
    def of(cls, name: str) -> MeasureName:
        """Returns the parts of a name.

        >>> MeasureName.of("accuracy@5"), MeasureName.of("ew@top=0.1").is_curve_point
        (MeasureName(base='accuracy', parameter='5'), True)
        """
        base, _, parameter = name.partition("@")
        return cls(base, parameter)

    @property
    def is_curve_point(self) -> bool:
        """Whether it is a point of a curve over cut-offs of the vocabulary."""
        return self.parameter.startswith(("top=", "bottom="))

    @property
    def label(self) -> str:
        """The measure as readers see it.

        >>> [MeasureName.of(name).label for name in ("accuracy@5", "mw@top=0.1", "tse")]
        ['accuracy@5', 'MW, top 0.1', 'TSE']
        """
        entry = registered(self.base)
        label = (entry and entry.labels.get(self.base)) or self.base.replace("_", " ")
        if "=" in self.parameter:
            return f"{label}, {self.parameter.replace('=', ' ')}"
        return f"{label}@{self.parameter}" if self.parameter else label
