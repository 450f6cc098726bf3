"""`python -m benchmarks [blanks agreement run entropy layers gpu]`: prints ratios on this machine.

`blanks` (the three diagnostics) and `agreement` compare lmdiag and transformers alone (`bare`) with
their model loaded. `run` compares `lmdiag run` and its report with a script that reads the
data by `datasets` and asks the model as `bare`, from the shell's call to the end. `entropy`
compares lmdiag with and without (`bare`) entropies before every word.
`layers` compares the answers after all layers with ordinary ones (`bare`), for words at blanks, by
processor time: at most 2.5 times is what is wanted.
`gpu` is for an accelerator,
and ends within four minutes (`benchmarks.gpu`); it is not among all works.
Programs take turns, a ratio is the median of the ratios within a round, and the smallest and the
largest stand beside it. `blanks` and `agreement` also print how near lmdiag is to the processor's
own rate of matrix products: the seconds that its products take at that rate, in its seconds.
Nothing here is a timed test: machines differ and are shared.

The models are random ones of published shapes, since weights do not matter to speed. Their
tokenizers are the published ones where `LMDIAG_TOKENIZERS` (or `../shared/tokenizers` beside the
repository) has them, so that texts have their real length; else small ones of the same conventions,
which split more.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from functools import partial
from itertools import chain, product
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import cyclopts
import tokenizer_files
from benchmarks import gpu
from benchmarks.bare import bare

import lmdiag
from lmdiag import cli

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
TINY = {
    "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 2
}  # fmt: skip
Work = Literal["blanks", "agreement", "run", "entropy", "layers", "gpu"]
Shape = Literal["bert-tiny", "bert-base", "gpt2"]
SHAPES = {
    "bert-tiny": ("BertForMaskedLM", TINY, "bert-base-uncased", "bert"),
    "bert-base": ("BertForMaskedLM", {}, "bert-base-uncased", "bert"),
    "gpt2": ("GPT2LMHeadModel", {}, "gpt2", "gpt2"),
}
"""Class in transformers, whose defaults are the published model; what differs from them; tokenizer
as published; small one of `tokenizer_files`."""


def build_data(folder):
    """Builds the data set from the upstream copies, or else from the demo, and returns it."""
    upstream = Path(os.environ.get("LMDIAG_UPSTREAM") or SHARED / "upstream")
    source = str(upstream) if (upstream / "lm-diagnostics").is_dir() else "demo"
    print(f"data of {'upstream' if source != 'demo' else source}")
    assert cli.main(["build", str(folder / "data"), "--source", source]) == 0
    return str(folder / "data")


def make_tokenizer(shape, folder):
    """Writes the tokenizer of a shape into `folder / shape`, if it is not there, and returns it."""
    _, _, published, small = SHAPES[shape]
    out = folder / shape
    if out.is_dir():
        return out
    tokenizers = os.environ.get("LMDIAG_TOKENIZERS") or SHARED / "tokenizers"
    if (place := Path(tokenizers) / published).is_dir():
        shutil.copytree(place, out)
    else:
        out.mkdir()
        tokenizer_files.write(small, out)
    return out


def make_model(shape, folder):
    """Writes model and tokenizer into `folder / shape` and returns it."""
    import torch
    import transformers

    out = make_tokenizer(shape, folder)
    if not (out / "config.json").exists():
        name, config, *_ = SHAPES[shape]
        model_class = getattr(transformers, name)
        torch.manual_seed(0)
        model_class(model_class.config_class(**config)).save_pretrained(out)
    return str(out)


def compare(title, calls, rounds, timer=time.perf_counter):
    """Prints seconds and ratios to `bare` of programs in turns; the first round is for warmth.

    Returns the median seconds of the last one, by the timer.
    """
    seconds = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            seconds[name].append(timeit.timeit(call, timer=timer, number=1))
    print(f"\n{title}\n{'':>10} {'seconds':>8} {'time / bare':>12} {'least-most':>12}")
    for name, times in seconds.items():
        ratios = [time / bare for time, bare in zip(times[1:], seconds["bare"][1:], strict=True)]
        ends = f"{min(ratios):.2f}-{max(ratios):.2f}"
        print(f"{name:>10} {median(times[1:]):8.2f} {median(ratios):12.2f} {ends:>12}", flush=True)
    return median([*seconds.values()][-1][1:])


def count_products(call):
    """Returns the floating-point operations of the matrix products of a call."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def loaded_programs(model, stimuli, rows):
    """Loads the model in both programs; lmdiag computes everything from rows to predictions."""
    loaded = lmdiag.load_model(model)
    return {"bare": bare(model, rows), "lmdiag": lambda: [*map(loaded.predict, stimuli)]}


