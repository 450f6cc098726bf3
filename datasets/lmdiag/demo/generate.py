"""Writes the generated part of the demo source: NEG-136-SIMP and the agreement pairs.

    python datasets/lmdiag/demo/generate.py

The rest of the demo source (CPRAG-102, ROLE-88, NEG-136-NAT) was written by hand for this project.
The verbs are those of the 20,000 most frequent English words of which all forms (by lemminflect
0.2.3) have a Zipf frequency of at least 3.6 (by wordfreq 3.1). This program is needed only to
change the demo: its output is committed, and each call writes the same files.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parent
SEED = 1983
PAIRS = 20
"""Minimal pairs per template, drawn from all that its grammar generates."""

TEMPLATES: dict[str, Any] = json.loads((DEMO / "templates.json").read_text("utf-8"))
"""What is generated, from which words.

- categories: category -> its two subjects, after Fischler et al. (1983) and Ettinger (2020)
- mismatches: for each subject, in order, the category that it does not belong to
- vocabulary: name of a list -> its words, as singular/plural or without change
- ML, blimp: file stem -> template of the kind of Marvin & Linzen (2018), of BLiMP. A list in upper
  case has the number of the other noun (in blimp the opposite number); the verb with "!" is wrong
  in the bad sentence.
"""


def minimal_pairs(template: str) -> Iterator[tuple[str, str, int]]:
    """Yields all minimal pairs of a template; none has a word twice.

    A pair is a good and a bad sentence, and the number of the verb's subject: 0 singular, 1 plural.
    """
    names = re.findall(r"{(\w+)(!?)}", template)
    frame = re.sub(r"{.*?}", "{}", template)
    vocabulary = [TEMPLATES["vocabulary"][name.lower()].split(", ") for name, _ in names]
    lists = [[(word.split("/") * 2)[:2] for word in words] for words in vocabulary]
    is_blimp = template in TEMPLATES["blimp"].values()
    varies = not is_blimp and any(name.isupper() for name, _ in names)
    blank = next(place for place, (_, mark) in enumerate(names) if mark)
    for words, number, switch in product(product(*lists), (0, 1), (0, 1)):
        # the other noun: singular and plural in turn, or of the other number
        other = switch if varies else 1 - number
        if (switch and not varies) or any(words.count(word) > 1 for word in words):
            continue
        numbers = [other if name.isupper() else number for name, _ in names]
        good = [word[n] for word, n in zip(words, numbers, strict=True)]
        bad = [*good[:blank], words[blank][1 - numbers[blank]], *good[blank + 1 :]]
        yield frame.format(*good), frame.format(*bad), numbers[blank]


def write_agreement(folder: Path) -> None:
    """Writes a JSON-lines file for each template, of as many singular as plural pairs."""
    for origin in ("ML", "blimp"):
        (folder / origin).mkdir(parents=True, exist_ok=True)
        for name, template in TEMPLATES[origin].items():
            rng = random.Random(f"{SEED}/{name}")
            made, drawn, lines = list(minimal_pairs(template)), [], []
            for number in (0, 1):
                drawn += rng.sample([pair for pair in made if pair[2] == number], PAIRS // 2)
            rng.shuffle(drawn)
            for i, (good, bad, number) in enumerate(drawn):
                if origin == "blimp" or name.startswith("obj_rel_across"):  # as the originals
                    good, bad = (f"{text[0].upper()}{text[1:]}." for text in (good, bad))
                row = {"sentence_good": good, "sentence_bad": bad, "label": -1 - number}
                if origin == "blimp":
                    row |= {"UID": name, "pairID": str(i)}
                lines.append(json.dumps(row) + "\n")
            (folder / origin / f"{name}.jsonl").write_text("".join(lines), "utf-8")


def write_simple_negation(path: Path) -> None:
    """Writes NEG-136-SIMP.tsv from the nouns and their pairing."""
    lines = ["item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"]
    categories = TEMPLATES["categories"].items()
    subjects = [(noun, category) for category, nouns in categories for noun in nouns]
    pairing = zip(subjects, TEMPLATES["mismatches"], strict=True)
    for item, ((noun, category), other) in enumerate(pairing):
        start = f"{'An' if noun[0] in 'aeiou' else 'A'} {noun} is"
        fields = (str(item), f"{start} (a|an)", f"{start} not (a|an)", category, other)
        lines.append("\t".join(fields) + "\n")
    path.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    write_simple_negation(DEMO / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv")
    write_agreement(DEMO / "refining-tse/data")
