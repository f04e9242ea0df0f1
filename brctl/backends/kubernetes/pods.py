"""What the pods of a workload say about ranks: pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.backends.kubernetes.containers import ContainerState, has_gpu, rows_of, trainer_state
from brctl.backends.kubernetes.jobs import INCARNATION, Workload
from brctl.backends.kubernetes.marks import notes_of
from brctl.backends.kubernetes.pod_reason import pod_reason
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState

BY_OTHERS = "outside brctl"
"""The incarnation of pods that somebody else started."""

_WAITS_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a workload.

    Attributes:
        order: Its place in rank order.
        node: "" until it is bound.
        going: It has been asked to end.
        trainer: How its container that trains stands.
        waits_for: Why it does not run yet.
        reason: The cluster's own word for why it ended, does not start or has to go.
        message: What the cluster says besides.
    """

    name: str
    uid: str
    order: int
    node: str
    phase: str
    going: bool
    created_at: str
    incarnation: str
    trainer: ContainerState
    waits_for: str
    reason: str = ""
    message: str = ""

    @property
    def ended(self) -> bool:
        """Nothing of it is left on its node."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def rank_ended(self) -> bool:
        """What trains has ended, whatever else of the pod goes on."""
        return self.ended or self.trainer.ended

    @property
    def runs(self) -> bool:
        """What trains has a process; a pod of whose containers nothing is known counts by phase."""
        return self.phase == "Running" and (
            self.trainer.running or self.trainer == ContainerState()
        )


def holds_gpu(pod: Object) -> bool:
    """Whether a pod that has not ended was promised a GPU."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    return any(map(has_gpu, rows_of(pod["spec"].get("containers"))))


def read_pods(workload: Workload, items: Iterable[Object]) -> tuple[Pod, ...]:
    """The pods that are ranks of a workload, in rank order, the newest of a place last."""
    found = [_read(pod, order) for pod in items if (order := workload.order(pod)) is not None]
    return tuple(
        sorted(found, key=lambda pod: (pod.order, not pod.going, not pod.ended, pod.created_at))
    )


def _read(pod: Object, order: int) -> Pod:
    meta, status, trainer = pod["metadata"], pod.get("status", {}), trainer_state(pod)
    reason, message = pod_reason(pod)
    return Pod(
        name=str(meta["name"]),
        uid=str(meta["uid"]),
        order=order,
        node=str(pod["spec"].get("nodeName") or ""),
        phase=str(status.get("phase", "Unknown")),
        going="deletionTimestamp" in meta,
        created_at=str(meta.get("creationTimestamp", "")),
        incarnation=notes_of(pod).get(INCARNATION) or BY_OTHERS,
        trainer=trainer,
        waits_for=_waits_for(status, trainer),
        reason=reason,
        message=message,
    )


def _waits_for(status: Object, trainer: ContainerState) -> str:
    if trainer.reason and not trainer.running:
        return f"{trainer.reason}: {trainer.message}"[:_WAITS_LIMIT].strip(": ")
    for row in status.get("conditions") or ():
        if row.get("type") == "PodScheduled" and row.get("status") == "False":
            return str(row.get("message") or row.get("reason", ""))[:_WAITS_LIMIT]
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


def containers_on(nodes: Sequence[str], pods: Sequence[Pod]) -> tuple[str, ...]:
    """Where the processes of each node's ranks are found: their container, else their pod."""
    found = {pod.node: pod.trainer.id or pod.uid for pod in pods if pod.runs}
    return tuple(found.get(node, "") for node in nodes)


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
        elif pod is not None and pod.rank_ended:
            gone += ranks
            code = pod.trainer.exit_status
            exits |= {} if code is None else dict.fromkeys(ranks, code)
        elif pod is not None and pod.runs:
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
