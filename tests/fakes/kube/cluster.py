"""Bring the stand-in up, and do to it what people, hardware and other tenants do."""

import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.kube.controllers import GPU, set_condition, tick
from tests.fakes.kube.defaults import default
from tests.fakes.kube.kubelet import Kubelet
from tests.fakes.kube.objects import Object, Store, stamp
from tests.fakes.kube.server import ApiServer

NAMESPACE = "train"
TICK_S = 0.02
HEARS = {
    "name": "BRCTL_RESUME_FROM",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['brctl.dev/checkpoint']"}},
}
"""As docs/kubernetes.md has it: without the apiVersion that the server adds."""


def no_kubectl() -> bool:
    return shutil.which("kubectl") is None


class KubeCluster:
    """The stand-in while it runs; see the package."""

    def __init__(self, names: Sequence[str], standbys: Sequence[str] = ()) -> None:
        self.store = Store()
        self.store.default = default
        self.server = ApiServer(self.store)
        self.kubelet = Kubelet(self.store)
        self.server.start_in = self.kubelet.exec_in
        self._stop = threading.Event()
        self._loop = threading.Thread(target=self._run, daemon=True)
        self._http = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        for name in names:
            labels = {"brctl.dev/role": "standby"} if name in standbys else {}
            self._add_node(name, labels)
        self._loop.start()
        self._http.start()

    def close(self) -> None:
        self._stop.set()
        self._loop.join()
        self.server.shutdown()
        self._http.join()
        self.server.server_close()
        self.kubelet.close()

    def stop_api(self) -> None:
        """The port is closed; controllers and kubelets go on with what they know."""
        self.server.shutdown()
        self._http.join()
        self.server.socket.close()

    def start_api(self) -> None:
        """The same port again."""
        self.server.listen_again()
        self._http = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self._http.start()

    def kubeconfig(self) -> str:
        """Loopback, plain HTTP and a token that is no secret."""
        here = f"http://127.0.0.1:{self.server.server_address[1]}"
        context = {"cluster": "stand-in", "user": "test", "namespace": NAMESPACE}
        value = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stand-in",
            "clusters": [{"name": "stand-in", "cluster": {"server": here}}],
            "users": [{"name": "test", "user": {"token": "nothing"}}],
            "contexts": [{"name": "stand-in", "context": context}],
        }
        return json.dumps(value)

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            tick(self.store)
            self.kubelet.tick()

    def _add_node(self, name: str, labels: dict[str, str]) -> None:
        known = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true"}
        known |= {"nvidia.com/gpu.count": "8", **labels}
        node = {
            "metadata": {"name": name, "labels": known, "annotations": {}},
            "spec": {},
            "status": {
                "allocatable": {GPU: "8"},
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            },
        }
        set_condition(node, "Ready", "True", "KubeletReady")
        self.store.create("nodes", "", node)

    def node(self, name: str) -> Object:
        with self.store.lock:
            return self.store.get("nodes", "", name)

    def pods(self, **labels: str) -> list[Object]:
        with self.store.lock:
            return [
                pod
                for pod in self.store.all("pods", NAMESPACE)
                if labels.items() <= pod["metadata"].get("labels", {}).items()
            ]

    def power_off(self, name: str) -> None:
        """A node has died, and the node controller has noticed."""
        self.cut_power(name)
        self.notice(name)

    def cut_power(self, name: str) -> None:
        """A node has died: for 40 s 1.26.1 goes on calling it Ready and its pods Running."""
        with self.store.lock:
            self.kubelet.power_off(name)

    def notice(self, name: str) -> None:
        """What the node controller does after those 40 s (node-monitor-grace-period)."""
        with self.store.lock:
            node = self.store.get("nodes", "", name)
            set_condition(node, "Ready", "Unknown", "NodeStatusUnknown")
            taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
            node["spec"].setdefault("taints", []).append(taint)
            self.store.touch(node)

    def add_job(
        self,
        name: str,
        mark: str,
        pods: int,
        command: Sequence[str],
        *,
        owner: str = "",
        hears: bool = False,
        **more: Any,
    ) -> None:
        """A suspended Indexed Job of whole nodes, as a user's manifest would make it."""
        spec = {**job_spec(pods, command), "suspend": True, **more}
        if hears:
            spec["template"]["spec"]["containers"][0]["env"].append(HEARS)
        meta: Object = {"name": name, "labels": {"brctl.dev/job": mark}}
        if owner:
            self.keep(owner)
            meta["ownerReferences"] = [{"kind": "TrainJob", "name": "t", "uid": owner}]
        self.store.create("jobs", NAMESPACE, {"metadata": meta, "spec": spec})

    def add_jobset(
        self, name: str, mark: str, parts: dict[str, tuple[int, int]], command: Sequence[str]
    ) -> None:
        """A suspended JobSet; parts are replicas and pods of each replicated job."""
        rows = [
            {"name": part, "replicas": replicas, "template": {"spec": job_spec(pods, command)}}
            for part, (replicas, pods) in parts.items()
        ]
        meta = {"name": name, "labels": {"brctl.dev/job": mark}}
        spec = {"suspend": True, "replicatedJobs": rows}
        self.store.create("jobsets", NAMESPACE, {"metadata": meta, "spec": spec})

    def add_pod(self, name: str, node: str, **meta: Any) -> None:
        """Somebody's pod, running."""
        container = {"name": "main", "image": "somebody:1"}
        self.store.create(
            "pods",
            NAMESPACE,
            {
                "metadata": {"name": name, "labels": {}, "annotations": {}, **meta},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": "Running"},
            },
        )

    def add_daemonset(self, name: str, *, privileged: bool = True) -> None:
        """One pod of a DaemonSet on every node, as sites have it for their drivers."""
        container: Object = {"name": "agent", "image": "agent:1"}
        container["securityContext"] = {"privileged": privileged}
        running = [{"name": "agent", "state": {"running": {"startedAt": stamp()}}}]
        status = {"phase": "Running", "containerStatuses": running}
        self.keep(name)
        for node in [n["metadata"]["name"] for n in self.store.all("nodes")]:
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name}
            meta = {"name": f"{name}-{node}", "ownerReferences": [owner], "annotations": {}}
            spec = {"nodeName": node, "hostPID": True, "containers": [container]}
            pod = {"metadata": meta, "spec": spec, "status": status}
            self.store.create("pods", NAMESPACE, pod)

    def keep(self, uid: str) -> None:
        """An owner that lives elsewhere, so that its pods are no garbage."""
        self.store.owners.add(uid)

    def add_budget(self, name: str, labels: dict[str, str], allowed: int) -> Object:
        """A PodDisruptionBudget that allows so many evictions."""
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}}}
        return self.store.create(
            "poddisruptionbudgets", NAMESPACE, {**body, "status": {"disruptionsAllowed": allowed}}
        )

    def forget(self) -> None:
        """Remove every job and pod and make all nodes new, for the next test."""
        self.server.denied.clear()
        self.server.without.clear()
        with self.store.lock:
            names = {
                n["metadata"]["name"]: n["metadata"]["labels"] for n in self.store.all("nodes")
            }
            self.store.objects.clear()
            self.kubelet.close()
            for name, labels in names.items():
                role = {key: value for key, value in labels.items() if key == "brctl.dev/role"}
                self._add_node(name, role)


def job_spec(pods: int, command: Sequence[str]) -> Object:
    container = {
        "name": "trainer",
        "image": "trainer:1",
        "command": list(command),
        "resources": {"limits": {GPU: 8}},
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    return {
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": 6,
        "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}},
    }


@contextmanager
def kube_cluster(
    folder: Path, names: Sequence[str], standbys: Sequence[str] = ()
) -> Iterator[KubeCluster]:
    """The stand-in, with KUBECONFIG pointing to it while it runs."""
    cluster = KubeCluster(names, standbys)
    before = os.environ.get("KUBECONFIG")
    path = folder / "kubeconfig"
    path.write_text(cluster.kubeconfig())
    path.chmod(0o600)
    os.environ["KUBECONFIG"] = str(path)
    try:
        yield cluster
    finally:
        cluster.close()
        os.environ.pop("KUBECONFIG")
        if before is not None:
            os.environ["KUBECONFIG"] = before
