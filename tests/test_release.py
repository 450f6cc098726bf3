"""The files that a release consists of agree on its version and its date: docs/releasing.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from lmdiag import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_version_and_date_agree() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    version, date = re.findall(r"^## (\S+) \((.*)\)$", changes, re.MULTILINE)[0]
    assert version == __version__ == CITATION["version"]
    assert f"version = {{{__version__}}}" in (ROOT / "docs/citing.md").read_text("utf-8")
    assert date == str(CITATION.get("date-released", "unreleased"))


def test_workflows_are_off_pinned_and_only_the_upload_may_write() -> None:
    """Off until a maintainer switches them on."""
    assert [path.name for path in WORKFLOWS] == ["nightly.yml", "release.yml", "tests.yml"]
    for path in WORKFLOWS:
        text = path.read_text("utf-8")
        actions = re.findall(r"uses: (.*)", text)
        assert actions
        for action in actions:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), action
        workflow: dict[Any, Any] = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}
        jobs = workflow["jobs"]
        for name, job in jobs.items():
            is_off = "vars.LMDIAG_WORKFLOWS == 'on'" in str(job.get("if"))
            assert is_off or job.get("needs"), (path.name, name)
        rights = {name: job["permissions"] for name, job in jobs.items() if "permissions" in job}
        assert rights == ({"upload": {"id-token": "write"}} if path.stem == "release" else {})


def test_the_release_is_built_with_the_tested_versions_by_hash() -> None:
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


def test_the_workflows_test_the_versions_of_python_that_are_declared() -> None:
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    setup = (ROOT / "setup.cfg").read_text("utf-8")
    declared = re.findall(r"Programming Language :: Python :: (3\.\d+)$", setup, re.MULTILINE)
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == declared
    assert f"python_requires = >={declared[0]}" in setup
