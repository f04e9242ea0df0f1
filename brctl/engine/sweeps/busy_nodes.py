"""Keep heavy checks off nodes that a job trains on."""

from collections.abc import Mapping, Sequence

from brctl.engine.controller.wiring import Controller
from brctl.model.errors import GuardError
from brctl.model.nodeset import fold

JOB_GROUP = "job:"
"""What a scheduler's inventory calls the nodes of a running job, with its number behind it."""


def nodes_of_jobs(controller: Controller) -> Mapping[str, Sequence[str]]:
    """Nodes by job: those that brctl was told of, then the scheduler's others by their number."""
    known = {job.name: job.nodes for job in controller.jobs.values()}
    own = {node for nodes in known.values() for node in nodes}
    for group, nodes in controller.inventory.groups.items():
        number = group.removeprefix(JOB_GROUP)
        others = tuple(node for node in nodes if node not in own)
        if group.startswith(JOB_GROUP) and number.isdecimal() and others:
            known[number] = others
    return known


def refuse_busy(jobs: Mapping[str, Sequence[str]], nodes: Sequence[str], *, hint: str) -> None:
    """Refuse nodes that carry ranks of a job.

    Args:
        jobs: Nodes by job, as they run now.
        nodes: The nodes that heavy checks are meant for.
        hint: What the caller can say to load them all the same.

    Raises:
        GuardError: A job runs on one of the nodes; names both.
    """
    requested = set(nodes)
    busy = {name: [n for n in there if n in requested] for name, there in sorted(jobs.items())}
    clashes = [f"{fold(shared)} carries ranks of {name}" for name, shared in busy.items() if shared]
    if clashes:
        raise GuardError(f"{'; '.join(clashes)}: heavy checks would slow or stop it", hint=hint)
