"""Examine the pods through which `ssh.transport: kubectl` reaches nodes, or says which it makes."""

import asyncio
from collections.abc import Iterator

from brctl.backends.kubernetes.permissions import NeededFor, missing_permissions
from brctl.engine.controller.doctor_kubernetes import not_allowed
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.fanout.kubernetes.node_pods import can_enter, pods_by_node
from brctl.fanout.kubernetes.pod_finder import LABEL, left_behind, pods_path
from brctl.library.config import NodePods, Settings
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.sweeps.sweep import Health

TOPIC = "node pods"
_NAMED_AT_MOST = 3


def node_pods(settings: Settings) -> Iterator[DoctorFinding]:
    """Findings about the way to the nodes; none where it is another one."""
    chosen = settings.ssh.node_pods
    if settings.ssh.transport != "kubectl":
        return
    if not (chosen.daemonset or chosen.image):
        hint = "kubernetes: {node_pods: {daemonset: NAME, namespace: NAMESPACE}}, or {image: IMAGE}"
        yield DoctorFinding(Health.CRITICAL, TOPIC, "neither a DaemonSet nor an image", hint)
        return
    if settings.readonly and settings.ssh.makes_pods:
        text = "this context is read-only, and node_pods.image makes pods: no node is asked"
        yield DoctorFinding(Health.CRITICAL, TOPIC, text, "name a `daemonset` that is there")
        return
    yield from asyncio.run(_ask(chosen))


async def _ask(chosen: NodePods) -> list[DoctorFinding]:
    kubectl = Kubectl(chosen.context, chosen.namespace)
    needs = (NeededFor.EXEC,) if chosen.daemonset else (NeededFor.EXEC, NeededFor.OWN_PODS)
    lacking = await missing_permissions(kubectl, *needs)
    if lacking:
        return [not_allowed(TOPIC, what) for what in lacking]
    return await (_daemonset if chosen.daemonset else _own)(kubectl, chosen)


async def _daemonset(kubectl: Kubectl, chosen: NodePods) -> list[DoctorFinding]:
    answer = await kubectl.get(await pods_path(kubectl))
    items = list((answer or {}).get("items") or ())
    found = pods_by_node(items, chosen.daemonset, chosen.container)
    name = f"DaemonSet {chosen.daemonset} of namespace {await kubectl.namespace()}"
    if not found:
        return [DoctorFinding(Health.CRITICAL, TOPIC, f"{name} has no pods")]
    used = {pod.name: pod.container for pod in found.values()}
    closed = [
        item
        for item in items
        if (pod := str(item["metadata"]["name"])) in used and not can_enter(item, used[pod])
    ]
    if closed:
        hint = "probes enter the node from it: it needs hostPID and a privileged container"
        return [DoctorFinding(Health.CRITICAL, TOPIC, f"{name} cannot enter its nodes", hint)]
    waiting = sorted(f"{node}: {pod.why}" for node, pod in found.items() if not pod.ready)
    text = f"{name}: {len(found) - len(waiting)} pods run"
    if not waiting:
        return [DoctorFinding(Health.OK, TOPIC, text)]
    named = "; ".join(waiting[:_NAMED_AT_MOST])
    return [DoctorFinding(Health.WARNING, TOPIC, f"{text}, {len(waiting)} do not ({named})")]


async def _own(kubectl: Kubectl, chosen: NodePods) -> list[DoctorFinding]:
    namespace = await kubectl.namespace()
    text = (
        f"makes a privileged pod of {chosen.image} in namespace {namespace}, label {LABEL}, on each"
        " node it asks, and removes it"
    )
    findings = [DoctorFinding(Health.OK, TOPIC, text)]
    left = await left_behind(kubectl)
    if left:
        hint = f"the next command removes them, or: kubectl -n {namespace} delete pods -l {LABEL}"
        said = f"{len(left)} pods of commands that were killed are left, and have ended"
        findings.append(DoctorFinding(Health.WARNING, TOPIC, said, hint))
    return findings
