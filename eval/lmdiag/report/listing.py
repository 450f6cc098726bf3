"""Items as a page lists them, with the answers of one or several runs; chosen items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.diagnostics import Diagnostic
from lmdiag.perturb import NONE
from lmdiag.report import numbers
from lmdiag.report.choices import Choice, Part
from lmdiag.report.items import Item, items, representative
from lmdiag.report.labels import run_labels
from lmdiag.text import suggest, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.results import Run


class Verdict(NamedTuple):
    """The outcome of an item in words.

    `kind` is `right`, `narrow` (good preferred, but not by the threshold; some predictions hold,
    but not all), `wrong`, `unknown`, or `plain` where nothing is compared.
    """

    kind: str
    text: str


class SentenceColumn(NamedTuple):
    """Words of an item's sentences that stand below each other, or a region of its conditions.

    Attributes:
        name: of the region; "" for words.
        cells: for each row of the item, its part as each run has it; None where it has none.
    """

    name: str
    cells: list[list[Part] | None]


@dataclass(frozen=True)
class ListedItem:
    """An item of a list.

    Attributes:
        of_runs: the item as each run has it.
        setting: perturbation.
        diagnostic: that it belongs to.
    """

    of_runs: Sequence[Item]
    setting: str
    diagnostic: Diagnostic

    @property
    def item(self) -> Item:
        """The item of the first run."""
        return self.of_runs[0]

    @property
    def anchor(self) -> str:
        """Its id in the page."""
        return visible(self.item.id if self.setting == NONE else f"{self.setting}:{self.item.id}")

    @property
    def tags(self) -> dict[str, str]:
        """break-down=level -> the level in words."""
        return {
            f"{by}={level}": self.diagnostic.level_label(by, level)
            for by, level in self.item.levels.items()
            if by not in self.diagnostic.untagged
        }

    @property
    def good(self) -> float | None:
        """p(good) of the first run; where nothing is compared, p of the word."""
        return self.item.good if self.item.is_compared else self.item.order

    @property
    def difference(self) -> float | None:
        """What a list is sorted by, from the worst to the best; None where nothing is compared."""
        return self.item.held if self.item.predictions else self.item.difference

    @property
    def place(self) -> int | str | None:
        """Place of the first expected word in the top words; "none" if it is not there."""
        expecting = next((choice for choice in self.item.choices if choice.expected), None)
        return expecting and (expecting.place or "none")

    @property
    def sentences(self) -> list[list[list[Choice]]]:
        """For each distinct context, that of the good row first: its rows, each of every run."""
        rows = [list(row) for row in zip(*(item.choices for item in self.of_runs), strict=True)]
        distinct = dict.fromkeys(row[0].sentence for row in rows)
        return [[row for row in rows if row[0].sentence == sentence] for sentence in distinct]

    @property
    def columns(self) -> list[SentenceColumn]:
        """The words or regions of its sentences, side by side; none where rows have a blank.

        Words are aligned from the left as far as the sentences share them, and likewise from the
        right.
        """
        by_row = zip(*(item.choices for item in self.of_runs), strict=True)
        rows = [[*_parts_of_runs([choice.parts for choice in row])] for row in by_row]
        return [
            SentenceColumn(next(cell[0].name for cell in cells if cell), list(cells))
            for cells in zip(*_aligned(rows), strict=True)
        ]

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each run."""
        return [verdict(item) for item in self.of_runs]


def listed(
    runs: Sequence[Sequence[Item]],
    diagnostic: Diagnostic,
    setting: str = NONE,
    chosen: Sequence[str] = (),
) -> list[ListedItem]:
    """Returns the items of one setting that a page lists: all, or a sample and the chosen ones.

    Args:
        runs: items of each run, the same ones in the same order.
        diagnostic: that they are of.
        setting: perturbation.
        chosen: ids of rows or contrasts.
    """
    wanted = {item.id for item in representative(runs[0])} | set(chosen)
    return [
        ListedItem(same, setting, diagnostic)
        for same in zip(*runs, strict=True)
        if same[0].id in wanted or any(choice.id in wanted for choice in same[0].choices)
    ]


