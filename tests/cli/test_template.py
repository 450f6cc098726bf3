"""`lmdiag template`: the file is written, loads as stimuli, and nothing is lost by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag import stimuli
from lmdiag.cli import main


def test_starter_files_load_and_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["template"]) == 0
    for name in ("mine.tsv", "mine.jsonl"):
        assert main(["template", name]) == 0
    loaded = [
        stimuli.load(name, Path(name).stem)
        for name in ("my_diagnostic.csv", "mine.tsv", "mine.jsonl")
    ]
    assert len({rows.fingerprint for rows in loaded}) == 1
    assert len(loaded[0]) == 5


@pytest.mark.parametrize("name", ["my.csv", "my.tsv", "my.jsonl"])
def test_the_smallest_form_is_shown_and_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / name
    assert main(["template", str(file), "--minimal"]) == 0
    lines = file.read_text().splitlines()
    assert lines[0] in capsys.readouterr().out
    assert main(["template", str(file), "--overwrite"]) == 0
    assert lines[1] in capsys.readouterr().out
    file.write_text("\n".join(lines))
    rows = stimuli.load(str(file))
    assert (len(rows), rows.compared) == (5, False)


def test_it_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["template", str(tmp_path / "my.csv")]) == 0
    assert f"lmdiag run --model MODEL --data {tmp_path / 'my.csv'}" in capsys.readouterr().out


def test_a_file_is_replaced_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.csv"
    file.write_text("years of work")
    assert main(["template", str(file)]) == 2
    assert (
        "my.csv exists already: choose another name, or add --overwrite" in capsys.readouterr().err
    )
    assert file.read_text() == "years of work"
    assert main(["template", str(file), "--overwrite"]) == 0
    assert file.read_text().startswith("id,item,")


@pytest.mark.parametrize(
    ("name", "message"),
    [("my.xlsx", "the file name must end in .csv, .tsv, .jsonl"), ("no/my.csv", "no directory")],
)
def test_mistakes_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert main(["template", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err
