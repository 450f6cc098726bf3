"""`python -m lmdiag`: the command line."""

from lmdiag.cli import program

program()
