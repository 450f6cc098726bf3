"""Test suites: formulas on the surprisals of regions (Hu et al. 2020; Gauthier et al. 2020)."""

from __future__ import annotations

from lmdiag.diagnostics.base import Diagnostic

DIAGNOSTIC = Diagnostic(
    name="suites",
    title="",
    short_title="",
    about="",
    breakdowns=("suite",),
    asks="sentence",
    has_regions=True,
    is_form=True,
)
