"""What a diagnosis that a suspicion asks for looks at, and how many go on at once."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from brctl.model.jobs.job import Job
from brctl.model.watch.state import Suspicion

NODES_AT_ONCE = 64
"""Nodes in all diagnoses that go on at one time (own): a crowd of signs is no storm of logins."""


@dataclass(frozen=True, slots=True)
class DeepLook:
    """A diagnosis to be made.

    Attributes:
        about: One is made at once of each: a job, a node without one, or a crowd.
        explains: Nodes and jobs whose signs it settles, when it began after they were confirmed.
        beside: What else it looks at: it settles a node of these that its verdict names.
        crowd: The rule whose crowd it is about; "" for none.
    """

    about: str
    job: Job | None
    nodes: tuple[str, ...]
    explains: Set[str]
    beside: Set[str] = frozenset()
    crowd: str = ""


def deep_look(
    suspicion: Suspicion, on: Mapping[str, Job], crowds: Mapping[str, tuple[str, ...]]
) -> DeepLook:
    """What has to be looked at for a suspicion.

    Args:
        suspicion: Confirmed.
        on: The job that a node carries, and jobs by their own names.
        crowds: Nodes by the rule that suspects too many of them.
    """
    subject = suspicion.subject
    crowd = crowds.get(suspicion.rule, ())
    if subject in crowd:
        return _of_crowd(suspicion.rule, crowd, on)
    job = on.get(subject)
    if job is None:
        return DeepLook(subject, None, (subject,), {subject})
    on_job = {job.name, *job.nodes}
    if subject == job.name:
        return DeepLook(job.name, job, job.nodes, on_job)
    return DeepLook(job.name, job, job.nodes, {subject}, on_job)


def _of_crowd(rule: str, crowd: tuple[str, ...], on: Mapping[str, Job]) -> DeepLook:
    """The one job that all of them carry, or so many of them as are looked at at once."""
    jobs = {on[node].name if node in on else "" for node in crowd}
    job = on.get(jobs.pop()) if len(jobs) == 1 else None
    nodes = job.nodes if job else crowd[:NODES_AT_ONCE]
    return DeepLook(f"crowd of {rule}", job, nodes, set(crowd), crowd=rule)


def has_room(look: DeepLook, going_on: Iterable[DeepLook]) -> bool:
    """Whether it may begin beside those that go on; one larger than the budget goes on alone."""
    under_way = sum(len(other.nodes) for other in going_on)
    return not under_way or under_way + len(look.nodes) <= NODES_AT_ONCE
