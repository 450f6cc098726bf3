"""The verbs of EW and MW: pairs of a singular and a plural present-tense form."""

from __future__ import annotations

from pathlib import Path

from lmdiag.stimuli.dataset import VERBS, find
from lmdiag.stimuli.files import read_file
from lmdiag.types import BadInput

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
        table = read_file(Path(data))
    else:
        dataset = find(data, revision)
        if VERBS not in dataset.configs:
            raise BadInput(
                f"{data} has no config {VERBS}: name a csv of singular,plural by --verbs"
            )
        table = dataset.read(VERBS)
    columns = {name.strip().lower(): column for name, column in table.columns.items()}
    header = next((names for names in _HEADERS if set(names) <= set(columns)), tuple(columns))
    if header not in _HEADERS and not len(columns) == len(table.columns) == 2:
        raise BadInput(f"{table.name}:1: name the columns singular,plural in a header")
    rows = list(zip(*(columns[name] for name in header), strict=True))
    for number, forms in enumerate(rows):
        if not all(isinstance(form, str) and form.strip() for form in forms):
            raise BadInput(f"{table.where(number)}: expected a singular and a plural form")
    if header not in _HEADERS:  # the first line is a pair, too
        rows.insert(0, tuple(table.columns))
    pairs = [(singular.strip(), plural.strip()) for singular, plural in rows]
    if not pairs:
        raise BadInput(f"{table.name} has no verbs: expected a csv of singular,plural")
    return list(dict.fromkeys(pairs))
