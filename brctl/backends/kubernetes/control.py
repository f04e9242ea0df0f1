"""Start and stop a training job: its Job or JobSet is unsuspended and suspended.

Decision 0090 says what may change in between, and when the object is made anew instead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from brctl.backends.contract import StartReport, StopReport
from brctl.backends.kubernetes.events import Events
from brctl.backends.kubernetes.jobs import on_nodes, released, suspended
from brctl.backends.kubernetes.managed import refuse_managed
from brctl.backends.kubernetes.pods import BY_OTHERS, Pod, bound_to, ranks_of
from brctl.backends.kubernetes.remake import Remaking
from brctl.backends.kubernetes.workloads import ObservedWorkload, Workloads
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold

START_DEADLINE_S = 300.0
"""A standby may have to pull the image first."""

KILL_DEADLINE_S = 60.0
"""The control plane calls a dead node NotReady after 40 to 50 s; until then its pods look alive.

Nodes that do not answer us are not waited for so long; see `silence.py`.
"""

SETTLE_S = 1.0
"""A trainer that cannot start at all runs for a moment, too."""

POLL_S = 0.5

AskNodes = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Which nodes do not answer us, with the reason; only where others of them do."""


async def nobody_asked(_nodes: Sequence[str]) -> Mapping[str, str]:
    """Where nodes are not reached but through the cluster, what it says is all there is."""
    return {}


