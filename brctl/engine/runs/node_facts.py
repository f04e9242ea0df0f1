"""What the expressions of a playbook read about the node whose turn it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.incidents.verdict_store import load_all
from brctl.model.command import Outcome
from brctl.model.inventory import Inventory
from brctl.model.runs.playbook import Json, Step
from brctl.model.sweeps.report import NodeReport, ProbeStatus
from brctl.playbook.plan import reads, verdict_scope

PROCESSES_CHECK, PROCESSES = "gpu.processes", "gpu.processes.count"


def verdicts_of(state_dir: Path, nodes: Sequence[str]) -> dict[str, Json]:
    """The newest verdict that names each node; an empty one for a node that none names."""
    found: dict[str, Json] = {node: verdict_scope(None) for node in nodes}
    for stored in reversed(load_all(state_dir)):
        for node in set(stored.verdict.nodes) & set(nodes):
            found[node] = verdict_scope(stored.verdict)
    return found


def inventory_facts(inventory: Inventory, name: str) -> dict[str, Json]:
    """What the inventory says; a serial number it does not know is the node's name."""
    node = inventory.nodes[name]
    labels = {key: node.labels.get(key, "") for key in ("rack", "leaf", "gpu_model")}
    return {
        "name": name,
        "address": node.address,
        "role": str(node.role),
        "gpus": node.gpus or 0,
        "serial": node.labels.get("serial", name),
        **labels,
    }


async def facts_for(context: RunContext, step: Step, node: str) -> Mapping[str, Json]:
    """The facts a step reads, looked at now.

    What a node did not answer is left out, so that a condition on it cannot be true.
    """
    if not reads(step, "facts"):
        return {}
    facts = inventory_facts(context.inventory, node)
    if reads(step, "facts", "gpu_processes"):
        count = _processes(await context.sweeps.ask(node, PROCESSES_CHECK, None, {}))
        facts |= {} if count is None else {"gpu_processes": count}
    return facts


def _processes(report: NodeReport) -> int | None:
    """How many processes compute on the node's GPUs; None when that could not be seen."""
    result = report.result_of(PROCESSES_CHECK)
    if report.outcome is not Outcome.ANSWERED or result is None:
        return None
    if result.status is not ProbeStatus.MEASURED:
        return None
    counts = [m.value for m in result.measurements if m.name == PROCESSES]
    return sum(int(c) for c in counts if isinstance(c, int | float)) if counts else None
