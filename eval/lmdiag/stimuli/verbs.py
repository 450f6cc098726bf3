"""The verbs of EW and MW: pairs of a singular and a plural present-tense form."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from lmdiag.reading import read_text
from lmdiag.schema import BadInput
from lmdiag.stimuli.dataset import VERBS, find

_HEADERS = (("singular", "plural"), ("sing", "plur"))
"""Names of the two columns: those of lmdiag, and those of the published list."""


def load_verbs(data: str, *, revision: str | None = None) -> list[tuple[str, str]]:
    """Returns the distinct (singular, plural) forms of a data set or of a csv file, in order.

    Args:
        data: a data set with a config `verbs`, or a csv file. A header may name the two columns
            (singular,plural or sing,plur, others are ignored); a file without a header has only
            these two columns.
        revision: of a Hub data set.

    Raises:
        BadInput: no such data, or a line without two forms.
    """
    if Path(data).suffix == ".csv":
        return _from_csv(Path(data))
    dataset = find(data, revision)
    if VERBS not in dataset.configs:
        raise BadInput(f"{data} has no config {VERBS}: name a csv of singular,plural by --verbs")
    columns = dataset.read(VERBS).columns
    if not {"singular", "plural"} <= set(columns):
        raise BadInput(f"{data}: the config {VERBS} needs the columns singular and plural")
    pairs = list(zip(columns["singular"], columns["plural"], strict=True))
    for row, forms in enumerate(pairs, start=1):
        if not all(isinstance(form, str) and form.strip() for form in forms):
            raise BadInput(f"{data}: row {row} of {VERBS} must have a singular and a plural form")
    return list(dict.fromkeys(pairs))


def _from_csv(path: Path) -> list[tuple[str, str]]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        rows = [(reader.line_num, [field.strip() for field in row]) for row in reader if row]
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    names = [name.lower() for name in rows[0][1]] if rows else []
    singular, plural = 0, 1
    if header := next((pair for pair in _HEADERS if set(pair) <= set(names)), None):
        singular, plural = map(names.index, header)
        del rows[0]
    elif len(names) not in (0, 2):
        raise BadInput(f"{path}:1: name the columns singular,plural in a header")
    pairs: dict[tuple[str, str], None] = {}
    for number, row in rows:
        forms = (row[singular : singular + 1], row[plural : plural + 1])
        if not all(form and form[0] for form in forms):
            raise BadInput(f"{path}:{number}: expected a singular and a plural form, not {row!r}")
        pairs[forms[0][0], forms[1][0]] = None
    if not pairs:
        raise BadInput(f"{path} has no verbs: expected a csv of singular,plural")
    return list(pairs)
