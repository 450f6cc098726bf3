"""Test suites made for this project, and surprisals of the words of one."""

ITEMS = (
    {"match": ("The doors", "", " open", ", slowly"),
     "mismatch": ("The doors", " ", "opens", ", slowly")},
    {"match": ("A key", "really", "fits", "."), "mismatch": ("A key", "really", "fit ", ".")},
    {"match": ("A lock", "really", "shuts", "!"), "mismatch": ("A lock", "really", "shut", "!")},
)  # fmt: skip
"""Condition -> contents of its regions, of each item."""

BITS = {
    # The  doors  open(s)  ,  slowly
    "doors/1/match": (2, 5, 3, 1, 4),
    "doors/1/mismatch": (2, 5, 6.5, 1.5, 4),
    # A  key  really  fit(s)  .
    "doors/2/match": (3, 4, 8, 2, 1),
    "doors/2/mismatch": (3, 4.0011, 8, 2.5, 0.5),
    "doors/3/match": (3, 4, 8, 2, 1),
    "doors/3/mismatch": (3, 4, 9, 2.5, 2),
}
"""Row -> surprisal of each word, punctuation by itself."""

FORMULAS = (
    "(3;%match%) < (3;%mismatch%)",
    "[(3;%match%) < (3;%mismatch%)] & [(4;%match%) < (4;%mismatch%)]"
    " & [(2;%match%) = (2;%mismatch%)]",
    "(*;%match%) > (*;%mismatch%) | (4;%match%) > (4;%mismatch%)",
    "[(3;%mismatch%) + (4;%mismatch%)] - (3;%match%) - (4;%match%) > 3",
    "(2;%match%) = 0",
    "(1;%match%) = (1;%mismatch%)",
)


def suite_of(name, regions, items, formulas):
    """A suite as SyntaxGym's JSON has it; `items` are as `ITEMS`, `regions` their names."""
    content = []
    for number, conditions in enumerate(items, start=1):
        content.append({"item_number": number, "conditions": []})
        for condition, texts in conditions.items():
            parts = [{"region_number": i, "content": x} for i, x in enumerate(texts, start=1)]
            content[-1]["conditions"].append({"condition_name": condition, "regions": parts})
    return {
        "meta": {"name": name, "metric": "sum"},
        "region_meta": {str(i): region for i, region in enumerate(regions, start=1)},
        "predictions": [{"type": "formula", "formula": text} for text in formulas],
        "items": content,
    }


def suite(**changes):
    """The suite of `ITEMS` and `FORMULAS`."""
    return suite_of("doors", ("subject", "adverb", "verb", "end"), ITEMS, FORMULAS) | changes
