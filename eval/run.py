"""`accelerate launch eval/run.py --model ...`: the same arguments and code as `lmdiag run`."""

import sys

from lmdiag.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
