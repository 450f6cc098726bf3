"""Files of n-gram models: the ARPA format, also compressed, and KenLM's binary.

kenlm reads both, but does not tell their words, and believes their counts. So a file is read once
here, for its words, its checksum and what is wrong with it, before kenlm reads it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import mmap
import re
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmdiag.text import shortened

MARKS = ("<unk>", "<UNK>", "<s>", "</s>")
"""Entries of a vocabulary that are no words."""

_LONGEST_LINE = 4096
_SHORTEST_LINE = 4
"""Bytes of a line of an n-gram: "0 a" and its end."""

_LARGEST_RATIO = 60
"""Bytes per compressed byte; texts of n-grams have 4 to 10."""

_CHUNK = 2**20

_BINARY = b"mmap lm "
_UNKNOWN = b"<unk>\0"
"""The first word at the end of a binary."""

_HEADER = struct.Struct("<88xB11xB7xQ")
"""Of a binary, version 5: the order, whether it has its words, and the number of words."""


class NgramFile(NamedTuple):
    """What a file of an n-gram model has beside its numbers.

    Attributes:
        words: its vocabulary, without `MARKS`.
        digest: SHA-256 of the file.
        has_unknown: whether it has `<unk>`, the probability of words that it does not have.
    """

    words: list[str]
    digest: str
    has_unknown: bool


def read_ngram_file(path: Path) -> NgramFile:
    """Reads a file once.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, or no file of n-grams; says what is wrong.
    """
    with path.open("rb") as file:
        beginning = file.read(len(_BINARY))
        file.seek(0)
        if beginning == _BINARY:
            words = _words_of_binary(file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256")
        else:
            digest = hashlib.sha256()
            observed = _observed_reader(file, digest.update)
            if beginning.startswith(b"\x1f\x8b"):
                words = _words_of_compressed(file, observed)
            else:
                words = _words_of_arpa(observed)
    vocabulary = [word for word in words if word not in MARKS]
    has_unknown = not {"<unk>", "<UNK>"}.isdisjoint(words)  # kenlm takes both
    return NgramFile(vocabulary, f"sha256:{digest.hexdigest()}", has_unknown)


# ---- the ARPA format -----------------------------------------------------------------------------


class _Observed(io.RawIOBase):
    """Passes on what it reads from a file, of which a function gets each part, too."""

    def __init__(self, file: Any, observe: Callable[[memoryview], object]) -> None:
        self._file = file
        self._observe = observe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self._file.readinto(buffer)
        self._observe(memoryview(buffer)[:n])
        return n


def _observed_reader(file: Any, observe: Callable[[memoryview], object]) -> io.BufferedReader:
    """Returns a reader of a file, of which a function gets each part that is read."""
    return io.BufferedReader(_Observed(file, observe), _CHUNK)


def _words_of_compressed(file: IO[bytes], compressed: io.BufferedReader) -> list[str]:
    """The words of a compressed file, which is not expanded beyond reason."""
    length = 0

    def count(part: memoryview) -> None:
        nonlocal length
        length += len(part)
        if length > _LARGEST_RATIO * file.tell() + _CHUNK:
            raise ValueError(f"it has more than {_LARGEST_RATIO} bytes per compressed byte")

    with gzip.GzipFile(fileobj=compressed) as expanded:
        return _words_of_arpa(_observed_reader(expanded, count))


def _words_of_arpa(file: io.BufferedReader) -> list[str]:
    """Returns the words of an ARPA file of n-grams, in its order; `ValueError` if it is damaged.

    All of the file is read: kenlm, which reads it next, crashes or takes all memory if the counts
    of n-grams in its head are wrong.
    """
    length = 0

    def read_lines() -> Iterator[bytes]:
        nonlocal length
        while line := file.readline(_LONGEST_LINE):
            length += len(line)
            yield line

    lines = read_lines()
    counts = _counts(lines)
    words: list[str] = []
    for _ in range(counts[0]):
        # only these bytes separate words; others, as no-break spaces, are parts of them
        fields = next(lines, b"").split()
        try:
            log10 = float(fields[0])
            word = fields[1].decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"its word {len(words) + 1} is not UTF-8") from None
        except (ValueError, IndexError):
            raise ValueError(f"it does not have {counts[0]} words, as it says") from None
        if not -math.inf < log10 <= 0:
            raise ValueError(f"the log10 probability of {word!r} is {fields[0].decode()}")
        words.append(word)
    if len({*words}) < len(words):
        [(word, n)] = Counter(words).most_common(1)
        raise ValueError(f"it has the word {word!r} {n} times")
    end = b""
    while part := file.read(_CHUNK):
        length += len(part)
        if b"\n-inf" in (end + part).lower():  # which kenlm lets pass
            raise ValueError("an n-gram has a log10 probability of -inf")
        end = part[-len("-inf") :]
    if _SHORTEST_LINE * sum(counts) > length:  # kenlm takes memory for all of them
        raise ValueError("its counts of n-grams do not fit its length")
    return words


def _counts(lines: Iterator[bytes]) -> list[int]:
    """The number of n-grams of each order; reads up to the first n-gram."""
    counts: list[int] = []
    is_header = False
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        is_header = is_header or text == "\\data\\"
        if text.startswith("ngram "):
            # kenlm reads numbers with a sign, and takes memory for them
            match = re.fullmatch(r"ngram (\d{1,3})\s*=\s*(\d{1,18})", text)
            if not match or int(match[1]) != len(counts) + 1:
                problem = f"{shortened(text)!r}, is not the number of {len(counts) + 1}-grams"
                raise ValueError(f"a line of its header, {problem}")
            counts.append(int(match[2]))
        elif text == "\\1-grams:":
            break
        elif text and not is_header:
            raise ValueError("it does not begin with \\data\\")
    if not counts:
        raise ValueError("it does not say how many n-grams it has")
    return counts


class Followers(NamedTuple):
    """Which words stand behind which in the n-grams of a file.

    Attributes:
        starts: (words + 3,) where the followers of each word begin; of `<s>` and of unknown words
            behind the others.
        words: their numbers, ascending for each word.
    """

    starts: NDArray[np.int64]
    words: NDArray[np.int64]

    @staticmethod
    def begin(n_words: int) -> int:
        """Returns the number of `<s>`."""
        return n_words

    @staticmethod
    def unknown(n_words: int) -> int:
        """Returns the number of unknown words."""
        return n_words + 1

    def of(self, word: int) -> NDArray[np.int64]:
        """Returns the numbers of the words that stand behind a word."""
        return self.words[self.starts[word] : self.starts[word + 1]]


def read_followers(path: Path, words: Sequence[str]) -> Followers | None:
    """Returns which words stand behind which; None of a binary, which does not say it.

    Args:
        path: of a file that `read_ngram_file` has read.
        words: its vocabulary.
    """
    with path.open("rb") as file:
        beginning = file.read(len(_BINARY))
        file.seek(0)
        if beginning == _BINARY:
            return None
        is_compressed = beginning.startswith(b"\x1f\x8b")
        pairs = _pairs(gzip.GzipFile(fileobj=file) if is_compressed else file, words)
    firsts, seconds = np.divmod(np.unique(np.array(pairs)), len(words))
    return Followers(np.searchsorted(firsts, np.arange(len(words) + 3)), seconds)


def _pairs(lines: Iterable[bytes], words: Sequence[str]) -> array[int]:
    """The last two words of each n-gram as one number, first * words + second."""
    numbers = {word.encode(): number for number, word in enumerate(words)}
    firsts = numbers | dict.fromkeys((b"<unk>", b"<UNK>"), Followers.unknown(len(words)))
    firsts[b"<s>"] = Followers.begin(len(words))
    pairs = array("q")
    order = 0
    for line in lines:
        if line.startswith(b"\\"):
            heading = re.match(rb"\\(\d+)-grams:", line)
            order = int(heading[1]) if heading else 0
        elif order > 1:
            fields = line.split(None, order + 1)
            if len(fields) > order and (second := numbers.get(fields[order])) is not None:
                first = firsts.get(fields[order - 1], Followers.unknown(len(words)))
                pairs.append(first * len(words) + second)
    return pairs


# ---- KenLM's binary ------------------------------------------------------------------------------


def _words_of_binary(file: IO[bytes]) -> list[str]:
    """The words at the end of a binary, which begin with `<unk>` and end with zeros."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if len(content) < _HEADER.size:
            raise ValueError("it ends in its header")
        order, has_words, n_words = _HEADER.unpack(content[: _HEADER.size])
        if order < 2:
            raise ValueError(f"it is a binary of {order}-grams")
        if not has_words:
            raise ValueError("it is a binary without its words: build it without -v")
        start = content.rfind(_UNKNOWN)
        while start >= 0:
            words = content[start:].split(b"\0")
            # a file without <unk> gets one, which its count does not have
            if len(words) - 1 in (n_words, n_words + 1) and not words[-1]:
                return [word.decode("utf-8") for word in words[:-1]]
            start = content.rfind(_UNKNOWN, 0, start)
    raise ValueError(f"it does not end with {n_words} words")
