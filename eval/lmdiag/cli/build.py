"""`lmdiag build`: the data set directory, by the data set's own loading scripts."""

from __future__ import annotations

import argparse

from lmdiag.schema import BadInput
from lmdiag.stimuli.building import script


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `datasets/lmdiag/build.py`."""
    script("command").add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Builds the data set and prints the number of rows of each config."""
    try:
        script("command").run(args)
    except script("lines").BadSource as error:
        raise BadInput(str(error)) from error
    return 0
