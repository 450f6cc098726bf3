"""Models compared by diagnostic: a dot and an interval for each model and headline figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lmdiag.hub.headline import HEADLINES
from lmdiag.leaderboard.standing import Figure, Standing
from lmdiag.report.figures import Series, dots
from lmdiag.report.labels import TITLES
from lmdiag.report.records import Cell

MOST = 24
"""Models that a picture holds and stays readable."""

LONGEST = 30
"""Characters of a model's name in a picture."""

SHOWN = {
    "cprag102": ("cprag102_accuracy_at_5", "cprag102_sensitivity"),
    "role88": ("role88_accuracy_at_5", "role88_sensitivity"),
    "neg136": ("neg136_sensitivity_simp_affirmative", "neg136_sensitivity_simp_negative"),
    "agreement": ("agreement_tse", "agreement_ew", "agreement_mw"),
}
"""Task -> the headline figures of its picture."""


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        title: the diagnostic.
        svg: the element.
        note: what it leaves out; "" for nothing.
    """

    title: str
    svg: str
    note: str


def pictures(rows: Sequence[Standing]) -> list[Picture]:
    """Returns a picture for each diagnostic that any row has figures of, in the rows' order."""
    drawn = (_picture(task, keys, rows) for task, keys in SHOWN.items())
    return [picture for picture in drawn if picture is not None]


def _picture(task: str, keys: Sequence[str], rows: Sequence[Standing]) -> Picture | None:
    there = [row for row in rows if any(key in row.figures for key in keys)]
    if not there:
        return None
    kept = there[:MOST]
    labels = {headline.id: headline.label for headline in HEADLINES}
    series = [Series(labels[key], [_cell(row.figures.get(key)) for row in kept]) for key in keys]
    title = TITLES[task]
    rows_of = Counter(row.group for row in kept)
    names = [_name(row, rows_of[row.group] > 1) for row in kept]
    svg = dots(f"picture-{task}", f"{title}: models compared", names, series)
    note = f"The first {MOST} of {len(there)}." if len(there) > MOST else ""
    return Picture(title, svg, note)


def _cell(figure: Figure | None) -> Cell | None:
    if figure is None:
        return None
    return Cell(figure.value, figure.n, figure.low, figure.high, None, percent=True)


def _name(row: Standing, several: bool) -> str:
    """Returns the label of a row; of a model with several, what tells them apart."""
    if several and row.model is not None:
        commit = row.model["commit"].removeprefix("sha256:")[:7]
        detail = f"{_short(row.model['revision'] or commit)} {row.model['dtype']}"
        return f"{_short(row.name)}\n{detail}" if row.is_first else f"· {detail}"
    return f"{_short(row.name)} (paper)" if row.origin == "published" else _short(row.name)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
