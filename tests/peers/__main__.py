"""Compares other programs with lmdiag, and keeps the figures of both for docs/peers.md.

    PYTHONPATH=tests python -m peers ettinger SCORER DATASETS DATA
    PYTHONPATH=tests python -m peers lm_eval MODEL DATA
    PYTHONPATH=tests python -m peers lm_syneval MODEL DATA
    PYTHONPATH=tests python -m peers minicons
    PYTHONPATH=tests python -m peers logs RUN LOGS

Run by hand, with a Python that has lmdiag and the other program. DATA is a built data set
directory, named `lmdiag` for lm_eval. Each comparison yields rows of figure, value of the program,
value of lmdiag, and difference; `records.json` keeps those that docs/peers.md shows.
"""

import contextlib
import importlib.util
import io
import itertools
import json
import math
import os
import re
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from invented_runs import predictions_of
from reference import SentenceReference
from sentence_texts import sentences

import lmdiag
from lmdiag.asking.protocol import Protocol
from lmdiag.models import LoadOptions, load
from lmdiag.results import evaluation
from lmdiag.runs.asking import ask
from lmdiag.types import Sentence

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).with_name("records.json")


# ---- the scorer of Ettinger (2020) ---------------------------------------------------------------

AFFIRMATIVE, NEGATIVE = (f"subset/polarity {{subset}}/{x}" for x in ("affirmative", "negative"))
LABELS = [
    ("cprag102", "EXP TGT in TOP {k} preds", "accuracy@{k}"),
    ("cprag102", "in TOP {k} for {size[0]}", "accuracy@{k} constraint {level}"),
    ("cprag102", "EXP TOP", "sensitivity"),
    ("cprag102", "EXP TOP {size}", "sensitivity constraint {level}"),
    ("cprag102", "EXP TOP w/ THRESH 0.01", "sensitivity@0.01"),
    ("cprag102", "EXP TOP {size} w/ THRESH 0.01", "sensitivity@0.01 constraint {level}"),
    ("cprag102", "WC BOOST {size}", "within_category_boost constraint {level}"),
    ("role88", "TGT in top {k} preds", "accuracy@{k}"),
    ("role88", "TGT in top {k} for Q{quartile}", "accuracy@{k} cloze_quartile {quartile}"),
    ("role88", "GOOD TGT HIGHER", "sensitivity"),
    ("role88", "GOOD TGT HIGHER BY 0.01", "sensitivity@0.01"),
    ("role88", "AVG PROB DIFF", "probability_difference"),
    ("role88", "AVG CLOZE DIFF", "cloze_difference"),
    ("neg136", "{subset} TRUE TGT in top {k} preds", f"accuracy@{{k}} {AFFIRMATIVE}"),
    ("neg136", "{subset} PREF TRUE", "sensitivity subset {subset}"),
    ("neg136", "{subset} AFF", f"sensitivity {AFFIRMATIVE}"),
    ("neg136", "{subset} NEG", f"sensitivity {NEGATIVE}"),
    ("neg136", "{subset} PREF TRUE AFF THRESH 0.01", f"sensitivity@0.01 {AFFIRMATIVE}"),
    ("neg136", "{subset} PREF TRUE NEG THRESH 0.01", f"sensitivity@0.01 {NEGATIVE}"),
    ("neg136", "nat PREF TRUE LICENSED", "sensitivity natural natural"),
    ("neg136", "nat PREF TRUE UNLICENSED", "sensitivity natural less_natural"),
]
"""Task, label in the scorer's report, measure of lmdiag with the level it is broken down by."""


