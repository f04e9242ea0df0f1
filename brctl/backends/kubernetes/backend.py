"""Kubernetes through the real kubectl: nodes as other tools see them, jobs as Job or JobSet.

Cordons, reservations and labels are marks on Node objects (`marks.py`); where a job's pods
shall be is a mark on the Job. Nothing is kept on this machine but, for seconds, the manifest of a
Job that is made anew.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import (
    Cordon,
    ImagePull,
    Label,
    Reservation,
    StartReport,
    StopReport,
)
from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.control import AskNodes, Control, nobody_asked
from brctl.backends.kubernetes.events import Events
from brctl.backends.kubernetes.evict import evict_node, names_of, pods_on
from brctl.backends.kubernetes.image_pulls import ImagePulls
from brctl.backends.kubernetes.pods import holds_gpu
from brctl.backends.kubernetes.remake import Remaking
from brctl.backends.kubernetes.workloads import NODES_PATH, Change, Workloads, change_node
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState


class KubernetesBackend:
    """See the head of this file, and `Backend`."""

    name = "kubernetes"

    def __init__(
        self,
        kubectl: Kubectl,
        inventory: Inventory,
        keep: Path,
        not_answering: AskNodes = nobody_asked,
    ) -> None:
        self._kubectl = kubectl
        self._inventory = inventory
        self._workloads = Workloads(kubectl)
        self._events = Events(kubectl)
        self.image_pulls = ImagePulls(kubectl)
        remaking = Remaking(kubectl, keep)
        self.control = Control(kubectl, self._workloads, remaking, self._events, not_answering)

    async def cordons(self) -> Mapping[str, Cordon]:
        """See `Backend.cordons`."""
        found = await asyncio.gather(
            self._nodes(labelSelector=marks.CORDONED),
            self._nodes(fieldSelector="spec.unschedulable=true"),
        )
        nodes = {str(node["metadata"]["name"]): node for part in found for node in part}
        return {name: c for name, node in nodes.items() if (c := marks.cordon_of(node))}

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        """See `Backend.cordon`."""
        self._inventory.require(nodes)
        changed = await self._change(nodes, lambda node: marks.cordon(node, owner, reason, at))
        await self._events.say(changed, "BrctlCordoned", f"{owner}: {reason}")

    async def uncordon(self, nodes: Sequence[str]) -> None:
        """See `Backend.uncordon`."""
        changed = await self._change(nodes, marks.uncordon)
        await self._events.say(changed, "BrctlUncordoned", "back in service")

    async def reservations(self) -> Mapping[str, Reservation]:
        """See `Backend.reservations`."""
        nodes = await self._nodes(labelSelector=marks.RESERVED)
        return {r.node: r for node in nodes if (r := marks.reservation_of(node))}

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        """See `Backend.reserve`; of two controllers the API server lets one win."""
        self._inventory.require([node])
        after = await change_node(
            self._kubectl, node, lambda found: marks.reserve(found, owner, at)
        )
        held = marks.reservation_of(after)
        return held is not None and held.owner == owner

    async def release(self, nodes: Sequence[str], owner: str) -> None:
        """See `Backend.release`."""
        await self._change(nodes, lambda node: marks.release(node, owner))

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        """See `Backend.idle_nodes`: ready, in service, no standby, and no pod there has a GPU."""
        workload = await self._workloads.find(job) if job is not None else None
        tolerated = workload.tolerations if workload is not None else ()
        listed, found = await asyncio.gather(
            self._kubectl.get(NODES_PATH), self._kubectl.get("/api/v1/pods")
        )
        nodes = (listed or {}).get("items") or ()
        taken = {pod["spec"].get("nodeName") for pod in (found or {})["items"] if holds_gpu(pod)}
        ordinary = self._inventory.names(NodeRole.ACTIVE)
        free = {str(n["metadata"]["name"]) for n in nodes if marks.takes_work(n, tolerated)}
        return tuple(name for name in ordinary if name in free and name not in taken)

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        """See `Backend.labels`."""
        found = await self._nodes(labelSelector=marks.PREFIX + key)
        named = {str(node["metadata"]["name"]): marks.label_of(node, key) for node in found}
        return {name: label for name in nodes if (label := named.get(name))}

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        """See `Backend.label`."""
        self._inventory.require(nodes)
        await self._change(nodes, lambda node: marks.label(node, key, value, owner))

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        """See `Backend.unlabel`."""
        await self._change(nodes, lambda node: marks.unlabel(node, key, owner))

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """See `Backend.work_on`: every pod that an eviction would end."""
        found = await asyncio.gather(*(pods_on(self._kubectl, node) for node in nodes))
        names = {node: names_of(pods) for node, pods in zip(nodes, found, strict=True)}
        return {node: f"runs {text}" for node, text in names.items() if text}

    async def evict(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """See `Backend.evict`: the eviction API, so that PodDisruptionBudgets are asked."""
        left = await asyncio.gather(*(evict_node(self._kubectl, node) for node in nodes))
        return {node: why for node, why in zip(nodes, left, strict=True) if why}

    async def place(self, job: Job) -> Job:
        """See `Backend.place`; a job that is not in the cluster is where job.yaml says."""
        observe = await self._workloads.observe(job, recent=True)
        return job if observe is None else observe.job

    async def pull_images(self, job: Job, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        """See `Backend.pull_images`."""
        self._inventory.require(nodes)
        return await self.image_pulls.pull(await self._workloads.must_find(job), nodes)

    async def must_control(self, job: Job, verb: str) -> None:
        """See `Backend.must_control`."""
        await self._workloads.must_control(job, verb)

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        """See `Backend.replace_nodes`; pods do not move, so the job must be stopped first."""
        self._inventory.require(list(swaps.values()))
        await self.control.find(job)
        return await self._workloads.move(job, swaps)

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        """See `Backend.start_job`."""
        return await self.control.start(job, checkpoint, incarnation)

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        """See `Backend.stop_job`."""
        return await self.control.stop(job, grace_s)

    async def job_status(self, job: Job) -> JobRunState:
        """See `Backend.job_status`."""
        observe = await self._workloads.observe(job)
        if observe is None:
            return JobRunState((), tuple(range(job.world_size)), frozenset(), {}, {})
        return await self._workloads.state(observe)

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        """See `Backend.scheduler_view`: pods are the only ones who know of their processes."""
        return await self.job_status(job)

    async def _nodes(self, **query: str) -> list[Object]:
        found = await self._kubectl.recent(NODES_PATH, **query)
        return list((found or {}).get("items") or ())

    async def _change(self, nodes: Sequence[str], change: Change) -> list[Object]:
        """The nodes that were changed, as they are now."""
        changed: set[str] = set()

        def noted(node: Object) -> Object | None:
            new = change(node)
            (changed.discard if new is None else changed.add)(str(node["metadata"]["name"]))
            return new

        after = await asyncio.gather(*(change_node(self._kubectl, node, noted) for node in nodes))
        return [node for node in after if str(node["metadata"]["name"]) in changed]
