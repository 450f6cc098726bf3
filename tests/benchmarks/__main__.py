"""`python -m benchmarks [WHAT ...]`: prints ratios that are measured now, on this machine.

`blanks`, `agreement` and `sentences` compare programs that have their model loaded (see
`contenders`); `run` compares `lmdiag run` with a bare script, from the shell's call to the end.
Programs take turns, a figure is the median of the ratios within a round, and the smallest and the
largest stand beside it. Nothing here is a timed test: machines differ and are shared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import IO, Any

from benchmarks import questions, shapes
from benchmarks.contenders import PROGRAMS

CONTENDERS = str(Path(__file__).with_name("contenders.py"))
PEERS = ("minicons", "lm-eval")
WORKS = ("blanks", "agreement", "sentences")


class Contender:
    """A process that does a whole work each time it is told to.

    Attributes:
        name: of the program.
        seconds: what each round took.
        memory: the most it ever held, MiB.
        absent: why it does not take part; "" where it does.
    """

    def __init__(self, name: str, python: str, arguments: list[str], errors: IO[str]) -> None:
        self.name, self.seconds, self.memory, self._errors = name, list[float](), 0.0, errors
        command = [python, CONTENDERS, name, *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        self.absent = "" if self._answer() else self._last_error()

    def __enter__(self) -> Contender:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def work(self, *, counts: bool) -> None:
        """Has it do the whole work once."""
        if self.absent:
            return
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        if not (answer := self._answer()):
            self.absent = self._last_error()
        elif counts:
            self.seconds.append(answer["seconds"])
            self.memory = answer["memory"]

    def _answer(self) -> dict[str, Any]:
        """The next line of JSON; other lines are messages of a library."""
        assert self._process.stdout is not None
        return next((json.loads(line) for line in self._process.stdout if line[0] == "{"), {})

    def _last_error(self) -> str:
        self._errors.seek(0)
        return (self._errors.read().strip() or "it ended without a message").splitlines()[-1]


def compare_programs(args: argparse.Namespace, folder: Path, work: str, shape: str) -> None:
    """Prints the table of one work and one shape: seconds, ratio to `bare`, memory."""
    model = shapes.make(shape, folder)
    # a masked model reads a sentence once per token
    count = args.sentences // (10 if shapes.is_masked(shape) else 1)
    file = questions.write(folder, work, count, questions.build(folder)[0])
    arguments = [work, str(model), str(file), str(args.threads)]
    with ExitStack() as stack:
        running = []
        for name in args.programs:
            python = args.peers_python if name in PEERS else sys.executable
            if python:
                errors = stack.enter_context(tempfile.TemporaryFile("w+"))
                contender = Contender(name, python, arguments, errors)
                running.append(stack.enter_context(contender))
        for number in range(args.rounds + 1):  # the first round is for warmth
            for contender in running:
                contender.work(counts=number > 0)
    print(f"\n{work}, {shape}\n{'':>10} {'seconds':>8} {'time / bare':>12} {'least-most':>12} MiB")
    bare = next((contender.seconds for contender in running if contender.name == "bare"), [])
    for contender in running:
        if contender.absent or not bare:
            print(f"{contender.name:>10} {contender.absent or 'needs bare to compare with'}")
            continue
        ratios = [own / base for own, base in zip(contender.seconds, bare, strict=True)]
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        seconds = median(contender.seconds)
        print(
            f"{contender.name:>10} {seconds:8.2f} {median(ratios):12.2f} {spread:>12} "
            f"{contender.memory:.0f}",
            flush=True,
        )


def compare_runs(args: argparse.Namespace, folder: Path, shape: str) -> None:
    """Prints seconds of whole processes: `lmdiag run` with its report, and a bare script."""
    data, _ = questions.build(folder)
    model = str(shapes.make(shape, folder))
    file = questions.write(folder, "blanks", args.sentences, data)
    bare = [sys.executable, CONTENDERS, "bare", "blanks", model, str(file), str(args.threads)]
    run = [sys.executable, str(questions.ROOT / "eval/run.py"), "--model", model, "--quiet"]
    seconds: dict[str, list[float]] = {"bare": [], "lmdiag": []}
    for number in range(args.rounds + 1):
        with tempfile.TemporaryDirectory() as output:
            commands = {"bare": bare, "lmdiag": [*run, "--data", str(data), "--output", output]}
            for name, command in commands.items():
                start = time.perf_counter()
                environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
                options: dict[str, Any] = {"env": environment | {"HF_HUB_OFFLINE": "1"}}
                subprocess.run(
                    command, input="go\n", text=True, capture_output=True, check=True, **options
                )
                if number:
                    seconds[name].append(time.perf_counter() - start)
    ratios = [own / base for own, base in zip(seconds["lmdiag"], seconds["bare"], strict=True)]
    print(
        f"\nrun, {shape}: bare script {median(seconds['bare']):.1f} s, lmdiag run "
        f"{median(seconds['lmdiag']):.1f} s, ratio {median(ratios):.2f} "
        f"({min(ratios):.2f}-{max(ratios):.2f})",
        flush=True,
    )


def machine(threads: int) -> str:
    """Returns the processor, and its rate of float32 matrix products of bert-base's largest shape.

    No program can be faster than this rate allows in float32.
    """
    import torch

    path = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)$", path.read_text() if path.exists() else "", re.M)
    torch.set_num_threads(threads)
    states, weight, seconds = torch.randn(384, 768), torch.randn(768, 3072), []
    for _ in range(30):
        start = time.perf_counter()
        states @ weight
        seconds.append(time.perf_counter() - start)
    rate = 2 * states.numel() * weight.shape[1] / min(seconds) / 1e9
    return f"{names[0] if names else platform.machine()}, {threads} threads, {rate:.0f} GFLOP/s"


def main() -> None:
    """Prints one table after the other."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(WORKS)}, run (all)")
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"])
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sentences", type=int, default=1000, help="a tenth for masked models")
    parser.add_argument("--peers-python", help="a Python that has minicons and lm-eval")
    parser.add_argument("--folder", type=Path, help="where models and data are kept (nowhere)")
    args = parser.parse_args()
    args.what = args.what or [*WORKS, "run"]
    if unknown := set(args.what) - {*WORKS, "run"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        print(f"{machine(args.threads)}; {questions.build(folder)[1]} data; {args.rounds} rounds")
        for shape in args.shapes:
            for what in args.what:
                if what == "run":
                    compare_runs(args, folder, shape)
                else:
                    compare_programs(args, folder, what, shape)


if __name__ == "__main__":
    main()