def ettinger(scorer, datasets, data):
    """Gives both programs the same probabilities, which a seeded generator draws.

    SCORER is run_diagnostics_bert.py of github.com/aetting/lm-diagnostics at commit 3754528b861f,
    DATASETS the folder `datasets` there.
    """
    tables = {x: lmdiag.load_stimuli(data, x).columns() for x in ("cprag102", "role88", "neg136")}
    lists = [words for x in tables.values() for words in (x["target"], *x["expected"])]
    vocabulary, rng = np.array(sorted(set(itertools.chain(*lists)))), np.random.default_rng(2020)
    drawn = {}  # context -> word -> probability
    for table in tables.values():
        for context, expected in zip(table["context"], table["expected"], strict=True):
            scores = rng.normal(0, 2, len(vocabulary))
            scores[np.isin(vocabulary, expected)] += rng.choice([0, 5])  # half expect a word
            p = np.exp(scores) / np.exp(scores).sum()
            words = dict(zip(vocabulary.tolist(), p.tolist(), strict=True))
            drawn.setdefault(" ".join(context.split()), words)

    def at(context):
        return drawn[" ".join(context.replace("[MASK]", "").split())]

    def top(context, k):
        return sorted(at(context), key=lambda word: -at(context)[word])[:k]

    def tops(texts, *_, k, **__):
        return [top(text, k) for text in texts], [None] * len(texts)

    def probabilities(texts, words, *_, **__):
        return [at(text)[word] for text, word in zip(texts, words, strict=True)]

    stand_in = SimpleNamespace(get_predictions=tops, get_probabilities=probabilities)
    sys.modules |= {"access_model": stand_in, "matplotlib": MagicMock()}
    sys.modules |= {"matplotlib.pyplot": MagicMock()}
    spec = importlib.util.spec_from_file_location("scorer", scorer)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    log, folder = io.StringIO(), Path(datasets)
    cprag = program.process_fk(folder / "CPRAG-102/CPRAG-102.tsv")
    role = program.process_rr(folder / "ROLE-88/ROLE-88.tsv")
    simp = program.process_fischler(folder / "NEG-136/NEG-136-SIMP.tsv")
    nat = program.process_nk(folder / "NEG-136/NEG-136-NAT.tsv")
    reported = {}
    for k in (1, 5):
        options = {"model": None, "tokenizer": None, "k": k}
        reports = [program.test_fk_acc(*cprag[:2], cprag[5], setting="orig", fklog=log, **options)]
        reports += [program.test_rr_acc(*role, rrlog=log, **options)]
        reports += [
            program.test_nkf_acc(rows, texts, words, nkflog=log, **options)
            for texts, rows, words in (simp, nat)
        ]
        for prefix, report in zip(("", "", "simp ", "nat "), reports, strict=True):
            for label, value in re.findall(r"^(.+): ([-\d.e]+)\b", "".join(report[:2]), re.M):
                reported.setdefault(prefix + label, value)
    figures = {}
    for task, columns in tables.items():
        blanks = [*zip(columns["context"], columns["target"], strict=True)]
        log_prob = [math.log(at(context)[target]) for context, target in blanks]
        predictions = predictions_of(columns, log_prob, [top(context, 5) for context, _ in blanks])
        stimuli = lmdiag.load_stimuli(data, task)
        scored = evaluation.evaluate(stimuli, [predictions], Protocol())
        figures[task] = scored.to_json()["measures"]
    levels = itertools.product((1, 5), "1234", ("high", "low"), ("simp", "nat"))
    rows = {}
    for (task, label, path), (k, quartile, level, subset) in itertools.product(LABELS, levels):
        words = {"k": k, "quartile": quartile, "level": level, "subset": subset}
        label, path = (text.format(**words, size=level.upper()) for text in (label, path))
        measure, *names = path.split()
        figure = figures[task][measure]
        if names:
            figure = figure["by"][names[0]][names[1]]
        first, second = float(reported[label]), figure["value"]
        gap = str(round(abs(first - second), 9) or "0")
        rows[label] = (f"{task}: {path}", f"{first:.6f}", f"{second:.6f}", gap)
    yield from rows.values()


# ---- contrasts that other programs scored --------------------------------------------------------


def outcomes_row(figure, outcomes):
    """Returns the row of a figure over (item, outcome of the program, of lmdiag).

    Prints the items whose outcomes differ.
    """
    items, of_program, of_lmdiag = zip(*outcomes, strict=True)
    differ = [n for n in range(len(items)) if of_program[n] != of_lmdiag[n]]
    for n in differ:
        print(f"{figure}: {items[n]}: {of_program[n]:g}, lmdiag {of_lmdiag[n]:g}")
    sums = [f"{sum(values):g} of {len(items)}" for values in (of_program, of_lmdiag)]
    return figure, sums[0], sums[1], str(len(differ))


