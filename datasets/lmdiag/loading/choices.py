"""Forced choice: the contrasts of a diagnostic as multiple-choice questions, as Inspect reads them.

A contrast of m rows is asked m times, so that its good row has every letter once, in the rotations
of the order of its rows. The share of right answers by chance is 1/m.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from string import ascii_uppercase

from .lines import Row

FEATURES = ("id", "contrast", "input", "choices", "target")
"""Columns of every config of questions; `choices` is a list of texts, `target` a letter."""


def questions(rows: Iterable[Row], where: Mapping[str, str], *, of_words: bool) -> Iterator[Row]:
    """Yields the questions about the contrasts of some rows.

    Args:
        rows: of a config of the data set.
        where: column -> value of the rows to ask about.
        of_words: ask for the word that continues the context, which all rows of a contrast share;
            otherwise for one of the sentences.
    """
    contrasts: dict[str, list[Row]] = {}
    for row in rows:
        if all(row[name] == value for name, value in where.items()):
            contrasts.setdefault(row["contrast"], []).append(row)
    for contrast, members in contrasts.items():
        for start in range(len(members)):
            order = members[start:] + members[:start]
            text = "Which of these sentences is the most likely one?"
            options = [f"{row['context'].strip()} {row['target']}." for row in order]
            if of_words:
                text = f"Which word is the most likely continuation?\n\n{order[0]['context']} ___"
                options = [row["target"] for row in order]
            good = [row["good"] for row in order].index(True)
            yield {
                "id": f"{contrast}-{start + 1}",
                "contrast": contrast,
                "input": text,
                "choices": options,
                "target": ascii_uppercase[good],
            }
