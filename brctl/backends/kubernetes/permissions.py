"""What brctl must be allowed to do in a Kubernetes cluster, and whether it is."""

import asyncio
from dataclasses import dataclass

from brctl.backends.kubernetes.kubectl import Kubectl
from brctl.model.errors import DeniedError


@dataclass(frozen=True, slots=True)
class Permission:
    """One row of the table in docs/kubernetes.md.

    Attributes:
        resource: As `kubectl auth can-i` takes it.
        everywhere: In the whole cluster, not only in the namespace of the jobs.
        purpose: What fails without it.
    """

    resource: str
    verbs: tuple[str, ...]
    everywhere: bool
    purpose: str


JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"

PERMISSIONS = (
    Permission("nodes", ("get", "list", "update"), True, "cordon, reserve, label, place a job"),
    Permission("pods", ("list",), True, "see what a node carries, and which rank is where"),
    Permission("pods/eviction", ("create",), True, "drain"),
    Permission("poddisruptionbudgets.policy", ("list",), True, "name who refuses a drain"),
    Permission("pods", ("delete",), False, "shorten the grace of ranks that do not end"),
    Permission("jobs.batch", ("get", "list", "update"), False, "stop, swap and start a Job"),
    Permission("jobs.batch/status", ("update",), False, "start a Job again on other nodes"),
    Permission("jobs.batch", ("create", "delete"), False, "make a Job that has ended anew"),
    Permission("jobsets.jobset.x-k8s.io", ("get", "list", "update", "create", "delete"), False,
               "the same for JobSets"),
)  # fmt: skip


async def has_namespace(kubectl: Kubectl) -> bool:
    """Whether the namespace of the jobs is there; who may not ask has it by its rights in it."""
    try:
        return await kubectl.get(f"/api/v1/namespaces/{await kubectl.namespace()}") is not None
    except DeniedError:
        return True


async def missing_permissions(kubectl: Kubectl) -> tuple[str, ...]:
    """What the API server would refuse, one sentence each; JobSets only where they exist."""
    jobsets = await kubectl.get(JOBSETS) is not None
    checks = [
        (row, verb)
        for row in PERMISSIONS
        for verb in row.verbs
        if jobsets or "jobset" not in row.resource
    ]
    may = await asyncio.gather(
        *(kubectl.can_i(verb, row.resource, everywhere=row.everywhere) for row, verb in checks)
    )
    return tuple(
        f"{verb} {row.resource}{' in all namespaces' if row.everywhere else ''}: {row.purpose}"
        for (row, verb), allowed in zip(checks, may, strict=True)
        if not allowed
    )
