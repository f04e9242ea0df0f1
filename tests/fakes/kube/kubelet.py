"""Stand-in for the kubelets of all nodes: a pod's command is a real process of this machine."""

import os
import signal
import subprocess
import time
from contextlib import suppress

from brctl.fanout.kubernetes.transport import ENTER_NODE
from tests.fakes.kube.controllers import INDEX, condition, is_over, set_condition
from tests.fakes.kube.objects import ApiError, Object, Store, namespace_of, stamp
from tests.fakes.kube.server import Start


class Kubelet:
    """Starts, watches and ends the processes of pods on nodes that are up."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._asked: dict[str, tuple[float, int]] = {}
        self._dead: set[str] = set()

    def tick(self) -> None:
        with self._store.lock:
            for pod in list(self._store.all("pods")):
                node = pod["spec"].get("nodeName")
                if node and node not in self._dead and self._is_ready(node):
                    self._look_after(pod)
            for uid in self._running.keys() - {
                p["metadata"]["uid"] for p in self._store.all("pods")
            }:
                self._kill(uid)

    def _is_ready(self, node: str) -> bool:
        return condition(self._store.get("nodes", "", node), "Ready")

    def close(self) -> None:
        self._dead.clear()
        for uid in list(self._running):
            self._kill(uid)

    def power_off(self, node: str) -> None:
        """The processes of a node end with it; nobody is told."""
        self._dead.add(node)
        for pod in self._store.all("pods"):
            if pod["spec"].get("nodeName") == node:
                self._kill(pod["metadata"]["uid"])

    def exec_in(self, pod: Object, container: str, argv: list[str]) -> Start:
        """Start a command in a running container, in the node's own namespaces where it may."""
        node = pod["spec"].get("nodeName")
        if node in self._dead:
            why = "error dialing backend: dial tcp 192.0.2.1:10250: connect: no route to host"
            raise ApiError(500, "InternalError", why)
        names = [row["name"] for row in pod["status"].get("containerStatuses", ())]
        if pod["status"].get("phase") != "Running" or container not in names:
            raise ApiError(404, "NotFound", f'container not found ("{container}")')
        command = _entered(pod, argv)
        return lambda: subprocess.Popen(
            command, env={"PATH": os.environ["PATH"], "HOSTNAME": node}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _look_after(self, pod: Object) -> None:
        uid, phase = pod["metadata"]["uid"], pod["status"].get("phase")
        process = self._running.get(uid)
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod, process)
        elif phase == "Pending":
            self._start(pod)
        elif phase == "Running" and process is not None and process.poll() is not None:
            self._finish(pod, process.returncode)
            self._store.touch(pod)

    def _start(self, pod: Object) -> None:
        container = pod["spec"]["containers"][0]
        state: Object = {"running": {"startedAt": stamp()}}
        if container.get("command"):
            # A test process that is killed takes its pods with it.
            argv = ["setpriv", "--pdeathsig", "KILL", "--", *container["command"]]
            argv += container.get("args", ())
            uid = pod["metadata"]["uid"]
            self._running[uid] = subprocess.Popen(
                argv, env=_environment(pod, container), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        pod["status"]["phase"] = "Running"
        row = {"name": container["name"], "imageID": f"image/{container['image']}", "state": state}
        pod["status"]["containerStatuses"] = [row]
        set_condition(pod, "Ready", "True", "")
        self._store.touch(pod)

    def _end(self, pod: Object, process: subprocess.Popen[bytes] | None) -> None:
        meta = pod["metadata"]
        uid, grace = meta["uid"], meta["deletionGracePeriodSeconds"]
        if process is None or is_over(pod):
            self._store.drop("pods", namespace_of(pod), meta["name"])
            return
        if uid not in self._asked:
            _signal(process, signal.SIGTERM)
            self._asked[uid] = (time.monotonic(), grace)
        asked_at, first = self._asked[uid]
        if grace < first:
            self._asked[uid] = (time.monotonic(), grace)
        elif time.monotonic() - asked_at > grace:
            _signal(process, signal.SIGKILL)
        if process.poll() is not None:
            self._finish(pod, process.returncode)
            self._store.drop("pods", namespace_of(pod), meta["name"])

    def _finish(self, pod: Object, code: int) -> None:
        status = 128 - code if code < 0 else code
        row = pod["status"]["containerStatuses"][0]
        row["state"] = {
            "terminated": {"exitCode": status, "reason": "Error" if code else "Completed"}
        }
        pod["status"]["phase"] = "Failed" if code else "Succeeded"
        self._running.pop(pod["metadata"]["uid"], None)

    def _kill(self, uid: str) -> None:
        process = self._running.pop(uid, None)
        if process is not None:
            _signal(process, signal.SIGKILL)
            process.wait()


def _entered(pod: Object, argv: list[str]) -> list[str]:
    """What nsenter runs; its own namespaces are all the stand-in's node has."""
    if argv[: len(ENTER_NODE)] != list(ENTER_NODE):
        return argv
    rows = [row.get("securityContext") or {} for row in pod["spec"]["containers"]]
    if pod["spec"].get("hostPID") and any(row.get("privileged") for row in rows):
        return argv[len(ENTER_NODE) :]
    why = "nsenter: cannot open /proc/1/ns/ipc: Permission denied"
    return ["sh", "-c", f"echo '{why}' >&2; exit 1"]


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _environment(pod: Object, container: Object) -> dict[str, str]:
    notes = pod["metadata"].get("annotations") or {}
    found = {"PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": notes.get(INDEX, "")}
    for row in container.get("env", ()):
        path = row.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        if path.startswith("metadata.annotations["):
            found[row["name"]] = notes.get(path[len("metadata.annotations['") : -2], "")
        elif path == "spec.nodeName":
            found[row["name"]] = pod["spec"]["nodeName"]
        else:
            found[row["name"]] = str(row.get("value", ""))
    return found
