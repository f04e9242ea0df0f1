"""Ports unplugged at every node of a job, and before it made its steps, are the site's.

An adapter's second port that nobody ever plugged in is told of by every kernel at its boot.
"""

from collections.abc import Iterable, Set
from dataclasses import replace
from datetime import datetime, timedelta

from brctl.evidence.job.history import usual_pace
from brctl.evidence.job.past.waits import LONG_SINCE
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.jobs.job_status import JobStatus

_UNPLUGGED = "host.kernel.nic_unplugged"
"""A state which may have stood so from the beginning; a link that went down had been up."""

LEAST_NODES = 3
"""Of fewer nodes all may be broken alike (own)."""

_WHY = "it is so at every node of the job, and the job made steps long after"


def without_shared_states(
    evidence: Iterable[Evidence], status: JobStatus, now: datetime
) -> tuple[Evidence, ...]:
    """The evidence, with hints that every node has from long before the newest step as context.

    Steps that became slower, or none, may be of a switch that took all these links away.
    """
    items = tuple(evidence)
    if status.stalled is not False or status.progress_age_s is None or usual_pace(status) is False:
        return items
    latest = now - timedelta(seconds=status.progress_age_s) - LONG_SINCE
    told = {i for i in items if i.kind == _UNPLUGGED and i.weight is Weight.HINTS}
    shared = _everywhere(told, status, latest)
    return tuple(_context(i) if i in told and i.subject.device in shared else i for i in items)


def _everywhere(told: Set[Evidence], status: JobStatus, latest: datetime) -> set[str]:
    """The ports unplugged at every node; of all addresses where each node lacks as many alike.

    Alike are the second ports of adapters, or the third: their first ones have a cable. A first
    or only port is like those of its own address alone, for it may be the one that is used.
    """
    nodes = set(status.job.nodes) - set(status.silent)
    old = {i.subject for i in told} - {i.subject for i in told if i.at is None or i.at >= latest}
    if len(nodes) < LEAST_NODES:
        return set()
    ports: dict[str, set[str]] = {node: set() for node in nodes}
    for subject in old:
        ports.setdefault(subject.node, set()).add(subject.device)
    alike = len({tuple(sorted(map(_which, of_node))) for of_node in ports.values()}) == 1
    every = {i.subject for i in told} == old
    return set.union(*ports.values()) if alike and every else set.intersection(*ports.values())


def _which(port: str) -> str:
    """Which of its adapter's ports it is, by its PCI function; a first or only one is its own."""
    function = port.rpartition(".")[2]
    return port if function == "0" else function


def _context(item: Evidence) -> Evidence:
    text = f"{item.text}; {_WHY}"
    return replace(item, weight=Weight.CONTEXT, role=Role.CONTEXT, strength=None, text=text)