def contrast_rows(task, samples, names, log_probs):
    """Compares log-probabilities and outcomes of contrasts.

    Args:
        task: its name.
        samples: what lm_eval logged.
        names: contrast of each row of lmdiag; of a pair of sentences the good one.
        log_probs: of the rows, in nats.
    """
    computed = {}
    for name, value in zip(names, log_probs, strict=True):
        computed.setdefault(name, []).append(value)
    largest, outcomes = 0.0, {}
    for sample in samples:
        doc = sample["doc"]
        key, good = doc.get("contrast", doc.get("sen")), doc.get("good", 0)
        logged = [float(value) for value, _ in sample["filtered_resps"]]
        # a target of several tokens has the log-probability of the whole less that of its context
        n = len(doc.get("targets", logged))
        reported = np.subtract(logged[:n], logged[n:] or [0.0] * n)
        largest = max(largest, float(np.abs(reported - computed[key]).max()))
        p = np.exp(computed[key]) if "contrast" in doc else np.array(computed[key])
        gaps = p[good] - np.delete(p, good)
        for name in {"acc", "sensitivity@0.01"} & set(sample):
            wins = bool((gaps > 0.01 * (name != "acc")).all())
            outcomes.setdefault(name, []).append((key, bool(sample[name]), wins))
    # a power of ten: the digits of a difference differ between processors
    within = f"< 1e{math.floor(math.log10(largest)) + 1}" if largest else "0"
    n_contrasts = f"{len(samples)} contrasts"
    yield f"{task}: log-probabilities, nats", n_contrasts, n_contrasts, within
    for name in sorted(outcomes):
        yield outcomes_row(f"{task}: {name}", outcomes[name])


