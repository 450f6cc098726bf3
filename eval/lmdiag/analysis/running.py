"""The running texts of a table with a row per word: what models read, and where its words stand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmdiag.spacing import LONGEST_LOOK, has_space, is_without_space
from lmdiag.text import decomposed, shortened

PlacesOfWords = Sequence[tuple[str, str]]
"""Name of the text and full sentence of each word, in order."""


class RunningTexts(NamedTuple):
    """What models read, by the names of texts.

    Attributes:
        texts: name -> text.
        cuts: name -> positions in the text, in characters, where a word follows without a space.
        places: the place of each word of the table among the words of all texts, (n words,).
    """

    texts: Mapping[str, str]
    cuts: Mapping[str, tuple[int, ...]]
    places: NDArray[np.intp]


class NotInSentence(ValueError):
    """A word that is not at its position in its sentence: its number, and a message."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def of_words(names: Sequence[str], words: Sequence[str]) -> RunningTexts:
    """Returns the texts that words make, which are joined by blanks; see `joined_words`."""
    words_of: dict[str, list[str]] = {}
    for name, word in zip(names, words, strict=True):
        words_of.setdefault(name, []).append(word)
    pairs = {name: joined_words(text_words) for name, text_words in words_of.items()}
    texts = {name: text for name, (text, _) in pairs.items()}
    cuts = {name: positions for name, (_, positions) in pairs.items() if positions}
    return RunningTexts(texts, cuts, np.arange(len(words)))


def joined_words(words: Iterable[str]) -> tuple[str, tuple[int, ...]]:
    """Returns words joined by blanks, and where a word follows without one, in characters.

    That is between words of scripts that are written without spaces.

    >>> joined_words(["The", "hen", "."]), joined_words(["他", "走", "了", "。"])
    (('The hen .', ()), ('他走了。', (1, 2, 3)))
    """
    parts: list[str] = []
    cuts = []
    before = ""
    end = 0
    for word in words:
        if before and is_without_space(before, word):
            cuts.append(end)
        elif before:
            word = f" {word}"
        parts.append(word)
        end += len(word)
        before = (before + word)[-LONGEST_LOOK:]
    return "".join(parts), tuple(cuts)


def in_sentences(
    places: PlacesOfWords, words: Sequence[str], positions: Sequence[float]
) -> RunningTexts:
    """Returns the texts of full sentences in which words stand.

    `NotInSentence`: a word is not at its position, neither from 1 nor from 0, and the words of its
    sentence are not all of its characters.
    """
    sentences: dict[str, list[str]] = {}
    starts: dict[tuple[str, str], int] = {}
    read_words: list[str] = []
    for name, sentence in dict.fromkeys(places):
        sentences.setdefault(name, []).append(sentence)
        starts[name, sentence] = len(read_words)
        read_words += sentence.split()
    texts = {name: " ".join(text_sentences) for name, text_sentences in sentences.items()}
    first_word_of_sentence = np.array([starts[place] for place in places])
    problems = []
    for base in (1, 0):
        index: NDArray[np.intp] = first_word_of_sentence + np.array(positions).astype(int) - base
        wrong = [
            number
            for number, (word, place) in enumerate(zip(words, index, strict=True))
            if not 0 <= place < len(read_words) or _letters(word) != _letters(read_words[place])
        ]
        if not wrong:
            return RunningTexts(texts, {}, index)
        problems.append(wrong)
    cuts = _cuts(places, words)
    if cuts is not None:
        return RunningTexts(texts, cuts, np.arange(len(words)))
    number = min(problems, key=len)[0]
    has = f"{words[number]!r} is not the word at position {positions[number]:g} of"
    raise NotInSentence(number, f"{has} {{}}, {shortened(places[number][1])!r}")


def _cuts(places: PlacesOfWords, words: Sequence[str]) -> dict[str, tuple[int, ...]] | None:
    """Where words follow without a space, if they are all of the characters of their sentences."""
    words_of: dict[tuple[str, str], list[str]] = {}
    for place, word in zip(places, words, strict=True):
        words_of.setdefault(place, []).append(word)
    cuts: dict[str, list[int]] = {}
    length: dict[str, int] = {}
    for (name, sentence), sentence_words in words_of.items():
        end = 0
        start_of_sentence = length.get(name, 0)
        letters, places_of_letters = decomposed(sentence)
        for word in sentence_words:
            letters_of_word = unicodedata.normalize("NFD", word)
            start = letters.find(letters_of_word, end)
            if start < 0 or letters[end:start].strip() or places_of_letters[start] < 0:
                return None
            if start == end > 0:
                cuts.setdefault(name, []).append(start_of_sentence + places_of_letters[start])
            end = start + len(letters_of_word)
        if letters[end:].strip():
            return None
        length[name] = start_of_sentence + len(sentence) + 1
    return {name: tuple(positions) for name, positions in cuts.items()}


def typed_without_space(words: Iterable[str]) -> list[str]:
    """Returns the words that are typed without a space before them, and read with one, as a comma.

    Dashes are typed both ways.
    """
    closing = (word for word in words if not has_space("a", word))
    return [
        word
        for word in closing
        if unicodedata.category(word[0]) != "Pd" and not is_without_space("a", word)
    ]


def _letters(word: str) -> str:
    """A word without letter case and punctuation; the word itself if it has nothing else."""
    word = unicodedata.normalize("NFC", word)
    return re.sub(r"\W", "", word.casefold()) or word
