"""`lmdiag multiverse`: each combination of knobs is the run alone, and what follows from all."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import planted
import pyarrow.parquet as pq
import pytest
from commands import Commands
from families import FAMILIES
from hostile import HOSTILE
from launched import alone, environment, launch
from rich.console import Console

import lmdiag
from lmdiag import models
from lmdiag.cli import main
from lmdiag.models import LoadOptions
from lmdiag.models.local import LocalModel
from lmdiag.multiverse import Multiverse, counts_of, effects_of
from lmdiag.report.multiverse import multiverse_plots, render
from lmdiag.report.terminal import print_multiverse
from lmdiag.types import BadInput

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPT = "They said: {context}"


@pytest.fixture
def small(command: Commands) -> list[object]:
    """Arguments of a short multiverse; the last one is its output."""
    arguments = ["--data", command.data, "--tasks", "neg136", "--limit", "8", "--quiet"]
    return [*arguments, "--output", command.folder / "out"]


@pytest.fixture
def mixed(command: Commands) -> list[object]:
    """Twelve contexts: every second one begins with a capital letter, every third goes on."""
    data = command.folder / "mixed.jsonl"
    rows = [
        {"id": str(i), "context": f"{'Tt'[i % 2]}he{' dog' * i} saw a", "target": "bird",
         "right_context": "" if i % 3 else "today."}
        for i in range(12)
    ]  # fmt: skip
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return ["--data", data, "--output", command.folder / "out", "--quiet", "--batch-size", 5]


def members(output: Path) -> dict[str, dict[str, str]]:
    """Path of each member -> its choices."""
    return {member.path: member.choices for member in Multiverse.read(output).members}


def as_options(protocol: dict[str, Any]) -> list[str]:
    """The options of `lmdiag run` for a protocol."""
    options = []
    for name in ("unit", "bos", "pll", "final_period", "first_letter"):
        options += [f"--{name.replace('_', '-')}", protocol[name]]
    if protocol["chat"]:
        return [*options, "--chat", "--instruction", protocol["instruction"]]
    return [*options, *(["--prompt", protocol["prompt"]] if protocol["prompt"] else [])]


# ---- the runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "knobs", "count"),
    [
        ("bert", ["unit,final-period"], 4),
        # a chat template decides what stands before a context: five combinations in each unit
        pytest.param("chat", ["unit,bos,prompt", "--prompt", PROMPT, "--chat"], 10,
                     marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_each_member_has_the_figures_of_the_run_alone(
    command: Commands, small: list[object], name: str, knobs: list[str], count: int
) -> None:
    model = FAMILIES["gpt2"].make(command.folder / "chat")
    (model / "chat_template.jinja").write_text(CHATML)
    model = command.models.get(name, model)
    code, _, err = command("multiverse", "--model", model, "--knobs", *knobs, *small)
    assert code == 0, err
    output, alone = command.folder / "out", command.folder / "alone"
    found = members(output)
    assert len(found) == len({tuple(choices.items()) for choices in found.values()}) == count
    for path in found:
        document = json.loads((output / path / "results.json").read_text())
        options = as_options(document["protocol"])
        assert command("run", "--model", model, *options, *small[:-1], alone)[0] == 0
        assert (output / path / "report.html").is_file()
        table, expected = (
            pq.read_table(folder / path / "predictions.parquet").to_pydict()
            for folder in (output, alone)
        )
        assert table.pop("log_prob") == pytest.approx(expected.pop("log_prob"), abs=1e-5)
        assert {**table, "top_log_probs": 0} == {**expected, "top_log_probs": 0}
        other = json.loads((alone / path / "results.json").read_text())
        assert document["identity"] == other["identity"]
    assert len([*alone.rglob("results.json")]) == count


class Watched:
    """Counts the questions that models of this process answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        answer = LocalModel.answer

        def watched(model: LocalModel, batch: Any, top: int) -> Any:
            self.asked += len(batch)
            return answer(model, batch, top)

        monkeypatch.setattr(LocalModel, "answer", watched)


