"""The verbs of EW and MW: pairs of a singular and a plural present-tense form."""

from __future__ import annotations

import csv
from pathlib import Path

from lmdiag.schema import BadInput
from lmdiag.stimuli.places import VERBS, find

HEADERS = {"singular": "plural", "sing": "plur"}
"""Names of the two columns: ours, and those of the published list."""


def load_verbs(data: str, *, revision: str | None = None) -> list[tuple[str, str]]:
    """Returns the distinct (singular, plural) forms of a data set or of a csv file, in order.

    Args:
        data: a data set with a config `verbs`, or a csv file of singular,plural. A header may
            name the two columns (singular,plural or sing,plur, others are ignored); without one
            the file has these two columns alone.
        revision: of a Hub data set.

    Raises:
        BadInput: no such data, or a line without two forms.
    """
    if Path(data).suffix == ".csv":
        return _from_csv(Path(data))
    place = find(data, revision)
    if VERBS not in place.configs:
        raise BadInput(f"{data} has no config {VERBS}: name a csv of singular,plural by --verbs")
    columns = place.read(VERBS).columns
    if not {"singular", "plural"} <= set(columns):
        raise BadInput(f"{data}: the config {VERBS} needs the columns singular and plural")
    return list(dict.fromkeys(zip(columns["singular"], columns["plural"], strict=True)))


def _from_csv(path: Path) -> list[tuple[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    singular, plural, rows = _header(path, rows)
    pairs: dict[tuple[str, str], None] = {}
    for number, row in rows:
        forms = [row[i].strip() if i < len(row) else "" for i in (singular, plural)]
        if not all(forms):
            raise BadInput(f"{path}:{number}: a singular and a plural form are due, not {row!r}")
        pairs[forms[0], forms[1]] = None
    if not pairs:
        raise BadInput(f"{path} has no verbs: a csv of singular,plural is due")
    return list(pairs)


def _header(
    path: Path, rows: list[tuple[int, list[str]]]
) -> tuple[int, int, list[tuple[int, list[str]]]]:
    """Places of the two columns, and the rows that hold forms."""
    names = [name.strip().lower() for name in rows[0][1]] if rows else []
    for singular, plural in HEADERS.items():
        if singular in names and plural in names:
            return names.index(singular), names.index(plural), rows[1:]
    if rows and len(names) != 2:
        raise BadInput(f"{path}:1: name the columns singular,plural in a header")
    return 0, 1, rows
