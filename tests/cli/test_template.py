"""`lmdiag template`: the file is written and loads as stimuli, and no file is lost by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands

from lmdiag import stimuli
from lmdiag.analysis.designs import find_conditions

NAMES = ("my.csv", "my.tsv", "my.jsonl")


def test_starter_files_load_and_agree(
    command: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("template")[0] == 0
    loaded = [stimuli.load("my_diagnostic.csv")]
    for name in NAMES:
        code, out, _ = command("template", tmp_path / name)
        assert code == 0
        assert f"lmdiag run --model MODEL --data {tmp_path / name}" in out
        loaded.append(stimuli.load(name))
    assert len({rows.fingerprint for rows in loaded}) == 1
    assert len(loaded[0]) == 5


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_form_is_shown_and_loads(command: Commands, name: str) -> None:
    file = command.folder / name
    _, out, _ = command("template", file, "--minimal")
    first, second, *_ = file.read_text().splitlines()
    assert f"  {first}\n  {second}\n" in out
    rows = stimuli.load(str(file))
    assert (len(rows), rows.compared) == (5, False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [["--design", "2"], ["--design", "2x2"], ["--regions"]])
def test_a_design_is_written_and_found(command: Commands, name: str, options: list[str]) -> None:
    file = command.folder / name
    assert command("template", file, *options)[0] == 0
    rows = stimuli.load(str(file))
    factors = ["between"] if "2" in options else ["subject", "between"]
    assert len(rows) == 3 * 2 ** len(factors)
    assert (rows.regions is not None) == (options == ["--regions"])
    table = rows.table.to_pandas().assign(model="")
    assert find_conditions(table) == factors
    text = rows.columns()["sentence" if rows.regions else "context"]
    assert text[1].startswith("The key to the cabinets")


def test_a_file_is_replaced_only_when_asked(command: Commands) -> None:
    file = command.folder / "my.csv"
    file.write_text("years of work")
    error = command.refused("template", file)
    assert "my.csv exists already: choose another name, or add --overwrite" in error
    assert file.read_text() == "years of work"
    assert command("template", file, "--overwrite")[0] == 0
    assert file.read_text().startswith("id,item,")
