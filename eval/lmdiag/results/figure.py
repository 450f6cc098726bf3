"""A figure, the address of a figure, and the figures of one setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from lmdiag import stats
from lmdiag.measures.scores import Statistic

CHANCE_SIGNS: Mapping[stats.VersusChance, str] = {
    "above": "↑",
    "below": "↓",
    "not distinguishable": "†",
}
"""Sign of each result of the test against the chance level, wherever figures are shown."""

CHANCE_LEGEND = (
    "↑ above chance, ↓ below chance, † not distinguishable from chance "
    "(exact binomial test; for EW and MW, t test)"
)
"""What the signs mean, in the same words everywhere."""


class Place(NamedTuple):
    """The address of a figure.

    Attributes:
        task: config of the data set.
        setting: perturbation, "none" for the unperturbed setting.
        measure: e.g. "accuracy@5".
        by: break-down, "" for the measure as a whole.
        level: level of the break-down, "" for the measure as a whole.
    """

    task: str
    setting: str
    measure: str
    by: str = ""
    level: str = ""


@dataclass(frozen=True)
class Figure:
    """A value and how certain it is.

    Attributes:
        value: in its own unit, a proportion or share in [0, 1]; None where undefined.
        n: number of items (rows, contrasts or contexts) that it is over.
        ci_low, ci_high: 95% interval; None where undefined.
        chance: value that guessing gives; None for a measure without a chance level.
        sd: standard deviation over the runs of a shuffled setting; None elsewhere.
        runs: number of these runs; None elsewhere.
        not_defined: why no item has a value; None where some have.
        statistic: how the values of the items became this value.
    """

    value: float | None
    n: int | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    chance: float | None = None
    sd: float | None = None
    runs: int | None = None
    not_defined: str | None = None
    statistic: Statistic | None = None

    def __getitem__(self, key: str) -> Any:
        """Returns an attribute: `figure["value"]` is `figure.value`."""
        return getattr(self, key)

    @property
    def is_percent(self) -> bool:
        """Whether it is a proportion or a share, which is shown in percent."""
        return self.statistic in ("proportion", "share")

    @property
    def versus_chance(self) -> stats.VersusChance | None:
        """Where it lies against its chance level; None without a value or a chance level."""
        if self.value is None or self.chance is None or not self.n:
            return None
        interval = None
        if self.statistic == "share" and self.ci_low is not None and self.ci_high is not None:
            interval = self.ci_low, self.ci_high
        return stats.versus_chance(self.value, self.n, self.chance, interval)

    @property
    def p_chance(self) -> float | None:
        """Two-sided p of the exact binomial test of a proportion against its chance level.

        None without a value or a chance level, and for a mean of shares, which has a t test.
        """
        if self.value is None or self.chance is None or not self.n:
            return None
        is_counted = self.statistic != "share" or self.value in (0, 1)
        return stats.chance_p(self.value, self.n, self.chance) if is_counted else None

    @property
    def chance_sign(self) -> str:
        """The sign of `versus_chance` beside the figure; "" where there is none."""
        return CHANCE_SIGNS[self.versus_chance] if self.versus_chance else ""

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values; what only some figures have is left out where it is None."""
        always = ("value", "n", "ci_low", "ci_high", "chance")
        tests = {"versus_chance": self.versus_chance, "p_chance": self.p_chance}
        known = vars(self) | tests
        return {key: value for key, value in known.items() if key in always or value is not None}


@dataclass(frozen=True)
class Measure(Figure):
    """A figure over all items, and the figures of its break-downs.

    Attributes:
        by: break-down -> level -> figure.
    """

    by: dict[str, dict[str, Figure]] = field(default_factory=dict)

    def at(self, by: str = "", level: str = "") -> Figure | None:
        """Returns the figure of a level, or of all items; None where there is none."""
        return self.by.get(by, {}).get(level) if by else self

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        by = {
            column: {level: figure.to_json() for level, figure in levels.items()}
            for column, levels in self.by.items()
        }
        return super().to_json() | {"by": by}


@dataclass(frozen=True)
class UnscoredWord:
    """A row whose word or sentence has no log-probability.

    Attributes:
        id: of the row.
        word: its target; of a sentence, the words that the tokenizer cannot represent.
    """

    id: str
    word: str


@dataclass(frozen=True)
class SettingResults:
    """The figures of one task in one setting.

    Attributes:
        measures: name -> measure.
        unscorable: rows that were left out, because the tokenizer cannot represent the word.
        signature: what makes the figures comparable; see `lmdiag.results.signature`.
        censored: rows that were left out, because the word is less probable than every word that
            the model returns.
        without_first: number of whole sentences whose first word has no probability, since nothing
            stands before it; it is left out of their sums.
        equal_contrasts: number of contrasts that were left out, because a good and a bad row have
            the same text or the same tokens.
    """

    measures: dict[str, Measure]
    unscorable: list[UnscoredWord] = field(default_factory=list)
    signature: str = ""
    censored: list[UnscoredWord] = field(default_factory=list)
    without_first: int = 0
    equal_contrasts: int = 0

    def figures(self, task: str, setting: str) -> Iterator[tuple[Place, Figure]]:
        """Yields all figures with their addresses, a whole measure before its levels."""
        for name, measure in self.measures.items():
            yield Place(task, setting, name), measure
            for by, levels in measure.by.items():
                for level, figure in levels.items():
                    yield Place(task, setting, name, by, level), figure

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        measures = {name: measure.to_json() for name, measure in self.measures.items()}
        always = ("signature", "measures", "unscorable")
        known = asdict(replace(self, measures={})) | {"measures": measures}
        return {key: known[key] for key in (*always, *known) if key in always or known[key]}
