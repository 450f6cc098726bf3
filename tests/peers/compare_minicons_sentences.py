"""Compares minicons with lmdiag on whole sentences, and explains every word that differs.

    python tests/peers/compare_minicons_sentences.py

Run by hand, with a Python that has both lmdiag and minicons (0.3.39 was compared). The demo models
are asked in float32, and the figures are kept for docs/reproduced.md. Ends with an error if a word
differs by more than `TOLERANCE` for a reason that is not listed here:

- Marks. In minicons' `within_word_l2r` a word ends where the tokenizer's own splitting ends it,
  so that BERT's "dog." is two words, and "." is shown while "dog" is predicted. In lmdiag words are
  what blanks separate. With minicons' words, the float64 reference gives minicons' number.
- Unknown words. minicons scores the unknown token; lmdiag says that the word has no probability.

lmdiag puts a model's own beginning-of-sequence token first, as minicons does with `bos_token=True`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from records import keep
from sentence_reference import SentenceReference
from sentence_texts import sentences

from lmdiag.models import LoadOptions, load
from lmdiag.runs.asking import ask
from lmdiag.types import Sentence

MODELS = Path(__file__).resolve().parents[2] / "eval/lmdiag/models/demo"
TOLERANCE = 1e-4
"""Nats; both are float32."""


def compare(folder: Path, texts: Sequence[str], **pll: str) -> Counter[str]:
    """Compares all words of all texts; returns how many there are of each kind."""
    from minicons import scorer

    answers = ask(load(str(folder), LoadOptions(**pll)), [Sentence(text) for text in texts], top=5)
    reference = SentenceReference(folder, folder.name, **pll)
    program_class = scorer.MaskedLMScorer if pll else scorer.IncrementalLMScorer
    program: Any = program_class(str(folder), "cpu")
    if not hasattr(program.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        program.tokenizer.batch_encode_plus = program.tokenizer.__call__
    metric = {"within-word": "within_word_l2r"}.get(pll.get("pll", ""), "original")
    options: Any = {"PLL_metric": metric} if pll else {"bos_token": True}
    counts = Counter[str]()
    for text, answer in zip(texts, answers, strict=True):
        split = reference.split(text)
        scores = [p for _, p in program.token_score([text], **options)[0]]
        scores = scores if pll else scores[len(split.opening) :]
        assert len(scores) == len(split.ids), text
        # the reference's words if what is masked is what minicons takes for a word
        words = reference.tokenizer(text, add_special_tokens=False).word_ids()
        reference.split = lambda *_, split=split, words=words: split._replace(words=words)
        explained = reference.words(text) if metric == "within_word_l2r" else []
        del reference.split
        for number, word in enumerate(answer.words):
            total = sum(p for p, at in zip(scores, split.owners, strict=True) if at == number)
            if word.log_prob is None:
                assert not word.n_tokens, (text, word)
                counts["unknown word"] += 1
            elif abs(total - word.log_prob) <= TOLERANCE:
                counts["equal"] += 1
            else:
                assert abs(total - explained[number].log_prob) <= TOLERANCE, (text, word, total)
                counts["marks inside the word"] += 1
    return counts


def main() -> None:
    """Compares both demo models and keeps the figures."""
    texts, rows = sentences(100), []
    masked = MODELS / "masked"
    for name, counts in (
        ("causal, chain rule", compare(MODELS / "causal", texts)),
        ("masked, within-word", compare(masked, texts, pll="within-word")),
        ("masked, original", compare(masked, texts, pll="original")),
    ):
        assert counts["equal"] > len(texts)
        for kind, n in counts.items():
            same = f"< {TOLERANCE:.0e} nats" if kind == "equal" else "explained"
            rows.append((f"{name}: {kind}", f"{n} words", f"{n} words", same))
    what = f"The demo models, float32: every word of {len(texts)} sentences. The script checks why "
    what += "words differ: minicons scores unknown tokens, for which lmdiag has no probability; "
    what += "punctuation belongs to its word in lmdiag, and is shown while the word is predicted in"
    what += " minicons"
    command = "tests/peers/compare_minicons_sentences.py"
    keep("minicons", f"minicons {version('minicons')}", what, command, rows)


if __name__ == "__main__":
    main()
