"""Everything that is not one of the built-in diagnostics: a user's own items.

No column name has a special meaning beyond the core columns: every further column with a few
distinct values is a break-down, `condition` included.
"""

from __future__ import annotations

from lmdiag.diagnostics.base import Diagnostic, FigureSelection

DIAGNOSTIC = Diagnostic(
    name="custom",
    is_form=True,
    about=(
        "A diagnostic of your own. Accuracy where rows have expected words; sensitivity where good "
        "and bad rows are compared; surprisal and rank of the words."
    ),
    breakdowns=("condition",),
    further_measures=("share_correlation", "surprisal", "rank"),
    headlines=(
        FigureSelection(("accuracy@*", "sensitivity*", "surprisal")),
        FigureSelection(("surprisal",), "condition"),
        FigureSelection(("rank",)),
    ),
)
