"""Events of what brctl did to nodes and Jobs, for people who look with `kubectl describe`.

An Event is a courtesy: a cluster that does not allow it, or does not answer, stops nothing. `brctl
doctor` says that the right is missing.
"""

import asyncio
import secrets
from collections.abc import Sequence

from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.model.errors import BrctlError, DeniedError

_NODES_NAMESPACE = "default"
"""Where Kubernetes itself keeps Events of objects that have no namespace."""

_MESSAGE_LIMIT = 1000
"""The API server takes 1,024 characters."""


class Events:
    """Writes Events, as far as the cluster lets us."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._refused = False

    async def say(self, items: Sequence[Object], reason: str, text: str) -> None:
        """Something was done to these nodes or Jobs, which are as the server returned them."""
        await asyncio.gather(*(self._write(item, reason, text) for item in items))

    async def _write(self, item: Object, reason: str, text: str) -> None:
        if self._refused:
            return
        event = event_of(item, reason, text, secrets.token_hex(8))
        path = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        try:
            await self._kubectl.post(path, event)
        except DeniedError:
            self._refused = True
        except BrctlError:
            return


def event_of(item: Object, reason: str, text: str, unique: str) -> Object:
    """An Event about an object that was just written; pure.

    Its moment is the server's own, which it notes in an object for every write.
    """
    meta = item["metadata"]
    namespace = str(meta.get("namespace") or _NODES_NAMESPACE)
    keys = ("name", "uid", "namespace", "resourceVersion")
    involved = {key: meta[key] for key in keys if meta.get(key)}
    involved |= {key: item[key] for key in ("apiVersion", "kind") if item.get(key)}
    writes = [str(row["time"]) for row in meta.get("managedFields") or () if row.get("time")]
    moments = {"firstTimestamp": max(writes), "lastTimestamp": max(writes)} if writes else {}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"brctl-{unique}", "namespace": namespace},
        "involvedObject": involved,
        "reason": reason,
        "message": text[:_MESSAGE_LIMIT],
        "type": "Normal",
        "source": {"component": "brctl"},
        "count": 1,
        **moments,
    }
