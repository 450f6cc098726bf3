"""Compares minicons with lmdiag on whole sentences, and explains every word that differs.

    python tests/peers/compare_minicons_sentences.py MODEL [MODEL ...] [--n 300]

Run by hand, with a Python that has both lmdiag and minicons (0.3.39 was compared); each MODEL is a
folder with a masked or causal model in float32; figures of the demo models are kept for
docs/reproduced.md. Ends with an error if a word differs by more than
`TOLERANCE` for a reason that is not listed here:

- Marks. In minicons' `within_word_l2r` a word ends where the tokenizer's own splitting ends it,
  so that BERT's "dog." is two words, and "." is shown while "dog" is predicted. In lmdiag words are
  what blanks separate. With minicons' words, the float64 reference gives minicons' number.
- Unknown words. minicons scores the unknown token; lmdiag says that the word has no probability.
- The first word. lmdiag puts a model's own beginning-of-sequence token first; minicons does so with
  `bos_token=True`, but writes a second one where the tokenizer adds one of its own. Without any,
  minicons gives the first token probability 1, and lmdiag says that it has none.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from records import keep

TOLERANCE = 1e-4
"""Nats; both are float32."""

METRICS = {"within-word": "within_word_l2r", "original": "original"}
"""lmdiag's `pll` -> minicons' `PLL_metric`."""


def token_scores(
    scorer: Any, texts: Sequence[str], reference: Any, metric: str | None
) -> list[list[float | None]]:
    """Returns minicons' score of each token of each text; None for a first token without BOS."""
    if metric is not None:
        found = [scorer.token_score([text], PLL_metric=metric)[0] for text in texts]
        return [[p for _, p in scores] for scores in found]
    opening, adds_opening = reference.split("a").opening, bool(reference._template()[0])
    found = scorer.token_score([*texts], bos_token=bool(opening) and not adds_opening)
    values = [[p for _, p in scores] for scores in found]
    return [x[len(opening) :] if opening else [None, *x[1:]] for x in values]


def with_minicons_words(reference: Any, text: str) -> list[Any]:
    """Returns the reference's words if what is masked is what minicons takes for a word."""
    split = reference.split(text)
    numbers = reference.tokenizer(text, add_special_tokens=False).word_ids()
    reference.split = lambda *_: replace(split, words=numbers)
    try:
        return list(reference.words(text))
    finally:
        del reference.split


def compare(folder: str, texts: Sequence[str], pll: str | None) -> Counter[str]:
    """Compares all words of all texts; returns how many there are of each kind."""
    from minicons import scorer
    from sentence_reference import SentenceReference

    from lmdiag.models import LoadOptions, load
    from lmdiag.runs.asking import ask
    from lmdiag.types import Sentence

    model = load(folder, LoadOptions(**({"pll": pll} if pll else {})))
    answers = ask(model, [Sentence(text) for text in texts], top=5)
    reference = SentenceReference(Path(folder), model.info.kind, pll=pll or "within-word")
    minicons = (scorer.MaskedLMScorer if pll else scorer.IncrementalLMScorer)(folder, "cpu")
    if not hasattr(minicons.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        minicons.tokenizer.batch_encode_plus = minicons.tokenizer.__call__
    of_tokens = token_scores(minicons, texts, reference, METRICS[pll] if pll else None)
    counts, largest = Counter[str](), 0.0
    for text, answer, scores in zip(texts, answers, of_tokens, strict=True):
        split = reference.split(text)
        assert len(scores) == len(split.ids), text
        exact = None
        for number, word in enumerate(answer.words):
            parts = [p for p, owner in zip(scores, split.owners, strict=True) if owner == number]
            if word.log_prob is None:
                counts["first word" if word.n_tokens else "unknown word"] += 1
                assert (None in parts) == bool(word.n_tokens), (text, word)
                continue
            gap = abs(sum(parts) - word.log_prob)
            largest = max(largest, gap if gap <= TOLERANCE else 0)
            if gap <= TOLERANCE:
                counts["equal"] += 1
                continue
            exact = exact or with_minicons_words(reference, text)
            explained = exact[number].log_prob
            assert abs(sum(parts) - explained) <= TOLERANCE, (text, word, parts, explained)
            assert pll == "within-word", (text, word, parts)
            counts["marks inside the word"] += 1
    print(f"  {pll or 'causal'}: {dict(counts)}, largest difference of equal words {largest:.1e}")
    return counts


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--n", type=int, default=300, help="sentences (300)")
    args = parser.parse_args()

    from sentence_texts import sentences
    from transformers import AutoConfig

    texts = sentences(args.n)
    rows = []
    for folder in args.models:
        (architecture,) = AutoConfig.from_pretrained(folder).architectures
        print(f"{folder}: {len(texts)} sentences")
        for pll in METRICS if architecture.endswith("ForMaskedLM") else (None,):
            counts = compare(folder, texts, pll)
            assert counts["equal"] > len(texts)
            for what, n in counts.items():
                name = f"{Path(folder).name}, {pll or 'chain rule'}: {what}"
                same = f"< {TOLERANCE:.0e} nats" if what == "equal" else "explained"
                rows.append((name, f"{n} words", f"{n} words", same))
    keep(
        "minicons", f"minicons {version('minicons')}",
        f"The demo models, float32: every word of {len(texts)} sentences. The script checks why "
        "words differ: minicons scores unknown tokens, for which lmdiag has no probability; "
        "punctuation belongs to its word in lmdiag, and is shown while the word is predicted in "
        "minicons",
        "python tests/peers/compare_minicons_sentences.py eval/lmdiag/models/demo/causal "
        f"eval/lmdiag/models/demo/masked --n {args.n}", rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
