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

DEMO = Path(__file__).resolve().parent
SEED = 1983
PAIRS = 20
"""Minimal pairs per template, drawn from all that its grammar generates."""

CATEGORIES = {
    "fish": ("trout", "salmon"),
    "insect": ("ant", "bee"),
    "bird": ("robin", "sparrow"),
    "tree": ("oak", "pine"),
    "flower": ("rose", "daisy"),
    "vegetable": ("carrot", "pea"),
    "tool": ("hammer", "saw"),
    "vehicle": ("car", "truck"),
    "building": ("hotel", "house"),
}
"""Category -> its two subjects: the nouns of Fischler et al. (1983), after Ettinger (2020)."""

MISMATCHES = (
    "tool", "flower", "vegetable", "building", "tree", "vehicle", "vehicle", "tool", "insect",
    "bird", "fish", "building", "insect", "vegetable", "tree", "flower", "fish", "bird",
)  # fmt: skip
"""For each subject, in order, the category that it does not belong to."""

VOCABULARY = {
    "people": "baker/bakers, singer/singers, doctor/doctors, sailor/sailors, gardener/gardeners, "
    "painter/painters, child/children, woman/women",
    "regular": "baker/bakers, singer/singers, doctor/doctors, sailor/sailors, gardener/gardeners, "
    "painter/painters",
    "irregular": "child/children, woman/women, man/men, mouse/mice, goose/geese",
    "relatives": "sister/sisters, brother/brothers, friend/friends, cousin/cousins",
    "things": "lamp/lamps, letter/letters, bridge/bridges, garden/gardens, boat/boats, "
    "picture/pictures",
    "these": "this/these",
    "acts": "sleeps/sleep, works/work, sings/sing, waits/wait, dances/dance",
    "doing": "sleeps/sleep, works/work, sings/sing, waits/wait, dances/dance, is busy/are busy, "
    "is kind/are kind, is tired/are tired",
    "being": "is new/are new, is broken/are broken, is beautiful/are beautiful, "
    "looks old/look old, costs a lot/cost a lot",
    "towards": "sees/see, knows/know, helps/help, follows/follow",
    "long": "reads the morning paper in the kitchen/read the morning paper in the kitchen, "
    "walks to the market on Sunday/walk to the market on Sunday, "
    "is fond of very old songs/are fond of very old songs, "
    "keeps three cats and a dog/keep three cats and a dog",
    "has": "has arrived/have arrived, hasn't arrived/haven't arrived, is coming/are coming, "
    "doesn't answer/don't answer",
    "does": "has arrived/have arrived, hasn't arrived/haven't arrived, is coming/are coming, "
    "doesn't answer/don't answer, sleeps/sleep, works/work, sings/sing, waits/wait, dances/dance",
    "near": "beside, behind, near, in front of",
    "says": "said, thought, knew",
}
"""Name of a list -> its words: singular/plural, or words that do not change."""

ML = {
    "simple_agrmt_all": "the {people} {doing!}",
    "sent_comp_all": "the {PEOPLE} {says} the {people} {doing!}",
    "vp_coord_all": "the {people} {acts} and {acts!}",
    "long_vp_coord_all": "the {people} {long} and {long!}",
    "prep_anim_all": "the {people} {near} the {PEOPLE} {doing!}",
    "prep_inanim_all": "the {things} {near} the {PEOPLE} {being!}",
    "subj_rel_all": "the {people} that {towards} the {PEOPLE} {doing!}",
    "obj_rel_across_anim_all": "the {people} that the {PEOPLE} {TOWARDS} {doing!}",
    "obj_rel_within_anim_all": "the {people} that the {PEOPLE} {TOWARDS!} {doing}",
    "obj_rel_across_inanim_all": "the {things} that the {PEOPLE} {TOWARDS} {being!}",
    "obj_rel_within_inanim_all": "the {things} that the {PEOPLE} {TOWARDS!} {being}",
    "obj_rel_no_comp_across_anim_all": "the {people} the {PEOPLE} {TOWARDS} {doing!}",
    "obj_rel_no_comp_within_anim_all": "the {people} the {PEOPLE} {TOWARDS!} {doing}",
    "obj_rel_no_comp_across_inanim_all": "the {things} the {PEOPLE} {TOWARDS} {being!}",
    "obj_rel_no_comp_within_inanim_all": "the {things} the {PEOPLE} {TOWARDS!} {being}",
}
"""Templates of the kinds of Marvin & Linzen (2018), by file stem. The names are lists of words; one
in upper case has the number of the other noun; the verb with "!" is wrong in the bad sentence."""

BLIMP = {
    "distractor_agreement_relational_noun": "the {relatives} of the {PEOPLE} {has!}",
    "distractor_agreement_relative_clause": "the {people} who {towards} the {PEOPLE} {has!}",
    "irregular_plural_subject_verb_agreement_1": "{these} {irregular} {does!}",
    "regular_plural_subject_verb_agreement_1": "{these} {regular} {does!}",
}
"""Templates of the kinds of BLiMP: the other noun has the other number."""

MinimalPair = tuple[str, str, int]
"""Good sentence, bad sentence, and the number of the verb's subject: 0 singular, 1 plural."""


def minimal_pairs(template: str) -> Iterator[MinimalPair]:
    """Yields all minimal pairs of a template; none has a word twice."""
    names = re.findall(r"{(\w+)(!?)}", template)
    frame = re.sub(r"{.*?}", "{}", template)
    lists = [
        [(word.split("/") * 2)[:2] for word in VOCABULARY[name.lower()].split(", ")]
        for name, _ in names
    ]
    varies = any(name.isupper() for name, _ in names) and template not in BLIMP.values()
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


def draw(name: str, template: str) -> list[MinimalPair]:
    """Draws pairs, as many singular as plural ones; each template has a generator of its own."""
    rng = random.Random(f"{SEED}/{name}")
    made = list(minimal_pairs(template))
    drawn = []
    for number in (0, 1):
        drawn += rng.sample([pair for pair in made if pair[2] == number], PAIRS // 2)
    rng.shuffle(drawn)
    return drawn


def write_agreement(folder: Path) -> None:
    """Writes a JSON-lines file for each template."""
    for origin, templates in (("ML", ML), ("blimp", BLIMP)):
        (folder / origin).mkdir(parents=True, exist_ok=True)
        for name, template in templates.items():
            lines = []
            for i, (good, bad, number) in enumerate(draw(name, template)):
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
    subjects = [(noun, category) for category, nouns in CATEGORIES.items() for noun in nouns]
    for item, ((noun, category), other) in enumerate(zip(subjects, MISMATCHES, strict=True)):
        start = f"{'An' if noun[0] in 'aeiou' else 'A'} {noun} is"
        fields = (str(item), f"{start} (a|an)", f"{start} not (a|an)", category, other)
        lines.append("\t".join(fields) + "\n")
    path.write_text("".join(lines), "utf-8")


def main() -> None:
    """Writes all files."""
    write_simple_negation(DEMO / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv")
    write_agreement(DEMO / "refining-tse/data")


if __name__ == "__main__":
    main()
