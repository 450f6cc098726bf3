"""The minimal pairs and verbs of Newman et al. (2021): source files of bnewm0609/refining-tse.

A pair is two sentences that differ in one verb. The position of the verb is the blank, and the pair
becomes a good and a bad row with the same contexts.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path

from lmdiag.files.reading import read_json_lines
from lmdiag.types import BadInput

from .lines import Row, choice, separated_lines

NUMBERS = {-1: "singular", -2: "plural"}
"""The source's labels: the number of the subject, and so of the right verb."""

SOURCES = {"ML": "marvin_linzen", "blimp": "blimp"}
"""Folder of the source -> origin of its minimal pairs (Marvin & Linzen 2018, BLiMP)."""

PUNCTUATION = string.punctuation + "“”‘’…–—"


def agreement(*paths: Path) -> Iterator[Row]:
    """Yields two rows for every pair: good, then bad.

    Args:
        paths: JSON-lines files in folders `ML` and `blimp`; the file stem is the template.

    Raises:
        BadInput: a malformed line, or a pair that does not differ in exactly one word.
    """
    for path in paths:
        if same := [other for other in paths if other.stem == path.stem and other != path]:
            raise BadInput(f"{path}: the template {path.stem} is repeated: rename {same[0]}")
        for where, pair in read_json_lines(path):
            for key in ("sentence_good", "sentence_bad"):
                if not isinstance(pair.get(key), str):
                    raise BadInput(f"{where}: {key} is missing or not text")
            number = choice(where, pair, "label", NUMBERS)
            left, words, right = split_pair(where, pair["sentence_good"], pair["sentence_bad"])
            item = str(int(where.rpartition(":")[2]) - 1)  # counted from 0, as BLiMP's own pairID
            for condition, target in zip(("good", "bad"), words, strict=True):
                yield {
                    "id": f"agreement-{path.stem}-{item}-{condition}",
                    "item": item,
                    "condition": condition,
                    "context": left,
                    "right_context": f"{right}.",
                    "target": target,
                    "good": condition == "good",
                    "contrast": f"agreement-{path.stem}-{item}",
                    "expected": [],
                    "source": SOURCES[path.parent.name],
                    "template": path.stem,
                    "number": number,
                }


def split_pair(where: str, good: str, bad: str) -> tuple[str, tuple[str, str], str]:
    """Splits a pair of sentences at the one word in which they differ.

    Returns:
        (left context, (good word, bad word), right context without a period).

    Raises:
        BadInput: the sentences differ nowhere or in several places.

    >>> split_pair("", "The dogs that bark run.", "The dogs that bark runs.")
    ('The dogs that bark', ('run', 'runs'), '')
    """
    words, others = good.strip(PUNCTUATION).split(), bad.strip(PUNCTUATION).split()
    differ = [i for i, (a, b) in enumerate(zip(words, others, strict=False)) if a != b]
    if len(words) != len(others) or len(differ) != 1:
        how = "nowhere" if words == others else "in several places"
        raise BadInput(f"{where}: the pair differs {how}, not in one word: {good!r} and {bad!r}")
    i = differ[0]
    return " ".join(words[:i]), (words[i], others[i]), " ".join(words[i + 1 :])


def verbs(path: Path) -> Iterator[Row]:
    """Yields {"singular", "plural"} of the present-tense verbs for EW and MW.

    The file is a csv with the header idx,sing,plur,freq, of which the two middle columns are used.
    """
    names = ("idx", "sing", "plur", "freq")
    for _, line in separated_lines(path, names, ",", key=("sing", "plur")):
        yield {"singular": line["sing"], "plural": line["plur"]}
