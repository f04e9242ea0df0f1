"""Finds the pod of a node: one that a DaemonSet has there, or one of our own, made when asked for.

Our own pods carry the label `brctl.dev/node-pod`, ask the cluster for no rights, end by themselves
after an hour, or the longer time that the command they were made for may take, and are deleted when
the transport closes. A connection is held as long as its pod lives. What a controller that was
killed left behind has ended then, and is deleted by the next one.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.fanout.kubernetes.node_pods import NodePod, pods_by_node
from brctl.model.errors import BrctlError, DeniedError

LOOK_AGE_S = 2.0
"""One list of the pods serves all nodes that are asked within this time."""

TRUSTED_S = 60.0
"""So long a pod that ran is taken to run; a command that it loses ends that at once."""

PULL_S = 60.0
"""A node may have to pull the image first."""

POLL_S = 0.5
LIFE_S = 3600
HELD_LIFE_S = 24 * 3600
"""Pods of a watcher that was killed stay so long at most."""

LABEL = "brctl.dev/node-pod"
_LOG = logging.getLogger(__name__)
CONTAINER = "node"


class PodFinder(Protocol):
    """Where commands for a node are run."""

    async def pod_on(self, node: str, for_s: float | None) -> NodePod:
        """The pod of a node; one that is not ready says why.

        Args:
            node: Its name in the cluster.
            for_s: How long it is needed; None for as long as it lives.
        """
        ...

    def forget(self, node: str) -> None:
        """A command was lost there: look again before the next one."""
        ...

    async def close(self) -> None:
        """Remove what was made."""
        ...


class _Listing:
    """The pods of one selector, looked up at most every so often however many ask."""

    def __init__(self, kubectl: Kubectl, daemonset: str, container: str, **query: str) -> None:
        self._kubectl = kubectl
        self._daemonset, self._container, self._query = daemonset, container, query
        self._lock = asyncio.Lock()
        self._at = self._failed_at = float("-inf")
        self._known: Mapping[str, NodePod] = {}
        self._failure: BrctlError | None = None
        self._passed_over: set[str] = set()

    async def pod_on(self, node: str) -> NodePod | None:
        known = (await self.look(TRUSTED_S)).get(node)
        return known if known and known.ready else (await self.look(LOOK_AGE_S)).get(node)

    async def look(self, age_s: float) -> Mapping[str, NodePod]:
        async with self._lock:
            if time.monotonic() - self._at > age_s:
                await self._list()
            return self._known

    async def _list(self) -> None:
        # Else the nodes that wait here would wait for a dead API server one after another.
        if self._failure is not None and time.monotonic() - self._failed_at <= LOOK_AGE_S:
            raise self._failure.with_traceback(None)
        try:
            path = await pods_path(self._kubectl)
            answer = await self._kubectl.get(path, **self._query)
        except BrctlError as exc:
            self._failure, self._failed_at = exc, time.monotonic()
            raise
        listed = (answer or {}).get("items") or ()
        items = [i for i in listed if i["metadata"].get("name") not in self._passed_over]
        self._known = pods_by_node(items, self._daemonset, self._container)
        self._at, self._failure = time.monotonic(), None

    def forget(self) -> None:
        self._at = float("-inf")

    def pass_over(self, name: str) -> None:
        """Another pod stands for its node from now on."""
        self._passed_over.add(name)
        self.forget()


class DaemonSetPods:
    """The pods of a DaemonSet that the site has; none is made or removed."""

    def __init__(self, kubectl: Kubectl, daemonset: str, container: str) -> None:
        self._daemonset = daemonset
        self._listing = _Listing(kubectl, daemonset, container)

    async def pod_on(self, node: str, for_s: float | None) -> NodePod:
        """See `PodFinder.pod_on`."""
        none = NodePod("", "", ready=False, why=f"no pod of DaemonSet {self._daemonset} there")
        return await self._listing.pod_on(node) or none

    def forget(self, node: str) -> None:
        """See `PodFinder.forget`."""
        self._listing.forget()

    async def close(self) -> None:
        """Nothing was made."""


class OwnPods:
    """Pods made for as long as this is open, one on each node that is asked."""

    def __init__(self, kubectl: Kubectl, image: str, connect_s: float) -> None:
        self._kubectl = kubectl
        self._image = image
        self._start_s = connect_s + PULL_S
        self._session = secrets.token_hex(8)
        self._listing = _Listing(kubectl, "", CONTAINER, labelSelector=f"{LABEL}={self._session}")
        self._making: dict[str, asyncio.Lock] = {}
        self._ends_at: dict[str, float] = {}
        self._swept = False

    async def pod_on(self, node: str, for_s: float | None) -> NodePod:
        """See `PodFinder.pod_on`; made, and waited for, when there is none that runs so long."""
        async with self._making.setdefault(node, asyncio.Lock()):
            found = await self._listing.pod_on(node)
            lasts = found is not None and self._lasts(found.name, for_s)
            if found is not None and found.ready and lasts:
                return found
            if found is None or found.ended or not lasts:
                await self._remove_ended()
                await self._replace(found)
                await self._make(node, self._life_s(for_s))
            return await self._started(node)

    def forget(self, node: str) -> None:
        """See `PodFinder.forget`."""
        self._listing.forget()

    async def close(self) -> None:
        """Delete every pod that was made; what cannot be deleted is said, and ends by itself."""
        removed = await asyncio.gather(*map(self._remove, self._ends_at))
        self._ends_at.clear()
        if not all(removed):
            where = f"{removed.count(False)} of {len(removed)} pods, label {LABEL}={self._session}"
            _LOG.warning("warning: not removed: %s; they end by themselves", where)

    async def _started(self, node: str) -> NodePod:
        deadline = time.monotonic() + self._start_s
        while True:
            found = (await self._listing.look(POLL_S)).get(node)
            if found is not None and (found.ready or found.hopeless or found.ended):
                return found
            if time.monotonic() >= deadline:
                late = found or NodePod("", "", ready=False, why="the pod made there is not seen")
                return replace(late, why=f"{late.why} after {self._start_s:g} s")
            await asyncio.sleep(POLL_S)

    def _life_s(self, for_s: float | None) -> int:
        if for_s is None:
            return HELD_LIFE_S
        return max(LIFE_S, math.ceil(for_s + self._start_s))

    def _lasts(self, name: str, for_s: float | None) -> bool:
        # Else each connection that is taken up again would leave a pod that still runs behind.
        return self._ends_at.get(name, float("-inf")) >= time.monotonic() + (for_s or 0.0)

    async def _replace(self, found: NodePod | None) -> None:
        """One that still runs is left until the end: another command may be under way in it."""
        if found is None:
            return
        self._listing.pass_over(found.name)
        if found.ended and await self._remove(found.name):
            self._ends_at.pop(found.name, None)

    async def _make(self, node: str, life_s: int) -> None:
        name = f"brctl-node-{secrets.token_hex(6)}"
        # Before the request: one that is cut short may have made it all the same.
        self._ends_at[name] = time.monotonic() + life_s
        path = await pods_path(self._kubectl)
        try:
            await self._kubectl.post(path, manifest(name, node, self._image, self._session, life_s))
        except DeniedError:
            del self._ends_at[name]
            raise
        self._listing.forget()

    async def _remove_ended(self) -> None:
        """Once: what others left behind, of which nothing runs any more."""
        if self._swept:
            return
        self._swept = True
        await asyncio.gather(*map(self._remove, await left_behind(self._kubectl)))

    async def _remove(self, name: str) -> bool:
        try:
            path = f"{await pods_path(self._kubectl)}/{name}"
            await self._kubectl.delete(path, gracePeriodSeconds=1)
        except BrctlError:
            return False
        return True


async def pods_path(kubectl: Kubectl) -> str:
    """Where the API serves the pods of the namespace."""
    return f"/api/v1/namespaces/{await kubectl.namespace()}/pods"


async def left_behind(kubectl: Kubectl) -> tuple[str, ...]:
    """Pods of ours that have ended and are still there."""
    answer = await kubectl.get(await pods_path(kubectl), labelSelector=LABEL)
    items = (answer or {}).get("items") or ()
    return tuple(
        str(item["metadata"]["name"])
        for item in items
        if (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    )


def manifest(name: str, node: str, image: str, session: str, life_s: int = LIFE_S) -> Object:
    """A pod that sleeps on a node until it is used to enter it; pure.

    It is put there without the scheduler, which would not put it on a cordoned node.
    """
    container = {
        "name": CONTAINER,
        "image": image,
        "command": ["sleep", str(life_s)],
        "securityContext": {"privileged": True},
    }
    spec: Object = {
        "nodeName": node,
        "hostPID": True,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": life_s,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    labels = {"app.kubernetes.io/managed-by": "brctl", LABEL: session}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
