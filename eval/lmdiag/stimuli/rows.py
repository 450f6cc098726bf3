"""The stimuli of a task, and the fingerprint that identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.diagnostics import Diagnostic


@dataclass(frozen=True)
class Stimuli:
    """The rows of one task.

    Attributes:
        task: name of the config.
        fingerprint: 8 hexadecimal digits of a hash over all rows and columns, in any order:
            the same for a directory and its copy on the Hub.
        source: where the data came from, as the user named it.
        revision: commit of a Hub data set; for a directory the commit that its sources were pinned
            to; None if there is none.
        form: name of the form of data in `lmdiag.diagnostics` that the rows have, e.g. "sentences";
            "" for rows with a blank.
    """

    task: str
    _columns: Mapping[str, list[Any]]
    fingerprint: str
    source: str
    revision: str | None = None
    form: str = ""

    @classmethod
    def of(
        cls, task: str, columns: Mapping[str, list[Any]], source: str,
        revision: str | None, form: str = "",
    ) -> Stimuli:  # fmt: skip
        """Returns stimuli of columns whose values were checked.

        Raises:
            BadInput: a further column mixes types, or a text is not Unicode.
        """
        import pyarrow as pa

        for name, values in columns.items():
            try:
                pa.array(values)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
                reason = str(error).partition("\n")[0]
                raise BadInput(f"{source}: the column {name} cannot be stored: {reason}") from error
        return cls(task, columns, fingerprint(columns), source, revision, form)

    @property
    def diagnostic(self) -> Diagnostic:
        """What is declared for the task."""
        return diagnostics.get(self.task, self.form)

    @property
    def asks_words(self) -> bool:
        """Whether a row asks for the word at a blank, not for a whole sentence."""
        return self.diagnostic.asks == "word"

    @property
    def regions(self) -> list[list[dict[str, Any]]] | None:
        """The regions of each sentence: number, name, start and end; None without any."""
        regions = self._columns.get("regions", [None])
        return None if self.asks_words or not isinstance(regions[0], list) else regions

    @property
    def compared(self) -> bool:
        """Whether rows are compared with each other."""
        return "contrast" in self._columns

    @cached_property
    def table(self) -> pa.Table:
        """One row per stimulus: the core columns and further ones."""
        import pyarrow as pa

        return pa.table(dict(self._columns))

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def columns(self) -> Mapping[str, list[Any]]:
        """Column name -> values, in the rows' order. Shared: not to be changed."""
        return self._columns

    def with_contexts(self, contexts: Sequence[str]) -> Stimuli:
        """Returns the same rows, with the same fingerprint, but with other left contexts.

        Args:
            contexts: one for each row, in the rows' order.
        """
        return replace(self, _columns={**self._columns, "context": list(contexts)})


def fingerprint(columns: Mapping[str, Sequence[Any]]) -> str:
    """Returns 8 hexadecimal digits of a SHA-256 over the rows as a set.

    Each row is written as JSON, columns in the order of their names, and hashed. The hashes of the
    rows are hashed in sorted order, so that the order of rows and of columns does not matter.
    """
    names = sorted(columns)
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
    rows = zip(*(columns[name] for name in names), strict=True)
    digests = sorted(hashlib.sha256(encode(row).encode()).digest() for row in rows)
    return hashlib.sha256(encode(names).encode() + b"".join(digests)).hexdigest()[:8]
