"""The minimal pairs and verbs of Newman et al. (2021): source files of bnewm0609/refining-tse.

A pair is two sentences that differ in one verb; the verb's place is the blank, and the pair becomes
a good and a bad row with the same contexts.
"""

from __future__ import annotations

import csv
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .lines import BadSource, Unique, json_rows, numbered_lines

Row = dict[str, Any]

NUMBERS = {-1: "singular", -2: "plural"}
"""What the source's labels mean: the number of the subject, hence of the right verb."""

SOURCES = {"ML": "marvin_linzen", "blimp": "blimp"}
"""Folder of the source -> whose minimal pairs it holds (Marvin & Linzen 2018, BLiMP)."""

PUNCTUATION = string.punctuation + "“”‘’…–—"


def agreement(*paths: Path) -> Iterator[Row]:
    """Yields two rows for every pair: good, then bad.

    Args:
        paths: JSON-lines files in folders `ML` and `blimp`; the file stem is the template.

    Raises:
        BadSource: a malformed line, or a pair that does not differ in exactly one word.
    """
    seen = Unique()
    for path in paths:
        seen.add(str(path), path.stem)
        for number, pair in json_rows(path):
            yield from _pair(path, number, pair)


def _pair(path: Path, line: int, pair: Row) -> Iterator[Row]:
    where = f"{path}:{line}"
    left, words, right = split_pair(where, *_sentences(where, pair))
    # Counted from 0, as BLiMP's own pairID.
    item = str(line - 1)
    contrast = f"agreement-{path.stem}-{item}"
    for condition, target in zip(("good", "bad"), words, strict=True):
        yield {
            "id": f"{contrast}-{condition}",
            "item": item,
            "condition": condition,
            "context": left,
            "right_context": f"{right}.",
            "target": target,
            "good": condition == "good",
            "contrast": contrast,
            "expected": [],
            "source": SOURCES[path.parent.name],
            "template": path.stem,
            "number": NUMBERS[pair["label"]],
        }


def _sentences(where: str, pair: Row) -> tuple[str, str]:
    for key in ("sentence_good", "sentence_bad"):
        if not isinstance(pair.get(key), str):
            raise BadSource(f"{where}: {key} is missing or no text")
    label = pair.get("label")
    if isinstance(label, bool) or label not in NUMBERS:
        raise BadSource(f"{where}: label must be -1 (singular) or -2 (plural), not {label!r}")
    return pair["sentence_good"], pair["sentence_bad"]


def split_pair(where: str, good: str, bad: str) -> tuple[str, tuple[str, str], str]:
    """Splits a pair at the one word in which it differs.

    Args:
        where: file and line, for the error.
        good: the grammatical sentence.
        bad: the ungrammatical one.

    Returns:
        (left context, (good word, bad word), right context without a period).

    Raises:
        BadSource: the sentences differ nowhere or in several places.

    >>> split_pair("", "The dogs that bark run.", "The dogs that bark runs.")
    ('The dogs that bark', ('run', 'runs'), '')
    """
    ours, theirs = good.strip(PUNCTUATION).split(), bad.strip(PUNCTUATION).split()
    places = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    if len(ours) != len(theirs) or len(places) != 1:
        how = "nowhere" if ours == theirs else "in several places"
        raise BadSource(f"{where}: the pair differs {how}, one word is due: {good!r} and {bad!r}")
    place = places[0]
    words = (ours[place], theirs[place])
    return " ".join(ours[:place]), words, " ".join(ours[place + 1 :])


def verbs(path: Path) -> Iterator[Row]:
    """Yields {"singular", "plural"} of the present-tense verbs for EW and MW.

    Args:
        path: csv with the header idx,sing,plur,freq, of which the two middle columns count.

    Raises:
        BadSource: another header, another number of fields, an empty or a repeated pair.
    """
    seen = Unique()
    lines = numbered_lines(path)
    if next(lines, (1, ""))[1].split(",") != ["idx", "sing", "plur", "freq"]:
        raise BadSource(f"{path}:1: the header must be idx,sing,plur,freq")
    for number, line in lines:
        where = f"{path}:{number}"
        fields = next(csv.reader([line]))
        if len(fields) != 4 or not all(field.strip() for field in fields[1:3]):
            raise BadSource(f"{where}: idx,sing,plur,freq are due, not {line!r}")
        singular, plural = (field.strip() for field in fields[1:3])
        seen.add(where, f"{singular},{plural}")
        yield {"singular": singular, "plural": plural}
