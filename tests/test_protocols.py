"""Options that decide how rows are asked: what a run records of them, and what they keep apart."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from runs import model_info

import lmdiag
from lmdiag import stimuli
from lmdiag.api import LanguageModel
from lmdiag.hub.benchmark import protocol_problem
from lmdiag.models import LoadOptions, load
from lmdiag.protocol import Asking, Protocol, without_effect
from lmdiag.results import identity, load_run, protocol_slug, signature

PROMPT = "Go on:\n{context}"
CHAT = "<u>Complete the sentence.</u><a>{context}"
TEMPLATE = (
    "{% for m in messages %}{{ '<' ~ m.role[0] ~ '>' ~ m.content ~ '</' ~ m.role[0] ~ '>' }}"
    "{% endfor %}"
)


def digest(prompt: str) -> str:
    return sha256(prompt.encode()).hexdigest()[:8]


CHANGED = {
    "prompt": (Protocol(prompt=PROMPT), f"prompt:{digest(PROMPT)}", f"prompt{digest(PROMPT)}"),
    "chat": (
        Protocol(prompt=CHAT, chat=True, instruction="Complete the sentence."),
        f"prompt:{digest(CHAT)}",
        f"chat{digest(CHAT)}",
    ),
    "period": (Protocol(final_period="never"), "period:never", "periodnever"),
    "letter": (Protocol(first_letter="lower"), "letter:lower", "letterlower"),
}
"""A protocol, the part of its signature, and the part of its folder's name."""


@pytest.mark.parametrize("name", CHANGED)
def test_signatures_and_folders(name: str) -> None:
    protocol, part, folder = CHANGED[name]
    start = "lmdiag:0.1|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0"
    assert signature(Protocol(), "1a2b3c4d") == start
    assert signature(protocol, "1a2b3c4d") == f"{start}|{part}"
    assert protocol_slug(protocol) == f"diagnostics-token-{folder}"
    # another run: runs share a folder and a journal only if their identities are equal
    info = model_info(kind="causal")
    assert identity(info, protocol, "1a2b3c4d") != identity(info, Protocol(), "1a2b3c4d")
    assert protocol_problem(Protocol()) is None  # the leaderboard takes the default alone
    assert "it was not made with the default" in str(protocol_problem(protocol))


@pytest.mark.parametrize(
    ("options", "kind", "asks", "line"),
    [
        ({"pll": "original"}, "causal", "sentence", "--pll original has no effect with a causal"),
        ({"pll": "original"}, "masked", "word", "a masked model on rows with a blank: it is left"),
        ({"bos": "always"}, "masked", "sentence", "--bos always has no effect with a masked model"),
        ({"bos": "never"}, "seq2seq", "word", "with an encoder-decoder: it is left out"),
        ({"final_period": "never"}, "causal", "word", "--final-period never has no effect"),
        ({"unit": "word"}, "masked", "sentence", "with a masked model on whole sentences"),
    ],
)
def test_options_without_effect_are_named(
    options: dict[str, Any], kind: Any, asks: str, line: str
) -> None:
    info = model_info(kind=kind)
    [(name, told)] = without_effect(Asking(**options), info, asks).items()
    assert {name} == options.keys()
    assert line in told
    knobs = Asking(unit="word", bos="never", prompt="{context}", first_letter="upper")
    for cased, names in ((True, []), (False, ["first_letter"])):
        assert [*without_effect(knobs, model_info(kind="causal", cased=cased), "word")] == names


def test_options_without_effect_do_not_enter_the_signature(
    command: Commands, tiny_models: dict[str, Path]
) -> None:
    """The run is that of the default, and is read back."""
    plain, _ = asked(command, tiny_models["gpt2"])
    code, _, err = command(
        "run", "--model", tiny_models["gpt2"], "--data", command.data, "--tasks", "neg136",
        "--limit", 8, "--output", command.folder / "results", "--quiet",
        "--pll", "original", "--final-period", "never",
    )  # fmt: skip
    assert code == 0
    assert [line.partition(" has no effect")[0] for line in err.splitlines()] == [
        "lmdiag: --pll original", "lmdiag: --final-period never",
    ]  # fmt: skip
    assert [*(command.folder / "results").glob("*/*")] == [*plain.values()]
    options = LoadOptions(pll="original", final_period="never")
    model = LanguageModel(load(str(tiny_models["gpt2"]), options), options)
    rows = stimuli.load(str(command.data), "neg136", limit=8)
    with pytest.warns(UserWarning, match="has no effect"):
        predictions = model.predict(rows)
    assert (predictions.pll, predictions.final_period) == ("within-word", "always")