def harness(folder, tasks, included=None, **options):
    """Returns what lm-evaluation-harness logs of tasks in float32: task -> samples."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    return lm_eval.simple_evaluate(
        model="hf", model_args=f"pretrained={folder},dtype=float32,softmax_dtype=float32",
        tasks=tasks, task_manager=TaskManager(include_path=included, include_defaults=False),
        device="cpu", log_samples=True, bootstrap_iters=0, **options,
    )["samples"]  # fmt: skip


def lm_eval(folder, data):
    """Runs our task files in lm-evaluation-harness, in float32, and compares contrast by contrast.

    DATA may also be a tsv file with the columns `sen` and `wrong_sen`, which MultiBLiMP's task of
    the harness reads, with a beginning-of-sequence token.
    """
    import lm_eval
    import yaml

    path, files = Path(data), ROOT / "datasets/lmdiag/lm-evaluation-harness"
    tasks = [file.stem for file in sorted(files.glob("lmdiag_*.yaml"))]
    bos = "auto"
    if path.is_file():
        template = Path(lm_eval.__file__).parent / "tasks" / "multiblimp" / "_template_yaml"
        file = {"data_files": str(path.resolve()), "sep": "\t"}
        here = {"task": path.stem, "dataset_path": "csv", "dataset_kwargs": file}
        tasks, bos = [yaml.safe_load(template.read_text("utf-8")) | here], "always"
    model = lmdiag.load_model(folder, dtype="float32", bos=bos)
    pretrained = str(Path(folder).resolve()) if Path(folder).is_dir() else folder
    with contextlib.chdir(path.resolve().parent):
        samples = harness(pretrained, tasks, str(files), batch_size=16)
    for task, logged in samples.items():
        stimuli = lmdiag.load_stimuli(data, None if path.is_file() else task.split("_")[1])
        columns = stimuli.columns()
        names = columns["contrast"]
        if path.is_file():  # the good sentence of a pair comes first
            names = [columns["sentence"][row - row % 2] for row in range(len(names))]
        yield from contrast_rows(task, logged, names, model.predict(stimuli).log_prob)


def lm_syneval(folder, data):
    """Compares the harness's task of Marvin and Linzen's pairs with `agreement`, pair by pair.

    The harness has a task per template and number, `lm_syneval__agreement__TEMPLATE__sing_...`,
    for sentences that TEMPLATE_all has here. It compares whole sentences, as `lmdiag run` does with
    minimal pairs; `agreement` compares the verbs alone, after what stands before them.
    """
    import lm_eval
    import yaml

    tasks = Path(lm_eval.__file__).parent / "tasks/lm_syneval"
    config = yaml.safe_load((tasks / "_template_yaml").read_text("utf-8"))
    names = {path.stem.split("__")[2] for path in tasks.glob("lm_syneval__agreement__*.yaml")}
    model = lmdiag.load_model(folder, dtype="float32", bos="always")
    stimuli = lmdiag.load_stimuli(data, "agreement")
    rows = pd.DataFrame(dict(stimuli.columns())).assign(verb=model.predict(stimuli).log_prob)
    rows = rows[rows["source"] == "marvin_linzen"]
    assert {f"{name}_all" for name in names} == {*rows["template"]}
    texts = rows["context"] + " " + rows["target"] + " " + rows["right_context"]
    rows["sentence"] = (texts.str[0].str.upper() + texts.str[1:]).str.replace(" .", ".")
    for template, of_template in rows.groupby("template"):
        pairs = of_template.pivot(index="contrast", columns="good", values=["sentence", "verb"])
        with tempfile.TemporaryDirectory() as temporary:
            file = Path(temporary, "pairs.jsonl")
            names = {True: "sentence_good", False: "sentence_bad"}
            pairs["sentence"].rename(columns=names).to_json(file, orient="records", lines=True)
            source = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(file)}}}
            samples = harness(folder, [config | source | {"task": template}])[template]
            sums = np.reshape(model.predict(lmdiag.load_stimuli(str(file))).log_prob, (-1, 2))
        outcomes = [bool(sample["acc"]) for sample in samples]
        of_lmdiag = {
            "sentences": (sums[:, 0] > sums[:, 1]).tolist(),
            "verbs alone": (pairs["verb", True] > pairs["verb", False]).tolist(),
        }
        for what, values in of_lmdiag.items():
            figure = f"{template.removesuffix('_all')}: {what}"
            yield outcomes_row(figure, zip(pairs.index, outcomes, values, strict=True))


def logs(run_folder, folder):
    """Compares what lighteval or Inspect logged of our tasks with a run of lmdiag.

    The two programs need other versions of the libraries, so their files are read. RUN is a run of
    the same causal model on the same data set; LOGS a folder that `lighteval accelerate
    --save-details` or `inspect eval --log-format json` wrote.
    """
    run = lmdiag.load_run(run_folder)
    for file in sorted(Path(folder).rglob("details_lmdiag*.parquet")):
        records = pq.read_table(file).to_pylist()
        name = records[0]["doc"]["task_name"]  # such as lmdiag:neg136_nat|0
        task = name.removeprefix("lmdiag:").partition("|")[0].partition("_")[0]
        samples = []
        for record in records:
            replies = [(log_prob, False) for log_prob in record["model_response"]["logprobs"]]
            sample = {"doc": record["doc"]["specific"], "filtered_resps": replies}
            samples.append(sample | record["metric"])
        names = run.stimuli[task].columns()["contrast"]
        yield from contrast_rows(name, samples, names, run.predictions[task]["none", 0].log_prob)
    for file in sorted(Path(folder).glob("*.json")):
        log = json.loads(file.read_text("utf-8"))
        name = log["eval"]["task"].rpartition("/")[2].removeprefix("lmdiag_")
        task, _, kind = name.partition("_")
        columns = run.stimuli[task].columns()
        outcomes = {}
        if kind == "sensitivity":
            predicted = run.predictions[task]["none", 0].log_prob
            log_probs = dict(zip(columns["id"], predicted, strict=True))
            rows = outcomes.setdefault(f"{task}: log-probability", [])
            for sample in log["samples"]:
                value = sample["scores"]["last_word"]["value"]
                known = log_probs[sample["id"]]
                known = value if abs(known - value) < TOLERANCE else known
                rows.append((sample["id"], value, known))
        else:
            values = {  # measure -> item -> value
                measure: dict(zip(scores.items.tolist(), scores.values.tolist(), strict=True))
                for measure, scores in run.scores_of(task).items()
            }
            for sample, k in itertools.product(log["samples"], (1, 5)):
                value = sample["scores"]["first_tokens"]["value"][f"accuracy_at_{k}"]
                row = (sample["id"], value, values[f"accuracy@{k}"][sample["id"]])
                outcomes.setdefault(f"{task}: accuracy@{k}", []).append(row)
        yield from itertools.starmap(outcomes_row, outcomes.items())


# ---- minicons ------------------------------------------------------------------------------------

TOLERANCE = 1e-4
"""Nats; both are float32."""


def minicons():
    """Compares every word of 100 sentences with minicons, and explains those that differ.

    The demo models are asked in float32. Ends with an error if a word differs by more than
    `TOLERANCE` for a reason that is not listed here:

    - Marks. In minicons' `within_word_l2r` a word ends where the tokenizer's own splitting ends it,
      so that BERT's "dog." is two words, and "." is shown while "dog" is predicted. In lmdiag words
      are what blanks separate. With minicons' words, the float64 reference gives minicons' number.
    - Unknown words. minicons scores the unknown token; in lmdiag the word has no probability.

    lmdiag puts a model's own beginning-of-sequence token first, as minicons does with
    `bos_token=True`.
    """
    from minicons.scorer import IncrementalLMScorer, MaskedLMScorer

    for name, kind, metric, pll in (
        ("causal, chain rule", "causal", "", {}),
        ("masked, within-word", "masked", "within_word_l2r", {"pll": "within-word"}),
        ("masked, original", "masked", "original", {"pll": "original"}),
    ):
        folder = ROOT / "eval/lmdiag/models/demo" / kind
        options = {"PLL_metric": metric} if metric else {"bos_token": True}
        program = (MaskedLMScorer if metric else IncrementalLMScorer)(str(folder), "cpu")
        if not hasattr(program.tokenizer, "batch_encode_plus"):  # its name before transformers 5
            program.tokenizer.batch_encode_plus = program.tokenizer.__call__
        reference = SentenceReference(folder, kind, **pll)
        model, texts, counts = load(str(folder), LoadOptions(**pll)), sentences(100), Counter()
        answers = ask(model, [Sentence(text) for text in texts], top=5)
        for text, answer in zip(texts, answers, strict=True):
            split = reference.split(text)
            scores = [p for _, p in program.token_score([text], **options)[0]]
            scores = scores if metric else scores[len(split.opening) :]
            assert len(scores) == len(split.ids), text
            # the reference's words if what is masked is what minicons takes for a word
            words = reference.tokenizer(text, add_special_tokens=False).word_ids()
            reference.split = lambda *_, split=split, words=words: split._replace(words=words)
            explained = reference.words(text)[0] if metric == "within_word_l2r" else []
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
        assert counts["equal"] > len(texts)
        for kind_of_word, n in counts.items():
            same = f"< {TOLERANCE:.0e} nats" if kind_of_word == "equal" else "explained"
            yield f"{name}: {kind_of_word}", f"{n} words", f"{n} words", same


def main(name, *arguments):
    """Prints a comparison, and keeps it in place of an earlier one of this name."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    comparisons = {call.__name__: call for call in (ettinger, lm_eval, lm_syneval, minicons, logs)}
    figures = [" | ".join(row) for row in comparisons[name](*arguments)]
    print(*figures, sep="\n")
    if name == "logs" or (arguments and Path(arguments[-1]).is_file()):
        return
    program = "run_diagnostics_bert.py, commit 3754528b861f"
    if name != "ettinger":
        distribution = {"lm_syneval": "lm_eval"}.get(name, name)
        program = f"{distribution.replace('_', '-')} {version(distribution)}"
    records = json.loads(RECORDS.read_text("utf-8"))
    records[name] = {"program": program, "figures": figures}
    RECORDS.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
