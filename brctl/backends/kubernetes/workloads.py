"""Find the Job or JobSet of a training job, look at its pods and nodes, and change it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.backends.contract import JobRunState
from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.jobs import Workload, on_nodes, read_workload, without_start_time
from brctl.backends.kubernetes.kubectl import ConflictError, Kubectl, Object
from brctl.backends.kubernetes.pods import Pod, placed, read_pods, state_of
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job

NODES_PATH = "/api/v1/nodes"
TRIES = 5
"""A kubelet writes its node's status every 5 minutes; five misses in a row are no bad luck."""

_KINDS = (("Job", "batch/v1", "jobs"), ("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets"))

Change = Callable[[Object], Object | None]


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """A workload at one moment.

    Attributes:
        job: The job on the nodes where its pods are, or shall be.
    """

    workload: Workload
    pods: tuple[Pod, ...]
    job: Job


class Workloads:
    """The Jobs and JobSets of one namespace that carry brctl's label."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    async def find(self, job: Job) -> Workload | None:
        """The workload of a job; None when the cluster has none."""
        namespace, selector = await self._kubectl.namespace(), f"{marks.JOB}={job.name}"
        for kind, version, plural in _KINDS:
            path = f"/apis/{version}/namespaces/{namespace}/{plural}"
            answer = await self._kubectl.get(path, labelSelector=selector)
            items = (answer or {}).get("items") or ()
            if len(items) > 1:
                names = ", ".join(str(item["metadata"]["name"]) for item in items)
                raise UsageError(f"several {plural} carry the label {selector}: {names}")
            for item in items:
                # Items of a list do not say what they are.
                value = {**item, "apiVersion": version, "kind": kind}
                return read_workload(value, f"{path}/{item['metadata']['name']}", job)
        return None

    async def must_find(self, job: Job) -> Workload:
        """The workload of a job.

        Raises:
            UsageError: The cluster has none.
        """
        found = await self.find(job)
        if found is None:
            raise _absent(job)
        return found

    async def never_started(self, job: Job, found: Workload) -> Workload:
        """The workload without a start time, so that its template may change."""
        for attempt in range(TRIES):
            reset = None if found.is_jobset else without_start_time(found.value)
            if reset is None:
                break
            try:
                value = await self._kubectl.put(f"{found.path}/status", reset)
                return replace(found, value=value)
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
            found = await self.must_find(job)
        return found

    async def observe(self, job: Job) -> ObservedWorkload | None:
        """The workload with its pods; None when the cluster has none."""
        found = await self.find(job)
        if found is None:
            return None
        pods = await self._pods(found)
        return ObservedWorkload(found, pods, replace(job, nodes=placed(found, pods, job)))

    async def must_observe(self, job: Job) -> ObservedWorkload:
        """The workload with its pods.

        Raises:
            UsageError: The cluster has none.
        """
        observe = await self.observe(job)
        if observe is None:
            raise _absent(job)
        return observe

    async def state(self, observe: ObservedWorkload) -> JobRunState:
        """Which ranks run."""
        silent = await self.not_ready(observe.job.name, observe.job.nodes)
        return state_of(observe.workload, observe.job, observe.pods, silent)

    async def _pods(self, found: Workload) -> tuple[Pod, ...]:
        path = f"/api/v1/namespaces/{await self._kubectl.namespace()}/pods"
        key = "jobset.sigs.k8s.io/jobset-name" if found.is_jobset else "job-name"
        answer = await self._kubectl.get(path, labelSelector=f"{key}={found.name}")
        items = (answer or {}).get("items") or ()
        return read_pods(found, [pod for pod in items if found.is_jobset or _is_of(pod, found)])

    async def not_ready(self, name: str, nodes: Sequence[str]) -> dict[str, str]:
        """Those of the nodes that the control plane does not hear from, with the reason."""
        known = await self.bound(name)
        missing = [node for node in nodes if node not in known]
        singly = [self._kubectl.get(f"{NODES_PATH}/{node}") for node in missing]
        rest = dict(zip(missing, await asyncio.gather(*singly), strict=True))
        return {node: why for node in nodes if (why := _why_silent(known.get(node) or rest[node]))}

    async def bound(self, name: str) -> Mapping[str, Object]:
        """The nodes that carry the label of a job."""
        answer = await self._kubectl.get(NODES_PATH, labelSelector=f"{marks.JOB}={name}")
        return {str(n["metadata"]["name"]): n for n in (answer or {}).get("items") or ()}

    async def bind(self, job: Job) -> None:
        """Label the job's nodes, and only them."""
        bound = await self.bound(job.name)
        leaving = [node for node in bound if node not in job.nodes]
        coming = [node for node in job.nodes if node not in bound]
        await asyncio.gather(
            *(change_node(self._kubectl, n, lambda v: marks.unbind(v, job.name)) for n in leaving),
            *(change_node(self._kubectl, n, lambda v: marks.bind(v, job.name)) for n in coming),
        )

    async def move(self, job: Job, swaps: Mapping[str, str]) -> Job:
        """Put nodes into the places of others; pods do not move, so the job must be stopped.

        Raises:
            UsageError: It runs, or would have a node twice.
        """
        observe = await self.must_observe(job)
        after = job

        def change(now: Workload) -> Object:
            nonlocal after
            before = placed(now, observe.pods, job)
            after = replace(job, nodes=tuple(swaps.get(node, node) for node in before))
            if len(set(after.nodes)) < len(after.nodes):
                raise UsageError(f"job {job.name} would have a node twice after {dict(swaps)}")
            if after.nodes != before and not now.suspended and not now.ended:
                raise UsageError(f"job {job.name} runs; its pods cannot move before it is stopped")
            return on_nodes(now, after.nodes)

        await self.change(job, change, observe.workload)
        return after

    async def change(
        self, job: Job, change: Callable[[Workload], Object], known: Workload | None = None
    ) -> None:
        """Change what is known, or read it first; again when somebody else wrote in between."""
        for attempt in range(TRIES):
            found = known if known is not None and attempt == 0 else await self.must_find(job)
            try:
                await self._kubectl.put(found.path, change(found))
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
            else:
                return


async def change_node(kubectl: Kubectl, name: str, change: Change) -> Object:
    """Read a node, change it, write it; again when somebody else wrote in between.

    Raises:
        ConflictError: Somebody else writes all the time.
        UsageError: The cluster has no such node.
    """
    path = f"{NODES_PATH}/{name}"
    for attempt in range(TRIES):
        node = await kubectl.get(path)
        if node is None:
            raise UsageError(f"{name!r} is no node of the Kubernetes cluster")
        new = change(node)
        if new is None:
            return node
        try:
            return await kubectl.put(path, new)
        except ConflictError:
            if attempt == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _absent(job: Job) -> UsageError:
    why = f"no Job or JobSet carries the label {marks.JOB}={job.name}"
    return UsageError(why, hint="label it, and apply it suspended")


def _why_silent(node: Object | None) -> str:
    if node is None:
        return "no such node in the cluster"
    return "" if marks.is_ready(node) else "the node is NotReady; what ran there may still run"


def _is_of(pod: Object, found: Workload) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == found.uid for owner in owners)
