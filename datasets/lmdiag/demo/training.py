"""Training of the demo models: some hundred steps over the made-up sentences, on the CPU.

`make demo-models` runs this program and replaces the weights in the package
(`lmdiag.models.demo`). The same recipe gives the same weights on the same machine: the random state
and the number of threads, which decides the order of sums, are fixed. On another kind of processor
the sums are rounded differently and the weights differ, and so do some figures in README.md and
docs/: update them with the weights.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from corpus import sentences
from rich.progress import track
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import (
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Tokenizer,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
)

from lmdiag.models.demo import DEMO_NAMES, demo_folder

_SEED = 20
_HIDDEN, _LAYERS, _HEADS = 64, 2, 4
_POSITIONS = 128
"""Several times the longest sentence."""
_DEVIATION = 0.1
"""Standard deviation of the first weights; the usual 0.02 is for a width of 768."""

_BATCH = 80
_STEPS = {"masked": 800, "causal": 400}
_MASKED = 0.13
"""Share of a sentence that the masked model guesses; BERT's 0.15 would be two of eight tokens."""

_MATRIX_RATE, _EMBEDDING_RATE, _OTHER_RATE = 2e-2, 1e-2, 3e-3
_WARM_UP, _DECAY = 20, 0.6
"""Steps in which the learning rates rise, share of the steps in which they fall."""

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDINGS = ("s", "es", "ed", "en", "er", "est", "ing", "ly", "ness", "ion", "al", "le", "on", "in")
_RARE = 3
"""Words with fewer occurrences than this are spelled in pieces by the masked model."""


Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Token ids (batch, longest) and attention mask of the same shape -> nats per guess."""


def train(name: str, folder: Path, steps: int) -> None:
    """Trains the demo model "masked" or "causal" and writes it to an existing folder.

    Muon (Jordan et al. 2024) for the matrices, and embeddings that learn fast: with Adam alone, a
    single reading of some ten thousand short sentences teaches next to nothing.
    """
    torch.set_num_threads(1)  # so small a model gains nothing from more
    torch.manual_seed(_SEED)
    corpus = sentences(_SEED, _BATCH * steps)
    tokenizer = (_wordpiece if name == "masked" else _byte_level)(corpus)
    rows: list[list[int]] = tokenizer(corpus)["input_ids"]
    if name == "causal":  # sentences end in the end-of-text token and begin with none, as GPT-2's
        rows = [[*row, tokenizer.eos_token_id] for row in rows]
    model, loss = (_masked if name == "masked" else _causal)(tokenizer, rows)
    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    embeddings = [p for p in model.parameters() if id(p) in tables]
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in tables]
    others = [p for p in model.parameters() if p.ndim != 2]
    rates = ((embeddings, _EMBEDDING_RATE), (others, _OTHER_RATE))
    slow = [{"params": parameters, "rate": rate} for parameters, rate in rates]
    optimizers: tuple[torch.optim.Optimizer, ...] = (
        torch.optim.Muon([{"params": matrices, "rate": _MATRIX_RATE}], weight_decay=0.0),
        torch.optim.Adam(slow, betas=(0.9, 0.98)),
    )
    for step, batch in enumerate(track(list(_batches(rows)), f"training demo:{name}")):
        value = loss(*batch)
        model.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        factor = min(1.0, (step + 1) / _WARM_UP, (steps - step) / (steps * _DECAY))
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * factor
            optimizer.step()
    tokenizer.save_pretrained(folder)
    model.config.architectures, model.config.dtype = [type(model).__name__], "float32"
    model.config.save_pretrained(folder)
    # Half the size in half precision. Loading converts to float32, which is exact.
    weights = {name: weight.detach().half() for name, weight in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _masked(tokenizer: PreTrainedTokenizerFast, rows: list[list[int]]) -> tuple[Any, Loss]:
    """A ModernBERT, which learns faster than BERT; rare tokens are hidden more often."""
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=_HIDDEN,
        intermediate_size=2 * _HIDDEN,
        num_hidden_layers=_LAYERS,
        num_attention_heads=_HEADS,
        max_position_embeddings=_POSITIONS,
        layer_types=["full_attention"] * _LAYERS,
        initializer_range=_DEVIATION,
        pad_token_id=tokenizer.pad_token_id,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
        bos_token_id=None,
        eos_token_id=None,
    )
    model: Any = ModernBertForMaskedLM(config)
    tokens = torch.tensor([token for row in rows for token in row])
    weights = torch.bincount(tokens, minlength=len(tokenizer)).clamp(min=1).double().rsqrt()
    weights[tokenizer.all_special_ids] = 0

    def loss(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        chosen = torch.multinomial(weights[ids], max(1, round(_MASKED * ids.shape[1])))
        hidden = torch.zeros_like(ids, dtype=torch.bool).scatter(1, chosen, True)
        asked = ids.masked_fill(hidden, tokenizer.mask_token_id)
        states = model.model(input_ids=asked, attention_mask=attention).last_hidden_state
        return cross_entropy(model.decoder(model.head(states[hidden])), ids[hidden])

    return model, loss


def _causal(tokenizer: PreTrainedTokenizerFast, rows: list[list[int]]) -> tuple[Any, Loss]:
    """A GPT-2 and its loss."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=_HIDDEN,
        n_layer=_LAYERS,
        n_head=_HEADS,
        n_positions=_POSITIONS,
        initializer_range=_DEVIATION,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model: Any = GPT2LMHeadModel(config)

    def loss(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        states = model.transformer(input_ids=ids, attention_mask=attention).last_hidden_state
        follows = attention[:, 1:].bool()
        return cross_entropy(model.lm_head(states[:, :-1][follows]), ids[:, 1:][follows])

    return model, loss


def _wordpiece(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    """BERT's kind of tokenizer, uncased: all letters, and the words that are not rare."""
    normalize = normalizers.BertNormalizer(lowercase=True).normalize_str
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    counts = Counter(word for sentence in corpus for word, _ in split(normalize(sentence)))
    words = sorted(word for word, count in counts.items() if count >= _RARE and len(word) > 1)
    signs = sorted({sign for word in counts for sign in word} | {*_LETTERS})
    pieces = [f"##{piece}" for piece in dict.fromkeys((*signs, *_ENDINGS))]
    entries = (*_SPECIAL, *signs, *pieces, *words)
    return BertTokenizer(vocab={entry: index for index, entry in enumerate(entries)})


def _byte_level(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    """GPT-2's kind of tokenizer, with merges learned from the corpus."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=20_000,  # more than there are merges that occur _RARE times
        min_frequency=_RARE,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(corpus, trainer)
    learned = json.loads(learner.to_str())["model"]
    merges: Any = [tuple(merge) for merge in learned["merges"]]  # transformers' hint is wrong
    return GPT2Tokenizer(vocab=learned["vocab"], merges=merges)


def _batches(rows: list[list[int]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields ids and mask of sentences of about one length, the batches in random order."""
    rows = sorted(rows, key=len)
    for number in torch.randperm(len(rows) // _BATCH).tolist():
        batch = rows[number * _BATCH : (number + 1) * _BATCH]
        lengths = torch.tensor([[len(row)] for row in batch])
        longest = int(lengths.max())
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in batch])
        yield ids, (torch.arange(longest) < lengths).long()


if __name__ == "__main__":
    for demo in DEMO_NAMES:
        train(demo, demo_folder(demo), _STEPS[demo])
