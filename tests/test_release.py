"""The files that a release consists of agree on its version and its date: docs/releasing.md."""

import re
from pathlib import Path

import yaml

from lmdiag import __version__

ROOT = Path(__file__).resolve().parents[1]


def test_version_and_date_agree():
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, date = re.findall(r"^## (\S+) \((.*)\)$", changes, re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert version == __version__ == citation["version"]
    assert f"version = {{{__version__}}}" in (ROOT / "docs/citing.md").read_text("utf-8")
    assert date == str(citation.get("date-released", "unreleased"))


def test_the_release_is_built_with_the_tested_versions_by_hash():
    text = (ROOT / ".github/release-requirements.txt").read_text("utf-8")
    requirements = re.findall(
        r"^(\S+==\S+) ((?:\\\n    --hash=sha256:[0-9a-f]{64} ?)+)$", text, re.M
    )
    assert len(requirements) == text.count("==") > 20
    constraints = (ROOT / "constraints.txt").read_text("utf-8").lower()
    tested = {re.sub(r"[-_.]+", "-", line) for line in constraints.splitlines()}
    assert {re.sub(r"[-_.]+", "-", version) for version, _ in requirements} <= tested
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    job = release["jobs"]["build"]
    (install,) = (step["run"] for step in job["steps"] if "pip" in step.get("run", ""))
    assert "--require-hashes" in install
    assert "env" not in job  # no further index
