"""`lmdiag multiverse`: each combination of knobs is the run alone, and what follows from all.

Killed multiverses and those on several processes: `tests/runs/test_processes.py`.
"""

import io
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from browser import brightness, colors_of
from families import FAMILIES
from hostile import HOSTILE
from invented_runs import FakeModel, json_lines, model_info
from reference import CLOSE
from rich.console import Console
from shown import shown_as

import lmdiag
from lmdiag import models
from lmdiag.cli import main
from lmdiag.models.local import LocalModel
from lmdiag.report.display import output_of
from lmdiag.report.formats.terminal import print_output
from lmdiag.runs import combinations, processes
from lmdiag.studies.multiverse import Multiverse, counts_of, effects_of
from lmdiag.types import Answer, BadInput, WordScore

PROMPT = "They said: {context}"


@pytest.fixture
def small(command):
    """Arguments of a short multiverse; the last one is its output."""
    arguments = ["--data", command.data, "--tasks", "neg136", "--limit", "8", "--quiet"]
    return [*arguments, "--output", command.folder / "out"]


def members(output):
    """Path of each member -> its choices."""
    return {member.path: member.choices for member in Multiverse.read(output).members}


# ---- the runs ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "knobs", "count"),
    [
        ("bert", ["unit,final-period"], 4),
        # a chat template decides what stands before a context
        ("gpt2", ["bos,prompt", "--prompt", PROMPT, "--chat"], 5),
    ],
)
def test_each_member_has_the_figures_of_the_run_alone(command, small, name, knobs, count):
    model = command.models[name]
    code, _, err = command("multiverse", "--model", model, "--knobs", *knobs, *small)
    assert code == 0, err
    output, alone = command.folder / "out", command.folder / "alone"
    found = members(output)
    assert len(found) == len({tuple(choices.items()) for choices in found.values()}) == count
    for path in found:
        document = json.loads((output / path / "results.json").read_text())
        protocol, names = document["protocol"], ("unit", "bos", "final_period")
        options = [x for name in names for x in (f"--{name.replace('_', '-')}", protocol[name])]
        if protocol["chat"]:
            options += ["--chat", "--instruction", protocol["instruction"]]
        elif protocol["prompt"]:
            options += ["--prompt", protocol["prompt"]]
        assert command("run", "--model", model, *options, *small[:-1], alone)[0] == 0
        assert (output / path / "report.html").is_file()
        table, expected = (
            pq.read_table(folder / path / "predictions.parquet").to_pydict()
            for folder in (output, alone)
        )
        assert table.pop("log_prob") == pytest.approx(expected.pop("log_prob"), abs=CLOSE)
        assert {**table, "top_log_probs": 0} == {**expected, "top_log_probs": 0}
        other = json.loads((alone / path / "results.json").read_text())
        assert document["identity"] == other["identity"]
    assert len([*alone.rglob("results.json")]) == count


@pytest.mark.parametrize(
    ("name", "expected", "members_left"),
    [
        pytest.param("gpt2", 2 * 2 * 2 * 12, 12, marks=pytest.mark.slow),
        ("bert", 2 * (2 * 8 + 4), 4),
    ],
)
def test_each_distinct_question_is_asked_once(command, monkeypatch, name, expected, members_left):
    """Twelve combinations of twelve contexts, half with a capital, a third without a period.

    gpt2: 2 units, with and without bos, 2 cases; as they are, each context is in one of the two.
    bert, which is uncased: 2 units, 8 contexts with and without period and 4 that have none.
    """
    asked, answer = [], LocalModel.answer

    def watched(model, batch, top):
        asked.append(len(batch))
        return answer(model, batch, top)

    monkeypatch.setattr(LocalModel, "answer", watched)
    rows = [
        {"context": f"{'Tt'[i % 2]}he{' dog' * i} saw a", "target": "bird",
         "right_context": "" if i % 3 else "today."}
        for i in range(12)
    ]  # fmt: skip
    arguments = ["--data", json_lines(command.folder / "mixed.jsonl", *rows), "--quiet"]
    arguments += ["--model", command.models[name], "--output", command.folder / "out"]
    for _ in range(2):  # the second time, all runs are read back
        assert command("multiverse", *arguments)[0] == 0
        multiverse = Multiverse.read(command.folder / "out")
        assert sum(asked) == expected
        assert len(multiverse.members) == members_left
        assert ("first-letter" in multiverse.choices(*multiverse.models)) == (name == "gpt2")
    assert not [*command.folder.rglob("shared")]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "default"), [("gpt2", "never"), ("llama", "always")])
