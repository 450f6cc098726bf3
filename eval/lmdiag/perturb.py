"""The perturbations of Ettinger (2020, sections 7 and 8): the same rows with other contexts.

On CPRAG-102 the words of the first sentence are shuffled (`shuf`), the second sentence is cut down
to its last two words (`trunc`), or both; on ROLE-88 the object, the subject or both nouns lose
their meaning. The shuffled settings are run many times and averaged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmdiag.schema import BadInput
from lmdiag.stimuli import Stimuli
from lmdiag.suggestions import suggest

NONE = "none"
"""The setting without a perturbation."""

APPLIES = {
    "shuf": "cprag102",
    "trunc": "cprag102",
    "shuf_trunc": "cprag102",
    "obj": "role88",
    "sub": "role88",
    "both": "role88",
}
"""Perturbation -> the task it is made for."""

NAMES = tuple(APPLIES)
SHUFFLED = frozenset({"shuf", "shuf_trunc"})
"""Settings that depend on chance, and are run several times."""

NEEDS = {"cprag102": ("sentence_1", "sentence_2"), "role88": ("object", "subject")}
"""Task -> columns that its perturbations are made from."""

Row = Mapping[str, Any]


def settings(task: str, names: Iterable[str], shuffles: int) -> list[tuple[str, int]]:
    """Returns the (perturbation, run) in which a task is asked, the unperturbed one first.

    Args:
        task: the task; perturbations made for another one are left out.
        names: perturbations, or `all`, or `none`.
        shuffles: runs of each shuffled setting.

    Raises:
        BadInput: an unknown perturbation, or no run of a shuffled setting.

    >>> settings("cprag102", ["shuf", "trunc", "obj"], 2)
    [('none', 0), ('shuf', 0), ('shuf', 1), ('trunc', 0)]
    """
    asked = set(names) - {NONE}
    for name in sorted(asked - {*NAMES, "all"}):
        raise _unknown(name, [*NAMES, "all", NONE])
    found = [(NONE, 0)]
    for name in NAMES:
        if APPLIES[name] == task and (name in asked or "all" in asked):
            if name in SHUFFLED and shuffles < 1:
                raise BadInput(f"--shuffles must be at least 1 for {name}, not {shuffles}")
            found += [(name, run) for run in range(shuffles if name in SHUFFLED else 1)]
    return found


def _unknown(name: str, choices: Sequence[str]) -> BadInput:
    return BadInput(
        f"unknown perturbation {name!r}{suggest(name, choices)}: choose from {', '.join(choices)}"
    )


def perturb(stimuli: Stimuli, name: str, run: int, seed: int) -> Stimuli:
    """Returns the stimuli with perturbed contexts; all other columns stay.

    Args:
        stimuli: rows of the task that the perturbation is made for.
        name: the perturbation.
        run: number of the shuffle; of no effect without shuffling.
        seed: of the shuffles; likewise.

    Raises:
        BadInput: an unknown perturbation, another task, or a row without what is to be replaced.
    """
    if name not in APPLIES:
        raise _unknown(name, NAMES)
    if stimuli.task != APPLIES[name]:
        raise BadInput(f"the perturbation {name} is for {APPLIES[name]}, not for {stimuli.task}")
    columns = stimuli.columns()
    for column in NEEDS[stimuli.task]:
        if column not in columns:
            raise BadInput(f"{stimuli.source}: the perturbation {name} needs the column {column}")
    rows = (
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    )
    change = _CHANGES[name]
    return stimuli.with_contexts([change(row, run, seed) for row in rows])


def order(n: int, item: str, run: int, seed: int) -> list[int]:
    """Returns a random order of n words, a function of (seed, item, run) alone.

    The places are sorted by their SHA-256 together with the three: every order is equally likely,
    nothing depends on processes, on other items or on a library's generator.
    """
    return sorted(
        range(n), key=lambda i: hashlib.sha256(f"{seed}/{item}/{run}/{i}".encode()).digest()
    )


def shuffle(sentence: str, item: str, run: int, seed: int) -> str:
    """Deletes every period, shuffles the words between blanks, and ends with a period."""
    words = sentence.replace(".", "").split()
    return " ".join(words[i] for i in order(len(words), item, run, seed)) + "."


def truncate(sentence: str) -> str:
    """Keeps the last two words."""
    return " ".join(sentence.split()[-2:])


def _shuf(row: Row, run: int, seed: int) -> str:
    return f"{shuffle(row['sentence_1'], row['item'], run, seed)} {row['sentence_2']}"


def _trunc(row: Row, run: int, seed: int) -> str:
    return f"{row['sentence_1']} {truncate(row['sentence_2'])}"


def _shuf_trunc(row: Row, run: int, seed: int) -> str:
    first = shuffle(row["sentence_1"], row["item"], run, seed)
    return f"{first} {truncate(row['sentence_2'])}"


def _obj(row: Row, run: int, seed: int) -> str:
    return _replace(row, row["context"], f"which {row['object']} the", "which one the")


def _sub(row: Row, run: int, seed: int) -> str:
    return _replace(row, row["context"], f"the {row['subject']} had", "the other had")


def _both(row: Row, run: int, seed: int) -> str:
    without_object = _obj(row, run, seed)
    return _replace(row, without_object, f"the {row['subject']} had", "the other had")


def _replace(row: Row, context: str, phrase: str, by: str) -> str:
    """Replaces the last occurrence of whole words; an earlier one is not the clause that counts."""
    before, found, after = f" {context} ".rpartition(f" {phrase} ")
    if not found:
        raise BadInput(f"{row['id']}: the context has no {phrase!r} to replace: {context!r}")
    return f"{before} {by} {after}".strip()


_CHANGES: dict[str, Callable[[Row, int, int], str]] = {
    "shuf": _shuf,
    "trunc": _trunc,
    "shuf_trunc": _shuf_trunc,
    "obj": _obj,
    "sub": _sub,
    "both": _both,
}