@pytest.mark.parametrize(
    ("name", "expected", "members_left"),
    [
        pytest.param("gpt2", 2 * 2 * 2 * 12, 12, marks=pytest.mark.slow),
        ("bert", 2 * (2 * 8 + 4), 4),
    ],
)
def test_each_distinct_question_is_asked_once(
    command: Commands,
    mixed: list[object],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    expected: int,
    members_left: int,
) -> None:
    """Twelve combinations of twelve contexts each.

    gpt2: 2 units, with and without bos, 3 cases; as they are, half of the contexts are those in
    upper case and half those in lower case. bert: 2 units, 8 contexts with and without period and
    4 that have none, 3 cases that are all the same to an uncased model.
    """
    watched = Watched(monkeypatch)
    assert command("multiverse", "--model", command.models[name], *mixed)[0] == 0
    multiverse = Multiverse.read(command.folder / "out")
    assert watched.asked == multiverse.asked == expected
    assert (multiverse.combinations, multiverse.questions) == (12, 12 * 12)
    assert len(multiverse.members) == members_left
    assert ("first-letter" in multiverse.choices(*multiverse.models)) == (name == "gpt2")
    assert command("multiverse", "--model", command.models[name], *mixed)[0] == 0
    assert watched.asked == expected  # all runs are read back
    assert not [*command.folder.rglob("shared")]


KILLED = """
import os, signal, sys
from lmdiag.cli import main
from lmdiag.models.local import LocalModel
answer, left = LocalModel.answer, int(sys.argv[1])
def dying(model, batch, top):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(model, batch, top)
LocalModel.answer = dying
main(sys.argv[2:])
"""


