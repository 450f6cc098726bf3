"""How a child process that read Parquet by `datasets` leaves: past the interpreter's own end.

About one in 300 such processes on a busy machine, after all its work, ends with "terminate called
without an active exception" and SIGABRT: a reader thread of Arrow's wants the interpreter back
while that shuts down (apache/arrow#45214). No test here is about that.
"""

LEAVE = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""
