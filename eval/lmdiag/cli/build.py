"""`lmdiag build`: the data set directory, by the data set's own loading scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lmdiag.cli.options import RECORD
from lmdiag.stimuli.building import script


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """What to build, from where."""

    out: Path = field(default=Path("lmdiag"), kw_only=False)
    """directory to write"""
    source: str = "upstream"
    """upstream: download the pinned commits; demo: the bundled sentences; DIR: a directory with the
    tree of lm-diagnostics, of refining-tse, or with both"""
    configs: tuple[str, ...] | None = None
    """configs to build (default: all that the source has)"""


def main(options: Options = Options()) -> int:
    """Builds the data set and prints the number of rows of each config."""
    for name, rows in (
        script("directory").build(options.out, options.source, options.configs).items()
    ):
        print(f"{name:<10} {rows:>8,} rows")
    print(f"written: {options.out}")
    return 0