@pytest.mark.slow
def test_a_killed_multiverse_resumes_and_asks_nothing_twice(
    command: Commands, mixed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 questions in each unit, the first run asks 12; the other two share 6 each with it."""
    watched, output = Watched(monkeypatch), command.folder / "out"
    arguments = ["--model", command.models["gpt2"], *mixed[:-1], 1, "--knobs", "unit,first-letter"]
    assert command("multiverse", *arguments)[0] == 0
    undisturbed = {p: (output / p / "predictions.parquet").read_bytes() for p in members(output)}
    record = (output / "multiverse.json").read_bytes()
    total, watched.asked = watched.asked, 0
    shutil.rmtree(output)
    assert total == 48
    answered = 15  # in the second run
    call = [sys.executable, "-c", KILLED, answered, "multiverse", *arguments]
    done = subprocess.run([*map(str, call)], env=environment(), capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert not (output / "multiverse.json").exists()
    assert command("multiverse", *arguments)[0] == 0
    assert watched.asked == total - answered
    assert (output / "multiverse.json").read_bytes() == record
    for path, content in undisturbed.items():
        assert (output / path / "predictions.parquet").read_bytes() == content


@pytest.mark.slow
def test_two_processes_give_the_files_of_one(command: Commands, small: list[object]) -> None:
    program = str(Path(sys.executable).with_name("lmdiag"))
    call = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone",
            program, "multiverse"]  # fmt: skip
    one, two = (command.folder / f"out{count}" for count in (1, 2))
    arguments = ["--model", *command.models.values(), *small[:-1]]
    assert alone("multiverse", *arguments, one)[0] == 0
    launch(call, *arguments, two)
    assert len(members(one)) > 8
    for path in ("multiverse.json", *(f"{path}/predictions.parquet" for path in members(one))):
        assert (one / path).read_bytes() == (two / path).read_bytes()


@pytest.mark.slow
def test_weights_that_another_unit_needs_in_another_dtype_are_loaded_again(
    command: Commands, small: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On accelerators, unit token has the dtype of the checkpoint and unit word float32."""
    loaded, load, reuse = [], models.load, LocalModel.with_options

    def on_accelerators(model: LocalModel, options: LoadOptions) -> LocalModel | None:
        return reuse(model, options) if options.unit == model.options.unit else None

    monkeypatch.setattr(models, "load", lambda *given: loaded.append(given) or load(*given))
    monkeypatch.setattr(LocalModel, "with_options", on_accelerators)
    arguments = ["--model", command.models["gpt2"], "--knobs", "unit,bos", *small]
    assert command("multiverse", *arguments)[0] == 0
    assert [given[1].unit for given in loaded] == ["token", "word"]
    assert len(members(command.folder / "out")) == 4
    monkeypatch.setattr(LocalModel, "with_options", reuse)
    loaded.clear()
    paths = command.models.values()
    assert command("multiverse", "--model", *paths, "--knobs", "unit", *small)[0] == 0
    assert [given[0] for given in loaded] == [*map(str, paths)]  # once
    error = command.refused("multiverse", *arguments, "--dtype", "bfloat16")
    assert "unit word needs float32, not bfloat16: use --dtype float32, or leave unit out" in error


@pytest.mark.slow
@pytest.mark.parametrize(("family", "default"), [("gpt2", "never"), ("llama", "always")])
def test_bos_is_named_by_what_stands_there(
    command: Commands, small: list[object], family: str, default: str
) -> None:
    model = FAMILIES[family].make(command.folder / family)
    assert command("multiverse", "--model", model, "--knobs", "bos", *small)[0] == 0
    found = members(command.folder / "out")
    assert next(iter(found.values()))["bos"] == default
    assert {choices["bos"] for choices in found.values()} == {"always", "never"}
    assert f"{family}/neg136-token-limit8" in found  # asked with auto, as a run by default


@pytest.mark.slow
def test_whole_sentences(command: Commands) -> None:
    """Causal models with and without the token, in both units; masked ones by both ways to mask."""
    data = command.folder / "pairs.jsonl"
    texts = ("The dog runs home.", "The dog run home.")
    rows = [{"id": t, "contrast": "1", "sentence": t, "good": t is texts[0]} for t in texts]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ["--data", data, "--output", command.folder / "out", "--quiet", "--model"]
    assert command("multiverse", *arguments, *command.models.values())[0] == 0
    multiverse = Multiverse.read(command.folder / "out")
    models = multiverse.models
    found = [(models.index(m.model), *m.choices.values()) for m in multiverse.members]
    assert found == [
        (0, "within-word"), (0, "original"), (1, "token", "always"), (1, "token", "never"),
        (1, "word", "always"), (1, "word", "never"),
    ]  # fmt: skip
    for options, message in (
        (["--knobs", "unit,first-letter"],
         "--knobs first-letter does not apply to whole sentences: choose from unit, bos"),
        (["--prompt", PROMPT], "--prompt is for rows with a blank"),
    ):  # fmt: skip
        error = command.refused("multiverse", *arguments, command.models["gpt2"], *options)
        assert message in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--knobs", "units"], "--knobs units (did you mean 'unit'?): choose from unit, bos"),
        (["--knobs", "pll"], "--knobs pll does not apply to rows with a blank"),
        (["--prompt", "no place"], "that has {context} in it once"),
        (["--prompt", PROMPT, "--knobs", "unit"], "add prompt to --knobs"),
        (["--instruction", "Go on."], "give chat, too"),
        (["--chat"], "has no chat template"),
        (["--unit", "word"], "Unknown option: --unit"),
    ],
)
def test_bad_input_is_one_line(
    command: Commands, small: list[object], arguments: list[str], message: str
) -> None:
    model = command.models["gpt2"]
    assert message in command.refused("multiverse", "--model", model, *arguments, *small)
    assert not [*command.folder.rglob("multiverse.json")]


def test_a_prompt_is_for_causal_models(command: Commands, small: list[object]) -> None:
    model = command.models["bert"]
    options = ["--knobs", "unit,prompt", "--prompt", PROMPT]
    code, _, err = command("multiverse", "--model", model, *options, *small)
    assert code == 0
    assert "bert is not causal: it is asked without a prompt" in err
    assert len(members(command.folder / "out")) == 2


# ---- what follows --------------------------------------------------------------------------------


def plant(folder: Path, *arguments: str, **prefers: planted.Prefers) -> Multiverse:
    """Runs planted models on twelve contrasts; the results go to `out` in the folder."""
    data = folder / "planted.jsonl"
    rows = [
        {"id": f"{i}{word}", "contrast": str(i), "context": f"number {i}", "target": word,
         "good": word == "good"}
        for i in range(12)
        for word in ("good", "bad")
    ]  # fmt: skip
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    names = [f"planted:{name}" for name in prefers]
    call = ["--data", str(data), "--output", str(folder / "out"), "--resamples", "200", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "load", planted.load)
        planted.PLAN.models.update(prefers)
        assert main(["multiverse", "--model", *names, *call, *arguments]) == 0
    return Multiverse.read(folder / "out")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a multiverse of two models. Read only."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder, "--knobs", "unit", a=lambda o, n: o.unit == "word", b=lambda o, n: n < 6)
    return folder / "out"


