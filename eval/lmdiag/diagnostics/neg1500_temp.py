"""NEG-1500-SIMP-TEMP: category membership and negation, 770 pairs of sentences from a template.

As NEG-1500-SIMP-GEN, with the categories and members of Battig and Montague (1969).

Source: Shivagunde, Lialin and Rumshisky (2023), section 3.1.
"""

from __future__ import annotations

from dataclasses import replace

from lmdiag.diagnostics import neg1500_gen

_ACCURACY, _SENSITIVITY = neg1500_gen.DIAGNOSTIC.tables

DIAGNOSTIC = replace(
    neg1500_gen.DIAGNOSTIC,
    name="neg1500_temp",
    title="NEG-1500-SIMP-TEMP: category membership and negation",
    short_title="NEG-1500-TEMP",
    about=(
        "Affirmative and negated statements of category membership, as in NEG-136-SIMP, from a "
        "template. Accuracy: the category is among the first k words of the model in affirmative "
        "sentences. Sensitivity: the word that makes a sentence true is more probable than the "
        "word that makes it false."
    ),
    position=6,
    tables=(replace(_ACCURACY, source="Shivagunde et al. 2023, tables 2 and 3"), _SENSITIVITY),
    published_rows=3080,
)
