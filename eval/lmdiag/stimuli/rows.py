"""The stimuli of a task, and the fingerprint that identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE_COLUMNS
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.diagnostics import Diagnostic


@dataclass(frozen=True)
class Stimuli:
    """The rows of one task.

    Attributes:
        task: name of the config.
        table: one row per stimulus: the core columns and further ones.
        fingerprint: 8 hexadecimal digits of a hash over all rows and columns, in any order:
            the same for a directory and its copy on the Hub.
        source: where the data came from, as the user named it.
        revision: commit of a Hub data set; for a directory the commit that its sources were pinned
            to; None if there is none.
        form: name of the form of data in `lmdiag.diagnostics` that the rows have, e.g. "sentences";
            "" for rows with a blank.
    """

    task: str
    table: pa.Table
    fingerprint: str
    source: str
    revision: str | None = None
    form: str = ""

    @classmethod
    def of(
        cls,
        task: str,
        columns: Mapping[str, Sequence[Any]],
        source: str,
        revision: str | None,
        form: str = "",
    ) -> Stimuli:
        """Returns stimuli of columns whose values were checked.

        Raises:
            BadInput: a further column mixes types, or a text is not Unicode.
        """
        import pyarrow as pa

        types = dict.fromkeys(CORE_COLUMNS, pa.string())
        types |= {"good": pa.bool_(), "expected": pa.list_(pa.string())}
        arrays = {}
        for name, values in columns.items():
            try:
                arrays[name] = pa.array(values, types.get(name))
            except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
                reason = str(error).partition("\n")[0]
                raise BadInput(f"{source}: the column {name} cannot be stored: {reason}") from error
        stimuli = cls(task, pa.table(arrays), fingerprint(columns), source, revision, form)
        stimuli.__dict__["_columns"] = dict(columns)  # what the cached property would compute
        return stimuli

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
        first = self.columns().get("regions", [None])[0]
        is_made = self.diagnostic.asks == "sentence" and isinstance(first, list)
        return self.columns()["regions"] if is_made else None

    @property
    def compared(self) -> bool:
        """Whether rows are compared with each other."""
        return "contrast" in self.table.column_names

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def columns(self) -> dict[str, list[Any]]:
        """Column name -> values, in the rows' order. Shared: not to be changed."""
        return self._columns

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = self.table.to_pydict()
        return columns

    def with_contexts(self, contexts: Sequence[str]) -> Stimuli:
        """Returns the same rows, with the same fingerprint, but with other left contexts.

        Args:
            contexts: one for each row, in the rows' order.
        """
        import pyarrow as pa

        index = self.table.schema.get_field_index("context")
        column = pa.array(contexts, pa.string())
        return replace(self, table=self.table.set_column(index, "context", column))


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
