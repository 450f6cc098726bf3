"""What a command asks of each of its models: the rows in every setting, the verbs, the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from lmdiag import results
from lmdiag.asking.elicitation import wording_of
from lmdiag.asking.protocol import Protocol, QueryOptions, query_options
from lmdiag.asking.questions import Setting
from lmdiag.stimuli.designs.design import Design, check_columns, design_of
from lmdiag.stimuli.perturbations import NONE, chosen, perturb, settings
from lmdiag.types import AS_IT_IS, DIAGNOSTICS, FOUND_DESIGN, BadInput, DesignOptions, TableOptions

if TYPE_CHECKING:
    from lmdiag.results import Results
    from lmdiag.stimuli import Stimuli
    from lmdiag.types import ModelInfo


@dataclass(frozen=True)
class Inputs:
    """All that is asked of every model of a command.

    Attributes:
        stimuli: task -> its rows, unperturbed.
        settings: the rows in every setting, task by task.
        verbs: (singular, plural) forms for EW and MW; empty without agreement.
        protocol: what decides the numbers.
        design: how the items of own data are analysed, which is stored with the runs.
        table: how a table of own rows was read, likewise.
    """

    stimuli: Mapping[str, Stimuli]
    settings: Sequence[Setting]
    verbs: Sequence[tuple[str, str]]
    protocol: Protocol
    design: DesignOptions
    table: TableOptions

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all tasks' data."""
        return results.combined_fingerprint(
            {task: rows.fingerprint for task, rows in self.stimuli.items()}
        )

    def identity(self, info: ModelInfo) -> dict[str, str | None]:
        """Returns the facts that two runs must have in common to share a directory.

        These are the model `info`, the data and the protocol, see `results.identity`.
        """
        is_word = self.asks == "word"
        return results.identity(info, self.protocol, self.fingerprint, asks_words=is_word)

    def designs(self) -> dict[str, Design]:
        """Returns task -> the design of its rows, with warnings of what looks wrong in them.

        Built-in diagnostics, whose rows have no design, are left out.
        """
        designs = {task: design_of(rows, self.design) for task, rows in self.stimuli.items()}
        return {task: design for task, design in designs.items() if design}

    def record(self, results: Results, warning: str | None) -> Results:
        """Returns results that also say how the user's rows are analysed and were read.

        They also get the warnings.

        Args:
            results: the results of a run on these inputs.
            warning: of the model; None if it has none. Warnings of what looks wrong in the rows
                follow it, each after the name of its task.
        """
        warnings = [warning] if warning else []
        for task, design in self.designs().items():
            warnings += [f"{task}: {line}" for line in design.warnings]
        return replace(results, design=self.design, table=self.table, warnings=warnings)

    def asked_by(self, query: QueryOptions) -> Inputs:
        """Returns the same rows, asked with other query options.

        `BadInput` if the options ask for a choice between the rows of a contrast, and a task has no
        contrasts.
        """
        wording = wording_of(query)  # None without a choice
        if wording:
            for task, rows in self.stimuli.items():
                if not rows.compared:
                    raise BadInput(
                        f"{task} has nothing to choose between: --elicitation choice needs the "
                        "columns good and contrast"
                    )
        settings = [
            replace(setting, wording=wording, entropy=query.entropy) for setting in self.settings
        ]
        protocol = replace(self.protocol, **query_options(query))
        return replace(self, settings=settings, protocol=protocol)

    def at_layer(self, layer: int | None) -> Inputs:
        """Returns the same rows, asked after a layer (from 0); None for the last one."""
        return replace(self, protocol=replace(self.protocol, layer=layer))

    @property
    def top(self) -> int:
        """Length of the lists of top words: the longest that the protocol or a diagnostic needs."""
        return max(self.protocol.top, *(rows.diagnostic.top for rows in self.stimuli.values()))

    @property
    def asks(self) -> Literal["word", "sentence"]:
        """What all rows ask, see `Diagnostic.asks`."""
        first_task = next(iter(self.stimuli.values()))
        return first_task.diagnostic.asks  # `load_inputs` refuses tasks that ask differently


def load_inputs(
    data: Any,
    protocol: Protocol,
    *,
    verbs: str | None = None,
    allow_duplicates: bool = False,
    design: DesignOptions = FOUND_DESIGN,
    table: TableOptions = AS_IT_IS,
    responses: bool = False,
) -> Inputs:
    """Loads the rows of the protocol's tasks and perturbs them for each setting.

    Args:
        data: data set or rows in memory, see `lmdiag.stimuli.load`.
        protocol: tasks, perturbations, shuffles, seed and limit count here. Without tasks, those of
            the three diagnostics that the data set has, or else all; see `perturb.chosen`.
        verbs: file of verb forms; None for those of the data set.
        allow_duplicates, responses: see `lmdiag.stimuli.load`.
        design, table: see `Inputs`.
    """
    from lmdiag import stimuli

    seed = protocol.seed
    tasks = tuple(dict.fromkeys(protocol.tasks))
    if len(tasks) > 1 and not isinstance(data, str):
        raise BadInput(f"--tasks {' '.join(tasks)}: rows in memory have one name")
    if not tasks:
        available = stimuli.tasks(data)
        built_in_tasks = tuple(task for task in available if task in DIAGNOSTICS)
        tasks = built_in_tasks or tuple(available)
    protocol = replace(protocol, tasks=tasks, perturb=chosen(protocol.perturb, tasks))
    # the unperturbed rows of each task
    reading_options: dict[str, Any] = {"limit": protocol.limit, "seed": seed}
    reading_options |= {
        "allow_duplicates": allow_duplicates,
        "responses": responses,
        **table.stored(),
    }
    stimuli_of_task = {task: stimuli.load(data, task, **reading_options) for task in tasks}
    _check_together(stimuli_of_task)
    check_columns(stimuli_of_task, design)
    all_settings = []  # the rows again in each setting, a shuffled setting once for each shuffle
    for task, rows in stimuli_of_task.items():
        for name, shuffle in settings(task, protocol.perturb, protocol.shuffles):
            asked_rows = rows if name == NONE else perturb(rows, name, shuffle, seed)
            all_settings.append(Setting(asked_rows, name, shuffle))
    verb_pairs = []
    if any(rows.diagnostic.has_verbs for rows in stimuli_of_task.values()):
        verb_pairs = stimuli.load_verbs(verbs or stimuli_of_task[tasks[0]].source)
    protocol = replace(protocol, verbs=len(verb_pairs) or None)
    inputs = Inputs(stimuli_of_task, all_settings, verb_pairs, protocol, design, table)
    return inputs.asked_by(protocol)  # which sets the wording and the entropy of the settings


def _check_together(stimuli_of_task: Mapping[str, Stimuli]) -> None:
    """Raises `BadInput` for tasks that cannot be in one run.

    These are tasks that have an id in common, since predictions are stored by id; and a task of
    words at blanks together with one of whole sentences, which are asked in different ways.
    """
    task_of_id: dict[str, str] = {}
    for task, rows in stimuli_of_task.items():
        for row_id in rows.columns()["id"]:
            first_task = task_of_id.setdefault(row_id, task)
            if first_task != task:
                raise BadInput(f"id {row_id} is in both {first_task} and {task}: rename it in one")
    # "word" and "sentence" -> a task that asks it
    task_that_asks = {rows.diagnostic.asks: task for task, rows in stimuli_of_task.items()}
    if len(task_that_asks) > 1:
        raise BadInput(
            f"{task_that_asks['sentence']} has whole sentences and "
            f"{task_that_asks['word']} has blanks: run one after the other, with --tasks"
        )
