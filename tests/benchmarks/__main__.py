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
from typing import Any

from benchmarks.contenders import PROGRAMS
from benchmarks.inputs import ROOT, SHAPES, build_data, make_model, write_questions

CONTENDERS = str(Path(__file__).with_name("contenders.py"))
PEERS = ("minicons", "lm-eval")
WORKS = ("blanks", "agreement", "sentences")


class Contender:
    """A process that does a whole work each time it is told to.

    Attributes:
        seconds: what each round took.
        memory: the most it ever held, MiB.
        absent: why it does not take part; "" where it does.
    """

    def __init__(self, command: list[str], stack: ExitStack) -> None:
        self.seconds, self.memory, self.absent = list[float](), 0.0, ""
        self._errors = stack.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = subprocess.Popen(command, text=True, **pipes)
        stack.callback(self._process.communicate)
        self._answer()

    def work(self, *, counts: bool) -> None:
        """Has it do the whole work once."""
        if not self.absent and self._process.stdin:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
            if (answer := self._answer()) and counts:
                self.seconds.append(answer["seconds"])
                self.memory = answer["memory"]

    def _answer(self) -> dict[str, Any]:
        """Returns the next line of JSON; other lines are messages of a library."""
        for line in self._process.stdout or ():
            if line[0] == "{":
                return dict(json.loads(line))
        self._errors.seek(0)
        self.absent = (self._errors.read().strip() or "it ended without a message").splitlines()[-1]
        return {}


def spread(seconds: list[float], base: list[float]) -> tuple[float, str]:
    """Returns the median of the ratios of two programs' rounds, and the range of the ratios."""
    ratios = [time / bare for time, bare in zip(seconds, base, strict=True)]
    return median(ratios), f"{min(ratios):.2f}-{max(ratios):.2f}"


def compare_programs(args: argparse.Namespace, folder: Path, work: str, shape: str) -> None:
    """Prints the table of one work and one shape: seconds, ratio to `bare`, memory."""
    # a masked model reads a sentence once per token
    count = args.sentences // (10 if SHAPES[shape][0].endswith("ForMaskedLM") else 1)
    file = write_questions(folder, work, count, build_data(folder)[0])
    arguments = [work, str(make_model(shape, folder)), str(file), str(args.threads)]
    with ExitStack() as stack:
        running = {}
        for name in args.programs:
            if python := args.peers_python if name in PEERS else sys.executable:
                running[name] = Contender([python, CONTENDERS, name, *arguments], stack)
        for number in range(args.rounds + 1):  # the first round is for warmth
            for contender in running.values():
                contender.work(counts=number > 0)
    print(f"\n{work}, {shape}\n{'':>10} {'seconds':>8} {'time / bare':>12} {'least-most':>12} MiB")
    bare = running["bare"].seconds if "bare" in running else []
    for name, contender in running.items():
        if contender.absent or not bare:
            print(f"{name:>10} {contender.absent or 'needs bare to compare with'}")
            continue
        ratio, ends = spread(contender.seconds, bare)
        seconds, memory = median(contender.seconds), contender.memory
        print(f"{name:>10} {seconds:8.2f} {ratio:12.2f} {ends:>12} {memory:.0f}", flush=True)


def compare_runs(args: argparse.Namespace, folder: Path, shape: str) -> None:
    """Prints seconds of whole processes: `lmdiag run` with its report, and the bare script."""
    data, _ = build_data(folder)
    model = str(make_model(shape, folder))
    file = write_questions(folder, "blanks", args.sentences, data)
    bare = [sys.executable, CONTENDERS, "bare", "blanks", model, str(file), str(args.threads)]
    run = [sys.executable, str(ROOT / "eval/run.py"), "--model", model, "--quiet"]
    environment = os.environ | {"OMP_NUM_THREADS": str(args.threads), "HF_HUB_OFFLINE": "1"}
    seconds: dict[str, list[float]] = {"bare": [], "lmdiag": []}
    for number in range(args.rounds + 1):
        with tempfile.TemporaryDirectory() as output:
            commands = {"bare": bare, "lmdiag": [*run, "--data", str(data), "--output", output]}
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, input=b"go\n", capture_output=True, check=True,
                               env=environment)  # fmt: skip
                if number:
                    seconds[name].append(time.perf_counter() - start)
    ratio, ends = spread(seconds["lmdiag"], seconds["bare"])
    shown = ", ".join(f"{name} {median(values):.1f} s" for name, values in seconds.items())
    print(f"\nlmdiag run, {shape}: {shown}, ratio {ratio:.2f} ({ends})", flush=True)


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
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"], choices=SHAPES)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sentences", type=int, default=1000, help="a tenth for masked models")
    parser.add_argument("--peers-python", help="a Python that has minicons and lm-eval")
    parser.add_argument("--folder", type=Path, help="where models and data are kept (nowhere)")
    args = parser.parse_args()
    if unknown := set(args.what) - {*WORKS, "run"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        print(f"{machine(args.threads)}; {build_data(folder)[1]} data; {args.rounds} rounds")
        for shape in args.shapes:
            for what in args.what or [*WORKS, "run"]:
                if what == "run":
                    compare_runs(args, folder, shape)
                else:
                    compare_programs(args, folder, what, shape)


if __name__ == "__main__":
    main()
