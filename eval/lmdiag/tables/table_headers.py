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
_MOST_FURTHER = 3  # rows of further headers
_FEWEST_BELOW = 4  # rows below further headers, which tell columns of numbers
_MOST_NOTES = 20  # rows of notes at the end
_LONGEST_NAME = 200  # characters of the name of a column

KNOWN_NAMES = frozenset(("text", "sentence", "word", "context", "item", "condition", "target"))
"""Names that columns of most tables have, folded."""


class Rows(NamedTuple):
    """The rows of a file that have some text, the header first.

    Attributes:
        rows: as `TextRow`; the header has the place of its last row.
        separator: the character between fields; "" if the file is not a text file.
        notes: what was passed over, a line for each kind.
    """

    rows: list[TextRow]
    separator: str = ""
    notes: tuple[str, ...] = ()


def can_be_names(cells: Sequence[str]) -> bool:
    """Returns whether cells can be names of columns; the first may be empty, for row names."""
    names = [cell.strip() for cell in cells]
    if len({*names}) < len(names) or not all(names[1:]):
        return False
    if any(len(name) > _LONGEST_NAME or is_number(name) for name in names):
        return False
    # a text that was divided at its commas, and JSON
    return not any(cell[:1].isspace() or cell.startswith(("{", '"{')) for cell in cells)


def has_known_name(cells: Sequence[str]) -> bool:
    """Returns whether two cells or more are filled, and one is a name that columns often have."""
    n_filled = sum(bool(cell) for cell in cells)
    return n_filled > 1 and any(folded(cell) in KNOWN_NAMES for cell in cells)


