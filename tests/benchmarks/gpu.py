"""`python -m benchmarks gpu`: speed, memory and agreement of numbers on an accelerator.

Networks of published shapes get random weights on the device; nothing is downloaded. Seconds are
those of asking all questions, tokenization included, the second time. Their share is the useful
arithmetic (two operations for each weight and token of the distinct contexts, and for each item of
a distribution) over the device's own rate of matrix products in the same type. On a processor the
shapes are tiny: a test runs it, and the figures mean nothing.
"""

import copy
import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import accelerate
import torch
import transformers
from accelerate.utils import set_module_tensor_to_device
from benchmarks.bare import plain_loop

from lmdiag import stimuli
from lmdiag.asking.questions import Setting, distinct_questions
from lmdiag.models import LoadOptions, load
from lmdiag.models.loading.load import Parts
from lmdiag.models.local import assemble
from lmdiag.runs.asking import ask

RUN = str(Path(__file__).resolve().parents[2] / "eval/run.py")
LAUNCH = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
WIDTHS = (64, 256, 1024)
BUDGETS, TINY_BUDGETS = (4096, 16_384, 65_536), (256,)
TINY = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """A network: its class, tokenizer, kind, configuration, that of a processor, and type."""

    model: str
    tokenizer: str
    kind: str
    config: dict
    tiny: dict
    dtype: str = "float32"

    def network(self, n_tokens, *, is_tiny, **config):
        """Makes it with random weights where `torch.device` says."""
        model = getattr(transformers, self.model)
        config = self.tiny if is_tiny else self.config | config
        size = max(n_tokens, model.config_class().vocab_size)
        torch.manual_seed(0)
        network = model._from_config(
            model.config_class(vocab_size=size, **config), dtype=getattr(torch, self.dtype)
        )
        return network.eval().requires_grad_(False)


SHAPES = {
    "bert-base": Shape("BertForMaskedLM", "bert-base", "masked", {}, TINY),
    "gpt2": Shape(
        "GPT2LMHeadModel", "gpt2", "causal", {}, {"n_embd": 32, "n_layer": 2, "n_head": 2}
    ),
    "7B": Shape(
        "LlamaForCausalLM", "gpt2", "causal",
        {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
         "num_hidden_layers": 32}, TINY, "bfloat16",
    ),
}  # fmt: skip


