"""Training of the demo models: some hundred steps over the made-up sentences, on the CPU.

`make demo-models` runs this module and replaces the weights in the package. The same recipe gives
the same weights on the same machine: the random state and the number of threads, which decides the
order of sums, are fixed. On another kind of processor the sums are rounded differently and the
weights differ, and so do some figures in README.md and docs/: update them with the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.progress import track
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR

from lmdiag.models.demo import NAMES, demo_folder
from lmdiag.models.demo.corpus import sentences
from lmdiag.models.demo.vocabulary import byte_level, wordpiece

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 20
THREADS = 1
"""So small a model gains nothing from more, and two wait for each other on a busy machine."""
WIDTH, LAYERS, HEADS = 64, 2, 4
LONGEST = 128
"""Positions: several times the longest sentence."""
SPREAD = 0.1
"""Standard deviation of the first weights; the usual 0.02 is for a width of 768."""

BATCH = 80
STEPS = {"masked": 800, "causal": 400}
MASKED = 0.13
"""Share of a sentence that the masked model guesses; BERT's 0.15 would be two of eight tokens."""

MATRIX_RATE, EMBEDDING_RATE, OTHER_RATE = 2e-2, 1e-2, 3e-3
WARM_UP, DECAY = 20, 0.6
"""Steps in which the learning rates rise, share of the steps in which they fall."""

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Token ids (BATCH, longest) and attention mask of the same shape -> nats per guessed token."""


@dataclass
class Learner:
    """What is trained, on what.

    Attributes:
        tokenizer: of the model; its files are written already.
        model: a masked or causal model, untrained at first.
        rows: token ids of each sentence.
        loss: of the model, on a batch.
    """

    tokenizer: PreTrainedTokenizerFast
    model: Any
    rows: list[list[int]]
    loss: Loss


def train(name: str, folder: Path, steps: int) -> None:
    """Trains a demo model and writes it to a folder.

    Args:
        name: "masked" or "causal".
        folder: an existing one; files of an earlier training are replaced.
        steps: number of batches; `STEPS` has what it takes to learn something.
    """
    with reproducible():
        corpus = sentences(SEED, BATCH * steps)
        learner = (masked if name == "masked" else causal)(corpus, folder)
        for _ in track(
            learn(learner),
            f"training demo:{name}",
            total=steps,
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        ):
            pass
    model = learner.model
    model.config.architectures, model.config.dtype = [type(model).__name__], "float32"
    model.config.save_pretrained(folder)
    # Half the size in half precision. Loading converts to float32, which is exact.
    weights = {name: weight.detach().half() for name, weight in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@contextmanager
def reproducible() -> Iterator[None]:
    """Seeds torch and fixes the number of its threads inside; leaves both as they were."""
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            yield
    finally:
        torch.set_num_threads(threads)


def masked(corpus: list[str], folder: Path) -> Learner:
    """Returns a ModernBERT, which learns faster than BERT, with BERT's kind of tokenizer."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    tokenizer = wordpiece(corpus, folder)
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=LONGEST,
        layer_types=["full_attention"] * LAYERS,
        initializer_range=SPREAD,
        pad_token_id=tokenizer.pad_token_id,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = ModernBertForMaskedLM(config)
    rows = tokenizer(corpus)["input_ids"]
    counts = torch.bincount(
        torch.tensor([i for row in rows for i in row]), minlength=len(tokenizer)
    )
    return Learner(tokenizer, model, rows, masked_loss(model, tokenizer, counts))


def causal(corpus: list[str], folder: Path) -> Learner:
    """Returns a GPT-2; its sentences end in the end-of-text token and begin with none, as there."""
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = byte_level(corpus, folder)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=LONGEST,
        initializer_range=SPREAD,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = GPT2LMHeadModel(config)
    rows = [[*row, tokenizer.eos_token_id] for row in tokenizer(corpus)["input_ids"]]
    return Learner(tokenizer, model, rows, causal_loss(model))


def learn(learner: Learner) -> Iterator[float]:
    """Takes a step on every batch; yields the losses.

    Muon (Jordan et al. 2024) for the matrices, and embeddings that learn fast: with Adam alone, a
    single reading of some ten thousand short sentences teaches next to nothing.
    """
    steps = len(learner.rows) // BATCH
    optimizers = make_optimizers(learner.model)
    schedules = [
        LambdaLR(o, lambda i: min(1.0, (i + 1) / WARM_UP, (steps - i) / (steps * DECAY)))
        for o in optimizers
    ]
    for ids, attention in batches(learner.rows):
        loss = learner.loss(ids, attention)
        learner.model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        yield loss.item()


def make_optimizers(model: torch.nn.Module) -> tuple[torch.optim.Optimizer, ...]:
    """Returns Muon for the matrices and Adam for the rest, embeddings at a rate of their own."""
    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    embeddings = [p for p in model.parameters() if id(p) in tables]
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in tables]
    others = [p for p in model.parameters() if p.ndim != 2]
    groups = [
        {"params": embeddings, "lr": EMBEDDING_RATE},
        {"params": others, "lr": OTHER_RATE},
    ]
    return (
        torch.optim.Muon(matrices, lr=MATRIX_RATE, weight_decay=0.0),
        torch.optim.Adam(groups, betas=(0.9, 0.98)),
    )


def batches(rows: list[list[int]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields (token ids, attention mask), int64 of shape (BATCH, longest), padded on the right.

    Sentences of about one length come together, the batches in random order.
    """
    rows = sorted(rows, key=len)
    for number in torch.randperm(len(rows) // BATCH).tolist():
        batch = rows[number * BATCH : (number + 1) * BATCH]
        lengths = torch.tensor([[len(row)] for row in batch])
        longest = int(lengths.max())
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in batch])
        yield ids, (torch.arange(longest) < lengths).long()


def masked_loss(model: Any, tokenizer: PreTrainedTokenizerFast, counts: torch.Tensor) -> Loss:
    """Cross-entropy of hidden tokens; rare ones are hidden more often, as they say more.

    Args:
        model: a ModernBERT; its projection is done for the hidden tokens alone.
        tokenizer: its.
        counts: occurrences of each token in the corpus, int64 (vocabulary,).
    """
    weights = counts.clamp(min=1).double().rsqrt()
    weights[tokenizer.all_special_ids] = 0

    def loss(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        hidden_a_row = max(1, round(MASKED * ids.shape[1]))
        chosen = torch.multinomial(weights[ids], hidden_a_row)
        hidden = torch.zeros_like(ids, dtype=torch.bool).scatter(1, chosen, True)
        asked = ids.masked_fill(hidden, tokenizer.mask_token_id)
        states = model.model(input_ids=asked, attention_mask=attention).last_hidden_state
        return cross_entropy(model.decoder(model.head(states[hidden])), ids[hidden])

    return loss


def causal_loss(model: Any) -> Loss:
    """Cross-entropy of every next token, up to the end of text."""

    def loss(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        states = model.transformer(input_ids=ids, attention_mask=attention).last_hidden_state
        follows = attention[:, 1:].bool()
        return cross_entropy(model.lm_head(states[:, :-1][follows]), ids[:, 1:][follows])

    return loss


if __name__ == "__main__":
    for demo in NAMES:
        train(demo, demo_folder(demo), STEPS[demo])
