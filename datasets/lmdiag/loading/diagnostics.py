"""The three diagnostics of Ettinger (2020): rows from the source files of aetting/lm-diagnostics.

Every parser yields the columns that `lmdiag.diagnostics` declares, in their order. A row is one
context and one target; rows that are compared share a `contrast`, and one of them is good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lmdiag.types import BadInput

from .lines import Row, choice, proportion, separated_lines

CPRAG_COLUMNS = (
    "item", "context_s1", "context_s2", "expected", "within_category", "between_category",
    "constraint",
)  # fmt: skip
EXPLANATION_COLUMNS = ("item", "context", "expected", "explanation")
ROLE_COLUMNS = (
    "item", "context", "expected", "exp_cloze", "target", "tgt_cloze", "tgt_cloze(strict)",
)  # fmt: skip
SIMP_COLUMNS = ("item", "context_aff", "context_neg", "target_aff", "target_neg")
NAT_COLUMNS = (*SIMP_COLUMNS, "licensing")

ROLES = re.compile(r"which (?P<object>\S+) the (?P<subject>\S+) had$")
"""The nouns of a ROLE-88 context: "... which OBJECT the SUBJECT had"."""

DETERMINER = "(a|an)"
"""In NEG-136-SIMP, a determiner that depends on the completion."""


def cprag102(items: Path, explanations: Path) -> Iterator[Row]:
    """CPRAG-102 (Federmeier & Kutas 1999): 34 two-sentence contexts x 3 completions.

    Args:
        items: CPRAG-102.tsv.
        explanations: CPRAG-explanations.tsv, which has no header.

    Raises:
        BadInput: a malformed line, or an item without its explanation.
    """
    explained = separated_lines(explanations, EXPLANATION_COLUMNS, header=False)
    why = {line["item"]: (where, line) for where, line in explained}
    for where, line in separated_lines(items, CPRAG_COLUMNS):
        item, context = line["item"], f"{line['context_s1']} {line['context_s2']}"
        if item not in why:
            raise BadInput(f"{where}: item {item} has no explanation in {explanations}")
        where_explained, facts = why[item]
        if (facts["context"], facts["expected"]) != (context, line["expected"]):
            raise BadInput(f"{where_explained}: context or completion is not that of {where}")
        for condition in ("expected", "within_category", "between_category"):
            yield {
                "id": f"cprag102-{item}-{condition}",
                "item": item,
                "condition": condition,
                "context": context,
                "right_context": "",
                "target": line[condition],
                "good": condition == "expected",
                "contrast": f"cprag102-{item}",
                "expected": [line["expected"]] if condition == "expected" else [],
                "sentence_1": line["context_s1"],
                "sentence_2": line["context_s2"],
                "constraint": choice(where, line, "constraint", {"H": "high", "L": "low"}),
                "explanation": facts["explanation"],
            }


def role88(path: Path) -> Iterator[Row]:
    """ROLE-88 (Chow et al. 2016): 44 pairs of a context and its role reversal, with one verb each.

    Raises:
        BadInput: a malformed line, a context without the two nouns, a pair that is incomplete or
            has two targets.
    """
    pairs: dict[str, dict[str, str]] = {}
    for where, line in separated_lines(path, ROLE_COLUMNS):
        number, _, order = line["item"].rpartition("-")
        if not number or order not in ("a", "b"):
            raise BadInput(f"{where}: an item must be a number with -a or -b, not {line['item']!r}")
        pairs.setdefault(number, {})[order] = line["target"]
        roles = ROLES.search(line["context"])
        if roles is None:
            raise BadInput(f'{where}: the context must end in "which NOUN the NOUN had"')
        responses = [response.strip() for response in line["expected"].split("|")]
        if not all(responses):
            raise BadInput(f"{where}: an expected response is empty: {line['expected']!r}")
        yield {
            "id": f"role88-{line['item']}",
            "item": line["item"],
            "condition": "appropriate" if order == "a" else "reversed",
            "context": line["context"],
            "right_context": "",
            "target": line["target"],
            "good": order == "a",
            "contrast": f"role88-{number}",
            # Only the first word of a response of several words ("worked for") fits the blank.
            "expected": list(dict.fromkeys(response.split()[0] for response in responses)),
            "expected_cloze": proportion(where, line, "exp_cloze"),
            "target_cloze": proportion(where, line, "tgt_cloze"),
            "target_cloze_strict": proportion(where, line, "tgt_cloze(strict)"),
            "expected_responses": responses,
            "object": roles["object"],
            "subject": roles["subject"],
        }
    for number, targets in pairs.items():
        if len(targets) < 2 or len(set(targets.values())) > 1:
            raise BadInput(f"{path}: pair {number} needs contexts -a and -b with the same target")


def neg136(simp: Path, nat: Path) -> Iterator[Row]:
    """NEG-136 (Fischler et al. 1983; Nieuwland & Kuperberg 2008): affirmed and negated statements.

    Args:
        simp: NEG-136-SIMP.tsv, with `(a|an)` for the determiner: `an` before a, e, i, o, u.
        nat: NEG-136-NAT.tsv, with whether the negation is natural (licensed).

    Raises:
        BadInput: a malformed line.
    """
    lines = [("simp", *line) for line in separated_lines(simp, SIMP_COLUMNS)]
    lines += [("nat", *line) for line in separated_lines(nat, NAT_COLUMNS)]
    for subset, where, line in lines:
        natural = None
        if subset == "nat":
            natural = choice(where, line, "licensing", {"Y": True, "N": False})
        for condition in ("TA", "FA", "TN", "FN"):
            polarity = "affirmative" if condition[1] == "A" else "negative"
            context = line[f"context_{polarity[:3]}"]
            # What is true of the affirmed statement is false of the negated one.
            target = line["target_aff" if condition in ("TA", "FN") else "target_neg"]
            if subset == "simp":
                if not context.endswith(f" {DETERMINER}"):
                    problem = f"a context must end in {DETERMINER}, not {context!r}"
                    raise BadInput(f"{where}: {problem}")
                determiner = "an" if target[0].lower() in "aeiou" else "a"
                context = context.removesuffix(DETERMINER) + determiner
            yield {
                "id": f"neg136-{subset}-{line['item']}-{condition}",
                "item": line["item"],
                "condition": condition,
                "context": context,
                "right_context": "",
                "target": target,
                "good": condition[0] == "T",
                "contrast": f"neg136-{subset}-{line['item']}-{polarity}",
                "expected": [target] if condition == "TA" else [],
                "subset": subset,
                "polarity": polarity,
                "natural": natural,
            }
