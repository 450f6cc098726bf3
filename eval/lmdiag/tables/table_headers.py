"""Which rows of a file name its columns: titles above, second headers and notes below are not data.

What is passed over is said, in a line for each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from lmdiag.text import first_few, folded, shortened

TextRow = tuple[int, int, tuple[str, ...]]
"""The last line of a row (in Excel the row), its number among all rows, and its cells."""

_SAMPLE = 50  # rows whose widths are compared
_MOST_ABOVE = 20  # rows above a header
_MOST_BELOW = 3  # rows of further headers
_FEWEST_BELOW = 4  # rows below further headers, which tell columns of numbers
_MOST_NOTES = 20  # rows of notes at the end
_LONGEST_NAME = 200

KNOWN_NAMES = frozenset(("text", "sentence", "word", "context", "item", "condition", "target"))
"""Names that columns of most tables have, folded."""


class Rows(NamedTuple):
    """The rows of a file that have some text, the header first.

    Attributes:
        rows: their places and cells; the place of the header is that of its last row.
        separator: the character between fields; "" if the file is not a text file.
        notes: what was passed over.
    """

    rows: list[TextRow]
    separator: str = ""
    notes: tuple[str, ...] = ()


def can_be_names(cells: Sequence[str]) -> bool:
    """Returns whether cells can be names of columns; the first may be empty, for row names."""
    names = [cell.strip() for cell in cells]
    return (
        len({*names}) == len(names)
        and all(names[1:])
        and not any(cell[:1].isspace() or cell.startswith(("{", '"{')) for cell in cells)
        and not any(len(name) > _LONGEST_NAME or is_number(name) for name in names)
    )


def has_known_name(cells: Sequence[str]) -> bool:
    """Returns whether one of several cells is a name that columns often have."""
    return sum(map(bool, cells)) > 1 and bool({*map(folded, cells)} & KNOWN_NAMES)


def is_number(text: str) -> bool:
    """Returns whether a text is a number, with a point or a comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def below_titles(rows: Sequence[TextRow], unit: str, notes: Sequence[str] = ()) -> Rows:
    """Returns the header of a file and its data, without what stands above and below.

    Args:
        rows: those that have some text.
        unit: what their places number: "line" or "row".
        notes: what was passed over before.
    """
    start = _header_row(rows)
    n_further = _n_further_headers(rows[start + 1 : start + 1 + _SAMPLE])
    first_row = start + 1 + n_further
    end = len(rows) - _n_notes(rows[start:])
    skipped_rows = {
        "title": rows[:start],
        "header": rows[start + 1 : first_row],
        "below": rows[end:],
    }
    lines = [
        f"{what}: {_passed_over(rows_skipped, unit)}"
        for what, rows_skipped in skipped_rows.items()
        if rows_skipped
    ]
    header = [(*rows[first_row - 1][:2], rows[start][2])] if rows else []
    return Rows([*header, *rows[first_row:end]], notes=(*notes, *lines))


def _passed_over(rows: Sequence[TextRow], unit: str) -> str:
    """What is said of rows that are passed over."""
    numbers = first_few([str(row[0]) for row in rows], 5)
    text = ", ".join(cell.strip() for _, _, cells in rows for cell in cells if cell.strip())
    are_several = len(rows) > 1
    places = f"{unit}{'s' if are_several else ''} {numbers}"
    return f"{places} {'are' if are_several else 'is'} passed over, {shortened(text, 60)!r}"


def _width(cells: Sequence[str]) -> int:
    """Number of cells up to the last one that has some text."""
    return max((n for n, cell in enumerate(cells, start=1) if cell.strip()), default=0)


def _typical_width(rows: Sequence[TextRow]) -> int:
    """Returns the width that most rows have; of equally frequent ones the largest."""
    counts = Counter(_width(cells) for _, _, cells in rows[:_SAMPLE])
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _header_row(rows: Sequence[TextRow]) -> int:
    """Position of the first row that names all columns.

    It is 0 if there is none, or a row above names columns as well: all but one of them, or those
    from the first on, some of them known.
    """
    typical = _typical_width(rows)
    has_names_above = False
    for position, (_, _, cells) in enumerate(rows[:_MOST_ABOVE]):
        names = cells[: _width(cells)]
        is_known = has_known_name(names)
        if len(names) >= typical > 1 and can_be_names(names):
            return 0 if has_names_above and not is_known else position
        n_names = sum(bool(cell.strip()) for cell in names)
        is_header = n_names > typical - 2 or (is_known and n_names == len(names))
        is_name = folded("".join(names)) in KNOWN_NAMES
        has_names_above = has_names_above or (n_names > 1 and is_header) or is_name
    return 0


def _n_further_headers(rows: Sequence[TextRow]) -> int:
    """Number of rows below the header that describe the columns, as Qualtrics writes them.

    They have JSON alone, or they stand out from what is below: in the columns that have numbers and
    no words there, each of these rows has no number, and words in at least two.

    Args:
        rows: the first ones below the header.
    """
    head = [cells for _, _, cells in rows[:_MOST_BELOW]]
    n_json = max((n for n, cells in enumerate(head, start=1) if _is_json(cells)), default=0)
    if n_json:
        return n_json
    columns = [*zip(*(cells for _, _, cells in rows), strict=False)]
    for n in range(min(_MOST_BELOW, len(rows) - _FEWEST_BELOW), 0, -1):
        below = [column[n:] for column in columns]
        numbers = [any(map(is_number, x)) and not any(map(_is_word, x)) for x in below]
        above = [[*compress(cells, numbers)] for cells in head[:n]]
        if all(sum(map(_is_word, cells)) > 1 and not any(map(is_number, cells)) for cells in above):
            return n
    return 0


def _is_json(cells: Sequence[str]) -> bool:
    """Whether all filled cells begin as JSON objects do, as in exports of Qualtrics."""
    filled = [*filter(None, cells)]
    return len(filled) > 1 and all(cell.startswith("{") for cell in filled)


def _is_word(cell: str) -> bool:
    """Whether a cell is a word, and not what stands for a missing value."""
    return len(cell) > 2 and cell[:1].isalpha() and not is_number(cell)


def _n_notes(rows: Sequence[TextRow]) -> int:
    """Number of rows at the end that have a text in their first cell alone, below fuller ones.

    Those that lack separators stand below an empty line: they might go on with a broken line. In a
    first column of texts, they may be texts.
    """
    n = 0
    while n + 1 < len(rows) and _width(rows[-1 - n][2]) == 1:
        n += 1
    above = [cells for _, _, cells in rows[1:_SAMPLE]]
    are_texts = 2 * sum(" " in cells[0].strip() for cells in above) > len(above)
    if not 0 < n <= _MOST_NOTES or are_texts or _typical_width(rows) < 3:
        return 0
    is_short = any(len(cells) < len(rows[0][2]) for _, _, cells in rows[-n:])
    is_below_empty_line = rows[-n][1] > rows[-n - 1][1] + 1
    return 0 if is_short and not is_below_empty_line else n
