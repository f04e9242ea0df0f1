"""Find the object of a training job, look at its pods and nodes, and change it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.jobs import Workload, on_nodes, read_workload, without_start_time
from brctl.backends.kubernetes.kinds import JOB, KINDS, JobKind
from brctl.backends.kubernetes.managed import refuse_managed
from brctl.backends.kubernetes.pods import Pod, containers_on, placed, read_pods, state_of
from brctl.backends.kubernetes.reasons import (
    QUEUE_VERSIONS,
    QUEUED_FOR,
    of_whole_job,
    reasons_of,
)
from brctl.fanout.kubernetes.kubectl import ConflictError, Kubectl, Object
from brctl.model.errors import DeniedError, UsageError
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState

NODES_PATH = "/api/v1/nodes"
_HOST_NAME = "kubernetes.io/hostname"
_LABEL_VALUE_LIMIT = 63
"""The server refuses a selector with a longer value; names of nodes may have 253 characters."""

_NAMES_AT_ONCE = 100
"""Of up to 63 characters, in a URL that proxies before an API server cut at 8 kB."""

TRIES = 5
"""A kubelet writes its node's status every 5 minutes; five misses in a row are no bad luck."""

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
    """The Jobs, JobSets and their like of one namespace that carry brctl's label."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    async def find(self, job: Job, *, recent: bool = False) -> Workload | None:
        """The workload of a job, or how it was a moment ago; None when the cluster has none."""
        namespace, selector = await self._kubectl.namespace(), f"{marks.JOB}={job.name}"
        for kind in KINDS:
            path = f"/apis/{kind.api}/namespaces/{namespace}/{kind.plural}"
            answer = await self._list(kind, path, selector, recent=recent)
            items = (answer or {}).get("items") or ()
            if len(items) > 1:
                names = ", ".join(str(item["metadata"]["name"]) for item in items)
                raise UsageError(f"several {kind.plural} carry the label {selector}: {names}")
            for item in items:
                # Items of a list do not say what they are.
                value = {**item, "apiVersion": kind.api, "kind": kind.name}
                return read_workload(value, f"{path}/{item['metadata']['name']}", job, kind)
        return None

    async def _list(
        self, kind: JobKind, path: str, selector: str, *, recent: bool
    ) -> Object | None:
        """The objects of a kind; the server asks who may before it says that it has no such kind.

        Raises:
            DeniedError: There is such a kind, brctl is to change it, and we may not see it.
        """
        ask = self._kubectl.recent if recent else self._kubectl.get
        try:
            return await ask(path, labelSelector=selector)
        except DeniedError:
            if kind.is_ours and await self._kubectl.get(f"/apis/{kind.api}") is not None:
                raise
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

    async def must_control(self, job: Job, verb: str) -> None:
        """Refuse what another controller would undo; a job that is not there is nobody's.

        Raises:
            UsageError: With the words that make the other one do it.
        """
        found = await self.find(job, recent=True)
        if found is not None:
            refuse_managed(found, await self._kubectl.namespace(), verb)

    async def never_started(self, job: Job, found: Workload) -> Workload:
        """The workload without a start time, so that its template may change."""
        for attempt in range(TRIES):
            reset = without_start_time(found.value) if found.kind is JOB else None
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

    async def observe(self, job: Job, *, recent: bool = False) -> ObservedWorkload | None:
        """The workload with its pods; None when the cluster has none."""
        found = await self.find(job, recent=recent)
        if found is None:
            return None
        pods = await self._pods(found, recent=recent)
        nodes = placed(found, pods, job)
        here = replace(job, nodes=nodes, containers=containers_on(nodes, pods))
        return ObservedWorkload(found, pods, here)

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
        job = observe.job
        nodes = await self._nodes(job.name, job.nodes)
        silent = {node: why for node in job.nodes if (why := _why_silent(nodes[node]))}
        state = state_of(observe.workload, job, observe.pods, silent)
        whole = of_whole_job(observe.workload, await self._queued(observe.workload))
        return replace(state, reasons=(*whole, *reasons_of(job, observe.pods, nodes)))

    async def _queued(self, found: Workload) -> Object | None:
        """Kueue's own object for a workload that waits in a queue, where we may see it."""
        if not found.queue or not found.suspended:
            return None
        namespace = await self._kubectl.namespace()
        for version in QUEUE_VERSIONS:
            path = f"/apis/{version}/namespaces/{namespace}/workloads"
            try:
                answer = await self._kubectl.get(path, labelSelector=f"{QUEUED_FOR}={found.uid}")
            except DeniedError:
                return None
            if answer is not None:
                return next(iter(answer.get("items") or ()), None)
        return None

    async def _pods(self, found: Workload, *, recent: bool) -> tuple[Pod, ...]:
        path = f"/api/v1/namespaces/{await self._kubectl.namespace()}/pods"
        ask = self._kubectl.recent if recent else self._kubectl.get
        answer = await ask(path, labelSelector=f"{found.kind.pods_label}={found.name}")
        items = (answer or {}).get("items") or ()
        # The pods of a Job say whose they are; those of others may belong to what these made.
        return read_pods(found, [p for p in items if found.kind is not JOB or _is_of(p, found)])

    async def not_ready(self, name: str, nodes: Sequence[str]) -> dict[str, str]:
        """Those of the nodes that the control plane does not hear from, with the reason."""
        known = await self._nodes(name, nodes)
        return {node: why for node in nodes if (why := _why_silent(known[node]))}

    async def _nodes(self, name: str, nodes: Sequence[str]) -> dict[str, Object | None]:
        """These nodes, in one question where they carry the label of the job, else in few."""
        known = dict(await self.bound(name))
        missing = [node for node in nodes if node not in known]
        if len(missing) > 1:
            known |= await self._by_host_name(missing)
            missing = [node for node in nodes if node not in known]
        singly = [self._kubectl.get(f"{NODES_PATH}/{node}") for node in missing]
        rest = dict(zip(missing, await asyncio.gather(*singly), strict=True))
        return {node: known.get(node) or rest[node] for node in nodes}

    async def _by_host_name(self, nodes: Sequence[str]) -> dict[str, Object]:
        """Those of the nodes whose label has their name, as it has nearly everywhere."""
        named = [node for node in nodes if len(node) <= _LABEL_VALUE_LIMIT]
        parts = [named[i : i + _NAMES_AT_ONCE] for i in range(0, len(named), _NAMES_AT_ONCE)]
        answers = await asyncio.gather(
            *(
                self._kubectl.get(NODES_PATH, labelSelector=f"{_HOST_NAME} in ({','.join(part)})")
                for part in parts
            )
        )
        items = [item for answer in answers for item in (answer or {}).get("items") or ()]
        found = {str(item["metadata"]["name"]): item for item in items}
        return {node: found[node] for node in nodes if node in found}

    async def bound(self, name: str) -> Mapping[str, Object]:
        """The nodes that carry the label of a job."""
        answer = await self._kubectl.get(NODES_PATH, labelSelector=f"{marks.JOB}={name}")
        return {str(n["metadata"]["name"]): n for n in (answer or {}).get("items") or ()}

    async def must_be_free(self, job: Job) -> Mapping[str, Object]:
        """The nodes: a job that runs there keeps them; of one that does not, only a label is left.

        Raises:
            UsageError: Pods of it are there.
        """
        found = await self._nodes(job.name, job.nodes)
        owners = {
            node: owner
            for node, value in found.items()
            if value is not None and (owner := marks.labels_of(value).get(marks.JOB, job.name))
        }
        for node, owner in owners.items():
            if owner != job.name and await self._has_pods_of(node, owner):
                hint = f"brctl job stop {owner}, or give job {job.name} other nodes"
                raise UsageError(f"{node} is a node of job {owner}, which runs there", hint=hint)
        return {node: value for node, value in found.items() if value is not None}

    async def _has_pods_of(self, node: str, owner: str) -> bool:
        answer = await self._kubectl.get("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return any(
            (pod["spec"].get("nodeSelector") or {}).get(marks.JOB) == owner
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            for pod in (answer or {}).get("items") or ()
        )

    async def bind(self, job: Job, known: Mapping[str, Object]) -> None:
        """Label the job's nodes, and only them."""
        bound = await self.bound(job.name)
        leaving = [node for node in bound if node not in job.nodes]
        coming = [node for node in job.nodes if node not in bound]
        await asyncio.gather(
            *(change_node(self._kubectl, n, lambda v: marks.unbind(v, job.name)) for n in leaving),
            *(
                change_node(self._kubectl, n, lambda v: marks.bind(v, job.name), known.get(n))
                for n in coming
            ),
        )

    async def move(self, job: Job, swaps: Mapping[str, str]) -> Job:
        """Put nodes into the places of others; pods do not move, so the job must be stopped.

        Raises:
            UsageError: It runs, would have a node twice, or is placed by somebody else.
        """
        observe = await self.must_observe(job)
        refuse_managed(observe.workload, await self._kubectl.namespace(), "moved")
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
    ) -> Object:
        """Change what is known, or read it first; again when somebody else wrote in between."""
        for attempt in range(TRIES):
            found = known if known is not None and attempt == 0 else await self.must_find(job)
            try:
                return await self._kubectl.put(found.path, change(found))
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable")


async def change_node(
    kubectl: Kubectl, name: str, change: Change, known: Object | None = None
) -> Object:
    """Change what is known of a node, or read it first; again when somebody wrote in between.

    Raises:
        ConflictError: Somebody else writes all the time.
        UsageError: The cluster has no such node.
    """
    path = f"{NODES_PATH}/{name}"
    for attempt in range(TRIES):
        node = known if known is not None and attempt == 0 else await kubectl.get(path)
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
