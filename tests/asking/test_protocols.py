"""Options that decide how rows are asked: what a run records of them, and what they keep apart."""

from hashlib import sha256

import pytest
from invented_runs import model_info

import lmdiag
from lmdiag import stimuli
from lmdiag.asking.protocol import Protocol, QueryOptions, bos_remark
from lmdiag.hub.benchmark import protocol_problem
from lmdiag.results import identity, load_run, protocol_slug, signature

PROMPT = "Go on:\n{context}"
QUESTION = "{options}\nAnswer:"
CHAT = "<|user|>Complete the sentence.\n<|assistant|>{context}"
"""What `families.CHAT` puts around a context."""


def digest(prompt):
    return sha256(prompt.encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("protocol", "part", "folder"),
    [
        (Protocol(prompt=PROMPT), f"prompt:{digest(PROMPT)}", f"prompt{digest(PROMPT)}"),
        (Protocol(prompt=CHAT, chat=True), f"prompt:{digest(CHAT)}", "chat"),
        (
            Protocol(prompt=CHAT, chat=True, instruction="Go on."),
            f"prompt:{digest(CHAT)}",
            f"chat{digest(CHAT)}",
        ),
        (Protocol(final_period="never"), "period:never", "periodnever"),
        (Protocol(first_letter="lower"), "letter:lower", "letterlower"),
        (Protocol(elicitation="choice"), "elicitation:choice", "elicitationchoice"),
        (
            Protocol(elicitation="choice", choice_prompt=QUESTION),
            f"elicitation:choice|question:{digest(QUESTION)}",
            f"elicitationchoice-question{digest(QUESTION)}",
        ),
    ],
)
def test_signatures_and_folders(protocol, part, folder):
    start = "lmdiag:0.2|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0"
    assert signature(Protocol(), "1a2b3c4d") == start
    assert signature(protocol, "1a2b3c4d") == f"{start}|{part}"
    assert protocol_slug(protocol) == f"diagnostics-token-{folder}"
    # another run: runs share a folder and a journal only if their identities are equal
    info = model_info(kind="causal")
    assert identity(info, protocol, "1a2b3c4d") != identity(info, Protocol(), "1a2b3c4d")
    assert protocol_problem(Protocol()) is None  # the leaderboard takes the default alone
    assert "it was not made with the default" in str(protocol_problem(protocol))


def test_options_without_effect_do_not_enter_the_signature(command):
    """The run is that of the default, and is read back."""
    model = command.models["gpt2"]
    plain, _, _ = asked(command, model)
    runs, _, err = asked(command, model, "--pll", "original", "--final-period", "never")
    assert [line.partition(" has no effect")[0] for line in err.splitlines()] == [
        "lmdiag: --pll original", "lmdiag: --final-period never",
    ]  # fmt: skip
    assert runs == plain
    rows = stimuli.load(str(command.data), "neg136", limit=8)
    loaded = lmdiag.load_model(str(model), pll="original", final_period="never")
    with pytest.warns(UserWarning, match="has no effect"):
        predictions = loaded.predict(rows)
    assert (predictions.pll, predictions.final_period) == ("within-word", "always")


@pytest.mark.pages
def test_a_line_says_where_bos_contradicts_the_tokenizer_or_the_training(command):
    adds, lacks, read = {"tokenizer_bos": True}, {"tokenizer_bos": False}, {"sentence_bos": True}
    for facts, bos, asks, line in (
        (adds | {"bos": True}, "auto", "word", ""),
        (adds, "never", "word", "--bos never leaves out the beginning-of-"),
        (adds | {"kind": "masked"}, "never", "word", ""),
        (lacks | read, "always", "sentence", ""),  # as with auto
        ({"id": "google/gemma-4-E2B"}, "auto", "word", "Gemma was trained with one and fails"),
        ({"architecture": "GemmaForCausalLM", "bos": True}, "always", "word", ""),
        ({"id": "EleutherAI/pythia-70m"}, "auto", "word", ""),
        ({"id": "EleutherAI/pythia-70m"} | read, "auto", "sentence", "data of Pythia have none"),
        ({"id": "gemma/gpt2"}, "auto", "word", ""),
    ):
        query = {"bos": bos}
        remark = bos_remark(QueryOptions(**query), model_info(**{"kind": "causal"} | facts), asks)
        assert line in remark if line else not remark
    runs, out, err = asked(command, command.models["gpt2"], "--bos", "always")
    for page in (out, err, (runs["-bosalways"] / "report.html").read_text("utf-8")):
        assert page.count("--bos always adds a beginning-of-sequence token") == 1


def asked(command, model, *options):
    """Runs a model on a few rows; returns the folders of all runs so far, and what was printed."""
    code, out, err = command(
        "run", "--model", model, "--data", command.data, "--tasks", "neg136", "--limit", 8,
        "--output", command.folder / "results", "--quiet", *options,
    )  # fmt: skip
    assert code == 0, err
    folders = (command.folder / "results").glob("*/*")
    named = {path.name.removeprefix("neg136-token-limit8"): path for path in folders}
    return named, " ".join(out.split()), err


@pytest.mark.slow
def test_runs_with_prompts_and_chats(command):
    model = command.models["gpt2"]
    (command.folder / "prompt.txt").write_text(f"{PROMPT}\n", "utf-8")
    assert "prompt " not in asked(command, model)[1]
    _, out, _ = asked(command, model, "--prompt", command.folder / "prompt.txt")
    assert "prompt Go on:⏎{context}" in out
    _, out, _ = asked(command, model, "--chat")
    shown = CHAT.replace("\n", "⏎")
    assert f"instruction Complete the sentence. · chat template {shown}" in out
    runs, _, _ = asked(command, model, "--chat", "--instruction", "Go on.")
    other = CHAT.replace("Complete the sentence.", "Go on.")
    prompts = (f"prompt{digest(PROMPT)}", "chat", f"chat{digest(other)}")
    assert runs.keys() == {"", *(f"-{name}" for name in prompts)}
    plain, chat = (load_run(runs[name]) for name in ("", "-chat"))
    protocol = chat.results.protocol
    assert (protocol.prompt, protocol.chat) == (CHAT, True)
    assert protocol.instruction == "Complete the sentence."

    with_chat, without = (run.predictions["neg136"]["none", 0] for run in (chat, plain))
    assert with_chat.log_prob != pytest.approx(without.log_prob, abs=1e-3)
    rows = chat.stimuli["neg136"]
    predictions = lmdiag.load_model(str(model), chat=True).predict(rows)
    assert f"|prompt:{digest(CHAT)}" in lmdiag.measure(predictions, rows).signature
    earlier = chat.path.with_name(f"{chat.path.name}{digest(CHAT)}")  # its name in earlier versions
    chat.path.rename(earlier)
    assert {*asked(command, model, "--chat")[0].values()} == {*runs.values(), earlier} - {chat.path}


def test_runs_that_are_refused(command):
    masked, causal = command.models["bert"], command.models["gpt2"]
    sentences = command.folder / "sentences.csv"
    sentences.write_text("sentence\nA robin is a bird.\n", "utf-8")
    whole = "cannot be used on whole sentences"
    for (data, model, *options), message in {
        (command.data, causal, "--prompt", "x" * 5000): "option prompt must be a text, or a file",
        # what is wrong with every model is said once
        (command.data, causal, masked, "--chat", "--prompt", PROMPT): "beside --chat",
        (sentences, causal, "--chat"): whole,
        (sentences, causal, "--first-letter", "upper"): whole,
    }.items():
        start = ["run", "--data", data, "--output", command.folder, "--quiet", "--model", model]
        assert message in command.refused(*start, *options)
