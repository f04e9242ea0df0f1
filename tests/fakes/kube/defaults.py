"""What the API server writes into an object that its author left out.

Seen on kube-apiserver 1.26.1 (pkg/apis/core/v1/defaults.go, pkg/apis/batch/v1/defaults.go,
admission plugin DefaultTolerationSeconds): an object read back is never equal to what was sent.
"""

from collections.abc import Iterator
from typing import Any

from tests.fakes.kube.objects import Object

_POD = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HTTP = {"path": "/", "scheme": "HTTP"}
_JOB = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False, "parallelism": 1}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S = 300


def default(plural: str, item: Object) -> None:
    """Fill in an object as the server does before it stores it."""
    if plural == "pods":
        _pod_spec(item["spec"])
        _tolerations(item["spec"])
    elif plural == "jobs":
        _job(item)
    elif plural == "jobsets":
        # The webhook of JobSet; the pods of its template get theirs with the Jobs it makes.
        for row in item["spec"]["replicatedJobs"]:
            row.setdefault("replicas", 1)


def _job(item: Object) -> None:
    spec, meta = item["spec"], item["metadata"]
    for key, value in _JOB.items():
        spec.setdefault(key, value)
    spec.setdefault("completions", spec["parallelism"])
    template = spec["template"]
    template.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    _pod_spec(template["spec"])
    if "uid" in meta and not spec.get("manualSelector"):
        # 1.26 knows neither label with the prefix batch.kubernetes.io/; they came with 1.27.
        own = {"controller-uid": meta["uid"], "job-name": meta["name"]}
        template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), **own}
        spec["selector"] = {"matchLabels": {"controller-uid": meta["uid"]}}


def _pod_spec(spec: Object) -> None:
    for key, value in _POD.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _container(container)
    for volume in spec.get("volumes") or ():
        for kind in ("configMap", "secret", "projected", "downwardAPI"):
            if kind in volume:
                volume[kind].setdefault("defaultMode", 420)


def _container(container: Object) -> None:
    for key, value in _CONTAINER.items():
        container.setdefault(key, value)
    latest = container.get("image", "").rpartition("/")[2].partition(":")[2] in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    for rows in resources.values():
        # A quantity is text, whatever was sent.
        rows.update({name: str(amount) for name, amount in rows.items()})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for source in _sources(container):
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
    for name in _PROBES:
        if name in container:
            _probe(container[name])


def _probe(probe: Object) -> None:
    for key, value in _PROBE.items():
        probe.setdefault(key, value)
    if "httpGet" in probe:
        for key, text in _HTTP.items():
            probe["httpGet"].setdefault(key, text)


def _sources(container: Object) -> Iterator[Any]:
    return (row["valueFrom"] for row in container.get("env") or () if "valueFrom" in row)


def _tolerations(spec: Object) -> None:
    """Pods only, not templates: they outlive 300 s of a node that is not ready."""
    rows = spec.setdefault("tolerations", [])
    known = {row.get("key") for row in rows if row.get("effect") in (None, "", "NoExecute")}
    for key in _TOLERATED:
        if key not in known:
            rows.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": _TOLERATED_S}
            )  # fmt: skip
