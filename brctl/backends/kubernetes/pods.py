"""What the pods of a workload say about ranks: pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.backends.contract import JobRunState
from brctl.backends.kubernetes.jobs import INCARNATION, Workload
from brctl.backends.kubernetes.kubectl import Object
from brctl.backends.kubernetes.marks import notes_of
from brctl.model.jobs.job import Job

BY_OTHERS = "outside brctl"
"""The incarnation of pods that somebody else started."""

GPU = "nvidia.com/gpu"
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a workload.

    Attributes:
        order: Its place in rank order.
        node: "" until it is bound.
        going: It has been asked to end.
        exit_status: Of its first container; None while that runs or never ran.
        waits_for: Why it does not run yet.
    """

    name: str
    uid: str
    order: int
    node: str
    phase: str
    going: bool
    created_at: str
    incarnation: str
    exit_status: int | None
    waits_for: str

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


def holds_gpu(pod: Object) -> bool:
    """Whether a pod that has not ended was promised a GPU."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    limits = [c.get("resources", {}).get("limits") or {} for c in pod["spec"].get("containers", ())]
    return any(str(row.get(GPU, "0")) not in ("", "0") for row in limits)


def read_pods(workload: Workload, items: Iterable[Object]) -> tuple[Pod, ...]:
    """The pods that are ranks of a workload, in rank order, the newest of a place last."""
    found = [_read(pod, order) for pod in items if (order := workload.order(pod)) is not None]
    return tuple(
        sorted(found, key=lambda pod: (pod.order, not pod.going, not pod.ended, pod.created_at))
    )


def _read(pod: Object, order: int) -> Pod:
    meta, status = pod["metadata"], pod.get("status", {})
    first: Object = next(iter(status.get("containerStatuses") or ()), {})
    code = first.get("state", {}).get("terminated", {}).get("exitCode")
    return Pod(
        name=str(meta["name"]),
        uid=str(meta["uid"]),
        order=order,
        node=str(pod["spec"].get("nodeName") or ""),
        phase=str(status.get("phase", "Unknown")),
        going="deletionTimestamp" in meta,
        created_at=str(meta.get("creationTimestamp", "")),
        incarnation=notes_of(pod).get(INCARNATION) or BY_OTHERS,
        exit_status=_exit_status(code) if isinstance(code, int) else None,
        waits_for=_waits_for(status, first),
    )


def _exit_status(code: int) -> int:
    """As Python has it: a death by a signal is negative."""
    return _SIGNALLED - code if _SIGNALLED < code <= _SIGNALLED + 64 else code


def _waits_for(status: Object, container: Object) -> str:
    waiting = container.get("state", {}).get("waiting") or {}
    if waiting:
        return f"{waiting.get('reason', '')}: {waiting.get('message', '')}"[:200].strip(": ")
    for row in status.get("conditions") or ():
        if row.get("type") == "PodScheduled" and row.get("status") == "False":
            return str(row.get("message") or row.get("reason", ""))[:200]
    return ""


def placed(workload: Workload, pods: Sequence[Pod], job: Job) -> tuple[str, ...]:
    """The nodes in rank order: where the pods are, else where brctl wants or found them."""
    wanted = workload.remembered if len(workload.remembered) == len(job.nodes) else job.nodes
    bound = {} if workload.suspended else bound_to(pods)
    # A pod still to be bound gets a node that no other has: its own if that is free.
    free = [node for node in wanted if node not in bound.values()]
    nodes = {i: bound.get(i) or (n if n in free else "") for i, n in enumerate(wanted)}
    rest = [node for node in free if node not in nodes.values()]
    return tuple(nodes[i] or (rest.pop(0) if rest else n) for i, n in enumerate(wanted))


def bound_to(pods: Sequence[Pod]) -> dict[int, str]:
    """The nodes of the pods that are to stay, by place in rank order."""
    return {pod.order: pod.node for pod in pods if pod.node and not pod.going}


def state_of(
    workload: Workload, job: Job, pods: Sequence[Pod], not_ready: Mapping[str, str]
) -> JobRunState:
    """Which ranks run. A pod on a node that is not ready is not known to have ended.

    Nor is a rank without a pod known to have ended while a controller is about to make one.
    """
    alive: list[int] = []
    gone: list[int] = []
    exits: dict[int, int] = {}
    silent: dict[str, str] = {}
    marks: set[str] = set()
    newest = {pod.order: pod for pod in pods if pod.node in ("", *job.nodes)}
    for order, node in enumerate(job.nodes):
        ranks, pod = ranks_of(job, order), newest.get(order)
        if node in not_ready:
            silent[node] = not_ready[node]
        elif pod is not None and pod.ended:
            gone += ranks
            exits |= {} if pod.exit_status is None else dict.fromkeys(ranks, pod.exit_status)
        elif pod is not None and pod.phase == "Running":
            alive += ranks
            marks.add(pod.incarnation)
        elif pod is None and (workload.suspended or workload.ended):
            gone += ranks
        else:
            silent[node] = _why_not_running(pod)
    return JobRunState(tuple(alive), tuple(gone), frozenset(marks), silent, exits)


def ranks_of(job: Job, order: int) -> range:
    """The ranks one pod carries."""
    return range(order * job.ranks_per_node, (order + 1) * job.ranks_per_node)


def _why_not_running(pod: Pod | None) -> str:
    if pod is None:
        return "its pod is not made yet"
    why = f": {pod.waits_for}" if pod.waits_for else ""
    return f"pod {pod.name} is {pod.phase}{why}"
