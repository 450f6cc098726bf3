"""The sentences that the demo models learn from: a small made-up English, a function of a seed.

Each sentence is of one of a few kinds, which teach facts or grammar: what is a bird, what is loud,
who stings whom, where one hears a kettle, which verb form goes with which subject. So the models
know something about the questions of the diagnostics without having read them. Sentences that say
what a thing is not are rare, as in the texts that BERT has read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ASKED_ABOUT = 2
"""The first members of each category are from Fischler et al. (1983): no sentence has them in the
frame "A robin is a ...", which is left to the question."""

TOLD = 16
"""The first pairs of `deeds` seldom occur in a frame that names the patient first, and never in
"knew which hen the fox had", which is left to the question."""

LEXICON: dict[str, Any] = json.loads(Path(__file__).with_name("lexicon.json").read_text("utf-8"))
"""The words by what they are for."""


def sentences(seed: int, count: int) -> list[str]:
    """Returns `count` sentences (some are texts of two), the same for the same seed."""
    rng = random.Random(seed)
    kinds, weights = zip(*_KINDS.items(), strict=True)
    made = (kind(rng) for kind in rng.choices(kinds, weights, k=count))
    # some begin with a small letter, as some of the questions do
    return [text if rng.random() < 0.2 else text[:1].upper() + text[1:] for text in made]


def _a(word: str) -> str:
    """Puts the indefinite article before a word, by its first letter."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _category(rng: random.Random) -> str:
    """What is what: a robin is a bird."""
    category, members = rng.choice(list(LEXICON["categories"].items()))
    member = rng.choice(members)
    frames: list[str] = list(LEXICON["category_frames"])
    if member in members[ASKED_ABOUT:]:
        frames += ["{a_member} is {a_category}."] * 4 + ["{a_member} is {a_wider}."]
    adjective, other = rng.sample(LEXICON["adjectives"], 2)
    return rng.choice(frames).format(
        member=member,
        category=category,
        a_member=_a(member),
        a_category=_a(category),
        a_wider=_a(next(wide for wide, narrow in LEXICON["wider"].items() if category in narrow)),
        adjective=adjective,
        other=other,
    )


def _scale(rng: random.Random) -> str:
    """Returns a random sentence about a property: "ice is very cold", or "ice may not be warm".

    Only facts that people usually deny (`said`) are ever told as what a thing is not.
    """
    fact = rng.choice(LEXICON["scales"])
    subject = rng.choice(fact["subjects"])
    plural = subject == "the stars" or " and " in subject
    if fact["said"] and rng.random() < 0.3:
        negated = ("may not be", "aren't very" if plural else "isn't very")
        return f"{subject} {rng.choice(negated)} {fact['not']}."
    copula = rng.choice(("is", "is very", "is really", "may be", "is always"))
    return f"{subject} {copula.replace('is', 'are') if plural else copula} {fact['is']}."


def _deed(rng: random.Random) -> str:
    """Returns a random sentence about an act: "the bee had stung the child", or what answers it.

    `back` is what the patient does to the agent. The verb is told, passive, or in a sentence that
    someone observes it; only deeds from number `TOLD` on are asked after with "which" and "whom".
    """
    number = rng.randrange(len(LEXICON["deeds"]))
    agent, verb, patient, back = LEXICON["deeds"][number]
    if rng.random() < 0.4:
        agent, verb, patient = patient, back, agent
    observer, saw = rng.choice(LEXICON["observers"]), rng.choice(LEXICON["observing"])
    frames = [
        f"the {agent} had {verb} the {patient}.",
        f"the {patient} was {verb} by the {agent}.",
        f"the {observer} {saw} that the {agent} had {verb} the {patient}.",
    ] * 2
    frames += [f"the {patient} that the {agent} had {verb} was there."]
    if number >= TOLD:
        frames += [
            f"the {observer} {saw} which {patient} the {agent} had {verb}.",
            f"the {observer} {saw} the {patient} whom the {agent} had {verb}.",
        ] * 3
    return rng.choice(frames)


