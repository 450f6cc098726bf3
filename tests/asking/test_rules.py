"""Where options of models do not apply: one table for commands, Python and the specification."""

import re
from pathlib import Path

import pytest
from invented_runs import model_info
from pandas import DataFrame

import lmdiag
from lmdiag.asking.protocol import QueryOptions
from lmdiag.asking.rules import (
    RULES,
    Case,
    applicable_knobs,
    flag,
    refusal,
    required_options,
    reset_ineffective,
)
from lmdiag.models import LoadOptions
from lmdiag.types import BadInput

SPECIFICATION = Path(__file__).parents[2] / "docs" / "specification.md"

GIVEN = {
    "unit": "word", "bos": "always", "pll": "original", "layer": 1, "prompt": "Go on: {context}",
    "chat": True, "instruction": "Go on.", "final_period": "never", "first_letter": "upper",
    "elicitation": "choice", "choice_prompt": "{options}", "entropy": True, "tokenizer": "gpt2",
    "server": "http://localhost:8000", "revision": "main", "dtype": "float16", "tp": True,
    "device_map": "auto", "quantization": "8bit", "allow_pickle": True,
}  # fmt: skip
"""Option -> a value that is not its default."""

EACH = [
    pytest.param(rule, option, id=f"{option} {rule.place()}")
    for rule in RULES
    for option in rule.options
    if option != "layers"  # which is not a field: `test_server` asks for several layers
]


def line_of(rule, option):
    """The line about an option where a rule holds."""
    kind = rule.kinds[-1] if rule.kinds else None
    if rule.outcome == "left out":
        name = "frequency:en" if rule.counts_words else "tiny"
        info = model_info(id=name, kind=kind or "masked", cased=not rule.uncased)
        given = QueryOptions(**{option: GIVEN[option]})
        asked, [line] = reset_ineffective(given, info, rule.asks or "sentence")
        assert asked == QueryOptions()
        return line
    if rule.asks or rule.counts_words:
        case = Case(given=[option], asks=rule.asks, counts_words=rule.counts_words)
        return refusal(case)
    names = [option, *filter(None, [rule.beside])]
    if not rule.without:
        names += [other for name in names for other in required_options(name)]
    with pytest.raises(BadInput) as caught:
        LoadOptions(kind=kind or "auto", **{name: GIVEN[name] for name in names})
    return str(caught.value)


@pytest.mark.parametrize(("rule", "option"), EACH)
def test_each_rule_has_its_line(rule, option):
    kind = rule.kinds[-1] if rule.kinds else None
    line = line_of(rule, option)
    verb = "cannot be used" if rule.outcome == "refused" else "has no effect"
    assert line.startswith(f"{flag(option)} ")
    assert f" {verb} {rule.place(kind)}: {rule.why}; " in line
    remedy = f"leave {flag(option)} out"
    if rule.without:
        assert f"; give {flag(rule.without)}" in line
        remedy = ", too"
    assert line.endswith(remedy if rule.outcome == "refused" else "it is left out")


@pytest.mark.parametrize(
    ("kind", "asks", "options"),
    [
        ("causal", "word", "unit bos prompt first-letter elicitation choice-prompt layer"),
        ("masked", "word", "unit final-period first-letter layer"),
        ("mntp", "word", "unit final-period first-letter layer"),
        ("seq2seq", "word", "unit final-period first-letter layer"),
        ("causal", "sentence", "unit bos elicitation choice-prompt layer"),
        ("masked", "sentence", "pll layer"),
        ("mntp", "sentence", "pll layer"),
        (None, "sentence", "unit bos pll elicitation choice-prompt layer"),
    ],
)
def test_what_applies_to_a_model_and_its_rows(kind, asks, options):
    assert applicable_knobs(asks, kind) == options.split()
    given = {name: GIVEN[name] for name in map(str.strip, options.replace("-", "_").split())}
    separate = [QueryOptions(**{name: value}) for name, value in given.items()]
    for query in separate if kind else ():
        assert reset_ineffective(query, model_info(kind=kind, cased=True), asks) == (query, [])


def test_the_specification_shows_the_table():
    rows = [
        (", ".join(map(flag, rule.options)), rule.place(), rule.outcome, rule.why) for rule in RULES
    ]
    lines = [re.sub(r"--[\w-]+", r"`\g<0>`", f"| {' | '.join(row)} |") for row in rows]
    section = SPECIFICATION.read_text("utf-8").partition("### Where options apply\n")[2]
    table = [line for line in section.partition("\n#")[0].split("\n") if line[:3] == "| `"]
    assert table == lines


def test_a_fit_says_what_has_no_effect():
    human = DataFrame({"position": range(1, 9), "time": range(300, 308)})
    human["word"] = ["The", "old", "man", "saw", "the", "trout", "near", "town"]
    model = lmdiag.load_model("demo:causal", pll="original")
    fit = lmdiag.fit(human, models=model, response="time", controls=["length"], lags=0)
    assert "--pll original has no effect with a causal model" in " ".join(str(fit).split())