def test_bos_is_named_by_what_stands_there_and_units_of_two_dtypes_are_loaded_again(
    command, small, monkeypatch, family, default
):
    """On accelerators, unit token has the dtype of the checkpoint and unit word float32."""
    loaded, load, reuse = [], models.load, LocalModel.with_options

    def on_accelerators(model, options):
        return reuse(model, options) if options.unit == model.options.unit else None

    monkeypatch.setattr(models, "load", lambda *given: loaded.append(given[1].unit) or load(*given))
    monkeypatch.setattr(LocalModel, "with_options", on_accelerators)
    model = FAMILIES[family].make(command.folder / family)
    assert command("multiverse", "--model", model, "--knobs", "unit,bos", *small)[0] == 0
    assert loaded == ["token", "word"]
    found = members(command.folder / "out")
    assert len(found) == 4
    assert found[f"{family}/neg136-token-limit8"]["bos"] == default  # with auto, as a run has it


@pytest.mark.slow
def test_whole_sentences(command):
    """Causal models with and without the token, in both units; masked ones by both ways to mask."""
    texts = ("The dog runs home.", "The dog run home.")
    rows = [{"id": t, "contrast": "1", "sentence": t, "good": t is texts[0]} for t in texts]
    data = json_lines(command.folder / "pairs.jsonl", *rows)
    arguments = ["--data", data, "--output", command.folder / "out", "--quiet", "--model"]
    assert command("multiverse", *arguments, *command.models.values())[0] == 0
    multiverse = Multiverse.read(command.folder / "out")
    models = multiverse.models
    assert [(models.index(m.model), *m.choices.values()) for m in multiverse.members] == [
        (0, "within-word"), (0, "original"), (1, "token", "always"), (1, "token", "never"),
        (1, "word", "always"), (1, "word", "never"),
    ]  # fmt: skip
    arguments += [command.models["gpt2"], "--knobs", "first-letter"]
    error = command.refused("multiverse", *arguments)
    assert "first-letter does not apply to whole sentences: choose from unit, bos" in error


def test_bad_input_is_one_line(command, small):
    for arguments, message in (
        (["--knobs", "units"], "--knobs units (did you mean 'unit'?): choose from unit, bos"),
        (["--knobs", "pll"], "--knobs pll does not apply to rows with a blank"),
        (["--prompt", PROMPT, "--knobs", "unit"], "add prompt to --knobs"),
        (["--instruction", "Go on."], "give --chat, too"),
        (["--chat"], "has no chat template"),
        (["--dtype", "bfloat16"], "unit word needs float32, not bfloat16: use --dtype float32, or"),
    ):
        arguments += ["--model", "demo:causal", *small]
        assert message in command.refused("multiverse", *arguments)
    assert not [*command.folder.rglob("multiverse.json")]
    arguments = ["--model", command.models["bert"], "--knobs", "unit,prompt", "--prompt", PROMPT]
    code, _, err = command("multiverse", *arguments, *small)
    assert code == 0
    assert "bert is not causal: it is asked without a prompt" in err
    assert len(members(command.folder / "out")) == 2


def test_all_processes_ask_the_models_of_the_first_one(command, small, monkeypatch):
    """Each process looks up revisions on the Hub by itself, and may get another list."""
    of_first = [("a-model", "step1", None)]

    def share(self, value):
        """The value of the first process, which found another revision than this one."""
        is_list_of_models = isinstance(value, list) and value and len(value[0]) == 3
        return of_first if is_list_of_models else value

    def run_members(model, options, *_):
        raise BadInput(f"asked {model} at {options.revision}")

    monkeypatch.setattr(processes.Processes, "share", share)
    monkeypatch.setattr(combinations, "run_members", run_members)
    code, _, error = command("multiverse", *small, "--model", "a-model", "--revision", "step2")
    assert code == 2
    assert "asked a-model at step1" in error


# ---- what follows --------------------------------------------------------------------------------


