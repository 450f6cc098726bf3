"""How long a test waits for something that may never end, such as a child process or a page."""

HANG = 600
"""Seconds. Every time limit in the tests is this one or longer: it only ends a hang, so that a test
does not fail because the machine is busy."""
