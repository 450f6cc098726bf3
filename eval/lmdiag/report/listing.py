"""Items as a page lists them: contexts, words, probabilities, verdicts of one or several runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from lmdiag.hub.text import visible
from lmdiag.report import numbers
from lmdiag.report.items import Choice, Item, TopWord
from lmdiag.report.labels import SETTINGS, level_label


class Target(NamedTuple):
    """A row of the data: the word, whether it is the good one, and each model's probability.

    `good` is None where rows are not compared.
    """

    id: str
    word: str
    good: bool | None
    condition: str
    said: list[tuple[float | None, int | None]]


class Sentence(NamedTuple):
    """A context of an item.

    Attributes:
        left, right: the text around the blank.
        expected: what people said most, empty where the data do not say.
        tops: each model's most probable words.
        targets: the rows that have this context.
    """

    left: str
    right: str
    expected: tuple[str, ...]
    tops: list[tuple[TopWord, ...]]
    targets: list[Target]


class Verdict(NamedTuple):
    """How a model did: `right`, `narrow` (good preferred, but by little), `wrong` or `unknown`.

    `plain` where nothing was compared: the text says how probable the word is.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Listed:
    """An item of the list.

    Attributes:
        anchor: its id in the page.
        name: its id in the data.
        setting: perturbation.
        tags: break-downs that it belongs to, as words.
        levels: the same as `by=level`, for the filter.
        sentences: its contexts.
        verdicts: one for each run.
        difference: p(good) - p(bad) of the first run, None where unknown.
        good: p(good) of the first run; where nothing is compared, p of the word.
        compared: whether it is a contrast.
        place: of the first expected word in the first run's list; None where none is in it.
        has_expected: whether there is an expected word.
    """

    anchor: str
    name: str
    setting: str
    tags: list[str]
    levels: list[str]
    sentences: list[Sentence]
    verdicts: list[Verdict]
    difference: float | None
    good: float | None
    compared: bool
    place: int | None
    has_expected: bool

    @property
    def link(self) -> str:
        """The anchor as it stands in a link."""
        return quote(self.anchor)


def listed(
    found: Sequence[Sequence[Item]], setting: str = "none", *, task: str = ""
) -> Iterator[Listed]:
    """Yields the items of one setting.

    Args:
        found: items of each run, the same ones in the same order.
        setting: perturbation; but for "none" it begins the anchors.
        task: that they are of.
    """
    hidden = HIDDEN.get(task, frozenset())
    for same in zip(*found, strict=True):
        first = same[0]
        expecting = next((choice for choice in first.choices if choice.expected), None)
        levels = {by: level for by, level in first.levels.items() if by not in hidden}
        yield Listed(
            anchor=visible(first.id if setting == "none" else f"{setting}:{first.id}"),
            name=first.id,
            setting=setting,
            tags=[level_label(by, level) for by, level in levels.items()],
            levels=[f"{by}={level}" for by, level in levels.items()],
            sentences=list(_sentences(same)),
            verdicts=[verdict(item) for item in same],
            difference=first.difference,
            good=first.good if first.is_compared else first.order,
            compared=first.is_compared,
            place=expecting.place if expecting else None,
            has_expected=expecting is not None,
        )


HIDDEN = {"neg136": frozenset({"subset", "natural"}), "agreement": frozenset({"source"})}
"""Task -> break-downs that a finer one says, too."""


def _sentences(same: Sequence[Item]) -> Iterator[Sentence]:
    """The distinct contexts of an item, that of the good row first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i, choice in enumerate(same[0].choices):
        groups.setdefault(choice.sentence, []).append(i)
    for (left, right), places in groups.items():
        rows = [same[0].choices[i] for i in places]
        yield Sentence(
            left,
            right,
            next((row.expected for row in rows if row.expected), ()),
            [max((item.choices[i].top for i in places), key=_hits) for item in same],
            [
                Target(
                    row.id,
                    row.target,
                    row.good,
                    row.condition,
                    [(item.choices[i].probability, item.choices[i].rank) for item in same],
                )
                for i, row in zip(places, rows, strict=True)
            ],
        )


def _hits(top: tuple[TopWord, ...]) -> int:
    """Rows of one context have one list, but only some of them say which words are expected."""
    return sum(entry.expected for entry in top)


def verdict(item: Item) -> Verdict:
    """Returns how a model did on an item, in words."""
    if not item.is_compared:
        return Verdict("plain", surprisal(item.choices[0]))
    if item.prefers_good is None or item.difference is None:
        return Verdict("unknown", "cannot be compared")
    size = numbers.probability(abs(item.difference))
    if not item.prefers_good:
        return Verdict(
            "wrong", f"bad preferred by {size}" if item.difference else "neither preferred"
        )
    if item.by_threshold is False:
        return Verdict("narrow", f"good preferred, but by {size} only")
    return Verdict("right", f"good preferred by {size}")


def surprisal(choice: Choice) -> str:
    """Returns the surprisal of a word as text."""
    if choice.log_prob is None:
        return "unscorable"
    return f"{-choice.log_prob / math.log(2):.2f} bits"


def settings_of(names: Sequence[str]) -> list[str]:
    """Returns the settings whose items can be listed, "none" first: all but the shuffled ones."""
    shuffled = ("shuf", "shuf_trunc")
    return [name for name in SETTINGS if name in names and name not in shuffled]
