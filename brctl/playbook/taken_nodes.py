"""Which nodes a playbook takes out of work: none, those of the verdict, or what its run finds."""

from enum import StrEnum

from brctl.model.runs.playbook import Playbook, Step
from brctl.playbook.verbs import VERBS

_OUT_OF_A_JOB = {"job.replace_nodes": "out"}


class TakenNodes(StrEnum):
    """What is known of them before the run."""

    NONE = "none"
    NAMED = "named"
    FOUND = "found"


def taken_nodes(playbook: Playbook) -> TakenNodes:
    """What its verbs say; whatever is not just the verdict's suspects shows only in the run."""
    named = {
        f"$(inputs.{name})"
        for name, spec in playbook.inputs.items()
        if spec.source == "verdict.suspects"
    }
    taken = [step.arguments.get(key) for step in playbook.steps if (key := _argument(step))]
    if not taken:
        return TakenNodes.NONE
    known = all(isinstance(value, str) and value in named for value in taken)
    return TakenNodes.NAMED if known else TakenNodes.FOUND


def _argument(step: Step) -> str:
    """The argument that holds the nodes a step takes; "" for a step that takes none."""
    if step.uses in VERBS and VERBS[step.uses].takes_nodes:
        return "nodes"
    return _OUT_OF_A_JOB.get(step.uses, "")
