"""Builds the lmdiag data set: `python build.py [DIR] [--source ...] [--configs ...]`.

The same as `lmdiag build` of the installed package, whose loading scripts are used.
"""

import sys

from lmdiag.cli import main

if __name__ == "__main__":
    sys.exit(main(["build", *sys.argv[1:]]))