# ---- commands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chatty(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model with a chat template."""
    folder = tmp_path_factory.mktemp("chatty") / "gpt2"
    shutil.copytree(tiny_models["gpt2"], folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return folder


def asked(command: Commands, model: Path, *options: object) -> tuple[dict[str, Path], str]:
    """Runs a model on a few rows; returns the folders of all runs so far, and what was printed."""
    code, out, err = command(
        "run", "--model", model, "--data", command.data, "--tasks", "neg136", "--limit", 8,
        "--output", command.folder / "results", "--quiet", *options,
    )  # fmt: skip
    assert code == 0, err
    folders = (command.folder / "results").glob("*/*")
    named = {path.name.removeprefix("neg136-token-limit8"): path for path in folders}
    return named, " ".join(out.split())


@pytest.mark.slow
def test_runs_with_prompts_and_chats(command: Commands, chatty: Path) -> None:
    (command.folder / "prompt.txt").write_text(f"{PROMPT}\n", "utf-8")
    assert "prompt" not in asked(command, chatty)[1].partition("Saved in")[0]
    _, out = asked(command, chatty, "--prompt", command.folder / "prompt.txt")
    assert "prompt Go on:⏎{context}" in out
    _, out = asked(command, chatty, "--chat")
    facts = f"instruction Complete the sentence. · chat template {CHAT}"
    assert facts in out
    runs, _ = asked(command, chatty, "--chat", "--instruction", "Go on.")
    other = CHAT.replace("Complete the sentence.", "Go on.")
    chat, plain = runs[f"-chat{digest(CHAT)}"], runs[""]
    assert runs.keys() == {
        "", f"-prompt{digest(PROMPT)}", f"-chat{digest(CHAT)}", f"-chat{digest(other)}"
    }  # fmt: skip
    protocol = load_run(chat).results.protocol
    assert (protocol.prompt, protocol.chat) == (CHAT, True)
    assert protocol.instruction == "Complete the sentence."
    assert "<dt>Chat template</dt>" in (chat / "report.html").read_text("utf-8")
    assert "<dt>Chat template</dt>" not in (plain / "report.html").read_text("utf-8")

    # a finished run is read back
    written = (chat / "results.json").stat().st_mtime_ns
    asked(command, chatty, "--chat", "--instruction", "Complete the sentence.")
    assert (chat / "results.json").stat().st_mtime_ns == written

    # the same through Python
    stimuli = load_run(chat).stimuli["neg136"]
    predictions = lmdiag.load_model(str(chatty), chat=True).predict(stimuli)
    ours = load_run(chat).predictions["neg136"]["none", 0]
    assert predictions.prompt == ours.prompt == CHAT
    assert predictions.log_prob == pytest.approx(ours.log_prob, abs=1e-5)
    assert f"|prompt:{digest(CHAT)}" in lmdiag.measure(predictions, stimuli).signature
    theirs = load_run(plain).predictions["neg136"]["none", 0]
    assert ours.log_prob != pytest.approx(theirs.log_prob, abs=1e-3)


def test_commands_that_are_refused(command: Commands, chatty: Path) -> None:
    start = ["run", "--data", command.data, "--output", command.folder, "--model"]
    masked, causal = command.models["bert"], command.models["gpt2"]
    for (model, *options), told in {
        (chatty, "--instruction", "Go on."): "instruction is the user's turn of a chat: give",
        (chatty, "--chat", "--bos", "never"): "options chat and bos exclude each other",
        (chatty, "--prompt", "x" * 5000): "option prompt must be a text, or a file",
        (chatty, "--prompt", "no-such.txt"): "where the context goes, not 'no-such.txt'",
        (causal, "--chat"): "has no chat template: leave out --chat",
        (masked, "--chat"): "is not causal, and --chat is for models that continue",
        (masked, "--prompt", PROMPT): "is not causal, and --prompt is for",
    }.items():
        assert told in command.refused(*start, model, *options)
    # what is wrong with every model is said once
    both = command.refused(*start, chatty, masked, "--chat", "--prompt", PROMPT)
    assert "exclude each other" in both


def test_whole_sentences_are_refused(command: Commands, chatty: Path) -> None:
    file = command.folder / "sentences.csv"
    file.write_text("sentence\nA robin is a bird.\n", "utf-8")
    start = ["run", "--data", file, "--output", command.folder, "--quiet", "--model", chatty]
    for options in (
        ["--chat"], ["--prompt", PROMPT], ["--final-period", "never"], ["--first-letter", "upper"]
    ):  # fmt: skip
        assert "leave them out for whole sentences" in command.refused(*start, *options)
