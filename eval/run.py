"""`accelerate launch eval/run.py --model ...`: the same arguments and code as `lmdiag run`."""

import sys

from lmdiag.cli import program

if __name__ == "__main__":
    program(["run", *sys.argv[1:]])
