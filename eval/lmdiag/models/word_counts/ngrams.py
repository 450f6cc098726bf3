"""What the words before a word tell of it, by an n-gram model in the ARPA format: `ngram:FILE`.

The numbers are those of the package kenlm (Heafield 2011), which reads the file.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

import numpy as np

from lmdiag.files.reading import user_path
from lmdiag.models.word_counts.word_model import Distribution, WordModel, WordReading
from lmdiag.text import shortened
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models.loading.load_options import LoadOptions

_LN_10 = math.log(10)

_MARKS = ("<unk>", "<s>", "</s>")
"""Entries of a vocabulary that are no words."""

_LONGEST_LINE = 4096
_LARGEST_RATIO = 60
"""Bytes per compressed byte; texts of n-grams have 4 to 10."""

_CHUNK = 2**20
_KEPT = 64
"""Distributions that are kept."""


@dataclass(eq=False)
class NgramModel(WordModel):
    """An n-gram model. What it remembers are its last words, the beginning of a text among them.

    Attributes:
        ngrams: the `kenlm.Model`.
    """

    ngrams: Any
    _distributions: dict[tuple[str, ...], Distribution] = field(default_factory=dict, init=False)

    @classmethod
    def load(cls, model_id: str, source: str, options: LoadOptions) -> Self:
        """Loads a file in the ARPA format, also compressed (.gz).

        Raises:
            BadInput: kenlm is not installed, or the file is damaged.
        """
        try:
            import kenlm
        except ImportError:
            raise BadInput(
                "n-gram models need the package kenlm, which is compiled when it is installed: "
                "`pip install '.[ngrams]'` in a clone of lmdiag"
            ) from None
        path = Path(user_path(source))
        try:
            words = _vocabulary(path)
            digest = _digest(path)
        except OSError as error:
            problem = error.strerror or shortened(error)
            raise BadInput(f"model {model_id} cannot be read: {problem}") from None
        except (ValueError, EOFError) as error:
            raise BadInput(f"model {model_id} is not a usable ARPA file: {error}") from None
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            ngrams = kenlm.Model(str(path), config)
        except (OSError, RuntimeError) as error:
            # kenlm's own text begins with its source file and its conditions
            problem = shortened(re.sub(r".*? threw \w+( because `.*?')?\. ?", "", str(error)))
            raise BadInput(f"model {model_id} is not a usable ARPA file: {problem}") from None
        info = ModelInfo(
            id=model_id,
            revision=None,
            commit=digest,
            kind="causal",
            architecture=f"{ngrams.order}-gram model",
            dtype="float32",
            tokenizer="words of the file",
            cased=True,
            vocab_size=len(words),
            n_parameters=len(words),
            max_length=None,
            bos=True,
            sentence_bos=True,
            folds=(),
        )
        return cls(info, options, None, words, ngrams)

    @cached_property
    def start(self) -> tuple[str, ...]:
        return ("<s>",)

    def memory(self, context: str) -> str:
        return context

    def distribution(self, state: tuple[str, ...]) -> Distribution:
        if state not in self._distributions:
            if len(self._distributions) >= _KEPT:
                self._distributions.clear()
            before = self._state(state)
            score = self.ngrams.BaseScore
            after = _new_state()
            log10 = [score(before, word, after) for word in self.words]
            self._distributions[state] = Distribution(np.array(log10) * _LN_10)
        return self._distributions[state]

    def read(self, text: str, state: tuple[str, ...]) -> WordReading:
        """Returns the log-probability of the words of a text without blanks, by the chain rule."""
        nats = 0.0
        n_words = 0
        before = self._state(state)
        for word in self._words(text):
            after = _new_state()
            nats += self.ngrams.BaseScore(before, word, after) * _LN_10
            n_words += 1
            before = after
            state = (*state, word)[-max(1, self.ngrams.order - 1) :]
        return WordReading(nats, n_words, state)

    def _state(self, words: tuple[str, ...]) -> Any:
        """What kenlm remembers after words, of which the first may be the beginning of a text."""
        before = _new_state()
        if words[:1] == ("<s>",):
            self.ngrams.BeginSentenceWrite(before)
            words = words[1:]
        else:
            self.ngrams.NullContextWrite(before)
        for word in words:
            after = _new_state()
            self.ngrams.BaseScore(before, word, after)
            before = after
        return before

    def _words(self, text: str) -> Iterator[str]:
        """Yields the words of the vocabulary in a text without blanks.

        That is the text itself if it is in the vocabulary, else the punctuation at its edges that
        is there, and what stands between.
        """
        if known := self._known(text):
            yield known
            return
        marks = [unicodedata.category(char)[0] == "P" for char in text]
        if all(marks):
            yield from filter(self._known, text)
            return
        first = marks.index(False)
        last = len(text) - marks[::-1].index(False)
        yield from filter(self._known, text[:first])
        core = text[first:last]
        if not self._known(core):
            self.unknown[core] = None
        yield self._known(core) or core
        yield from filter(self._known, text[last:])

    def _known(self, word: str) -> str:
        """The word as the vocabulary has it: as it is, else in lower case; "" if it does not."""
        if word in self.numbers:
            return word
        lower = word.lower()
        return lower if lower in self.numbers else ""


def _new_state() -> Any:
    import kenlm

    return kenlm.State()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _vocabulary(path: Path) -> list[str]:
    """Returns the words of an ARPA file, without `<s>`, `</s>` and `<unk>`.

    Raises:
        ValueError: its counts cannot be true, or it is much longer than its compressed size; says
            what is wrong.
    """
    with path.open("rb") as file:
        beginning = file.read(8)
    if beginning.startswith(b"mmap lm "):
        raise ValueError("it is KenLM's binary, which is not read: give the ARPA file")
    is_compressed = beginning.startswith(b"\x1f\x8b")
    size = path.stat().st_size
    if is_compressed:
        size = _length(path, size)
    with gzip.open(path) if is_compressed else path.open("rb") as file:
        return _read_words(cast("BinaryIO", file), size)


def _length(path: Path, compressed: int) -> int:
    """The number of bytes of a compressed file, which is not expanded beyond reason."""
    length = 0
    with gzip.open(path) as file:
        while chunk := file.read(_CHUNK):
            length += len(chunk)
            if length > _LARGEST_RATIO * compressed + _CHUNK:
                raise ValueError(f"it has more than {_LARGEST_RATIO} bytes per compressed byte")
    return length


def _read_words(file: BinaryIO, size: int) -> list[str]:
    lines = iter(lambda: file.readline(_LONGEST_LINE), b"")
    counts = []
    is_header = False
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        is_header = is_header or text == "\\data\\"
        if found := re.fullmatch(r"ngram (\d+)\s*=\s*(\d+)", text):
            counts.append(int(found[2]))
        elif text == "\\1-grams:":
            break
        elif text and not is_header:
            raise ValueError("it does not begin with \\data\\")
    if not counts or 4 * sum(counts) > size:  # a line has at least four bytes
        raise ValueError("its counts of n-grams do not fit its length")
    words = []
    for _ in range(counts[0]):
        fields = next(lines, b"").decode("utf-8").split()
        try:
            log10 = float(fields[0])
            words.append(fields[1])
        except (ValueError, IndexError):
            raise ValueError(f"it does not have {counts[0]} words, as it says") from None
        if not -math.inf < log10 <= 0:
            raise ValueError(f"the log10 probability of {fields[1]!r} is {fields[0]}")
    return [word for word in words if word not in _MARKS]
