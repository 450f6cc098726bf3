"""Builds the lmdiag data set: `python build.py [DIR] [--source ...] [--configs ...]`.

Writes the directory DIR that is the Hub data set: card, Parquet, these scripts, `eval.yaml` and
`provenance.json`. Exit codes: 0 done, 2 bad input, 1 anything else. Where the package is installed,
`lmdiag build` is the same command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from loading.command import add_arguments, run
from loading.lines import BadSource


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="build.py", description=(__doc__ or "").split("\n")[0])
    add_arguments(parser)
    try:
        run(parser.parse_args(argv))
    except BadSource as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("build.py: interrupted, nothing was written", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