def after_all_layers(model, stimuli):
    """Loads the model; it answers after its last layer, or after all."""
    loaded = lmdiag.load_model(model)
    layers = [loaded.predict, loaded.predict_layers]
    bare, every = (lambda ask=ask: [*map(ask, stimuli)] for ask in layers)
    return {"bare": bare, "layers": every}


def with_entropy(model, rows):
    """Loads the model with and without entropies; it is asked about the words of sixty contexts."""
    texts = [context for context, *_ in rows[:60]]
    loaded = [lmdiag.load_model(model, entropy=entropy) for entropy in (False, True)]
    bare, entropy = (partial(x.surprisals, texts) for x in loaded)
    return {"bare": bare, "entropy": entropy}


def whole_processes(model, data, threads):
    """Returns `lmdiag run` with its report, and the bare script, as processes."""

    def process(*command):
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
        subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment)

    def run():
        with tempfile.TemporaryDirectory() as output:
            options = ["--model", model, "--data", data, "--output", output, "--quiet"]
            process(str(ROOT / "eval/run.py"), *options)

    script = [str(Path(__file__).with_name("bare.py")), model, data, str(threads)]
    return {"bare": lambda: process(*script), "lmdiag": run}


def main(
    *what: Work,
    shapes: tuple[Shape, ...] = ("bert-tiny", "bert-base", "gpt2"),
    rounds: int = 5,
    threads: int = os.cpu_count() or 1,
):
    """Prints ratios of running times, one table after the other.

    Args:
        what: works to measure (default: all but gpu)
        shapes: of the models
        rounds: turns of each program
        threads: of each program
    """
    import torch

    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    torch.set_num_threads(threads)
    # of bert-base's largest shape: no program can be faster than this rate allows in float32
    states, weight = torch.randn(384, 768), torch.randn(768, 3072)
    seconds = min(timeit.repeat(lambda: states @ weight, number=1, repeat=30))
    rate = 2 * states.numel() * weight.shape[1] / seconds / 1e9
    processor = platform.processor() or platform.machine()
    print(f"{processor}, {threads} threads, {rate:.0f} GFLOP/s; {rounds} rounds")
    columns = ("context", "right_context", "target")
    with tempfile.TemporaryDirectory() as scratch:
        data = build_data(Path(scratch))
        if "gpu" in what:
            gpu.measure(scratch, data, partial(make_tokenizer, folder=Path(scratch)))
        works = [work for work in what or get_args(Work) if work != "gpu"]
        for shape, work in product(shapes, works):
            model = make_model(shape, Path(scratch))
            tasks = ["agreement"] if work == "agreement" else ["cprag102", "role88", "neg136"]
            stimuli = [lmdiag.load_stimuli(data, task, limit=384) for task in tasks]
            parts = [zip(*map(part.columns().get, columns), strict=True) for part in stimuli]
            rows = [*chain.from_iterable(parts)]
            if work == "run":
                programs = whole_processes(model, data, threads)
            elif work == "layers":
                programs = after_all_layers(model, stimuli)
            elif work == "entropy":
                programs = with_entropy(model, rows)
            else:
                programs = loaded_programs(model, stimuli, rows)
            if work == "layers":  # in one process: what else runs does not count
                compare(f"{work}, {shape}, processor time", programs, rounds, time.process_time)
                continue
            taken = compare(f"{work}, {shape}", programs, rounds)
            if work in ("blanks", "agreement"):
                share = count_products(programs["lmdiag"]) / (rate * 1e9) / taken
                print(f"{share:.2f} of the rate of matrix products")


if __name__ == "__main__":
    cyclopts.run(main)