def _parts_of_runs(runs: Sequence[Sequence[Part]]) -> Iterator[list[Part]]:
    """The parts of a sentence, each as every run has it."""
    others = [{part.start: part for part in parts} for parts in runs[1:]]
    for part in runs[0]:
        unknown = part._replace(bits=None)
        yield [part, *(other.get(part.start, unknown) for other in others)]


def _aligned(rows: Sequence[Sequence[list[Part]]]) -> list[list[list[Part] | None]]:
    """Rows of equal length: what the shorter ones lack is None, before the words that all share."""
    texts = [[part[0].text for part in row] for row in rows]
    longest, shortest = max(map(len, rows)), min(map(len, rows))
    shared = 0
    while shared < shortest and len({row[-1 - shared] for row in texts}) == 1:
        shared += 1
    return [
        [*row[: len(row) - shared], *[None] * (longest - len(row)), *row[len(row) - shared :]]
        for row in rows
    ]


def verdict(item: Item) -> Verdict:
    """Returns the outcome of an item in words."""
    first = item.choices[0]
    if item.predictions:
        return _predicted(item)
    if not item.is_compared:
        digits = 1 if first.is_sentence else 2
        text = "unscorable" if first.bits is None else f"{first.bits:.{digits}f} bits"
        return Verdict("plain", text)
    if item.prefers_good is None or item.difference is None:
        return Verdict("unknown", "cannot be compared")
    gap = abs(item.difference)
    size = f"{numbers.bits(gap)} bits" if first.is_sentence else numbers.probability(gap)
    if not item.prefers_good:
        text = f"bad preferred by {size}" if item.difference else "neither preferred"
        return Verdict("wrong", text)
    if item.by_threshold is False:
        return Verdict("narrow", f"good preferred by only {size}")
    return Verdict("right", f"good preferred by {size}")


def _predicted(item: Item) -> Verdict:
    """How many predictions hold of an item of a suite."""
    n, held = len(item.predictions), item.held
    if held is None:
        return Verdict("unknown", "cannot be evaluated")
    kind = "right" if held == 1 else "narrow" if held else "wrong"
    text = f"{round(held * n)} of {n} predictions hold"
    return Verdict(kind, text if n > 1 else f"prediction {'holds' if held else 'does not hold'}")


# ---- chosen items --------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """A context of a chosen item, as in tables 6, 10, 13 and 15 of Ettinger (2020).

    Attributes:
        choice: a row with the context or sentence.
        said: each model, by name, with its most probable words, or with the parts of the sentence.
    """

    choice: Choice
    said: list[tuple[str, Sequence[Any]]]


def choose(runs: Sequence[Run], ids: Sequence[str]) -> list[Chosen]:
    """Returns the distinct contexts of chosen items, in the order in which they were named.

    Args:
        runs: runs on the same data.
        ids: of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

    Raises:
        BadInput: no run has an item of that name.
    """
    choices = [_by_id(run) for run in runs]
    known = {name for by_id in choices for name in by_id}
    for name in ids:
        if name not in known:
            paths = " or ".join(str(run.path) for run in runs)
            raise BadInput(
                f"no item {name!r}{suggest(name, known)} in {paths}: its ids are in "
                "predictions.parquet"
            )
    models = run_labels([run.results for run in runs])
    chosen: dict[str, dict[str, Choice]] = {}
    for name in ids:
        for model, by_id in zip(models, choices, strict=True):
            for choice in by_id.get(name, ()):
                chosen.setdefault(choice.sentence, {})[model] = choice
    return [
        Chosen(
            next(iter(of.values())),
            [(model, of[model].said if model in of else ()) for model in models],
        )
        for of in chosen.values()
    ]


def _by_id(run: Run) -> dict[str, list[Choice]]:
    """Id of a row or of a contrast -> its rows."""
    choices: dict[str, list[Choice]] = {}
    for item in (item for task in run.stimuli for item in items(run, task)):
        for choice in item.choices:
            for name in dict.fromkeys((item.id, choice.id)):
                choices.setdefault(name, []).append(choice)
    return choices
