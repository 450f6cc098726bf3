"""What was read of a user's own table: a row, and what each column is used for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from lmdiag.stimuli.stimulus_rows import Stimuli
from lmdiag.text import first_few, shortened, truncated, visible
from lmdiag.types import GAP_SPACES, Query

_LONGEST = 300


def first_rows(
    stimuli: Stimuli, conditions: Iterable[str] = (), items: Sequence[str] | None = None
) -> list[str]:
    """Returns the first row in words, of rows that are compared the first good and bad one.

    A target and a critical word stand in brackets, other regions between bars, e.g.
    "item 3, amb: The baker saw the driver [laughed] in the garden."

    Args:
        stimuli: rows with a blank, or sentences.
        conditions: columns whose levels name the row.
        items: name of the item of each row; None for the column item.
    """
    columns = stimuli.columns()
    if not len(stimuli):
        return []
    rows = [0]
    if stimuli.compared:
        contrast = columns["contrast"][0]
        of_contrast = [row for row, name in enumerate(columns["contrast"]) if name == contrast]
        rows = sorted(of_contrast, key=lambda row: not columns["good"][row])[:2]
    items = columns.get("item") if items is None else items
    lines = []
    for row in rows:
        names = [f"item {items[row]}"] if items and items[row] else []
        names += [str(columns[name][row]) for name in conditions if columns[name][row] is not None]
        if stimuli.compared:
            names.append("good" if columns["good"][row] else "bad")
        start = f"{', '.join(names)}: " if names else ""
        lines.append(truncated(visible(start + _read(stimuli, row)), _LONGEST))
    return lines


def _read(stimuli: Stimuli, row: int) -> str:
    """The text of a row, with the part that is scored in brackets, or its regions between bars."""
    columns = stimuli.columns()
    if stimuli.asks_words:
        spaces = columns["gap_spaces"][row] if "gap_spaces" in columns else ""
        query = Query(columns["context"][row], columns["right_context"][row], *GAP_SPACES[spaces])
        target = columns["target"][row]
        before, after = query.around(target)
        return f"{before}[{target}]{after}"
    text = columns["sentence"][row]
    if stimuli.regions is None:
        return str(text)
    spans = stimuli.regions[row]
    critical = [(x["start"], x["end"]) for x in spans if x["name"] == "critical"]
    if critical:
        return _marked(text, critical)
    return _divided(text, [(x["start"], x["end"]) for x in spans])


def _divided(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The regions of a sentence between bars, with blanks around a bar where the text has one.

    Empty regions stand between bars, too.
    """
    shown = text[slice(*spans[0])]
    for before, region in pairwise(spans):
        is_empty = before[0] == before[1] or region[0] == region[1]
        bar = " | " if is_empty or before[1] < region[0] else "|"
        shown += bar + text[slice(*region)]
    return shown.replace("|  |", "| |").strip()


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


def read_lines(names: Iterable[str], row: str, uses: Mapping[str, str]) -> tuple[str, ...]:
    """Returns two lines for the head of a result: the first row, and the columns by their use.

    >>> read_lines(["item 3", "amb"], "rt 402", {"rt": "response", "list": "not used"})
    ('reads item 3, amb: rt 402', 'columns: response: rt; not used: list')
    """
    start = ", ".join(name for name in names if name)
    line = f"reads {start}: {row}" if start else f"reads {row}"
    return visible(shortened(line, _LONGEST)), visible(f"columns: {uses_text(uses)}")


def uses_text(uses: Mapping[str, str]) -> str:
    """Returns the columns of each use, the uses in the order of the columns."""
    by_use: dict[str, list[str]] = {}
    for name, use in uses.items():
        by_use.setdefault(use, []).append(name)
    return "; ".join(f"{use}: {first_few(names)}" for use, names in by_use.items())