def is_number(text: str) -> bool:
    """Returns whether a text is a number, with a point or a comma."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def header_and_data(rows: Sequence[TextRow], unit: str, notes: Sequence[str] = ()) -> Rows:
    """Returns the header of a file and its data, without titles, second headers and notes.

    Args:
        rows: those that have some text.
        unit: what their places number: "line" or "row".
        notes: what was passed over before.
    """
    header_at = _header_position(rows)
    n_further = _count_further_headers(rows[header_at + 1 : header_at + 1 + _SAMPLE])
    first_row = header_at + 1 + n_further
    end = len(rows) - _count_notes(rows[header_at:])
    skipped_rows = {
        "title": rows[:header_at],
        "header": rows[header_at + 1 : first_row],
        "below": rows[end:],
    }
    lines = [
        f"{what}: {_note_on_skipped(rows_skipped, unit)}"
        for what, rows_skipped in skipped_rows.items()
        if rows_skipped
    ]
    if not rows:
        return Rows([], notes=(*notes, *lines))
    last_line, last_number, _ = rows[first_row - 1]  # of all headers
    header = (last_line, last_number, rows[header_at][2])
    return Rows([header, *rows[first_row:end]], notes=(*notes, *lines))


def _note_on_skipped(rows: Sequence[TextRow], unit: str) -> str:
    """What a note says of rows that are not read, as "lines 1, 2 are passed over, 'My title'"."""
    numbers = first_few([str(number) for number, _, _ in rows], 5)
    text = ", ".join(cell.strip() for _, _, cells in rows for cell in cells if cell.strip())
    are_passed = f"{unit}s {numbers} are" if len(rows) > 1 else f"{unit} {numbers} is"
    return f"{are_passed} passed over, {shortened(text, 60)!r}"


def _width(cells: Sequence[str]) -> int:
    """Number of cells up to the last one that has some text."""
    return max((n for n, cell in enumerate(cells, start=1) if cell.strip()), default=0)


def _typical_width(rows: Sequence[TextRow]) -> int:
    """The width that most rows have; of equally frequent ones the largest."""
    counts = Counter(_width(cells) for _, _, cells in rows[:_SAMPLE])
    return max(counts, key=lambda width: (counts[width], width), default=0)


def _header_position(rows: Sequence[TextRow]) -> int:
    """Position, from 0, of the first row that names all columns.

    For example, 1 for a title ("My data", in one cell) above the row item, sentence, rt. The
    position is 0 if there is no such row, or if a row above it names columns as well: then the
    first row is a header that lacks a name, and what seems to name all columns is data. A row names
    columns as well if it has names for all but one of them, or for the first ones, one of them
    known.
    """
    typical = _typical_width(rows)
    has_names_above = False
    for position, (_, _, cells) in enumerate(rows[:_MOST_ABOVE]):
        names = cells[: _width(cells)]
        is_known = has_known_name(names)
        if len(names) >= typical > 1 and can_be_names(names):
            return 0 if has_names_above and not is_known else position
        n_names = sum(bool(cell.strip()) for cell in names)
        names_most = n_names >= typical - 1
        names_first = is_known and n_names == len(names)
        is_one_known_name = folded("".join(names)) in KNOWN_NAMES
        if (n_names > 1 and (names_most or names_first)) or is_one_known_name:
            has_names_above = True
    return 0


def _count_further_headers(rows: Sequence[TextRow]) -> int:
    """Number of rows below the header that describe the columns, as Qualtrics writes them.

    For example, 1 for the header Q1, Q2 with the row "How natural?", "How clear?" below it, and
    rows of numbers below that row. Rows that describe columns have JSON alone, or they have words
    where the rows below have numbers: in the columns with numbers and no words below, each of these
    rows has two words or more, and no number.

    Args:
        rows: the first ones below the header.
    """
    first_rows = [cells for _, _, cells in rows[:_MOST_FURTHER]]
    with_json = [n for n, cells in enumerate(first_rows, start=1) if _is_json(cells)]
    if with_json:
        return with_json[-1]
    columns = [*zip(*(cells for _, _, cells in rows), strict=False)]
    most = min(_MOST_FURTHER, len(rows) - _FEWEST_BELOW)  # rows must be left to compare them with
    for n in range(most, 0, -1):  # are the first n rows further headers?
        have_numbers = []  # for each column, whether it has numbers and no words below them
        for column in columns:
            values = column[n:]
            has_numbers = any(map(is_number, values)) and not any(map(_is_word, values))
            have_numbers.append(has_numbers)
        cells_above_numbers = [[*compress(cells, have_numbers)] for cells in first_rows[:n]]
        if all(map(_are_descriptions, cells_above_numbers)):
            return n
    return 0


def _are_descriptions(cells: Sequence[str]) -> bool:
    """Whether cells have two words or more, and no number."""
    return sum(map(_is_word, cells)) > 1 and not any(map(is_number, cells))


def _is_json(cells: Sequence[str]) -> bool:
    """Whether all filled cells begin as JSON objects do, as in exports of Qualtrics."""
    filled = [cell for cell in cells if cell]
    return len(filled) > 1 and all(cell.startswith("{") for cell in filled)


def _is_word(cell: str) -> bool:
    """Whether a cell is a word, and not what stands for a missing value, as NA."""
    return len(cell) > 2 and cell[:1].isalpha() and not is_number(cell)


def _count_notes(rows: Sequence[TextRow]) -> int:
    """Number of rows at the end that are notes: they have a text in their first cell alone.

    For example, 1 for the last row "Source: pilot 2" below rows with four cells. In a text file, a
    note without separators must stand below an empty line, since it may be the end of a text with a
    line break otherwise. 0 in a file whose first column has texts, which such rows may be, too; in
    a file of two columns; and if there would be more than 20 notes.

    Args:
        rows: from the header to the end of the file.
    """
    n = 0
    while n + 1 < len(rows) and _width(rows[-1 - n][2]) == 1:
        n += 1
    below_header = [cells for _, _, cells in rows[1:_SAMPLE]]
    n_texts = sum(" " in cells[0].strip() for cells in below_header)
    may_be_texts = 2 * n_texts > len(below_header)
    if not 0 < n <= _MOST_NOTES or may_be_texts or _typical_width(rows) < 3:
        return 0
    header = rows[0][2]
    lack_separators = any(len(cells) < len(header) for _, _, cells in rows[-n:])
    is_below_empty_line = rows[-n][1] > rows[-n - 1][1] + 1
    return 0 if lack_separators and not is_below_empty_line else n