@pytest.fixture
def two(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "two"))


def printed(multiverse: Multiverse) -> str:
    """What the terminal shows."""
    console = Console(file=io.StringIO(), width=300, highlight=False, force_terminal=False)
    print_multiverse(multiverse, console)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def figure_of(multiverse: Multiverse, measure: str) -> Any:
    return next(figure for figure in multiverse.figures if figure.measure == measure)


@pytest.mark.slow
def test_the_knob_that_a_model_depends_on_is_found(tmp_path: Path) -> None:
    multiverse = plant(tmp_path, a=lambda options, number: options.unit == "word")
    out = printed(multiverse)
    figure = figure_of(multiverse, "sensitivity")
    # 2 units, 2 periods, 3 cases: this model is never the same
    assert [x.value for _, x in multiverse.curve(figure, "planted:a")] == [0.0] * 6 + [1.0] * 6
    effects = {"unit": 1.0, "final-period": 0.0, "first-letter": 0.0}
    assert multiverse.range_of(figure, "planted:a") == {
        "lowest": 0.0, "median": 0.5, "highest": 1.0, "effects": effects,
    }  # fmt: skip
    assert ["sensitivity", "0.0", "0.0", "50.0", "100.0", "100.0", "0.0", "0.0"] in [
        line.split() for line in out.splitlines()
    ]  # default, lowest, median, highest, and what each knob moves
    plot = next(p for _, p in multiverse_plots(multiverse) if p.name.endswith("sensitivity-1"))
    top, matrix = plot.spec["vconcat"]
    assert top["layer"][-1]["encoding"]["x"] == matrix["encoding"]["x"]
    places: dict[str, list[int]] = {}
    for row in matrix["data"]["values"]:
        places.setdefault(row["choice"], []).append(row["place"])
        assert row["strongest"] == row["choice"].startswith("unit ")
    assert [*places][:2] == ["unit token", "unit word"]  # the strongest knob comes first
    assert places["unit token"] == [1, 2, 3, 4, 5, 6]
    assert places["unit word"] == [7, 8, 9, 10, 11, 12]
    points = plot.spec["data"]["values"]
    assert [row["protocol"] for row in points if row["default"]] == [
        "unit token, final-period always, first-letter as-is (default)"
    ]
    values = [(row["place"], row["value"]) for row in points]
    assert values == [(i, float(i > 6)) for i in range(1, 13)]
    assert "12 protocols: unit token, word; final-period" in out


def test_two_models_protocol_by_protocol(made: Path) -> None:
    """A is right everywhere in unit word and nowhere in unit token, B in six of twelve contrasts.

    Of either unit six contrasts are discordant, all in one direction: p is 2 / 2**6 = .03125, which
    Holm's method doubles over the two pairs.
    """
    multiverse = Multiverse.read(made)
    figure = figure_of(multiverse, "sensitivity")
    pairs = multiverse.differences(figure, "planted:b")
    assert [pair.difference for pair in pairs] == [-0.5, 0.5]
    assert [multiverse.members[pair.a].choices["unit"] for pair in pairs] == ["token", "word"]
    for pair in pairs:
        assert multiverse.members[pair.a].choices == multiverse.members[pair.b].choices
        assert (pair.test, pair.n, pair.p, pair.p_adjusted) == ("mcnemar", 12, 0.03125, 0.0625)
    counts = {"ahead": 1, "behind": 1, "equal": 0, "rejected": 2, "adjusted": 0}
    assert counts_of(pairs) == counts
    line = ["sensitivity", "1", "1", "0", "2", "0"]
    assert line in [line.split() for line in printed(multiverse).splitlines()]
    (content,) = (x for x in multiverse.to_json()["figures"] if x["measure"] == "sensitivity")
    assert content["comparisons"] == [{"second": "planted:b"} | counts]


