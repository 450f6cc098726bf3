"""transformers alone: what the benchmarks compare programs with.

As a script, `python bare.py MODEL DATA THREADS` reads the three diagnostics of a data set directory
by `datasets`, loads a model and asks it.
"""

import sys

BATCH = 32


def bare(model, rows):
    """Loads a model and returns its plain loop."""
    import torch
    import transformers

    (name,) = transformers.AutoConfig.from_pretrained(model).architectures
    network = getattr(transformers, name).from_pretrained(model, dtype=torch.float32).eval()
    return plain_loop(network, transformers.AutoTokenizer.from_pretrained(model), rows)


def plain_loop(network, tokenizer, rows):
    """Returns what to time: the next-word distribution at all distinct contexts.

    Rows are left context, right context, target. They are padded in batches by length; no position
    is projected in vain.
    """
    import torch

    masked = type(network).__name__.endswith("ForMaskedLM")
    head = getattr(network, "cls", None) or network.get_output_embeddings()

    def ask(batch):
        width = max(len(ids) for ids in batch)
        blanks = [ids.index(tokenizer.mask_token_id) if masked else len(ids) - 1 for ids in batch]
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in batch])
        attention = (torch.arange(width) < torch.tensor([*map(len, batch)])[:, None]).long()
        ids, attention = ids.to(network.device), attention.to(network.device)
        with torch.inference_mode():
            states = network.base_model(ids, attention_mask=attention).last_hidden_state
            head(states[torch.arange(len(batch)), blanks]).float().log_softmax(-1).topk(5)

    def whole_work():
        pairs = dict.fromkeys((left, right if masked else "") for left, right, _ in rows)
        blank = f" {tokenizer.mask_token}" if masked else ""
        ends = [f" {right}" if right else "." if masked else "" for _, right in pairs]
        texts = [f"{left}{blank}{end}" for (left, _), end in zip(pairs, ends, strict=True)]
        encoded = sorted(tokenizer(texts)["input_ids"], key=len, reverse=True)
        for first in range(0, len(encoded), BATCH):
            ask(encoded[first : first + BATCH])

    return whole_work


def read_rows(data):
    """Reads the rows of the three diagnostics from a data set directory."""
    import datasets

    rows = []
    for task in ("cprag102", "role88", "neg136"):
        part = datasets.load_dataset(data, task, split="test")
        rows += zip(part["context"], part["right_context"], part["target"], strict=True)
    return rows


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[3]))
    bare(sys.argv[1], read_rows(sys.argv[2]))()
