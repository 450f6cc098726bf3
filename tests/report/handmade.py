"""Results written by hand, small enough to check by eye."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs import model_info

from lmdiag.protocol import Protocol
from lmdiag.results import (
    DataInfo,
    Device,
    Figure,
    Measure,
    Results,
    SettingResults,
    TaskData,
    UnscoredWord,
)

SIGNATURE = "lmdiag:0.1|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0"


def figure(hits: int, n: int, **more: Any) -> Figure:
    """A proportion with a round interval of a tenth to either side."""
    value = hits / n
    return Figure(value, n, value - 0.1, value + 0.1, **{"statistic": "proportion"} | more)


def measure(hits: int, n: int, by: Any = None, **more: Any) -> Measure:
    """The same, with break-downs: break-down -> level -> (hits, n)."""
    levels = {
        column: {level: figure(*counts, chance=more.get("chance")) for level, counts in of.items()}
        for column, of in (by or {}).items()
    }
    return Measure(**vars(figure(hits, n, **more)), by=levels)


def setting(measures: dict[str, Measure], *unscorable: UnscoredWord) -> SettingResults:
    return SettingResults(measures, list(unscorable), SIGNATURE)


Task = dict[str, SettingResults]


def results(
    tasks: dict[str, Task],
    model: str = "org/model",
    *,
    commit: str = "86b5e0934494bd",
    forms: Mapping[str, str] = {},
    **rows: int,
) -> Results:
    """The results of a run with these figures, over tasks of so many rows, 10 if not given."""
    return Results(
        signature=SIGNATURE, model=model_info(id=model, commit=commit, n_parameters=109_514_298),
        data=DataInfo(
            "lmdiag", None, "1a2b3c4d",
            {task: TaskData("", rows.get(task, 10), form=forms.get(task, "")) for task in tasks},
        ),
        protocol=Protocol(), versions={}, device=Device("cpu", 1), seconds={}, finished="",
        n_contexts=198, tasks=tasks,
    )  # fmt: skip


def cprag102() -> Task:
    plain = {
        name: measure(high + low, n, {"constraint": {"high": (high, 17), "low": (low, 17)}}, **more)
        for name, high, low, n, more in (
            ("accuracy@1", 5, 3, 34, {}),
            ("accuracy@5", 10, 8, 34, {}),
            ("sensitivity", 13, 12, 33, {"chance": 1 / 3}),
            ("sensitivity@0.01", 9, 6, 33, {}),
            ("within_category_boost", 6, 3, 33, {}),
        )
    }
    shuffled = {"accuracy@1": measure(4, 34, sd=0.031, runs=100)}
    unscorable = UnscoredWord("cprag102-3-within", "mascara")
    return {"none": setting(plain, unscorable), "shuf": setting(shuffled)}


def role88() -> Task:
    quartiles = {str(i + 1): (i + 1, n) for i, n in enumerate((25, 23, 23, 17))}
    plain = {
        "accuracy@1": measure(10, 88, {"cloze_quartile": quartiles}),
        "sensitivity": measure(33, 44),
        "sensitivity@0.01": measure(14, 44),
        "human_sensitivity": measure(44, 44),
        "probability_difference": Measure(0.0123, 44, 0.004, 0.02, statistic="mean"),
    }
    nothing = Measure(None, 0, statistic="proportion", not_defined="there is nothing to compare")
    both = dict.fromkeys(("sensitivity", "sensitivity@0.01"), nothing)
    return {"none": setting(plain), "both": setting(both)}


def neg136() -> Task:
    natural = ("natural", "less_natural")
    polarities = [f"{level}/{p}" for level in natural for p in ("affirmative", "negative")]
    negation: Any = {"subset/polarity": {"simp/affirmative": (18, 18), "simp/negative": (0, 18)}}
    by: Any = {
        "subset": {"simp": (18, 36), "nat": (20, 32)},
        "natural": {"natural": (12, 16), "less_natural": (6, 16)},
        "natural/polarity": dict.fromkeys(polarities, (4, 8)),
    }
    plain = {
        "accuracy@1": measure(11, 34, {"subset": {"simp": (7, 18), "nat": (4, 16)}}),
        "sensitivity": measure(38, 68, negation | by, chance=1 / 2),
        "sensitivity@0.01": measure(9, 68, negation),
        "determiner_match@5": measure(300, 360),
    }
    return {"none": setting(plain)}


def agreement() -> Task:
    cuts = ("top=0.1", "bottom=0.001")
    hits = {name: i + 1 for i, name in enumerate(("tse", "ew", "mw", "sensitivity"))}
    hits |= {f"{name}@{cut}": 4 for name in ("ew", "mw", "mass") for cut in cuts}
    measures = {}
    for name, n in hits.items():
        by = {"construction": {"blimp": (1, 5), "simple": (n, 5)}}
        measures[name] = measure(n, 10, by | {"template": {"simple_agrmt_all": (n, 5)}})
    return {"none": setting(measures | {f"left_out@{cut}": measure(2, 12) for cut in cuts})}


def own() -> Task:
    """A user's own diagnostic; a break-down with one level is the whole again."""
    by = {"tense": {"past": (1, 2), "present": (2, 2)}, "condition": {"typical": (3, 4)}}
    return {"none": setting({"accuracy@1": measure(1, 4), "sensitivity": measure(3, 4, by)})}


