"""What brctl must be allowed to do in a Kubernetes cluster, and whether it is."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from brctl.backends.kubernetes.kinds import JOBSET, PYTORCHJOB, TRAINJOB, VOLCANO
from brctl.backends.kubernetes.reasons import QUEUE_VERSIONS
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.model.errors import DeniedError


class Scope(StrEnum):
    """Where a right is needed."""

    CLUSTER = "cluster"
    JOBS = "namespace"
    NODE_PODS = "that of node_pods"


class NeededFor(StrEnum):
    """What needs a right."""

    ALWAYS = "always"
    OPTIONAL = "optional"
    OPERATORS = "where there is one"
    EXEC = "with `transport: kubectl`"
    OWN_PODS = "with `node_pods.image`"


@dataclass(frozen=True, slots=True)
class Permission:
    """One row of the table in docs/kubernetes.md.

    Attributes:
        resource: As `kubectl auth can-i` takes it.
        purpose: What fails without it.
        api: Where the cluster serves the resource, of one that not every cluster has.
    """

    resource: str
    verbs: tuple[str, ...]
    scope: Scope
    purpose: str
    need: NeededFor = NeededFor.ALWAYS
    api: str = ""


_EVERYWHERE, _JOBS, _NODE_PODS = Scope.CLUSTER, Scope.JOBS, Scope.NODE_PODS

PERMISSIONS = (
    Permission("nodes", ("get", "list", "update"), _EVERYWHERE,
               "cordon, reserve, label, place a job"),
    Permission("pods", ("list",), _EVERYWHERE, "see what a node carries, and which rank is where"),
    Permission("pods/eviction", ("create",), _EVERYWHERE, "drain"),
    Permission("poddisruptionbudgets.policy", ("list",), _EVERYWHERE, "name who refuses a drain"),
    Permission("pods", ("delete",), _JOBS, "shorten the grace of ranks that do not end"),
    Permission("jobs.batch", ("get", "list", "update"), _JOBS, "stop, swap and start a Job"),
    Permission("jobs.batch/status", ("update",), _JOBS, "start a Job again on other nodes"),
    Permission("jobs.batch", ("create", "delete"), _JOBS, "make a Job that has ended anew"),
    Permission("jobsets.jobset.x-k8s.io", ("get", "list", "update", "create", "delete"), _JOBS,
               "the same for JobSets", api=JOBSET.api),
    Permission("trainjobs.trainer.kubeflow.org", ("list",), _JOBS, "see the ranks of a TrainJob",
               NeededFor.OPERATORS, TRAINJOB.api),
    Permission("pytorchjobs.kubeflow.org", ("list",), _JOBS, "see the ranks of a PyTorchJob",
               NeededFor.OPERATORS, PYTORCHJOB.api),
    Permission("jobs.batch.volcano.sh", ("list",), _JOBS, "see the ranks of a Volcano Job",
               NeededFor.OPERATORS, VOLCANO.api),
    Permission("workloads.kueue.x-k8s.io", ("list",), _JOBS, "say why Kueue does not admit a job",
               NeededFor.OPERATORS, QUEUE_VERSIONS[-1]),
    Permission("events", ("create",), _EVERYWHERE, "say in `kubectl describe` what was done",
               NeededFor.OPTIONAL),
    Permission("pods", ("create",), _JOBS, "pull a job's images onto standbys",
               NeededFor.OPTIONAL),
    Permission("pods", ("get", "list"), _NODE_PODS, "find the pod of a node", NeededFor.EXEC),
    # kubectl from 1.31 on asks by GET, as a WebSocket.
    Permission("pods/exec", ("create", "get"), _NODE_PODS, "run probes on nodes", NeededFor.EXEC),
    Permission("pods", ("create", "delete"), _NODE_PODS, "make and remove pods on nodes",
               NeededFor.OWN_PODS),
)  # fmt: skip


async def has_namespace(kubectl: Kubectl) -> bool:
    """Whether the namespace of the jobs is there; who may not ask has it by its rights in it."""
    try:
        return await kubectl.get(f"/api/v1/namespaces/{await kubectl.namespace()}") is not None
    except DeniedError:
        return True


async def missing_permissions(kubectl: Kubectl, *needs: NeededFor) -> tuple[str, ...]:
    """What the API server would refuse of what it serves, one sentence each."""
    wanted = [row for row in PERMISSIONS if row.need in needs]
    served = await asyncio.gather(*(_is_served(kubectl, row) for row in wanted))
    rows = [row for row, there in zip(wanted, served, strict=True) if there]
    checks = [(row, verb) for row in rows for verb in row.verbs]
    may = await asyncio.gather(
        *(
            kubectl.can_i(verb, row.resource, everywhere=row.scope is Scope.CLUSTER)
            for row, verb in checks
        )
    )
    return tuple(
        f"{verb} {row.resource}{_everywhere(row)}: {row.purpose}"
        for (row, verb), allowed in zip(checks, may, strict=True)
        if not allowed
    )


async def _is_served(kubectl: Kubectl, row: Permission) -> bool:
    return not row.api or await kubectl.get(f"/apis/{row.api}") is not None


def _everywhere(row: Permission) -> str:
    return " in all namespaces" if row.scope is Scope.CLUSTER else ""
