"""Files of extended sets in the authors' format, with invented words, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SIZES = {"NEG-1500-SIMP-GEN": 750, "NEG-1500-SIMP-TEMP": 770, "ROLE-1500": 750}
"""Name of a set -> pairs of sentences in the authors' file."""

FILES = {"neg1500_gen": "NEG-1500-SIMP-GEN", "neg1500_temp": "NEG-1500-SIMP-TEMP",
         "role1500": "ROLE-1500"}  # fmt: skip
"""Task -> name of its set."""


def word(number: int) -> str:
    """A word that is another one for each number: "baka", "baki" and so on."""
    text = ""
    for _ in range(3):
        number, place = divmod(number, 60)
        text += "bdfgklmnprst"[place // 5] + "aeiou"[place % 5]
    return text


def negation_lines(n: int) -> Iterator[str]:
    """The lines of n pairs: every third target begins with a vowel."""
    for i in range(n):
        vowel = "a" if i % 3 == 0 else ""
        yield f"A {word(i)}k is {'an' if vowel else 'a'} {vowel}{word(i % 60)}x,"
        yield f"A {word(i)}k is not a {word(i % 50)}z,"


def role_lines(n: int) -> Iterator[str]:
    """The lines of n pairs: in every fifth the two sentences have the same verb."""
    for i in range(n):
        first, second = f"{word(i % 40)}n", f"{word(i % 30)}m"
        verb = f"{word(i)}ed"
        yield f"the {word(i % 70)}p saw which {first} the {second} had {verb},"
        other = verb if i % 5 == 0 else f"{word(i)}en"
        yield f"The {word(i % 70)}p saw which {second} the {first} had {other},"


def write_set(folder: Path, name: str, pairs: int | None = None) -> Path:
    """Writes the file of a set, as long as the authors' or with fewer pairs.

    That of ROLE-1500 has no line feed at its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    make = role_lines if name.startswith("ROLE") else negation_lines
    text = "\n".join(make(pairs or SIZES[name]))
    path = folder / f"{name}.txt"
    path.write_text(text if name.startswith("ROLE") else f"{text}\n", "utf-8")
    return path
