"""Kills a real command with SIGKILL at each of its operations on files, resumes it, and counts.

Run by `test_processes.py` in a fork (`forked.py`), or as a program of its own, because it forks: a
child that is forked after the imports is a whole command without the seconds that importing torch
takes. Nothing is computed before the fork, so no thread is lost by it.

What a killed run leaves changes only where it opens, renames or removes a file, makes or removes a
folder, or writes: a kill falls before each of the first, and into each write, which loses its last
bytes. So every state that a kill at any moment can leave is resumed once.
"""

import itertools
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from launched import outcome
from runs.forked import IMPORTED, ended, run_and_leave

from lmdiag.cli import TERMINATED, main
from lmdiag.report.formats import FORMATS
from lmdiag.runs.journal import Journal

OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}
"""Audit events of the interpreter that come just before an operation on a file."""


def run(arguments, output, kill_at=0):
    """Forks a command; returns the number of answers that it saved, None if it was killed.

    `kill_at` is the number of the operation on files in `output` at which it dies; 0 for none.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        saved, append = [], Journal.append

        def counted(journal, answers):
            append(journal, answers)
            saved.append(len(answers))

        Journal.append = counted
        page = FORMATS["html"]._replace(render=lambda *_: "<!doctype html>")
        FORMATS["html"] = page  # a page takes longer than all answers
        if kill_at:
            die_at(kill_at, output)
        code = main([*arguments, "--output", str(output)])
        os.write(write, b"%d" % sum(saved))
        os._exit(code)
    os.close(write)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    with os.fdopen(read) as counts:
        return int(counts.read()) if code == 0 else None


def die_at(step, folder):
    """Makes this process die at an operation on files in a folder; a written file is torn."""
    steps, flush = itertools.count(1), os.fsync

    def hook(event, arguments):
        if event in OPERATIONS and str(folder) in str(arguments[0]) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def torn(file):
        if next(steps) == step:
            os.ftruncate(file, max(0, os.fstat(file).st_size - 7))
            os.kill(os.getpid(), signal.SIGKILL)
        flush(file)

    os.fsync = torn
    sys.addaudithook(hook)


def every_step(folder, arguments, stride):
    """Kills commands, at every operation on a file or every so many (`stride`), and resumes them.

    Counts kills, those that left a journal or a torn record, answers that were saved twice, and
    resumed commands that left the files of an undisturbed one.
    """
    total, facts = run(arguments, folder / "undisturbed"), Counter()
    expected = outcome(folder / "undisturbed")
    for step in itertools.count(1, stride):
        output = folder / f"step{step}"
        if run(arguments, output, step) is not None:
            return facts
        lines = [line for path in output.rglob("*.jsonl") for line in path.open("rb")]
        whole = [json.loads(line.partition(b" ")[2]) for line in lines if line.endswith(b"\n")]
        rest, saved = run(arguments, output), sum(map(len, whole))
        assert None not in (total, rest)
        facts["kills"] += 1
        facts["midway"] += bool(lines)
        facts["torn"] += len(whole) < len(lines)
        facts["twice"] += max(0, saved + rest - total)  # a finished run has no journal
        facts["same"] += outcome(output) == expected
    raise AssertionError  # no run has endless operations


def start(arguments, log, most_bytes=0):
    """Forks a command as `lmdiag` runs it; `most_bytes` of a file stand for a full disk."""
    child = os.fork()
    if not child:
        for number, name in ((1, "out"), (2, "err")):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND  # two commands may share it
            os.dup2(os.open(log.with_suffix(f".{name}"), flags), number)
        if most_bytes:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        run_and_leave(arguments)
    return child


def files_of(folder):
    """The files of a command that must be the same: not those of journals, whose names differ."""
    named = outcome(folder)
    files = {x: content for x, content in named.items() if not re.search(r"\.draft-|\.jsonl$", x)}
    same = (".svg", ".csv", "fit.html", "leaderboard.json")
    return files | {name: (folder / name).read_bytes() for name in files if name.endswith(same)}


def random_moments(folder, arguments, moments):
    """Stops a command at random moments and resumes it; `{out}` stands for where it writes.

    Every second one is killed, the others get SIGTERM. Then journals are damaged, or the disk is
    full for a while; in the end two commands run at the same time in the directory, and one alone.
    """
    draw, facts = random.Random(37), Counter()

    def begun(attempt, most_bytes=0):
        names = {"out": folder / attempt, "attempt": attempt}
        words = [word.format(**names) for word in arguments]
        return start(words, folder / f"log-{attempt}", most_bytes)

    def printed(attempt):
        text = (folder / f"log-{attempt}.out").read_text() if "--json" in arguments else ""
        return text.replace(attempt, "")

    began = time.monotonic()
    (folder / "undisturbed").mkdir()
    assert ended(begun("undisturbed")) == 0, (folder / "log-undisturbed.err").read_text()
    seconds = time.monotonic() - began
    expected = files_of(folder / "undisturbed"), printed("undisturbed")
    for moment in range(moments):
        attempt = f"at{moment:02}"
        (folder / attempt).mkdir()
        child = begun(attempt)
        time.sleep(draw.uniform(0, seconds))
        os.kill(child, (signal.SIGKILL, signal.SIGTERM)[moment % 2])
        facts["stopped"] += ended(child) in (-signal.SIGKILL, -signal.SIGTERM, TERMINATED)
        for journal in (folder / attempt).rglob("*.jsonl") if moment % 3 == 1 else ():
            content = bytearray(journal.read_bytes())
            if content:
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
                journal.write_bytes(content)
                facts["damaged"] += 1
        if moment % 3 == 2:
            facts["full"] += ended(begun(attempt, draw.choice((1, 20_000)))) != 0
        both = [begun(attempt), begun(attempt)] if moment % 5 == 0 else []
        facts["refused"] += sum(map(bool, map(ended, both)))
        for log in folder.glob(f"log-{attempt}.*"):
            if "Traceback" in log.read_text():
                facts["tracebacks"] += 1
                print(f"{attempt}: {log.read_text()}", file=sys.stderr)
            log.unlink()
        assert ended(begun(attempt)) == 0, (folder / f"log-{attempt}.err").read_text()
        found = files_of(folder / attempt), printed(attempt)
        facts["same"] += found == expected
        if found != expected:
            facts[f"different: {attempt}"] += 1
    return facts


def print_facts(loop, folder, number, *arguments):
    """Prints what `every_step` or `random_moments` counts, as JSON."""
    print(json.dumps(loop(folder, arguments, number)))


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    print_facts(random_moments, Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
