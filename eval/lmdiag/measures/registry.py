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
        """Returns the scores of its function.

        Args:
            trials: rows, and what a model predicted for them.
            options: e.g. `k` and `threshold`; the function gets those that are its parameters.
        """
        names = _parameter_names(self.function) & options.keys()
        return self.function(trials, **{name: options[name] for name in names})


@cache
def _parameter_names(function: ScoreFunction) -> frozenset[str]:
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
    """Returns a decorator that adds a function to the registry of measures.

    For example, `@register("word", "accuracy")` stands above the function that returns accuracy@k
    for all rows with a blank.

    Args:
        of, is_human, one_kind, is_pooled, shown_as: see `Measure`.
        names: of its measures, without a parameter: `accuracy` for `accuracy@5`.
        labels: name -> words for readers, of those that do not go by their name in words.
    """

    def add(function: Registered) -> Registered:
        """Registers the function and returns it unchanged."""
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
    """Returns the measures that are computed for a diagnostic, in the order of the registry.

    Args:
        diagnostic: its name, or the form of the user's own data.
        asks: what its rows ask, "word" or "sentence", whose measures come first; or "choice", which
            has no other measures.
    """
    names = ("choice",) if asks == "choice" else (asks, diagnostic)
    return [measure for name in names for measure in REGISTRY if name in measure.of]


def registered(name: str) -> Measure | None:
    """Returns the entry of the registry that has a measure; None for an unknown name.

    For example, the names "accuracy" and "accuracy@5" give the entry of `accuracy`.
    """
    base, parameter = MeasureName.of(name)
    # the names by which an entry may list the measure
    labelled_names = {base}
    if parameter:
        labelled_names.add(f"{base}@")  # a label for names with a parameter only
    for measure in REGISTRY:
        if labelled_names & measure.labels.keys():
            return measure
    return None


def is_human(name: str) -> bool:
    """Returns whether a measure is a figure of people, which says nothing of perturbed rows."""
    measure = registered(name)
    return measure is not None and measure.is_human


def is_pooled(name: str) -> bool:
    """Returns whether a measure is over parts of items, which depend on each other.

    Such a measure has no interval and is not compared.
    """
    measure = registered(name)
    return measure is not None and measure.is_pooled


def shown_as(name: str) -> str:
    """Returns the measure that is shown and compared instead of the named one; "" for none."""
    measure = registered(name)
    return measure.shown_as if measure else ""


class MeasureName(NamedTuple):
    """The parts of a name: `ew@top=0.1` is `ew` at `top=0.1`; the parameter of `rank` is ""."""

    base: str
    parameter: str

    @classmethod
    def of(cls, name: str) -> MeasureName:
        """Returns the parts of a measure's name, before and after "@".

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
        # by the whole name: `mass@top=0.1` of agreement is not the `mass` of cloze norms
        name = f"{self.base}@{self.parameter}" if self.parameter else self.base
        measure = registered(name)
        label = measure.labels.get(self.base) if measure else ""
        if not label:
            label = self.base.replace("_", " ")
        if "=" in self.parameter:
            parameter = self.parameter.replace("=", " ")
            return f"{label}, {parameter}"
        return f"{label}@{self.parameter}" if self.parameter else label