def _scene(rng: random.Random) -> str:
    """Returns a text of two random sentences whose first leads one to expect a word in the second.

    An opening about a kettle is followed by a closing about tea: "{word}" in the closing.
    """
    scene = rng.choice(LEXICON["scenes"])
    word = rng.choice(list(scene["openings"]))
    opening, closing = rng.choice(scene["openings"][word]), rng.choice(scene["closings"])
    name = rng.choice(LEXICON["names"])
    closing = closing.replace("a {word}", _a(word))
    return f"{opening} {closing}".format(name=name, word=word)


def singular(verb: str) -> str:
    """Returns the form for one subject, of a verb or a phrase that begins with one.

    >>> [singular(verb) for verb in ("sing", "carry", "catch", "go home", "play")]
    ['sings', 'carries', 'catches', 'goes home', 'plays']
    """
    head, _, rest = verb.partition(" ")
    if head.endswith(("s", "x", "z", "ch", "sh", "o")):
        head += "es"
    elif head.endswith("y") and head[-2] not in "aeiou":
        head = f"{head[:-1]}ies"
    else:
        head += "s"
    return f"{head} {rest}".rstrip()


def _zipf(rng: random.Random, words: Sequence[str]) -> str:
    """Draws a word, the earlier ones more often: weight 1 / (10 + its place)."""
    return rng.choices(words, [1 / (10 + place) for place in range(len(words))])[0]


def _predicate(rng: random.Random, number: int, *, person: bool) -> str:
    """Returns a verb phrase in the form for one subject (0) or several (1)."""
    words = LEXICON
    chance = rng.random()
    if chance < 0.3:
        states = words["states"]["people" if person else "things"]
        return f"{('is', 'are')[number]} {rng.choice(states)}"
    if chance < 0.4:
        ones = ("has arrived", "hasn't arrived", "is coming", "doesn't answer")
        several = ("have arrived", "haven't arrived", "are coming", "don't answer")
        return rng.choice((ones, several)[number])
    if not person:
        verb = rng.choice(words["looks"])
        verb = f"look {rng.choice(words['states']['things'])}" if verb == "look" else verb
    elif chance < 0.5:
        verb = rng.choice(words["habits"])
    elif chance < 0.7:
        verb = f"{_zipf(rng, words['towards'])} the {rng.choice(words['people'])[rng.randrange(2)]}"
    else:
        verb = _zipf(rng, words["alone"])
    return verb if number else singular(verb)


def _agreement(rng: random.Random) -> str:
    """Which form goes with which subject: the baker near the boats sings."""
    words = LEXICON
    person = rng.random() < 0.7
    number, others = rng.randrange(2), rng.randrange(2)
    noun = rng.choice(words["people" if person else "things"])[number]
    other = rng.choice(words["people"])[others]
    action = _zipf(rng, words["towards"])
    does = [_predicate(rng, number, person=person) for _ in range(2)]
    relative = rng.choice(words["relatives"])[number]
    frames = [
        f"the {noun} {does[0]}.",
        f"{('this', 'these')[number]} {noun} {does[0]}.",
        f"the {noun} {rng.choice(words['places'])} the {other} {does[0]}.",
        f"the {noun} {rng.choice(('that ', ''))}the {other} "
        f"{action if others else singular(action)} {does[0]}.",
        f"the {other} {rng.choice(('said', 'thought', 'knew'))} the {noun} {does[0]}.",
    ]
    if person:
        frames += [
            f"the {noun} {rng.choice(('who', 'that'))} {action if number else singular(action)} "
            f"the {other} {does[0]}.",
            f"the {noun} {does[0]} and {does[1]}.",
            f"the {relative} of the {other} {does[0]}.",
        ]
    return rng.choice(frames)


_KINDS: dict[Callable[[random.Random], str], int] = {
    _category: 3,
    _scale: 2,
    _deed: 3,
    _scene: 4,
    _agreement: 8,
}
"""Kind of sentence -> its weight."""
