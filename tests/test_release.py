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


def hashed(file):
    """Returns name -> version in a file with hashes; those of one system alone are left out."""
    text = (ROOT / file).read_text("utf-8")
    requirement = r"^(\S+)==(\S+)( ; .*)? (?:\\\n    --hash=sha256:[0-9a-f]{64} ?)+$"
    requirements = re.findall(requirement, text, re.M)
    assert len(requirements) == len(re.findall(r"^\S+==", text, re.M)) > 20
    return {re.sub(r"[-_.]+", "-", name): x for name, x, marker in requirements if not marker}


def test_the_release_is_built_with_the_tested_versions_by_hash():
    constraints = (ROOT / "constraints.txt").read_text("utf-8").lower()
    tested = dict(re.findall(r"^(\S+)==(\S+)$", constraints, re.M))
    tested = {re.sub(r"[-_.]+", "-", name): version for name, version in tested.items()}
    for file in (".github/release-requirements.txt", "constraints-hashes.txt"):
        assert hashed(file).items() <= tested.items()
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    job = release["jobs"]["build"]
    (install,) = (step["run"] for step in job["steps"] if "pip" in step.get("run", ""))
    assert "--require-hashes" in install
    assert "env" not in job  # no further index
