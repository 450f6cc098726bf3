"""The benchmark of accelerators runs on a processor, with tiny shapes."""

import json
from functools import partial

import pytest
from benchmarks import gpu
from benchmarks.__main__ import make_tokenizer


@pytest.mark.nightly
def test_every_section_has_figures(demo_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LMDIAG_TOKENIZERS", "none")
    monkeypatch.setattr("torch.accelerator.current_accelerator", lambda **options: None)
    rows = gpu.measure(tmp_path, str(demo_dir), partial(make_tokenizer, folder=tmp_path), 3600)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == rows
    assert {row["note"] for row in rows if "note" in row} <= {"no bitsandbytes"}
    for name in gpu.SHAPES:
        assert sum(row["model"] == name and "share" in row for row in rows) == 6
    differences = [row["nats"] for row in rows if "float64" in row["how"]]
    assert len(differences) == 2
    assert max(differences) < 1e-4
