"""Which pod stands for which node, as a list of pods tells it. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from brctl.fanout.kubernetes.kubectl import Object

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ENDED = ("Succeeded", "Failed")
_HOPELESS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
     "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)  # fmt: skip
_WHY_LIMIT = 200


@dataclass(frozen=True, slots=True)
class NodePod:
    """The pod of a node.

    Attributes:
        container: The one to run commands in.
        ready: It runs, so that a command may be started in it.
        ended: Nothing of it will ever run again.
        hopeless: It does not start, and waiting longer does not help.
        why: Why it does not run; "" while it does.
    """

    name: str
    container: str
    ready: bool
    ended: bool = False
    hopeless: bool = False
    why: str = ""


def pods_by_node(items: list[Object], daemonset: str, container: str) -> Mapping[str, NodePod]:
    """The pods of a DaemonSet by node, or with "" all that are listed.

    One that runs wins, then one that has not ended.
    """
    found: dict[str, NodePod] = {}
    for item in items:
        node = (item.get("spec") or {}).get("nodeName")
        if not isinstance(node, str) or not (daemonset == "" or _is_of(item, daemonset)):
            continue
        pod = read_node_pod(item, container)
        if pod is not None and (node not in found or _rank(pod) > _rank(found[node])):
            found[node] = pod
    return found


def _rank(pod: NodePod) -> tuple[bool, bool]:
    return pod.ready, not pod.ended


def _is_of(item: Object, daemonset: str) -> bool:
    owners = item["metadata"].get("ownerReferences")
    rows = owners if isinstance(owners, list) else []
    return any(
        isinstance(row, dict) and row.get("kind") == "DaemonSet" and row.get("name") == daemonset
        for row in rows
    )


def read_node_pod(item: Object, container: str) -> NodePod | None:
    """One pod; None for what has no name or container that kubectl could be given."""
    name, status = str(item["metadata"].get("name", "")), item.get("status") or {}
    containers = _rows(item["spec"].get("containers"))
    chosen = container or str((containers[0] if containers else {}).get("name", ""))
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(chosen):
        return None
    phase, reason, message = str(status.get("phase")), *_waits_for(status, chosen)
    going = "deletionTimestamp" in item["metadata"]
    ready = phase == "Running" and not going and not reason
    why = "is being deleted" if going else f"is {phase}{_told(reason, message)}"
    return NodePod(
        name, chosen, ready, phase in _ENDED or going, reason in _HOPELESS, "" if ready else why
    )


def can_enter(item: Object, container: str) -> bool:
    """Whether a pod's container may enter the namespaces of its node."""
    chosen = [r for r in _rows(item["spec"].get("containers")) if r.get("name") == container]
    rights = (chosen[0] if chosen else {}).get("securityContext")
    privileged = isinstance(rights, dict) and rights.get("privileged") is True
    return privileged and item["spec"].get("hostPID") is True


def _waits_for(status: Object, container: str) -> tuple[str, str]:
    for row in _rows(status.get("containerStatuses")):
        state = row.get("state")
        waiting = state.get("waiting") if isinstance(state, dict) else None
        if row.get("name") == container and isinstance(waiting, dict):
            return str(waiting.get("reason", "")), str(waiting.get("message", ""))
    return "", ""


def _told(reason: str, message: str) -> str:
    text = f"{reason}: {message}".strip(": ")[:_WHY_LIMIT]
    return f": {text}" if text else ""


def _rows(value: object) -> list[Object]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
