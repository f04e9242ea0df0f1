"""What a cluster says of pods and nodes that are not well, in its own words: pure."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.backends.kubernetes.containers import rows_of
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
