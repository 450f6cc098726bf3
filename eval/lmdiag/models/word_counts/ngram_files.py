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
"""Entries of a vocabulary that are not words."""

_LONGEST_LINE = 4096
"""Bytes of a line that are read at a time: a damaged file may have no end of a line."""

_SHORTEST_LINE = 4
"""Bytes of the shortest line of an n-gram: "0 a" and its end."""

_LARGEST_RATIO = 60
"""Bytes per compressed byte; texts of n-grams have 4 to 10."""

_CHUNK = 2**20
"""Bytes that are read at a time."""

_GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a compressed file."""

_BINARY_MAGIC = b"mmap lm "
"""The first bytes of a KenLM binary."""

_FIRST_WORD_OF_BINARY = b"<unk>\0"
"""The first one of the words at the end of a binary."""

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
    """Reads the words of a file of n-grams, and computes its digest, in one pass.

    The format (ARPA, compressed ARPA or KenLM's binary) is told by the first bytes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, or no file of n-grams; says what is wrong.
    """
    with path.open("rb") as file:
        beginning = file.read(len(_BINARY_MAGIC))
        file.seek(0)
        if beginning == _BINARY_MAGIC:
            words = _words_of_binary(file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256")
        else:
            digest = hashlib.sha256()
            reader = _observed_reader(file, digest.update)  # the digest is computed while reading
            if beginning.startswith(_GZIP_MAGIC):
                words = _words_of_compressed(file, reader)
            else:
                words = _words_of_arpa(reader)
    vocabulary = [word for word in words if word not in MARKS]
    has_unknown = not {"<unk>", "<UNK>"}.isdisjoint(words)  # kenlm takes both
    return NgramFile(vocabulary, f"sha256:{digest.hexdigest()}", has_unknown)


# ---- the ARPA format -----------------------------------------------------------------------------


class _ObservedFile(io.RawIOBase):
    """A file that is read through: a function gets each part of it that is read, too.

    Args:
        file: has a method `readinto`.
        observe: is called with each part, for example to update a digest.
    """

    def __init__(self, file: Any, observe: Callable[[memoryview], object]) -> None:
        self._file = file
        self._observe = observe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer from the file, and returns the number of bytes."""
        n: int = self._file.readinto(buffer)
        self._observe(memoryview(buffer)[:n])
        return n


def _observed_reader(file: Any, observe: Callable[[memoryview], object]) -> io.BufferedReader:
    """Returns a buffered reader of a file; `observe` is called with each part that is read."""
    return io.BufferedReader(_ObservedFile(file, observe), _CHUNK)


def _words_of_compressed(file: IO[bytes], compressed: io.BufferedReader) -> list[str]:
    """Returns the words of a compressed ARPA file.

    Raises `ValueError` if it expands to too many bytes: it could fill the memory.

    Args:
        file: tells how many compressed bytes are read so far.
        compressed: reads from `file`.
    """
    length = 0

    def check_ratio(part: memoryview) -> None:
        """Is called with each expanded part."""
        nonlocal length
        length += len(part)
        if length > _LARGEST_RATIO * file.tell() + _CHUNK:
            raise ValueError(f"it has more than {_LARGEST_RATIO} bytes per compressed byte")

    with gzip.GzipFile(fileobj=compressed) as expanded:
        return _words_of_arpa(_observed_reader(expanded, check_ratio))


def _words_of_arpa(file: io.BufferedReader) -> list[str]:
    """Returns the words of an ARPA file of n-grams, in its order; `ValueError` if it is damaged.

    All of the file is read: kenlm, which reads it next, crashes or takes all memory if the counts
    of n-grams in its head are wrong.
    """
    length = 0  # bytes of the lines that are read

    def read_lines() -> Iterator[bytes]:
        """Yields the lines of the file, and counts their bytes."""
        nonlocal length
        while line := file.readline(_LONGEST_LINE):
            length += len(line)
            yield line

    lines = read_lines()
    counts = _ngram_counts(lines)
    words: list[str] = []
    for _ in range(counts[0]):  # one line per word: log10 probability, word, log10 back-off
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
    if len(set(words)) < len(words):
        [(word, n)] = Counter(words).most_common(1)
        raise ValueError(f"it has the word {word!r} {n} times")
    last_bytes = b""  # of the part before, since "-inf" may be cut in two
    while part := file.read(_CHUNK):
        length += len(part)
        if b"\n-inf" in (last_bytes + part).lower():  # kenlm accepts it
            raise ValueError("an n-gram has a log10 probability of -inf")
        last_bytes = part[-len("-inf") :]
    if _SHORTEST_LINE * sum(counts) > length:  # kenlm takes memory for all of them
        raise ValueError("its counts of n-grams do not fit its length")
    return words


def _ngram_counts(lines: Iterator[bytes]) -> list[int]:
    r"""Returns the number of n-grams of each order, as the header of an ARPA file has them.

    Takes the lines up to the heading "\1-grams:". For example, the lines "\data\", "ngram 1=5" and
    "ngram 2=7" give [5, 7].
    """
    counts: list[int] = []
    is_header = False
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        is_header = is_header or text == "\\data\\"  # the header begins there
        if text.startswith("ngram "):
            # kenlm reads numbers with a sign, and takes memory for them
            match = re.fullmatch(r"ngram (\d{1,3})\s*=\s*(\d{1,18})", text)
            # orders ascend from 1 without a gap
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
    """The words that follow each word in the n-grams of a file.

    A word has the number of its place in the vocabulary; after all words come the numbers of `<s>`,
    the beginning of a sentence, and of unknown words.

    Attributes:
        starts: (words + 3,) for each number the index in `words` where its followers begin; they
            end where those of the next number begin.
        words: numbers of the followers, ascending for each word.
    """

    starts: NDArray[np.int64]
    words: NDArray[np.int64]

    @staticmethod
    def begin(n_words: int) -> int:
        """Returns the number of `<s>` for a vocabulary of `n_words` words."""
        return n_words

    @staticmethod
    def unknown(n_words: int) -> int:
        """Returns the number of unknown words for a vocabulary of `n_words` words."""
        return n_words + 1

    def of(self, word: int) -> NDArray[np.int64]:
        """Returns the numbers of the words that follow the word with this number."""
        return self.words[self.starts[word] : self.starts[word + 1]]


def read_followers(path: Path, words: Sequence[str]) -> Followers | None:
    """Returns which words follow which; None of a binary, which does not list its n-grams.

    Args:
        path: of a file that `read_ngram_file` has read.
        words: its vocabulary.
    """
    with path.open("rb") as file:
        beginning = file.read(len(_BINARY_MAGIC))
        file.seek(0)
        if beginning == _BINARY_MAGIC:
            return None
        lines: Iterable[bytes] = file
        if beginning.startswith(_GZIP_MAGIC):
            lines = gzip.GzipFile(fileobj=file)
        pairs = _word_pairs(lines, words)
    distinct_pairs = np.unique(np.array(pairs))  # ascending: by first word, then by second
    first_words, second_words = np.divmod(distinct_pairs, len(words))
    # a start for each word, for <s> and for unknown words, and one number more: the last end
    starts = np.searchsorted(first_words, np.arange(len(words) + 3))
    return Followers(starts, second_words)


def _word_pairs(lines: Iterable[bytes], words: Sequence[str]) -> array[int]:
    """Returns the last two words of each n-gram of an ARPA file, each pair as one number.

    The number is first * len(words) + second, with the numbers of words in `Followers`. N-grams
    that end in a word outside the vocabulary are left out.
    """
    n_words = len(words)
    number_of_second = {word.encode(): number for number, word in enumerate(words)}
    number_of_first = dict(number_of_second)
    number_of_first[b"<s>"] = Followers.begin(n_words)
    pairs = array("q")
    order = 0  # of the n-grams of the section that is read; 0 outside of sections
    for line in lines:
        if line.startswith(b"\\"):  # a heading
            heading = re.match(rb"\\(\d+)-grams:", line)
            order = int(heading[1]) if heading else 0
        elif order > 1:
            # log10 probability, as many words as the order, perhaps a log10 back-off
            fields = line.split(None, order + 1)
            if len(fields) <= order:
                continue
            second = number_of_second.get(fields[order])
            if second is not None:
                first = number_of_first.get(fields[order - 1], Followers.unknown(n_words))
                pairs.append(first * n_words + second)
    return pairs


# ---- KenLM's binary ------------------------------------------------------------------------------


def _words_of_binary(file: IO[bytes]) -> list[str]:
    """Returns the words at the end of a KenLM binary; `ValueError` if it has none.

    They begin with `<unk>`, and each of them ends with the byte zero.
    """
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if len(content) < _HEADER.size:
            raise ValueError("it ends in its header")
        order, has_words, n_words = _HEADER.unpack(content[: _HEADER.size])
        if order < 2:
            raise ValueError(f"it is a binary of {order}-grams")
        if not has_words:
            raise ValueError("it is a binary without its words: build it without -v")
        # the same bytes may also end a longer word: the number of words decides
        start = content.rfind(_FIRST_WORD_OF_BINARY)
        while start >= 0:
            *words, rest = content[start:].split(b"\0")
            # kenlm adds <unk> to the words of a file that lacks it, but does not count it
            if len(words) in (n_words, n_words + 1) and not rest:
                return [word.decode("utf-8") for word in words]
            start = content.rfind(_FIRST_WORD_OF_BINARY, 0, start)
    raise ValueError(f"it does not end with {n_words} words")
