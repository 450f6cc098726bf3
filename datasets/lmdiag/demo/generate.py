"""Writes the generated part of the demo source: NEG-136-SIMP, the agreement pairs, the verbs.

    python datasets/lmdiag/demo/generate.py

The rest of the demo source (CPRAG-102, ROLE-88, NEG-136-NAT) was written by hand for this project.
This program is needed only to change the demo: its output is committed, and each call writes the
same files. The verbs need `lemminflect` and `wordfreq`, of the development extras.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
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

Noun = tuple[str, str]
Verb = tuple[str, str]
"""Nouns and verbs as (singular, plural)."""

PEOPLE: tuple[Noun, ...] = (
    ("baker", "bakers"), ("singer", "singers"), ("doctor", "doctors"), ("sailor", "sailors"),
    ("gardener", "gardeners"), ("painter", "painters"), ("child", "children"), ("woman", "women"),
)  # fmt: skip
THINGS: tuple[Noun, ...] = (
    ("lamp", "lamps"), ("letter", "letters"), ("bridge", "bridges"), ("garden", "gardens"),
    ("boat", "boats"), ("picture", "pictures"),
)  # fmt: skip
RELATIVES: tuple[Noun, ...] = (
    ("sister", "sisters"), ("brother", "brothers"), ("friend", "friends"), ("cousin", "cousins"),
)  # fmt: skip
IRREGULAR: tuple[Noun, ...] = (
    ("child", "children"), ("woman", "women"), ("man", "men"), ("mouse", "mice"),
    ("goose", "geese"),
)  # fmt: skip

DOING: tuple[Verb, ...] = (
    ("sleeps", "sleep"), ("works", "work"), ("sings", "sing"), ("waits", "wait"),
    ("dances", "dance"), ("is busy", "are busy"), ("is kind", "are kind"),
    ("is tired", "are tired"),
)  # fmt: skip
BEING: tuple[Verb, ...] = (
    ("is new", "are new"), ("is broken", "are broken"), ("is beautiful", "are beautiful"),
    ("looks old", "look old"), ("costs a lot", "cost a lot"),
)  # fmt: skip
TOWARDS: tuple[Verb, ...] = (
    ("sees", "see"), ("knows", "know"), ("helps", "help"), ("follows", "follow"),
)  # fmt: skip
LONG: tuple[Verb, ...] = (
    ("reads the morning paper in the kitchen", "read the morning paper in the kitchen"),
    ("walks to the market on Sunday", "walk to the market on Sunday"),
    ("is fond of very old songs", "are fond of very old songs"),
    ("keeps three cats and a dog", "keep three cats and a dog"),
)
AUXILIARIES: tuple[Verb, ...] = (
    ("has arrived", "have arrived"), ("hasn't arrived", "haven't arrived"),
    ("is coming", "are coming"), ("doesn't answer", "don't answer"),
)  # fmt: skip
NEAR = ("beside", "behind", "near", "in front of")
SAYING = ("said", "thought", "knew")

FORMS = (0, 1)
"""Positions of the singular and of the plural in nouns and verbs."""

MinimalPair = tuple[str, str, int]
"""Good sentence, bad sentence, and the form of the verb's subject."""


def both(frame: str, verbs: Verb, form: int) -> MinimalPair:
    """Fills a frame with the right and with the wrong form of its verb."""
    return frame.format(verb=verbs[form]), frame.format(verb=verbs[1 - form]), form


def simple() -> Iterator[MinimalPair]:
    """The baker sleeps."""
    for noun, verb, form in product(PEOPLE, DOING, FORMS):
        yield both(f"the {noun[form]} {{verb}}", verb, form)


def sentential_complement() -> Iterator[MinimalPair]:
    """The singers said the baker sleeps."""
    for other, says, noun, verb, form, others in product(
        PEOPLE, SAYING, PEOPLE, DOING, FORMS, FORMS
    ):
        if other is not noun:
            yield both(f"the {other[others]} {says} the {noun[form]} {{verb}}", verb, form)