class Planted(FakeModel):
    """A masked model of contexts that end with the number of their contrast; `good` is good.

    Model a prefers the good word in unit word, model b in the first six contrasts.
    """

    def __init__(self, model_id, options):
        self.info, self._options = model_info(id=model_id), options

    def key(self, encoded, top):
        """Another one for any other options: nothing is shared."""
        return repr((encoded, top, self._options))

    def with_options(self, options):
        return Planted(self.info.id, options)

    def reply(self, question, top):
        is_early = int(question.query.context.rsplit(maxsplit=1)[-1]) < 6
        prefers_good = self._options.unit == "word" if self.info.id.endswith("a") else is_early
        first = "good" if prefers_good else "bad"
        nats = {word: -0.5 if word == first else -1.5 for word in question.words}
        scores = {word: WordScore(p, 1 if word == first else 2, 1) for word, p in nats.items()}
        return Answer(scores, (first,), (-0.5,))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A multiverse of two models, in two units and three cases, on twelve contrasts. Read only."""
    folder = tmp_path_factory.mktemp("planted")
    rows = [
        {"id": f"{i}{word}", "contrast": str(i), "context": f"number {i}", "target": word,
         "good": word == "good"}
        for i in range(12)
        for word in ("good", "bad")
    ]  # fmt: skip
    data = json_lines(folder / "planted.jsonl", *rows)
    call = ["--data", str(data), "--output", str(folder / "out"), "--quiet"]
    call += ["--model", "planted:a", "planted:b", "--knobs", "unit,first-letter"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "load", Planted)
        assert main(["multiverse", *call]) == 0
    return folder / "out"


@pytest.fixture
def copied(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "copied"))


def printed(multiverse):
    """The lines that the terminal shows."""
    console = Console(file=io.StringIO(), width=300, highlight=False, force_terminal=False)
    print_output(output_of(multiverse), console)
    return str(console.file.getvalue()).splitlines()


def test_the_knob_that_a_model_depends_on_is_found(made):
    multiverse, loaded = Multiverse.read(made), lmdiag.load_multiverse(made)
    frame = loaded.to_frame()
    values = frame[(frame.measure == "sensitivity") & (frame.model == "planted:a")]
    assert {*zip(values.unit, values.value, strict=True)} == {("token", 0.0), ("word", 1.0)}
    assert all((Path(run) / "results.json").is_file() for run in frame.run)
    assert "unit token, word" in str(loaded)
    (figure,) = (x for x in multiverse.figures if x.measure == "sensitivity")
    charts = replace(loaded, figures=[figure]).charts()
    assert [type(chart).__name__ for chart in charts.values()] == ["VConcatChart"] * 3
    assert [x.value for _, x in multiverse.curve(figure, "planted:a")] == [0.0] * 3 + [1.0] * 3
    effects = {"unit": 1.0, "first-letter": 0.0}
    assert multiverse.range_of(figure, "planted:a") == {
        "lowest": 0.0, "median": 0.5, "highest": 1.0, "effects": effects,
    }  # fmt: skip
    # default, lowest, median, highest, and what each knob moves
    line = ["sensitivity", "0.0", "0.0", "50.0", "100.0", "100.0", "0.0"]
    assert line in [line.split() for line in printed(multiverse)]
    assert any("6 protocols: unit token, word; first" in line for line in printed(multiverse))
    plot = next(p for p in output_of(multiverse).plots if p.name.endswith("sensitivity-1"))
    places = {}
    for row in plot.spec["vconcat"][1]["data"]["values"]:
        places.setdefault(row["choice"], []).append(row["place"])
    # the strongest knob comes first
    assert [*places.items()][:2] == [("unit token", [1, 2, 3]), ("unit word", [4, 5, 6])]
    points = plot.spec["data"]["values"]
    assert {row["place"]: row["value"] for row in points} == {i: i > 3 for i in range(1, 7)}
    defaults = [row["protocol"] for row in points if row["default"]]
    assert defaults == ["unit token, first-letter as-is (default)"]


def test_two_models_protocol_by_protocol(made):
    """Of each protocol six contrasts are discordant, all in one direction.

    z is sqrt(6), and Holm's method multiplies p by the six pairs.
    """
    multiverse = Multiverse.read(made)
    (figure,) = (x for x in multiverse.figures if x.measure == "sensitivity")
    pairs = multiverse.differences(figure, "planted:b")
    assert [pair.difference for pair in pairs.values()] == [-0.5] * 3 + [0.5] * 3
    units = [multiverse.members[a].choices["unit"] for a, _ in pairs]
    assert units == ["word"] * 3 + ["token"] * 3
    for (a, b), pair in pairs.items():
        assert multiverse.members[a].choices == multiverse.members[b].choices
        assert (pair.test, pair.n, pair.n_tests) == ("mcnemar", 12, 6)
        p = math.erfc(math.sqrt(6 / 2))  # two-sided, of the normal distribution
        assert (pair.p, pair.p_adjusted) == pytest.approx((p, 6 * p))
    counts = {"higher": 3, "lower": 3, "equal": 0, "rejected": 6, "adjusted": 0, "n_tests": 6}
    assert counts_of(pairs.values()) == counts
    line = ["sensitivity", "3", "3", "0", "6", "0", "6"]
    assert line in [line.split() for line in printed(multiverse)]


def test_effects_compare_what_was_asked_with_both_choices():
    """A chat template has one bos only, and is compared with the other prompts at that bos.

    bos: (.5 + .7) / 2 - (.1 + .3) / 2 = .4; chat - none at bos always: 1.2 - .5 = .7 and chat -
    prompt .5; prompt - none: .2 in both.
    """
    values = [
        ({"bos": "always", "prompt": "none"}, 0.5), ({"bos": "always", "prompt": "{context}"}, 0.7),
        ({"bos": "never", "prompt": "none"}, 0.1), ({"bos": "never", "prompt": "{context}"}, 0.3),
        ({"bos": "always", "prompt": "chat"}, 1.2),
    ]  # fmt: skip
    assert effects_of(*zip(*values, strict=True)) == pytest.approx({"bos": 0.4, "prompt": 0.7})
    assert effects_of(*zip(values[0], strict=True)) == {}


# ---- files ---------------------------------------------------------------------------------------


def test_a_damaged_multiverse_is_refused(made, tmp_path):
    for change, message in (
        (lambda d: d.update(schema_version=2), "schema_version: input should be 1"),
        (lambda d: d.pop("members"), "members: field required"),
        (lambda d: d.update(members=[]), "members: there are none"),
        (lambda d: d["members"][0].update(path="../../etc"), "leads out of the folder"),
        (lambda d: d["members"][0]["choices"].update(luck="good"), "there is no knob 'luck'"),
        (lambda d: d["figures"][0].pop("label"), "label: field required"),
    ):
        document = json.loads((made / "multiverse.json").read_text())
        document.pop("sha256", None)
        change(document)
        (tmp_path / "multiverse.json").write_text(json.dumps(document))
        with pytest.raises(BadInput, match=rf"multiverse\.json: .*{message}"):
            lmdiag.load_multiverse(tmp_path)
    document = json.loads((made / "multiverse.json").read_text())
    document["members"][0]["signature"] += "|of:another"
    copied = shutil.copytree(made, tmp_path / "copied")
    for message in ("is not as lmdiag wrote it", "was not made of the run in"):
        (copied / "multiverse.json").write_text(json.dumps(document))
        with pytest.raises(BadInput, match=rf"multiverse\.json {message}"):
            lmdiag.load_multiverse(copied)
        document.pop("sha256", None)
    with pytest.raises(BadInput, match=r"has no multiverse\.json"):
        lmdiag.load_multiverse(tmp_path / "absent")


@pytest.mark.slow
def test_the_report_of_a_multiverse(command, copied):
    multiverse = Multiverse.read(copied)
    document = json.loads((copied / "multiverse.json").read_text())
    assert document.items() > multiverse.to_json().items()
    page = (copied / "multiverse.html").read_bytes()
    (copied / "multiverse.html").unlink()
    figures = command.folder / "figures"
    for options in ([], ["--out", figures]):
        assert command("report", copied, *options)[0] == 0
    assert (copied / "multiverse.html").read_bytes() == page
    assert len([*figures.glob("*.svg")]) == len(output_of(multiverse).plots)


def test_options_that_a_multiverse_does_not_have_are_refused_by_its_report(command, copied):
    for options in (["--across", "unit"], ["--data", "demo"], ["--conditions", "a"]):
        assert "is a multiverse: leave out" in command.refused("report", copied, *options)


def test_links_of_a_page_lead_from_its_own_folder_to_the_runs(command, copied):
    other = command.folder / "mv.html"
    for page, options in ((copied / "multiverse.html", []), (other, ["--out", other])):
        code, _, error = command("report", copied, *options)
        assert code == 0, error
        links = re.findall(r'href="([^"#:]*report\.html)"', page.read_text())
        assert len(links) == len(Multiverse.read(copied).members)
        for link in links:
            assert (page.parent / unquote(link)).parent.joinpath("results.json").is_file()


@pytest.mark.slow
def test_the_page_is_safe_and_fits(copied, new_page):
    """Text of models and prompts stays text; at any width nothing sticks out."""
    multiverse, texts = Multiverse.read(copied), [*HOSTILE.values()]
    changed = [
        replace(member, model=f"{member.model[-1]} {texts[0]}",
                choices=member.choices | {"prompt": "".join(texts[i::6])})
        for i, member in enumerate(multiverse.members)
    ]  # fmt: skip
    hostile, path = replace(multiverse, members=changed), copied / "hostile.html"
    assert all(line.isprintable() for line in printed(hostile))
    path.write_text(shown_as("html", hostile))
    for width, scheme in ((1280, "light"), (420, "dark")):
        page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        drawn = page.locator("figure .plot svg:visible")
        assert 0 < drawn.count() == page.locator("figure").count() <= 12
        paper, *texts = colors_of(page, "body", "figcaption", "figure svg text", "td b")
        assert (brightness(paper) < 150) == (scheme == "dark")
        assert all(abs(brightness(text) - brightness(paper)) > 300 for text in texts)
