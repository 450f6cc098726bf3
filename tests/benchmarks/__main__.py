"""`python -m benchmarks [WHAT ...]`: prints tables of ratios measured now, on this machine.

What bounds them: asking the 198 contexts of the three diagnostics is the model. For the shape of
bert-base, on a Xeon at 2.8 GHz with AVX-512 and in one thread, 98% of the CPU time of `ask` was in
the forward pass. The bare loop sends 3,472 tokens through the model, padding included, packs send
3,000, and 2,908 are not padding: of the time in proportion to tokens, 0.86 remains. `ask` took 0.83
of the CPU time of the bare loop. The rate of a matrix product was 105 GFLOP/s with 384 tokens and
108 with 1,536, so that larger batches gain little there.
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
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import shapes, start_up

PEERS = ("minicons", "lm-eval", "sentences-minicons")
CONTENDERS = (
    "floor",
    "everywhere",
    "lmdiag",
    "lmdiag-report",
    "minicons",
    "lm-eval",
    "one-at-a-time",
)
"""The first is what the others are compared with."""

SENTENCES = ("sentences-bare", "sentences-gathered", "sentences", "sentences-minicons")
"""The same for whole sentences."""

WHAT = ("start", "speed", "agreement", "sentences", "long-text")
AGREEMENT_CONTENDERS = ("agreement-floor", "agreement-blanks", "agreement")
AGREEMENT = 384
"""Contexts of agreement whose time is measured."""


@dataclass
class Contender:
    """A process that does the whole work once when it is told to.

    Attributes:
        name: see `contenders.prepare`.
        absent: why it does not take part; None where it does.
        seconds: what each round took.
        memory: the most it ever held, MiB.
    """

    name: str
    command: Sequence[str]
    absent: str | None = None
    seconds: list[float] = field(default_factory=list)
    memory: float = 0.0

    def __enter__(self) -> Contender:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(
            self.command, stderr=subprocess.DEVNULL, text=True, **pipes
        )
        answer = self._answer()
        self.absent = answer.get("absent") if answer else "it ended before it was ready"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.communicate()

    def work(self, *, counts: bool) -> None:
        """Has it do the whole work once."""
        if self.absent is not None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
            answer = self._answer()
        except BrokenPipeError:
            answer = {}
        if not answer:
            self.absent = f"it ended with exit code {self._process.wait()}"
        elif counts:
            self.seconds.append(answer["seconds"])
            self.memory = answer["memory"]

    def _answer(self) -> dict[str, Any]:
        """Returns the next line of JSON; other lines are a library's messages."""
        assert self._process.stdout is not None
        return next((json.loads(line) for line in self._process.stdout if line[0] == "{"), {})


def compare(
    args: argparse.Namespace,
    folder: Path,
    shape: str,
    names: Sequence[str],
    rounds: int,
    texts: Path | None = None,
) -> None:
    """Runs contenders in turn, first once for warmth, and prints their table.

    Rows per second, the ratio to the first of them (within a round), and memory. `texts` is the
    file of sentences that replaces the rows of the three diagnostics.
    """
    data, rows, _ = shapes.build(folder)
    rows = texts or rows
    n_rows, model = len(json.loads(rows.read_text())), shapes.make(shape, folder)
    is_agreement = names[0].startswith("agreement")
    asked = f"{n_rows} {texts.stem if texts else 'rows of the three diagnostics'}"
    print(f"\n{shape}: {'contexts of agreement' if is_agreement else asked}")
    if not args.peers_python and set(names) & set(PEERS):
        print(f"{', '.join(PEERS)}: not installed (--peers-python PATH)")
        names = [name for name in names if name not in PEERS]
    script = str(Path(__file__).with_name("contenders.py"))
    arguments = [str(model), str(rows), str(data), str(args.threads)]
    pythons = dict.fromkeys(PEERS, args.peers_python)
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                Contender(name, [pythons.get(name, sys.executable), script, name, *arguments])
            )
            for name in names
        ]
        for number in range(rounds + 1):
            for contender in running:
                contender.work(counts=number > 0)
    floor = running[0].seconds
    print(f"{'':>22} {'rows/s':>7} {'time / ' + names[0][:16]:>23} {'(least-most)':>14} {'MiB':>6}")
    for contender in running:
        if contender.absent is not None or not floor:
            print(f"{contender.name:>22} {contender.absent}")
            continue
        ratios = [mine / its for mine, its in zip(contender.seconds, floor, strict=True)]
        count = int(contender.name.partition(":")[2]) if is_agreement else n_rows
        print(
            f"{contender.name:>22} {count / median(contender.seconds):7.1f} {median(ratios):23.2f} "
            f"{f'({min(ratios):.2f}-{max(ratios):.2f})':>14} {contender.memory:6.0f}",
            flush=True,
        )


