"""Limits of tests: how long they wait, how child processes end."""

HANG = 600
"""Seconds. Every time limit in the tests is this one or longer: it only ends a hang, so that a test
does not fail because the machine is busy."""

LEAVE = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""
"""The end of a child process that read Parquet by `datasets`, past the interpreter's own end: about
one in 300 otherwise ends with SIGABRT after all its work (apache/arrow#45214)."""