class Benchmark:
    """Measures section after section, as long as there is time.

    Args:
        folder: for models that are saved.
        data: directory of the data set.
        tokenizer: returns the folder of the tokenizer of a shape.
        seconds: after which no section begins.

    Attributes:
        rows: what was measured, a dictionary per line of the table.
    """

    def __init__(self, folder, data, tokenizer, seconds):
        self.folder, self.data, self.tokenizer = folder, data, tokenizer
        self.deadline = time.monotonic() + seconds
        self.device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
            "cpu"
        )
        self.is_tiny = self.device.type == "cpu"
        self.rates, self.rows = {}, []
        limits = dict.fromkeys(("cprag102", "role88", "neg136", "agreement"), 8)
        if not self.is_tiny:
            limits = dict.fromkeys(limits) | {"agreement": 4000}  # two rows per context
        self.stimuli = [stimuli.load(data, task, limit=n) for task, n in limits.items()]

    def run(self):
        """Runs all sections; what one raises is a line of the table, as is a lack of time."""
        sections = [(self.shape, name) for name in SHAPES]
        sections += [(self.precision,), (self.commands,), (self.dispatched,), (self.quantized,)]
        for measure, *names in sections:
            try:
                if time.monotonic() > self.deadline:
                    raise TimeoutError("no time left")
                measure(*names)
            except Exception as error:
                self.add(*(names or [measure.__name__]), "", note=_short(error))
            gc.collect()
            if not self.is_tiny:
                torch.accelerator.empty_cache()
        return self.rows

    def add(self, model, how, **figures):
        """Adds and prints a line."""
        self.rows.append({"model": model, "how": how} | figures)
        cells = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items()]
        print(f"{model:<12} {how:<32}", "  ".join(cells), flush=True)

    # ---- measuring

    def synchronize(self):
        if not self.is_tiny:
            torch.accelerator.synchronize()

    def timed(self, call):
        """Returns the seconds of the second call, and the most memory of the device in GiB."""
        call()
        self.synchronize()
        is_cuda = self.device.type == "cuda"
        if is_cuda:
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        call()
        self.synchronize()
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "GiB": torch.cuda.max_memory_allocated() / 2**30 * is_cuda}

    def rate(self, dtype):
        """Returns operations per second of large matrix products; measured once for a type."""
        if dtype not in self.rates:
            size = 256 if self.is_tiny else 8192
            matrix = torch.randn(size, size, device=self.device).to(getattr(torch, dtype))
            seconds = min(self.timed(lambda: matrix @ matrix)["seconds"] for _ in range(8))
            self.rates[dtype] = 2 * size**3 / seconds
            self.add("device", f"matrix products, {dtype}", TFLOPs=self.rates[dtype] / 1e12)
        return self.rates[dtype]

    def model(self, name, network=None, **config):
        """Returns a model of a shape, made on the device if there is no network yet."""
        shape = SHAPES[name]
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.tokenizer(shape.tokenizer))
        if network is None:
            with self.device:
                network = shape.network(len(tokenizer), is_tiny=self.is_tiny, **config)
        parts = Parts(network, tokenizer, shape.kind, commit="random", training_step=None)
        return assemble(name, parts, LoadOptions())

    def questions(self, model, parts=None):
        """Returns the distinct questions of some stimuli; None for all."""
        info = model.info
        settings = [*map(Setting, parts or self.stimuli)]
        return [
            *chain.from_iterable(distinct_questions(settings, kind=info.kind, cased=info.cased))
        ]

    def asked(self, model, questions):
        """Returns seconds, memory and share of the device's rate of asking some questions."""
        model._fitting_tokens = None
        network = model.parts.model
        head = network.get_output_embeddings().weight
        tables = [m.weight for m in network.modules() if isinstance(m, torch.nn.Embedding)]
        others = {id(weight) for weight in (head, *tables)}
        n_weights = sum(x.numel() for x in network.parameters() if id(x) not in others)
        rows = [row for question in questions for row in model.encode(question).rows]
        useful = n_weights * sum(len(row.ids) for row in rows)
        useful += head.numel() * sum(len(row.reads) for row in rows)
        rate = self.rate(model.info.dtype)
        figures = self.timed(lambda: ask(model, questions, top=5))
        return figures | {"share": 2 * useful / figures["seconds"] / rate}

    # ---- sections

    def shape(self, name):
        """A plain loop; all questions in every layout and budget; EW and MW."""
        model = self.model(name)
        columns = ("context", "right_context", "target")
        parts = [zip(*map(x.columns().get, columns), strict=True) for x in self.stimuli]
        loop = plain_loop(model.parts.model, model.parts.tokenizer, [*chain(*parts)])
        self.add(name, "plain loop", **self.timed(loop))
        questions = self.questions(model)
        reader, shipped = model.reader, (model.reader.sizes, model.reader.width)
        layout = reader.layout
        for budget in TINY_BUDGETS if self.is_tiny else BUDGETS:
            for width in (0, *WIDTHS):
                reader.layout, reader.width = "packed" if width else "equal", width or shipped[1]
                reader.sizes = replace(shipped[0], budget=budget)
                how = f"{f'packs of {width}' if width else 'equal lengths'}, budget {budget}"
                try:
                    self.add(name, how, **self.asked(model, questions))
                except Exception as error:
                    self.add(name, how, note=_short(error))
        reader.layout, (reader.sizes, reader.width) = layout, shipped
        diagnostics = self.questions(model, self.stimuli[:-1])
        self.add(name, f"three diagnostics, {layout}", **self.asked(model, diagnostics))
        model.set_verbs(stimuli.load_verbs(self.data))
        contexts = self.questions(model, self.stimuli[-1:])[:2000]
        self.add(name, f"EW, MW, {len(contexts)} contexts", **self.asked(model, contexts))

    def log_probs(self, model):
        """Returns the distributions at some blanks, in float64 on the processor."""
        model.reader.layout = "equal"
        rows = [
            row for question in self.questions(model)[:64] for row in model.encode(question).rows
        ]
        return model.reader.read(rows).cpu().double()

    def precision(self):
        """The largest differences of log-probabilities between devices and types."""
        for name in ("bert-base", "gpt2"):
            model = self.model(name)
            nats = self.log_probs(model)
            for how, change in (
                ("float32 - float64 on processor", lambda x: x.cpu().double()),
                ("float32 - bfloat16", lambda x: x.bfloat16()),
            ):
                other = self.model(name, change(copy.deepcopy(model.parts.model)))
                self.add(name, how, nats=float((nats - self.log_probs(other)).abs().max()))

    def saved(self, name, **config):
        """Saves a model with its tokenizer and returns the folder."""
        folder, parts = Path(self.folder, f"saved-{name}"), self.model(name, **config).parts
        parts.model.save_pretrained(folder)
        parts.tokenizer.save_pretrained(folder)
        return str(folder)

    def commands(self):
        """A whole run of bert-base with its report: alone, two at once, and as two processes."""
        run = [RUN, "--model", self.saved("bert-base"), "--data", self.data, "--quiet", "--output"]
        ways = [
            ("whole command", 1, ()),
            ("two commands at once", 2, ()),
            ("two processes", 1, LAUNCH),
        ]
        for how, n_commands, launch in ways[:1] if self.is_tiny else ways:
            began = time.perf_counter()
            outputs = [str(Path(self.folder, f"{how}-{number}")) for number in range(n_commands)]
            started = [
                subprocess.Popen(
                    [sys.executable, *launch, *run, output],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                )
                for output in outputs
            ]  # fmt: skip
            try:
                seconds = 600 if self.is_tiny else 60
                errors = [command.communicate(timeout=seconds)[1] for command in started]
            finally:
                for command in started:
                    command.kill()
            failed = [text[-200:] for text, x in zip(errors, started, strict=True) if x.returncode]
            note = {"note": failed[0]} if failed else {}
            self.add("bert-base", how, seconds=time.perf_counter() - began, **note)

    def dispatched(self):
        """A model of more than half of the memory, spread as `--device-map auto` does."""
        memory = 0 if self.is_tiny else torch.cuda.mem_get_info()[1]
        n_layers = int(0.55 * memory / (2 * (4 * 4096**2 + 3 * 4096 * 11_008)))
        shape = SHAPES["7B"]
        with accelerate.init_empty_weights():
            network = shape.network(50_257, is_tiny=self.is_tiny, num_hidden_layers=n_layers)
        places = accelerate.infer_auto_device_map(
            network, no_split_module_classes=network._no_split_modules
        )
        for name, weight in [*network.named_parameters()]:
            place = next(where for part, where in places.items() if name.startswith(part))
            value = torch.randn(weight.shape, device=place, dtype=weight.dtype) * 0.02
            value = torch.ones_like(value) if value.ndim == 1 else value
            set_module_tensor_to_device(network, name, place, value=value)
        model = self.model("7B", accelerate.dispatch_model(network, places, force_hooks=True))
        how = f"{network.num_parameters() / 1e9:.1f}B by device map {[*set(places.values())]}"
        self.add("large", how, **self.asked(model, self.questions(model)))

    def quantized(self):
        """Four layers of the 7B shape from a folder: as they are, in 8 bits and in 4."""
        folder = self.saved("7B", num_hidden_layers=4)
        exact = None
        for quantization in (None, "8bit", "4bit"):
            how = quantization or "bfloat16"
            if quantization and (self.is_tiny or find_spec("bitsandbytes") is None):
                self.add("7B, 4 layers", how, note="no bitsandbytes")
                continue
            options = LoadOptions(dtype="bfloat16", device_map="auto", quantization=quantization)
            model = load(folder, options)
            questions = self.questions(model)
            figures = self.timed(lambda: ask(model, questions, top=5))  # noqa: B023
            nats = self.log_probs(model)
            exact = nats if exact is None else exact
            difference = float((nats - exact).abs().max())
            self.add("7B, 4 layers", how, **figures, nats=difference)


def _short(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def measure(folder, data, tokenizer, seconds=150.0):
    """Measures on the accelerator, or tiny shapes on the processor; prints a table and JSON."""
    began = time.monotonic()
    benchmark = Benchmark(folder, data, tokenizer, seconds)
    is_cuda = benchmark.device.type == "cuda"
    name = torch.cuda.get_device_name() if is_cuda else benchmark.device.type
    versions = {module.__name__: module.__version__ for module in (torch, transformers)}
    print(f"{name}, {versions}, float32 products: {torch.get_float32_matmul_precision()}")
    rows = benchmark.run()
    seconds = round(time.monotonic() - began)
    print(json.dumps({"device": name, "seconds": seconds, **versions, "rows": rows}))
    return rows