def test_effects_compare_what_was_asked_with_both_choices() -> None:
    """A chat template has one bos only, and is compared with the other prompts at that bos.

    bos: (.5 + .7) / 2 - (.1 + .3) / 2 = .4; chat - none at bos always: .9 - .5 = .4 and chat -
    prompt .2; prompt - none: .2 in both.
    """
    values = [
        ({"bos": "always", "prompt": "none"}, 0.5), ({"bos": "always", "prompt": "{context}"}, 0.7),
        ({"bos": "never", "prompt": "none"}, 0.1), ({"bos": "never", "prompt": "{context}"}, 0.3),
        ({"bos": "always", "prompt": "chat"}, 1.2),
    ]  # fmt: skip
    assert effects_of(*zip(*values, strict=True)) == pytest.approx({"bos": 0.4, "prompt": 0.7})
    assert effects_of(*zip(values[0], strict=True)) == {}


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema_version=2), "schema_version: input should be 1"),
        (lambda d: d.pop("members"), "members: field required"),
        (lambda d: d["members"][0].update(path="../../etc"), "leads out of the folder"),
        (lambda d: d["members"][0]["choices"].update(luck="good"), "there is no knob 'luck'"),
        (lambda d: d["figures"][0]["values"].pop(), "a member has no value"),
        (lambda d: d["figures"][0]["differences"][0].update(b=99), "a difference has no member"),
    ],
)
def test_a_damaged_multiverse_is_refused(two: Path, change: Any, message: str) -> None:
    document = json.loads((two / "multiverse.json").read_text())
    change(document)
    (two / "multiverse.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"multiverse\.json") as refused:
        lmdiag.load_multiverse(two)
    assert message in str(refused.value)


def test_the_report_of_a_multiverse(command: Commands, two: Path) -> None:
    assert Multiverse.read(two).to_json() == json.loads((two / "multiverse.json").read_text())
    page = (two / "multiverse.html").read_bytes()
    (two / "multiverse.html").unlink()
    assert command("report", two)[0] == 0
    assert (two / "multiverse.html").read_bytes() == page
    figures = command.folder / "figures"
    assert command("report", two, "--figures", figures)[0] == 0
    assert len([*figures.glob("*.svg")]) == len([*multiverse_plots(Multiverse.read(two))])
    assert "which has a page and charts only" in command.refused("report", two, "--format", "csv")


@pytest.mark.slow
def test_python(two: Path) -> None:
    loaded = lmdiag.load_multiverse(two)
    frame = loaded.to_frame()
    own = frame[(frame.measure == "sensitivity") & (frame.model == "planted:a")]
    assert [*zip(own.unit, own.value, strict=True)] == [("token", 0.0), ("word", 1.0)]
    assert all((Path(run) / "results.json").is_file() for run in frame.run)
    assert "unit token, word" in str(loaded)
    charts = loaded.charts()
    assert {type(chart).__name__ for chart in charts.values()} == {"VConcatChart"}
    with pytest.raises(BadInput, match=r"has no multiverse\.json"):
        lmdiag.load_multiverse(two / "absent")


@pytest.mark.slow
def test_the_page_is_safe_and_fits(two: Path, new_page: Any) -> None:
    """Text of models and prompts stays text; at any width nothing sticks out."""
    multiverse = Multiverse.read(two)
    texts = [*HOSTILE.values()]
    changed = [
        replace(member, model=f"{member.model[-1]} {texts[0]}",
                choices=member.choices | {"prompt": f"{texts[i % len(texts)]} {{context}}"})
        for i, member in enumerate(multiverse.members * len(texts))
    ]  # fmt: skip
    count = len(multiverse.members)
    for i in range(len(texts)):
        part = replace(multiverse, members=changed[i * count : (i + 1) * count])
        assert all(line.isprintable() for line in printed(part).split("\n"))
    path = two / "hostile.html"
    path.write_text(render(replace(multiverse, members=changed[:count])))
    for width, scheme in ((1400, "light"), (420, "dark")):
        page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.title().endswith(": multiverse · lmdiag")
        assert page.locator("figure .plot svg").count() == page.locator("figure").count()
        href = page.locator("#section-protocols a").first.get_attribute("href")
        assert (two / href).is_file()