def pairs() -> Task:
    """Minimal pairs in 2 fields and 45 paradigms, one sentence of which cannot be scored."""
    by: dict[str, Any] = {
        "field": {"syntax": (60, 100), "syntax/semantics": (25, 35)},
        "linguistics_term": {"island_effects": (60, 100), "binding": (25, 35)},
        "UID": {f"{name}_{i}": (1 + i % 3, 3) for name in ("wh_island", "principle_A_domain")
                for i in range(20)} | {f"causative_{i}": (i, 4) for i in range(5)},
    }  # fmt: skip
    measures = {
        "sensitivity": measure(85, 135, by, chance=0.5),
        "sensitivity_mean": measure(70, 135, by, chance=0.5),
    }
    return {"none": setting(measures, UnscoredWord("wh_island_0-7-bad", "naïve, café"))}


def suites() -> Task:
    """A suite with one prediction, and one with two."""
    suite: Any = {"fgd_subject": (18, 24), "nn-nv-rpl": (1, 2)}
    prediction: Any = {"fgd_subject/1": (18, 24), "nn-nv-rpl/1": (1, 2), "nn-nv-rpl/2": (0, 2)}
    measures = {
        "suite_accuracy": measure(19, 26, {"suite": suite}, statistic="share"),
        "prediction_accuracy": measure(19, 28, {"prediction": prediction}),
    }
    return {"none": setting(measures)}


def sentences() -> Task:
    """Sentences of a user's own that are not compared, by a model without a BOS token."""
    surprisal = Figure(7.4853, 40, 7.376, 7.594, statistic="mean")
    by = {"condition": {"easy": surprisal, "hard": replace(surprisal, value=9.25, n=20)}}
    measures = {"surprisal_per_word": Measure(**vars(surprisal), by=by)}
    return {"none": replace(setting(measures), without_first=1234)}


def sentence_runs() -> list[Results]:
    """Runs of two models on data in the three forms."""
    tasks = {"blimp": pairs(), "gym": suites(), "texts": sentences()}
    forms = {"blimp": "minimal_pairs", "gym": "suites", "texts": "sentences"}
    rows = {"blimp": 270, "gym": 104, "texts": 40}
    return [results(tasks, model, forms=forms, **rows) for model in ("org/one", "org/two")]


def published_run() -> Results:
    """All of them, of a model of the paper on the rows of the paper."""
    tasks = {
        "cprag102": cprag102(), "role88": role88(), "neg136": neg136(),
        "agreement": agreement(), "tense": own(),
    }  # fmt: skip
    return results(tasks, "bert-base-uncased", cprag102=102, role88=88, neg136=136)


def several_runs() -> list[Results]:
    """Two runs with a task in common, and another that only the second has."""
    second = {"cprag102": cprag102(), "role88": role88() | {"obj": role88()["none"]}}
    return [results({"cprag102": cprag102()}, "org/one"), results(second, "org/two")]
