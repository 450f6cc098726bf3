"""How a word is spelled in pieces, re-stated by hand from the files of a tokenizer.

Greedy WordPiece, byte pairs by rank, and the best path through a unigram vocabulary, each in its
plainest form. The tests hold the package against this and not against itself.
"""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any


class Speller:
    """The model part of a `tokenizer.json`.

    Args:
        folder: where the file is.
        convention: wordpiece, byte-level, unigram or metaspace-bpe.
    """

    def __init__(self, folder: Path, convention: str) -> None:
        self.convention = convention
        content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        self.model: dict[str, Any] = content["model"]
        self.specials = {token["id"]: token["content"] for token in content["added_tokens"]}
        vocab = self.model["vocab"]
        names = [piece for piece, _ in vocab] if convention == "unigram" else vocab
        self.ids: dict[str, int] = (
            {name: number for number, name in enumerate(names)}
            if convention == "unigram"
            else dict(vocab)
        )
        self.names = {number: name for name, number in self.ids.items()}
        self.ranks = {tuple(merge): rank for rank, merge in enumerate(self.model.get("merges", []))}
        normalizer = json.dumps(content["normalizer"])
        self.lower = '"Lowercase"' in normalizer or '"lowercase": true' in normalizer

    def spell(self, word: str, *, blank: bool = True) -> list[int] | None:
        """Returns the pieces of a word after a blank, or at the very beginning of a text.

        None where the vocabulary cannot spell it.
        """
        if self.lower:
            decomposed = unicodedata.normalize("NFD", word)
            word = "".join(c for c in decomposed if not unicodedata.combining(c)).lower()
        if self.convention == "wordpiece":
            return self._wordpiece(word)
        if self.convention == "byte-level":
            raw = ((" " if blank else "") + word).encode("utf-8")
            return self._merge([BYTES[byte] for byte in raw])
        # Whether the first word of a text gets a blank too is the family's own affair.
        if self.convention == "metaspace-bpe":
            return self._merge(self._characters("▁" + word if blank else word))
        return self._unigram("▁" + word)

    def show(self, token: int) -> str | None:
        """Returns an item as answers show it; None where it is not text that can be shown."""
        name = self.names.get(token)
        if token in self.specials:
            return self.specials[token]
        if name is None:
            return None
        if self.convention == "wordpiece":
            return name
        if self.convention == "byte-level":
            text = read_bytes(name)
        else:
            text = None if name.startswith("<0x") else name.replace("▁", " ")
        if text is None or not text.strip() or not text.strip().isprintable():
            return None
        return text.strip() if text.startswith(" ") else "##" + text

    def _wordpiece(self, word: str) -> list[int] | None:
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    pieces.append(self.ids[piece])
                    start = end
                    break
            else:
                return None
        return pieces

    def _merge(self, symbols: list[str]) -> list[int]:
        while True:
            pairs = list(pairwise(symbols))
            known = [pair for pair in pairs if pair in self.ranks]
            if not known:
                return [self.ids[symbol] for symbol in symbols]
            best = min(known, key=self.ranks.__getitem__)
            merged, index = [], 0
            while index < len(symbols):
                if tuple(symbols[index : index + 2]) == best:
                    merged.append("".join(best))
                    index += 2
                else:
                    merged.append(symbols[index])
                    index += 1
            symbols = merged

    def _characters(self, text: str) -> list[str]:
        return [
            symbol
            for character in text
            for symbol in (
                [character]
                if character in self.ids
                else [f"<0x{byte:02X}>" for byte in character.encode("utf-8")]
            )
        ]

    def _unigram(self, text: str) -> list[int] | None:
        scores = dict(self.model["vocab"])
        specials = set(self.specials.values())
        best: list[tuple[float, list[str]] | None] = [(0.0, [])]
        for end in range(1, len(text) + 1):
            paths = [
                (before[0] + scores[text[start:end]], [*before[1], text[start:end]])
                for start in range(end)
                if (before := best[start]) is not None
                and text[start:end] in scores
                and text[start:end] not in specials
            ]
            best.append(max(paths) if paths else None)
        path = best[-1]
        return None if path is None else [self.ids[piece] for piece in path[1]]


def byte_characters() -> list[str]:
    """Returns the characters by which byte-level vocabularies write the bytes (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in range(256)]


BYTES = byte_characters()


def read_bytes(name: str) -> str | None:
    """Returns the text of a byte-level item; None for bytes that are no text by themselves."""
    try:
        return bytes(BYTES.index(character) for character in name).decode("utf-8")
    except UnicodeDecodeError:
        return None
