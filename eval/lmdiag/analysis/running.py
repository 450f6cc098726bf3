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

SentencesOfWords = Sequence[tuple[str, str]]
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
    """A word that is not at its position in its sentence.

    Attributes:
        number: of the word, from 0, so that the caller can name its row.
        problem: beginning of a message, e.g. "'lay' is not the word at position 3".
        sentence: the sentence, shortened.
    """

    def __init__(self, number: int, problem: str, sentence: str) -> None:
        super().__init__(f"{problem} of {sentence!r}")
        self.number = number
        self.problem = problem
        self.sentence = sentence


def texts_of_words(text_names: Sequence[str], words: Sequence[str]) -> RunningTexts:
    """Returns texts made of words, which are joined by blanks where the script has blanks.

    For example, the words "The", "hen" and "Dogs" of the texts "1", "1" and "2" give the texts
    {"1": "The hen", "2": "Dogs"}.

    Args:
        text_names: name of the text of each word, (n words,).
        words: in the order of the texts.
    """
    words_of_text: dict[str, list[str]] = {}
    for name, word in zip(text_names, words, strict=True):
        words_of_text.setdefault(name, []).append(word)
    texts = {}
    cuts = {}
    for name, text_words in words_of_text.items():
        text, cuts_of_text = joined_words(text_words)
        texts[name] = text
        if cuts_of_text:
            cuts[name] = cuts_of_text
    return RunningTexts(texts, cuts, np.arange(len(words)))


def joined_words(words: Iterable[str]) -> tuple[str, tuple[int, ...]]:
    """Returns words as one text, and the positions in it at which a word follows without a blank.

    Words are joined by blanks, but for words of scripts that are written without spaces. Positions
    are in characters.

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
        before = (before + word)[-LONGEST_LOOK:]  # enough to see whether a blank follows
    return "".join(parts), tuple(cuts)


def texts_of_sentences(
    sentences: SentencesOfWords, words: Sequence[str], positions: Sequence[float]
) -> RunningTexts:
    """Returns the texts of full sentences in which the words of a table stand.

    Words stand at their positions among the parts of a sentence that blanks separate, counted from
    1 or from 0; or the words of each sentence make up all of its characters, as "do" and "n't".

    Args:
        sentences: name of the text and full sentence of each word, (n words,).
        words: in the order of the texts.
        positions: of the words in their sentences, (n words,).

    Raises:
        NotInSentence: neither is true.
    """
    sentences_of_text: dict[str, list[str]] = {}
    first_word_of: dict[tuple[str, str], int] = {}  # sentence -> number of its first word
    words_of_texts: list[str] = []
    for name, sentence in dict.fromkeys(sentences):
        sentences_of_text.setdefault(name, []).append(sentence)
        first_word_of[name, sentence] = len(words_of_texts)
        words_of_texts += sentence.split()
    texts = {name: " ".join(text_sentences) for name, text_sentences in sentences_of_text.items()}
    first_words = np.array([first_word_of[sentence] for sentence in sentences])
    wrong_words_of_base = []
    for base in (1, 0):  # the number of the first position of a sentence
        places: NDArray[np.intp] = first_words + np.array(positions).astype(int) - base
        wrong_words = []
        for number, (word, place) in enumerate(zip(words, places, strict=True)):
            is_inside = 0 <= place < len(words_of_texts)
            if not is_inside or _letters(word) != _letters(words_of_texts[place]):
                wrong_words.append(number)
        if not wrong_words:
            return RunningTexts(texts, {}, places)
        wrong_words_of_base.append(wrong_words)
    cuts = _cuts_without_space(sentences, words)
    if cuts is not None:  # the words of the table are all words of the texts
        return RunningTexts(texts, cuts, np.arange(len(words)))
    # of the two ways to count positions, that by which fewer words are wrong; its first wrong word
    number = min(wrong_words_of_base, key=len)[0]
    _, sentence = sentences[number]
    problem = f"{words[number]!r} is not the word at position {positions[number]:g}"
    raise NotInSentence(number, problem, shortened(sentence))


def _cuts_without_space(
    sentences: SentencesOfWords, words: Sequence[str]
) -> dict[str, tuple[int, ...]] | None:
    """Returns text -> positions, in characters, at which a word follows another without a space.

    For example, {"1": (2,)} for the words "do" and "n't" of the sentence "don't" of text "1". None
    if the words of a sentence are not all of its characters but spaces.
    """
    words_of_sentence: dict[tuple[str, str], list[str]] = {}
    for sentence_key, word in zip(sentences, words, strict=True):
        words_of_sentence.setdefault(sentence_key, []).append(word)
    cuts: dict[str, list[int]] = {}
    length_of_text: dict[str, int] = {}
    for (name, sentence), sentence_words in words_of_sentence.items():
        sentence_start = length_of_text.get(name, 0)
        # words and sentence may have accents as characters of their own, or not
        letters, position_of_letter = decomposed(sentence)
        end = 0
        for word in sentence_words:
            word_letters = unicodedata.normalize("NFD", word)
            start = letters.find(word_letters, end)
            # the word is not there, other letters stand before it, or it begins with an accent
            if start < 0 or letters[end:start].strip() or position_of_letter[start] < 0:
                return None
            if start == end > 0:  # no space stands between this word and the one before it
                cuts.setdefault(name, []).append(sentence_start + position_of_letter[start])
            end = start + len(word_letters)
        if letters[end:].strip():
            return None
        length_of_text[name] = sentence_start + len(sentence) + 1  # a blank follows
    return {name: tuple(positions) for name, positions in cuts.items()}


def typed_without_space(words: Iterable[str]) -> list[str]:
    """Returns the words that are usually typed without a space before them, as commas are.

    For example, [",", "."] of the words "Yes", ",", "he", "did" and ".". In a text that is made of
    words and blanks, models read a space there. Dashes, which are typed both ways, do not count,
    nor do words of scripts without spaces.
    """
    unspaced = []
    for word in words:
        is_dash = unicodedata.category(word[0]) == "Pd"
        # the "a" stands for any word before it
        if not has_space("a", word) and not is_dash and not is_without_space("a", word):
            unspaced.append(word)
    return unspaced


def _letters(word: str) -> str:
    """Returns a word without letter case and punctuation, for comparisons.

    A word that has nothing but punctuation stays as it is.
    """
    word = unicodedata.normalize("NFC", word)
    return re.sub(r"\W", "", word.casefold()) or word
