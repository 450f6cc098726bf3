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
    """Returns the first row in words; of rows that are compared, the first good and bad one.

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
        contrasts = columns["contrast"]
        rows = [row for row, name in enumerate(contrasts) if name == contrasts[0]]
        rows.sort(key=lambda row: not columns["good"][row])  # good rows first
        rows = rows[:2]
    items = columns.get("item") if items is None else items
    lines = []
    for row in rows:
        names = [f"item {items[row]}"] if items and items[row] else []
        for condition in conditions:
            level = columns[condition][row]
            if level is not None:
                names.append(str(level))
        if stimuli.compared:
            names.append("good" if columns["good"][row] else "bad")
        start = f"{', '.join(names)}: " if names else ""
        lines.append(truncated(visible(start + _marked_text(stimuli, row)), _LONGEST))
    return lines


def _marked_text(stimuli: Stimuli, row: int) -> str:
    """Returns the text of a row with its target or critical word in brackets, or with bars.

    For example, "The cat [sat] on the mat.", or "The cat | sat | on the mat." for a sentence whose
    regions are not named as critical.
    """
    columns = stimuli.columns()
    if stimuli.asks_words:  # the text has a blank
        spaces = columns["gap_spaces"][row] if "gap_spaces" in columns else ""
        query = Query(columns["context"][row], columns["right_context"][row], *GAP_SPACES[spaces])
        target = columns["target"][row]
        before, after = query.around(target)
        return f"{before}[{target}]{after}"
    text = columns["sentence"][row]
    if stimuli.regions is None:
        return str(text)
    regions = stimuli.regions[row]
    critical = [(x["start"], x["end"]) for x in regions if x["name"] == "critical"]
    if not critical:
        return _with_bars(text, [(x["start"], x["end"]) for x in regions])
    for start, end in reversed(critical):  # from the end, so that earlier positions stay right
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return str(text)


def _with_bars(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Returns the regions of a sentence between bars, with blanks around a bar where the text has.

    Empty regions stand between bars, too: "The cat | | slept." `spans` has the start and the end of
    each region.
    """
    first_start, first_end = spans[0]
    shown = text[first_start:first_end]
    for (start_before, end_before), (start, end) in pairwise(spans):
        is_empty = start_before == end_before or start == end
        bar = " | " if is_empty or end_before < start else "|"
        shown += bar + text[start:end]
    return shown.replace("|  |", "| |").strip()


def read_lines(names: Iterable[str], row: str, uses: Mapping[str, str]) -> tuple[str, ...]:
    """Returns two lines for the head of a result: the first row, and the columns by their use.

    Args:
        names: of the item and the levels of the first row; "" is left out.
        row: the first row in words.
        uses: column -> what it is used for.

    >>> read_lines(["item 3", "amb"], "rt 402", {"rt": "response", "list": "not used"})
    ('reads item 3, amb: rt 402', 'columns: response: rt; not used: list')
    """
    start = ", ".join(name for name in names if name)
    line = f"reads {start}: {row}" if start else f"reads {row}"
    return visible(shortened(line, _LONGEST)), visible(f"columns: {uses_text(uses)}")


def uses_text(uses: Mapping[str, str]) -> str:
    """Returns the columns of each use, the uses in the order of the columns.

    >>> uses_text({"rt": "response", "list": "not used", "age": "not used"})
    'response: rt; not used: list, age'
    """
    columns_by_use: dict[str, list[str]] = {}
    for name, use in uses.items():
        columns_by_use.setdefault(use, []).append(name)
    return "; ".join(f"{use}: {first_few(names)}" for use, names in columns_by_use.items())
