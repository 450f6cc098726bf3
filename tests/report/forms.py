"""Data in the three forms of sentences, small, and runs of invented models on them."""

import json

from invented_runs import json_lines, make_run
from suites import suite_of

from lmdiag.results import load_run

PARADIGMS = {
    "adjunct_island": ("syntax", "island_effects"),
    "wh_island": ("syntax", "island_effects"),
    "causative": ("syntax", "argument_structure"),
    "principle_A_domain_1": ("syntax/semantics", "binding"),
}
ORDER = "[ (3;%plaus%) + (4;%plaus%) ] < [ (3;%implaus%) + (4;%implaus%) ]"
SUM = "(*;%plaus%) < (*;%implaus%)"


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


def suite(name, *formulas, n=8):
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
    more = [suite(f"more_{i}", ORDER) for i in range(2, n)]
    for one in (suite("center_embed", ORDER), *more, suite("two_predictions", ORDER, SUM)):
        (folder / f"{one['meta']['name']}.json").write_text(json.dumps(one))
    return folder


def write_sentences(path):
    """Sentences that are not compared."""
    rows = [f"s{i},{'easy' if i % 2 else 'hard'},The horse raced past barn {i}." for i in range(6)]
    path.write_text("\n".join(["id,condition,sentence", *rows]) + "\n")
    return path


def run_on(data, folder, **options):
    """The run of an invented model on a file or folder of sentences."""
    return load_run(make_run(folder, data, **options))