def main() -> None:
    """Runs the benchmarks that are asked for."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=(__doc__ or "").split("`: ")[1].split("\n")[0]
    )
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"some of {', '.join(WHAT)} (all)")
    parser.add_argument("--shapes", nargs="+", default=["bert-base", "gpt2"])
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS, help="of speed (all)")
    parser.add_argument(
        "--rounds", type=int, help="turns of each contender (5; 9 of whole processes)"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--peers-python", metavar="PATH", help="a Python that has minicons and lm-eval"
    )
    parser.add_argument("--contexts", type=int, nargs="+", default=[1000, 20000])
    parser.add_argument("--sentences", type=int, default=1000, help="a tenth for masked models")
    parser.add_argument(
        "--folder", type=Path, help="where models and data are kept between calls (nowhere)"
    )
    args = parser.parse_args()
    if unknown := set(args.what) - set(WHAT):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with tempfile.TemporaryDirectory() as scratch:
        run(args, args.folder or Path(scratch))


def processor() -> str:
    """Returns the name of the processor, with the instructions that speed up matrix products."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    known = [flag for flag in ("avx2", "avx512f", "amx_tile") if re.search(rf"\b{flag}\b", text)]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name} ({', '.join(known)})" if known else name


def matmul_rate(threads: int) -> float:
    """Returns the float32 rate of the largest product of the shapes with 384 tokens, GFLOP/s.

    The fastest of several turns: it bounds what any program can do in float32.
    """
    import torch

    torch.set_num_threads(threads)
    states, weight, seconds = torch.randn(384, 768), torch.randn(768, 3072), []
    for _ in range(30):
        start = time.perf_counter()
        states @ weight
        seconds.append(time.perf_counter() - start)
    return 2 * states.numel() * weight.shape[1] / min(seconds) / 1e9


def run(args: argparse.Namespace, folder: Path) -> None:
    """Makes data and models, and prints one table after the other."""
    what = args.what or WHAT
    _, _, source = shapes.build(folder)
    whole_rounds, args.rounds = args.rounds or 9, args.rounds or 5
    print(f"{processor()}, {matmul_rate(args.threads):.0f} GFLOP/s in a float32 matrix product")
    print(f"{source} data, {args.threads} threads, medians of {args.rounds} rounds")
    for shape in ("bert-tiny", *args.shapes) if "start" in what else ():
        start_up.compare(folder, shape, args.threads, whole_rounds)
    for shape in args.shapes if "speed" in what else ():
        compare(args, folder, shape, args.contenders, args.rounds)
    if "agreement" in what:
        names = [f"{name}:{AGREEMENT}" for name in AGREEMENT_CONTENDERS]
        for shape in args.shapes:
            compare(args, folder, shape, names, args.rounds)
        # whether memory stays flat
        compare(args, folder, "bert-tiny", [f"agreement:{count}" for count in args.contexts], 1)
    for shape in args.shapes if "sentences" in what else ():
        # a masked model reads a sentence once per token
        count = args.sentences // (10 if shapes.is_masked(shape) else 1)
        texts = shapes.write_texts(folder / "sentences of 12 words.json", count, 12)
        compare(args, folder, shape, SENTENCES, args.rounds, texts)
    for shape in args.shapes if "long-text" in what else ():
        texts = shapes.write_texts(folder / "text of 3000 words.json", 1, 3000)
        # a masked model takes the better part of an hour: its memory shows in the first minute
        name = "sentences:60" if shapes.is_masked(shape) else "sentences"
        compare(args, folder, shape, [name], 1, texts)


if __name__ == "__main__":
    main()
