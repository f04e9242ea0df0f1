"""Keep heavy checks off nodes that a job trains on."""

from collections.abc import Mapping, Sequence

from brctl.model.errors import GuardError
from brctl.model.job import Job
from brctl.model.nodeset import fold


def refuse_busy(jobs: Mapping[str, Job], nodes: Sequence[str], *, hint: str) -> None:
    """Refuse nodes that carry ranks of a job.

    Args:
        jobs: Jobs by name, on the nodes they run on now.
        nodes: The nodes that heavy checks are meant for.
        hint: What the caller can say to load them all the same.

    Raises:
        GuardError: A job runs on one of the nodes; names both.
    """
    asked = set(nodes)
    busy = {name: [n for n in job.nodes if n in asked] for name, job in sorted(jobs.items())}
    said = [f"{fold(shared)} carries ranks of {name}" for name, shared in busy.items() if shared]
    if said:
        raise GuardError(f"{'; '.join(said)}: heavy checks would slow or stop it", hint=hint)
