"""What a cluster says of a job, its pods and nodes that are not well, in its own words: pure."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.backends.kubernetes.containers import rows_of
from brctl.backends.kubernetes.jobs import Workload
from brctl.backends.kubernetes.pod_reason import MESSAGE_LIMIT
from brctl.backends.kubernetes.pods import Pod, ranks_of
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import SchedulerReason

_WELL_WHEN_TRUE = frozenset(
    {"Ready", "AcceleratedHardwareReady", "ContainerRuntimeReady", "KernelReady",
     "NetworkingReady", "StorageReady"}
)  # fmt: skip
"""Node conditions that say a node is well; of any other, `True` says that it is not.

Those after `Ready` are of the EKS node monitoring agent; node-problem-detector's are of the other
kind (`KernelDeadlock`, `ReadonlyFilesystem`), as are the kubelet's own (`DiskPressure`).
"""

QUEUED_FOR = "kueue.x-k8s.io/job-uid"
QUEUE_VERSIONS = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")


def of_whole_job(found: Workload, queued: Object | None) -> tuple[SchedulerReason, ...]:
    """Why none of its pods is there, or why all of them are new."""
    rows = [_restarts(found)] if found.restarts else []
    if found.queue and found.suspended:
        rows.append(_waits_in_queue(found, queued or {}))
    return tuple(rows)


def _restarts(found: Workload) -> SchedulerReason:
    policy = found.value["spec"].get("failurePolicy") or {}
    text = f"its failure policy has made all pods anew {found.restarts} times"
    text += f", {policy['maxRestarts']} allowed" if "maxRestarts" in policy else ""
    return SchedulerReason("", (), "JobSetRestarted", text, f"JobSet {found.name}")


def _waits_in_queue(found: Workload, queued: Object) -> SchedulerReason:
    """Preempted, set inactive by somebody, or without quota yet."""
    spec, status = queued.get("spec") or {}, queued.get("status") or {}
    told = {(r.get("type"), r.get("status")): r for r in rows_of(status.get("conditions"))}
    preempted, quota = told.get(("Preempted", "True")), told.get(("QuotaReserved", "False"))
    word = "KueuePreempted" if preempted else "KueueNotAdmitted"
    if spec.get("active") is False:
        word, preempted, quota = "KueueInactive", None, None
    message = str((preempted or quota or {}).get("message") or "")
    priority = ", ".join(
        str(spec[key]) for key in ("priorityClassName", "priority") if spec.get(key) is not None
    )
    where = f"queue {found.queue}" + (f", priority {priority}" if priority else "")
    text = f"{where}: {message}" if message else where
    return SchedulerReason("", (), word, text[:MESSAGE_LIMIT], f"{found.kind.name} {found.name}")


def reasons_of(
    job: Job, pods: Sequence[Pod], nodes: Mapping[str, Object | None]
) -> tuple[SchedulerReason, ...]:
    """The reasons of ranks that do not run, and of the job's nodes that are not well."""
    newest = {pod.order: pod for pod in pods}
    of_ranks = [
        SchedulerReason(
            pod.node, tuple(ranks_of(job, pod.order)), pod.reason, pod.message, f"pod {pod.name}"
        )
        for pod in pods
        if pod.reason and not newest[pod.order].runs and pod.order < len(job.nodes)
    ]
    return (*of_ranks, *_of_nodes(nodes))


def _of_nodes(nodes: Mapping[str, Object | None]) -> Iterable[SchedulerReason]:
    for name, node in nodes.items():
        for row in rows_of(((node or {}).get("status") or {}).get("conditions")):
            kind, status = str(row.get("type")), str(row.get("status"))
            if (status != "True") if kind in _WELL_WHEN_TRUE else (status == "True"):
                word = f"Node{kind}" if kind not in _WELL_WHEN_TRUE else f"NodeNot{kind}"
                text = str(row.get("message") or row.get("reason") or "")
                yield SchedulerReason(name, (), word, text[:MESSAGE_LIMIT], f"node {name}")
