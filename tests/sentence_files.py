"""Small data in every form of sentences, and runs of invented models on them.

Test suites and surprisals of the words of one, minimal pairs, sentences, and the authors' files of
extended sets, with invented words.
"""

from invented_runs import json_lines, make_run

from lmdiag.results import load_run

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
PARADIGMS = {
    "adjunct_island": ("syntax", "island_effects"),
    "wh_island": ("syntax", "island_effects"),
    "causative": ("syntax", "argument_structure"),
    "principle_A_domain_1": ("syntax/semantics", "binding"),
}
ORDER = "[ (3;%plaus%) + (4;%plaus%) ] < [ (3;%implaus%) + (4;%implaus%) ]"
SUM = "(*;%plaus%) < (*;%implaus%)"
SIZES = {"NEG-1500-SIMP-GEN": 750, "NEG-1500-SIMP-TEMP": 770, "ROLE-1500": 750}
"""Name of a set -> pairs of sentences in the authors' file."""
FILES = dict(zip(("neg1500_gen", "neg1500_temp", "role1500"), SIZES, strict=True))
"""Task -> name of its set."""


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


def write_pairs(folder, n=4):
    """Minimal pairs in BLiMP's form, n of each paradigm; every other bad one has a word more."""
    folder.mkdir(parents=True, exist_ok=True)
    for uid, (field, term) in PARADIGMS.items():
        facts = {"field": field, "linguistics_term": term, "UID": uid, "simple_LM_method": True}
        rows = []
        for i in range(n):
            good = f"Who did Sally number {i} insult herself in the {uid}?"
            bad = good.replace("insult herself", f"{'ever ' * (i % 2)}insult himself")
            pair = {"sentence_good": good, "sentence_bad": bad, "pairID": str(i)}
            rows.append(pair | facts)
        json_lines(folder / f"{uid}.jsonl", *rows)
    return folder


def paintings(name, *formulas, n=8):
    """A suite with two conditions and five regions; the second is empty in one of them."""
    beginnings = [f"The {number} painting that the artist" for number in range(1, n + 1)]
    items = [
        {"plaus": (text, ",", "painted", "deteriorated", "."),
         "implaus": (text, "", "deteriorated", "painted", ".")}
        for text in beginnings
    ]  # fmt: skip
    return suite_of(name, ("intro", "comma", "verb1", "verb2", "end"), items, formulas)


def write_suites(folder, n=2):
    """n suites, one of them with two predictions."""
    folder.mkdir(parents=True, exist_ok=True)
    more = [paintings(f"more_{i}", ORDER) for i in range(2, n)]
    for one in [paintings("center_embed", ORDER), paintings("two_predictions", ORDER, SUM), *more]:
        json_lines(folder / f"{one['meta']['name']}.json", one)
    return folder


def write_sentences(path):
    """Sentences that are not compared."""
    rows = [f"s{i},{'easy' if i % 2 else 'hard'},The horse raced past barn {i}." for i in range(6)]
    path.write_text("\n".join(["id,condition,sentence", *rows]) + "\n")
    return path


def run_on(data, folder, **options):
    """The run of an invented model on a file or folder of sentences."""
    return load_run(make_run(folder, data, **options))


def write_set(folder, name, pairs=None):
    """Writes the file of a set, as long as the authors' or with fewer pairs.

    In every fifth pair of ROLE-1500, the two sentences have the same verb.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for i in range(pairs or SIZES[name]):
        if name.startswith("ROLE"):
            first, second = f"noun{i % 40}", f"person{i % 30}"
            lines.append(f"the cook saw which {first} the {second} had called{i},\n")
            verb = f"{'paid' if i % 5 else 'called'}{i}"
            lines.append(f"The cook saw which {second} the {first} had {verb},\n")
        else:
            lines += [f"A thing{i} is a kind{i % 60},\n", f"A thing{i} is not a part{i % 50},\n"]
    path = folder / f"{name}.txt"
    path.write_text("".join(lines), "utf-8")
    return path
