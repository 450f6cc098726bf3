"""`python -m lmdiag`: the command line."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current directory, whose files would take the place of modules

from lmdiag.cli import program

program()
