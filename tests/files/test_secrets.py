"""No secret in any output, log, journal or file."""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode, urlsafe_b64encode

import pytest
from families import FAMILIES

from lmdiag import cli
from lmdiag.files.secrets import has_secret, without_secrets
from lmdiag.text import change_texts

TOKEN = "hf_" + "Ab1" * 11
OWN = "my-own-kind-of-token"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://user:{TOKEN}@huggingface.co/org/data", "https://***@huggingface.co/org/data"),
        (f"https://{TOKEN}@huggingface.co", "https://***@huggingface.co"),
        ("https://me:secret@host/x and more", "https://***@host/x and more"),
        ("http://:pass@host", "http://***@host"),
        (f"token {TOKEN}, or {OWN}", "token hf_***, or ***"),
        ("https://host/x?a=1&token=abc&b=2", "https://host/x?a=1&token=***&b=2"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer ***"),
        (f"_{TOKEN}" * 2, f"_{TOKEN}" * 2),  # a token does not begin inside a word
        ("hf_hub_download is a function", "hf_hub_download is a function"),
        ("see https://host/@user and user@host", "see https://host/@user and user@host"),
    ],
)
def test_secrets_are_replaced(text, shown, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", OWN)
    assert without_secrets(text) == shown


@pytest.mark.parametrize("form", ["whole", "tail", "upper", "base64", "url"])
def test_an_echo_of_a_key_in_another_form_is_hidden(form, monkeypatch):
    key = "sk-Abcdefghij0123456789\xbf\xfe"
    encoded = b64encode(f"x:{key}".encode()), urlsafe_b64encode(key.encode())
    forms = {"whole": key, "tail": key[10:], "upper": key.upper()}
    forms |= dict(zip(("base64", "url"), [x.decode() for x in encoded], strict=True))
    monkeypatch.setenv("LMDIAG_SERVER_KEY", key)
    line = without_secrets(f"model {forms[form]} is unknown")
    assert re.fullmatch(r"model .{0,4}\*\*\*.{0,4} is unknown", line)


def test_every_text_of_a_value_is_cleaned_and_files_are_searched(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", OWN)
    value = {TOKEN: [TOKEN, 1, None, {"a": (TOKEN,)}]}
    cleaned = {"hf_***": ["hf_***", 1, None, {"a": ["hf_***"]}]}
    assert change_texts(value, without_secrets) == cleaned
    assert has_secret(b"\xff https://me:secret@host")
    assert has_secret(b"\xff " + OWN.encode())
    assert not has_secret(b"hf_hub_download is a function, hf_test a word")
    assert not has_secret(b"ssh://git@host and https://user@host")


@pytest.mark.parametrize(
    "command",
    [
        "run --model demo:masked --data {url}",
        "run --model {url} --data {data} --output {out}",
        "score --task neg136 --predictions {url} --data {data}",
        "report {url}",
        "submit {out} --results-repo {url}",
        "leaderboard {url} --out {out} --data {url}",
        "publish data {data} --repo-id {url}",
    ],
)
def test_a_token_in_an_argument_is_in_no_message(command, demo_dir, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names = {"url": f"https://user:{TOKEN}@host/x", "data": demo_dir, "out": tmp_path / "out"}
    assert cli.main([word.format(**names) for word in command.split()]) == 2
    out, error = capfd.readouterr()
    assert error.count("lmdiag: error: ") == 1
    assert TOKEN not in out + error


def test_a_run_on_data_with_a_token_in_the_path_writes_it_nowhere(demo_dir, tmp_path, capfd):
    model = FAMILIES["bert"].make(tmp_path / "bert")
    data = shutil.copytree(demo_dir, tmp_path / f"data-{TOKEN[3:]}" / "of" / f"x {TOKEN}")
    output = tmp_path / "results"
    command = ["run", "--model", str(model), "--data", str(data), "--tasks", "neg136"]
    assert cli.main([*command, "--limit", "8", "--output", str(output)]) == 0
    out, error = capfd.readouterr()
    assert TOKEN not in out + error
    for path in output.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path
    (file,) = output.rglob("results.json")
    assert json.loads(file.read_text())["data"]["source"].endswith("x hf_***")


def test_logs_and_tracebacks_have_no_secrets():
    """In a process of its own: the factory of log records belongs to the whole process."""
    code = """
import logging, sys
from lmdiag.files.secrets import redact_output
redact_output()
redact_output()
logging.basicConfig(format="%(message)s")
logging.getLogger("huggingface_hub").warning("your token %s is %s", sys.argv[1], "old")
logging.getLogger("other").error("%d", "not a number")
raise KeyError(sys.argv[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, f"{TOKEN} or {OWN}"],
        capture_output=True, text=True, env=os.environ | {"HF_TOKEN": OWN}, check=False,
    )  # fmt: skip
    assert done.stderr.startswith("your token hf_*** or *** is old\n%d\nTraceback (most ")
    assert done.stderr.endswith("KeyError: 'hf_*** or ***'\n")
