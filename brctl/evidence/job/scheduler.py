"""What the job's scheduler says of ranks and nodes that are not well, judged by one table.

Source: Kubernetes pod and container reasons (pkg/kubelet/events, pkg/kubelet/eviction, pod
condition DisruptionTarget), node conditions of the kubelet, of node-problem-detector and of the
node agents of EKS and AKS. In a log line the same words are judged by
`brctl/evidence/logs/signatures/schedulers.py`; a test holds the two together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_run_state import SchedulerReason
from brctl.model.jobs.job_status import JobStatus
from brctl.model.nodeset import fold

F, CONVICTS, HINTS = FaultClass, Weight.CONVICTS, Weight.HINTS
KIND = "job.scheduler.reason"
SOURCE = "scheduler"


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """What a reason means.

    Attributes:
        word: What its message has to say, too; "" for any.
    """

    reason: str
    fault: FaultClass
    weight: Weight
    word: str = ""


REASONS = (
    ReasonRow("OOMKilled", F.CPU_OOM, CONVICTS),
    ReasonRow("Evicted", F.DISK_FULL, CONVICTS, word="ephemeral-storage"),
    ReasonRow("Evicted", F.DISK_FULL, CONVICTS, word="inodes"),
    ReasonRow("Evicted", F.CPU_OOM, CONVICTS, word="memory"),
    ReasonRow("Evicted", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("Preempting", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("PreemptionByScheduler", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("PreemptionByKubeScheduler", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("KueuePreempted", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("EvictionByEvictionAPI", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("TerminationByKubelet", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("DeadlineExceeded", F.PREEMPTION_SIGTERM, CONVICTS),
    ReasonRow("Shutdown", F.PREEMPTION_SIGTERM, HINTS),
    ReasonRow("NodeShutdown", F.PREEMPTION_SIGTERM, HINTS),
    ReasonRow("Terminated", F.PREEMPTION_SIGTERM, HINTS),
    # A node that is not ready has its pods deleted after 300 s: the node comes first.
    ReasonRow("DeletionByTaintManager", F.NODE_FAILURE, HINTS),
    ReasonRow("DeletionByPodGC", F.NODE_FAILURE, HINTS),
    ReasonRow("NodeLost", F.NODE_FAILURE, HINTS),
    ReasonRow("NodeNotReady", F.NODE_FAILURE, HINTS),
    ReasonRow("NodeNotContainerRuntimeReady", F.NODE_FAILURE, HINTS),
    ReasonRow("ImagePullBackOff", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("ErrImagePull", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("InvalidImageName", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("CreateContainerConfigError", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("CreateContainerError", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("RunContainerError", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("ContainerCannotRun", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("StartError", F.ENVIRONMENT_MISMATCH, CONVICTS),
    ReasonRow("UnexpectedAdmissionError", F.GPU_LOST, HINTS, word="devices"),
    ReasonRow("NodeMemoryPressure", F.CPU_OOM, HINTS),
    ReasonRow("NodeDiskPressure", F.DISK_FULL, HINTS),
    ReasonRow("NodeNetworkUnavailable", F.NETWORK_ETH, HINTS),
    ReasonRow("NodeNotNetworkingReady", F.NETWORK_ETH, HINTS),
    ReasonRow("NodeKernelDeadlock", F.HOST_KERNEL, CONVICTS),
    ReasonRow("NodeNotKernelReady", F.HOST_KERNEL, HINTS),
    ReasonRow("NodeReadonlyFilesystem", F.STORAGE_CHECKPOINT, HINTS),
    ReasonRow("NodeNotStorageReady", F.STORAGE_CHECKPOINT, HINTS),
    ReasonRow("NodeGPUMissing", F.GPU_LOST, CONVICTS),
    ReasonRow("NodeXIDErrors", F.DRIVER_FIRMWARE, HINTS),
    ReasonRow("NodeNotAcceleratedHardwareReady", F.DRIVER_FIRMWARE, HINTS),
    ReasonRow("NodeNVLinkStatusInactive", F.NVLINK, HINTS),
    ReasonRow("NodeIBLinkFlapping", F.NETWORK_IB, HINTS),
)


def scheduler_reasons(status: JobStatus) -> Iterable[Evidence]:
    """Each reason as evidence; beside steps that go on it accuses nobody."""
    for found in status.reasons:
        row = _row(found)
        counts = row is not None and status.stalled is not False
        yield Evidence(
            kind=KIND,
            subject=Subject(found.node, f"rank:{found.ranks[0]}" if found.ranks else ""),
            weight=row.weight if row is not None and counts else Weight.CONTEXT,
            fault=row.fault if row is not None and counts else None,
            role=Role.ROOT if counts else Role.CONTEXT,
            source=SOURCE,
            text=describe_reason(found),
            raw=f"{found.reason}: {found.message}",
        )


def why_not_running(status: JobStatus) -> Mapping[int, str]:
    """What is said of ranks of which nobody knows whether they run, to follow "was not read"."""
    return {rank: f": {describe_reason(found)}" for found in status.reasons for rank in found.ranks}


def _row(found: SchedulerReason) -> ReasonRow | None:
    return next(
        (row for row in REASONS if row.reason == found.reason and row.word in found.message), None
    )


def describe_reason(found: SchedulerReason) -> str:
    """One reason as a sentence: who says it, of which ranks, and what."""
    ranks = f" (rank {fold(map(str, found.ranks))})" if found.ranks else ""
    message = f": {found.message}" if found.message else ""
    return f"{found.what}{ranks}: {found.reason}{message}"
