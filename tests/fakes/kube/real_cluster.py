"""A real API server in the place of the stand-in, for the contract of backends.

`BRCTL_TEST_KUBECONFIG` names a kubeconfig; its current context says which cluster and, best a
namespace of its own, where the suite's one Job goes. See docs/kubernetes.md.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.containers import GPU
from brctl.backends.kubernetes.evict import pods_on
from brctl.backends.kubernetes.workloads import NODES_PATH, change_node
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from tests.timeouts import TIMEOUT_S

VARIABLE = "BRCTL_TEST_KUBECONFIG"
IMAGE_VARIABLE = "BRCTL_TEST_IMAGE"
JOB = "brctl-contract"
WANTED = 6


class RealCluster:
    """Six nodes of a cluster that have nothing to do, and the namespace of the kubeconfig."""

    def __init__(self) -> None:
        self._kubectl = Kubectl()
        self.nodes = asyncio.run(self._idle_nodes())

    async def _idle_nodes(self) -> tuple[str, ...]:
        """Ready, in service, without taints, and with nothing on them that can be evicted."""
        listed = (await self._kubectl.get(NODES_PATH) or {})["items"]
        names = sorted(str(item["metadata"]["name"]) for item in listed if marks.takes_work(item))
        idle = [name for name in names if not await pods_on(self._kubectl, name)]
        if len(idle) < WANTED:
            raise AssertionError(f"{VARIABLE}: {WANTED} idle nodes are needed, idle are {idle}")
        return tuple(idle[:WANTED])

    async def forget(self) -> None:
        """Remove the Job with its pods, and all that brctl wrote on the nodes."""
        namespace = await self._kubectl.namespace()
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{JOB}"
        await self._kubectl.delete(path, propagationPolicy="Background")
        for node in self.nodes:
            await change_node(self._kubectl, node, _without_marks)
        deadline = monotonic() + TIMEOUT_S
        while await self._has_pods(namespace):
            assert monotonic() < deadline, f"pods of {JOB} do not go"
            await asyncio.sleep(0.5)

    async def _has_pods(self, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods"
        found = await self._kubectl.get(path, labelSelector=f"job-name={JOB}")
        return bool((found or {}).get("items"))

    async def add_job(self, mark: str, pods: int, command: Sequence[str]) -> None:
        """A suspended Indexed Job, each of whose pods has a node of its own."""
        node = await self._kubectl.get(f"{NODES_PATH}/{self.nodes[0]}") or {}
        gpus = str(node["status"].get("allocatable", {}).get(GPU, "0"))
        path = f"/apis/batch/v1/namespaces/{await self._kubectl.namespace()}/jobs"
        await self._kubectl.post(path, _manifest(mark, pods, command, gpus))


def _manifest(mark: str, pods: int, command: Sequence[str], gpus: str) -> Object:
    container: Object = {
        "name": "trainer",
        "image": os.environ.get(IMAGE_VARIABLE, "busybox:1.36"),
        "command": list(command),
        "resources": {"limits": {GPU: gpus}} if gpus != "0" else {},
    }
    apart = {
        "labelSelector": {"matchLabels": {"job-name": JOB}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    template = {"restartPolicy": "Never", "affinity": affinity, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": JOB, "labels": {marks.JOB: mark}},
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "template": {"spec": template},
        },
    }


def _without_marks(node: Object) -> Object | None:
    """The node as it was before any test; None when it is."""
    ours = [
        {key: None for key in known if key.startswith(marks.PREFIX)}
        for known in (marks.labels_of(node), marks.notes_of(node))
    ]
    back = marks.uncordon(node)
    if back is None and not any(ours):
        return None
    return marks.marked(back or node, *ours)


@contextmanager
def real_cluster() -> Iterator[RealCluster]:
    """The cluster that the variable names, with KUBECONFIG pointing to it."""
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = os.environ[VARIABLE]
    try:
        cluster = RealCluster()
        asyncio.run(cluster.forget())
        yield cluster
        asyncio.run(cluster.forget())
    finally:
        os.environ.pop("KUBECONFIG")
        if before is not None:
            os.environ["KUBECONFIG"] = before