class Control:
    """The two changes of a training job's life."""

    def __init__(
        self,
        kubectl: Kubectl,
        workloads: Workloads,
        remaking: Remaking,
        events: Events,
        not_answering: AskNodes,
    ) -> None:
        self._kubectl = kubectl
        self._workloads = workloads
        self._remaking = remaking
        self._events = events
        self._not_answering = not_answering
        self.start_deadline_s = START_DEADLINE_S
        self.kill_deadline_s = KILL_DEADLINE_S
        self.settle_s = SETTLE_S

    async def start(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        """Unsuspend, and wait until every pod runs; what does not start is suspended again."""
        await self._remaking.finish(job)
        observe = await self.find(job)
        here, found = observe.job, observe.workload
        refuse_managed(found, await self._kubectl.namespace(), "started")
        if not found.suspended and not found.ended:
            if found.incarnation != incarnation:
                why = f"{found.name} runs already, started by {found.incarnation or BY_OTHERS}"
                return StartReport((), dict.fromkeys(here.nodes, why))
            return await self._started(here)
        nodes = await self._workloads.must_be_free(here)
        misses = found.misses(job, checkpoint)
        if found.ended or misses:
            await self._remaking.begin(job, found, misses)
            found = await self._workloads.must_find(job)
        await self._workloads.bind(here, nodes)
        found = await self._workloads.never_started(job, found)
        self._remaking.remember(job, found)
        # In one change: nobody ever sees it run without knowing what its pods were told.
        value = await self._workloads.change(
            job, lambda now: released(now, here, checkpoint, incarnation), found
        )
        source = checkpoint or "the job's own choice"
        code = f", code {job.code.version}" if job.code is not None else ""
        said = f"{incarnation}: started on {fold(here.nodes)} from {source}{code}"
        await self._events.say([value], "BrctlStarted", said)
        return await self._started(here)

    async def find(self, job: Job) -> ObservedWorkload:
        """The workload, made again where the cluster has deleted it because it had ended.

        Raises:
            UsageError: The cluster has none, and nothing is kept of it.
        """
        observe = await self._workloads.observe(job)
        if observe is None:
            await self._remaking.bring_back(job)
        return observe or await self._workloads.must_observe(job)

    async def stop(self, job: Job, grace_s: float) -> StopReport:
        """Suspend, wait, shorten the grace of what is left, wait again."""
        observe = await self._workloads.observe(job)
        if observe is None:
            return StopReport(tuple(range(job.world_size)), (), (), {})
        here = observe.job
        refuse_managed(observe.workload, await self._kubectl.namespace(), "stopped")
        if not observe.workload.suspended and not observe.workload.ended:
            value = await self._workloads.change(
                job, lambda now: suspended(now, here.nodes), observe.workload
            )
            await self._events.say([value], "BrctlStopped", f"stopped on {fold(here.nodes)}")
        dead = await self._not_answering(here.nodes)
        late = await self._left_after(here, grace_s, dead)
        await asyncio.gather(*(self._kill(pod) for pod in late))
        stuck = await self._left_after(here, self.kill_deadline_s, dead) if late else ()
        silent = {**dead, **await self._workloads.not_ready(here.name, here.nodes)}
        lost = {r for i, node in enumerate(here.nodes) if node in silent for r in ranks_of(job, i)}
        left = _ranks(job, stuck) - lost
        killed = _ranks(job, late) - left - lost
        ended = set(range(job.world_size)) - killed - left - lost
        stopped, killed_, stuck_ = (tuple(sorted(part)) for part in (ended, killed, left))
        return StopReport(stopped, killed_, stuck_, silent)

    async def _started(self, job: Job) -> StartReport:
        """Wait until every pod runs, and still does a moment later: the same pods."""
        deadline = asyncio.get_running_loop().time() + self.start_deadline_s
        before: frozenset[str] = frozenset()
        while True:
            observe = await self._workloads.observe(job)
            if observe is None:
                return StartReport((), dict.fromkeys(job.nodes, "its Job was deleted meanwhile"))
            over = _why_hopeless(observe)
            if not over and await self._all_run(observe):
                now = frozenset(pod.trainer.id or pod.uid for pod in observe.pods if pod.runs)
                if now == before:
                    await self._remember(observe)
                    return StartReport(tuple(range(job.world_size)), {})
                before = now
                await asyncio.sleep(self.settle_s)
                continue
            before = frozenset()
            if over or asyncio.get_running_loop().time() >= deadline:
                return await self._withdraw(observe, over)
            await asyncio.sleep(POLL_S)

    async def _all_run(self, observe: ObservedWorkload) -> bool:
        """Whether every rank runs, on a node that is ready: asked once the pods say they do."""
        if sum(pod.runs for pod in observe.pods) < len(observe.job.nodes):
            return False
        state = await self._workloads.state(observe)
        return len(state.alive) == observe.job.world_size

    async def _remember(self, observe: ObservedWorkload) -> None:
        """Write down where the scheduler put the pods."""
        nodes = observe.job.nodes
        if nodes != observe.workload.remembered:
            await self._workloads.change(
                observe.job, lambda now: on_nodes(now, nodes), observe.workload
            )

    async def _withdraw(self, observe: ObservedWorkload, over: str) -> StartReport:
        """Half a start helps nobody: its pods hold nodes and wait for the others."""
        job, state = observe.job, await self._workloads.state(observe)
        if not observe.workload.ended:
            nodes = observe.workload.remembered or job.nodes
            await self._workloads.change(job, lambda now: suspended(now, nodes))
        alive = set(state.alive)
        missing = [n for i, n in enumerate(job.nodes) if not set(ranks_of(job, i)) <= alive]
        say = {n: over or state.unreachable.get(n, "its pod ended at once") for n in missing}
        return StartReport(state.alive, say or dict.fromkeys(job.nodes, over))

    async def _left_after(
        self, job: Job, seconds: float, dead: Mapping[str, str]
    ) -> tuple[Pod, ...]:
        """Pods that have not ended after so long, on nodes that answer."""
        deadline = asyncio.get_running_loop().time() + seconds
        while left := await self._still_there(job, dead):
            if asyncio.get_running_loop().time() >= deadline:
                return left
            await asyncio.sleep(POLL_S)
        return ()

    async def _still_there(self, job: Job, dead: Mapping[str, str]) -> tuple[Pod, ...]:
        observe = await self._workloads.observe(job)
        found = observe.pods if observe is not None else ()
        running = [pod for pod in found if not pod.ended and pod.node not in dead]
        nodes = {pod.node for pod in running if pod.node}
        silent = await self._workloads.not_ready(job.name, tuple(nodes)) if nodes else {}
        return tuple(pod for pod in running if pod.node not in silent)

    async def _kill(self, pod: Pod) -> None:
        """One second of grace; never zero, which forgets the pod without asking its node."""
        path = f"/api/v1/namespaces/{await self._kubectl.namespace()}/pods/{pod.name}"
        await self._kubectl.delete(path, gracePeriodSeconds=1, preconditions={"uid": pod.uid})


def _why_hopeless(observe: ObservedWorkload) -> str:
    """Why waiting longer does not help; "" while it may."""
    nodes = bound_to(observe.pods).values()
    if len(set(nodes)) < len(nodes):
        return f"two of its pods share a node ({', '.join(nodes)}); let each ask for a whole node"
    return observe.workload.ended


def _ranks(job: Job, pods: Sequence[Pod]) -> set[int]:
    return {rank for pod in pods for rank in ranks_of(job, pod.order)}