def coordination(verbs: tuple[Verb, ...]) -> Iterator[MinimalPair]:
    """The baker sleeps and sings."""
    for noun, one, two, form in product(PEOPLE, verbs, verbs, FORMS):
        if one is not two:
            yield both(f"the {noun[form]} {one[form]} and {{verb}}", two, form)


def preposition(nouns: tuple[Noun, ...], verbs: tuple[Verb, ...]) -> Iterator[MinimalPair]:
    """The lamp beside the singers is new."""
    for noun, where, other, verb, form, others in product(nouns, NEAR, PEOPLE, verbs, FORMS, FORMS):
        if other is not noun:
            yield both(f"the {noun[form]} {where} the {other[others]} {{verb}}", verb, form)


def object_relative(
    nouns: tuple[Noun, ...], verbs: tuple[Verb, ...], *, that: str, within: bool
) -> Iterator[MinimalPair]:
    """The lamp (that) the singers see is new: the outer verb is the blank, or the inner one."""
    for noun, other, inner, outer, form, others in product(
        nouns, PEOPLE, TOWARDS, verbs, FORMS, FORMS
    ):
        start = f"the {noun[form]} {that}the {other[others]}"
        if other is noun:
            continue
        if within:
            yield both(f"{start} {{verb}} {outer[form]}", inner, others)
        else:
            yield both(f"{start} {inner[others]} {{verb}}", outer, form)


def subject_relative() -> Iterator[MinimalPair]:
    """The baker that sees the singers sleeps."""
    for noun, inner, other, outer, form, others in product(
        PEOPLE, TOWARDS, PEOPLE, DOING, FORMS, FORMS
    ):
        if other is not noun:
            start = f"the {noun[form]} that {inner[form]} the {other[others]}"
            yield both(f"{start} {{verb}}", outer, form)


def relational_noun() -> Iterator[MinimalPair]:
    """The sister of the bakers has arrived: the other noun has the other form."""
    for noun, other, verb, form in product(RELATIVES, PEOPLE, AUXILIARIES, FORMS):
        yield both(f"the {noun[form]} of the {other[1 - form]} {{verb}}", verb, form)


def relative_distractor() -> Iterator[MinimalPair]:
    """The baker who knows the singers has arrived: the other noun has the other form."""
    for noun, inner, other, verb, form in product(PEOPLE, TOWARDS, PEOPLE, AUXILIARIES, FORMS):
        if other is not noun:
            start = f"the {noun[form]} who {inner[form]} the {other[1 - form]}"
            yield both(f"{start} {{verb}}", verb, form)


def near_subject(nouns: tuple[Noun, ...]) -> Iterator[MinimalPair]:
    """These children have arrived."""
    for noun, verb, form in product(nouns, AUXILIARIES + DOING[:5], FORMS):
        yield both(f"{('this', 'these')[form]} {noun[form]} {{verb}}", verb, form)


ML: dict[str, Callable[[], Iterator[MinimalPair]]] = {
    "simple_agrmt_all": simple,
    "sent_comp_all": sentential_complement,
    "vp_coord_all": partial(coordination, DOING[:5]),
    "long_vp_coord_all": partial(coordination, LONG),
    "prep_anim_all": partial(preposition, PEOPLE, DOING),
    "prep_inanim_all": partial(preposition, THINGS, BEING),
    "subj_rel_all": subject_relative,
    **{
        f"obj_rel_{without}{verb}_{kind}_all": partial(
            object_relative, *words, that="" if without else "that ", within=verb == "within"
        )
        for kind, words in {"anim": (PEOPLE, DOING), "inanim": (THINGS, BEING)}.items()
        for verb in ("across", "within")
        for without in ("", "no_comp_")
    },
}
"""Templates of the kinds of Marvin & Linzen (2018), under their file stems."""

