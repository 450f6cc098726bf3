"""The Python API: the commands' own code, for notebooks and programs.

    import lmdiag

    stimuli = lmdiag.load_stimuli("lmdiag", "neg136")
    model = lmdiag.load_model("demo:masked")
    predictions = model.predict(stimuli)
    print(lmdiag.measure(predictions, stimuli))
    print(model.surprisals("A robin is a bird."))

What `measure` and `compare` return prints as tables, shows as such in a notebook, and has a method
`to_frame` that gives a pandas table, as predictions and finished runs (`load_run`) do. Measures
(`chart`), finished runs and multiverses (`load_multiverse`; `charts`) give altair charts.
"""

from __future__ import annotations

from lmdiag import stimuli
from lmdiag.api.analyses import analyse, compare, fit
from lmdiag.api.checking import check
from lmdiag.api.model import LanguageModel, load_model, measure
from lmdiag.api.runs import cloze, run
from lmdiag.results import Runs, load_run
from lmdiag.results.item_rows import TaskPredictions
from lmdiag.results.measured import Measures
from lmdiag.studies.comparison import Comparisons
from lmdiag.studies.multiverse import Multiverse

__all__ = [
    "Comparisons", "LanguageModel", "Measures", "Runs", "TaskPredictions", "analyse", "check",
    "cloze", "compare", "fit", "load_model", "load_multiverse", "load_run", "load_stimuli",
    "measure", "run",
]  # fmt: skip

load_stimuli = stimuli.load
load_multiverse = Multiverse.read