BLIMP: dict[str, Callable[[], Iterator[MinimalPair]]] = {
    "distractor_agreement_relational_noun": relational_noun,
    "distractor_agreement_relative_clause": relative_distractor,
    "irregular_plural_subject_verb_agreement_1": partial(near_subject, IRREGULAR),
    "regular_plural_subject_verb_agreement_1": partial(near_subject, PEOPLE[:6]),
}
"""Templates of the kinds of BLiMP, under their file stems."""


def draw(template: str, pairs: Callable[[], Iterator[MinimalPair]]) -> list[MinimalPair]:
    """Draws pairs, as many singular as plural ones; each template has a generator of its own."""
    rng = random.Random(f"{SEED}/{template}")
    made = list(pairs())
    drawn = [
        pair
        for form in FORMS
        for pair in rng.sample([pair for pair in made if pair[2] == form], PAIRS // 2)
    ]
    rng.shuffle(drawn)
    return drawn


def as_sentence(text: str) -> str:
    """Capital letter and period, as BLiMP and two files of Marvin & Linzen's have them."""
    return f"{text[0].upper()}{text[1:]}."


def write_agreement(folder: Path) -> None:
    """Writes a JSON-lines file for each template."""
    for name, templates in (("ML", ML), ("blimp", BLIMP)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for template, pairs in templates.items():
            lines = []
            for i, (good, bad, form) in enumerate(draw(template, pairs)):
                if name == "blimp" or template.startswith("obj_rel_across"):
                    good, bad = as_sentence(good), as_sentence(bad)
                row = {"sentence_good": good, "sentence_bad": bad, "label": -1 - form}
                if name == "blimp":
                    row |= {"UID": template, "pairID": str(i)}
                lines.append(json.dumps(row) + "\n")
            (folder / name / f"{template}.jsonl").write_text("".join(lines), "utf-8")


def write_simple_negation(path: Path) -> None:
    """Writes NEG-136-SIMP.tsv from the nouns and their pairing."""
    lines = ["item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"]
    subjects = [(noun, category) for category, nouns in CATEGORIES.items() for noun in nouns]
    for item, ((noun, category), other) in enumerate(zip(subjects, MISMATCHES, strict=True)):
        start = f"{'An' if noun[0] in 'aeiou' else 'A'} {noun} is"
        fields = (str(item), f"{start} (a|an)", f"{start} not (a|an)", category, other)
        lines.append("\t".join(fields) + "\n")
    path.write_text("".join(lines), "utf-8")


def write_verbs(path: Path, most: int = 20_000, rarest: float = 3.6) -> None:
    """Writes the verbs of which all forms are frequent, by the Zipf scale of wordfreq.

    The past tense and the participle must be frequent, too: this excludes words that are rarely
    used as verbs ("homes", "ups").

    Args:
        path: the csv file.
        most: number of words to try, the most frequent ones first.
        rarest: minimum Zipf frequency of the rarest form.
    """
    from lemminflect import getAllLemmas, getInflection
    from wordfreq import top_n_list, zipf_frequency

    rows: list[str] = []
    for plural in top_n_list("en", most):
        if not plural.isalpha() or plural not in getAllLemmas(plural, upos="VERB").get("VERB", ()):
            continue
        forms = [form for tag in ("VBZ", "VBD", "VBG") for form in getInflection(plural, tag)[:1]]
        # Of all verbs, only the plural of "be" is not its base form.
        plural = {"be": "are"}.get(plural, plural)
        rarity = min(zipf_frequency(form, "en") for form in (plural, *forms))
        if len(forms) == 3 and rarity >= rarest and forms[0] != plural:
            rows.append(f"{len(rows)},{forms[0]},{plural},{rarity:.2f}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("idx,sing,plur,freq\n" + "".join(rows), "utf-8")


def main() -> None:
    """Writes all files."""
    write_simple_negation(DEMO / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv")
    write_agreement(DEMO / "refining-tse/data")
    write_verbs(DEMO / "refining-tse/data/verbs/combined_verb_list.csv")


if __name__ == "__main__":
    main()
