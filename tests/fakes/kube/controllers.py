"""Stand-ins for the Job and JobSet controllers, the scheduler and the garbage collector."""

import copy
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.fakes.kube.objects import Object, Store, labels_of, namespace_of, owner_of, stamp
from tests.fakes.kube.server import end_pod

INDEX = "batch.kubernetes.io/job-completion-index"
GPU = "nvidia.com/gpu"
_luck = random.Random(7)


def tick(store: Store) -> None:
    """One round of all controllers."""
    with store.lock:
        for jobset in list(store.all("jobsets")):
            _jobset(store, jobset)
        for job in list(store.all("jobs")):
            _job(store, job)
        _collect_garbage(store)
        waiting = [p for p in store.all("pods") if not p["spec"].get("nodeName")]
        # No order to rely on: which pod lands on which node is the scheduler's business.
        _luck.shuffle(waiting)
        for pod in waiting:
            _schedule(store, pod)


def condition(item: Object, kind: str) -> bool:
    rows = item.get("status", {}).get("conditions") or ()
    return any(row["type"] == kind and row["status"] == "True" for row in rows)


def set_condition(item: Object, kind: str, status: str, reason: str, message: str = "") -> None:
    rows = item.setdefault("status", {}).setdefault("conditions", [])
    rows[:] = [row for row in rows if row["type"] != kind]
    row = {"type": kind, "status": status, "reason": reason, "message": message}
    rows.append({**row, "lastTransitionTime": stamp()})


def is_over(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    return not is_over(pod) and "deletionTimestamp" not in pod["metadata"]


def pods_of(store: Store, job: Object) -> list[Object]:
    uid = job["metadata"]["uid"]
    return [p for p in store.all("pods", namespace_of(job)) if owner_of(p) == uid]


def _job(store: Store, job: Object) -> None:
    if condition(job, "Complete") or condition(job, "Failed"):
        _forget_in_time(store, job)
        return
    pods = pods_of(store, job)
    status = job.setdefault("status", {})
    if job["spec"].get("suspend"):
        if not condition(job, "Suspended"):
            set_condition(job, "Suspended", "True", "JobSuspended")
            store.touch(job)
        _end(store, pods)
        return
    if condition(job, "Suspended") or "startTime" not in status:
        set_condition(job, "Suspended", "False", "JobResumed")
        status["startTime"] = stamp()
        store.touch(job)
    if _has_ended(store, job, pods):
        return
    for index in range(job["spec"]["completions"]):
        own = [p for p in pods if p["metadata"]["annotations"][INDEX] == str(index)]
        done = any(p["status"].get("phase") == "Succeeded" for p in own)
        if not done and not any(is_active(pod) for pod in own):
            _make_pod(store, job, index)


def _forget_in_time(store: Store, job: Object) -> None:
    """The TTL controller of 1.26.1 deletes what has ended, the Job with its pods and manifest."""
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None:
        return
    rows = [r for r in job["status"]["conditions"] if r["type"] in ("Complete", "Failed")]
    ended_at = datetime.fromisoformat(rows[0]["lastTransitionTime"])
    if datetime.now(UTC) >= ended_at + timedelta(seconds=ttl_s):
        store.drop("jobs", namespace_of(job), job["metadata"]["name"])


def _has_ended(store: Store, job: Object, pods: list[Object]) -> bool:
    failed = sum(p["status"].get("phase") == "Failed" for p in pods)
    good = {
        p["metadata"]["annotations"][INDEX] for p in pods if p["status"].get("phase") == "Succeeded"
    }
    if failed > job["spec"].get("backoffLimit", 6):
        why = "Job has reached the specified backoff limit"
        set_condition(job, "Failed", "True", "BackoffLimitExceeded", why)
    elif len(good) == job["spec"]["completions"]:
        set_condition(job, "Complete", "True", "CompletionsReached")
    else:
        return False
    _end(store, pods)
    store.touch(job)
    return True


def _end(store: Store, pods: list[Object]) -> None:
    for pod in pods:
        if is_active(pod):
            end_pod(store, pod, None)


def _make_pod(store: Store, job: Object, index: int) -> None:
    name = job["metadata"]["name"]
    template = copy.deepcopy(job["spec"]["template"])
    meta = template.get("metadata", {})
    # 1.26 has the index as annotation alone; the label came with 1.28.
    labels = {**meta.get("labels", {}), "job-name": name}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
    pod = {
        "metadata": {
            "name": f"{name}-{index}-{_luck.randrange(16**5):05x}",
            "labels": labels,
            "annotations": {**(meta.get("annotations") or {}), INDEX: str(index)},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }
    store.create("pods", namespace_of(job), pod)


def _jobset(store: Store, jobset: Object) -> None:
    meta, spec = jobset["metadata"], jobset["spec"]
    for job in _children(jobset):
        key = ("jobs", namespace_of(jobset), job["metadata"]["name"])
        old = store.objects.get(key)
        if old is None:
            store.create("jobs", namespace_of(jobset), job)
        elif bool(old["spec"].get("suspend")) != bool(spec.get("suspend")):
            _follow(store, old, job)
    ended = [j for j in store.all("jobs", namespace_of(jobset)) if owner_of(j) == meta["uid"]]
    if any(condition(job, "Failed") for job in ended) and not condition(jobset, "Failed"):
        set_condition(jobset, "Failed", "True", "FailedJobs")
        store.touch(jobset)


def _children(jobset: Object) -> Iterator[Object]:
    meta, order = jobset["metadata"], 0
    for row in jobset["spec"]["replicatedJobs"]:
        for index in range(row.get("replicas", 1)):
            marks = {
                "jobset.sigs.k8s.io/jobset-name": meta["name"],
                "jobset.sigs.k8s.io/replicatedjob-name": row["name"],
                "jobset.sigs.k8s.io/job-index": str(index),
                "jobset.sigs.k8s.io/job-global-index": str(order),
            }
            order += 1
            spec = copy.deepcopy(row["template"]["spec"])
            spec["suspend"] = bool(jobset["spec"].get("suspend"))
            spec["template"].setdefault("metadata", {}).setdefault("labels", {}).update(marks)
            owner = {"kind": "JobSet", "name": meta["name"], "uid": meta["uid"]}
            name = f"{meta['name']}-{row['name']}-{index}"
            yield {
                "metadata": {"name": name, "labels": marks, "ownerReferences": [owner]},
                "spec": spec,
            }


def _follow(store: Store, old: Object, wanted: Object) -> None:
    """Suspend or resume a child as JobSet does: the start time goes, the template comes over."""
    if not wanted["spec"]["suspend"]:
        old.get("status", {}).pop("startTime", None)
        old["spec"]["template"]["metadata"] = wanted["spec"]["template"]["metadata"]
        selector = wanted["spec"]["template"]["spec"].get("nodeSelector", {})
        old["spec"]["template"]["spec"]["nodeSelector"] = selector
    old["spec"]["suspend"] = wanted["spec"]["suspend"]
    store.touch(old)


def _schedule(store: Store, pod: Object) -> None:
    nodes = list(store.all("nodes"))
    fitting = [node for node in nodes if _fits(store, node, pod)]
    if not fitting:
        why = f"0/{len(nodes)} nodes are available: no node fits."
        if not condition(pod, "Unschedulable"):
            set_condition(pod, "PodScheduled", "False", "Unschedulable", why)
        return
    pod["spec"]["nodeName"] = _luck.choice(fitting)["metadata"]["name"]
    set_condition(pod, "PodScheduled", "True", "Scheduled")
    store.touch(pod)


def _fits(store: Store, node: Object, pod: Object) -> bool:
    if not condition(node, "Ready") or node["spec"].get("unschedulable"):
        return False
    taints = [t for t in node["spec"].get("taints", ()) if t["effect"] != "PreferNoSchedule"]
    accepted = pod["spec"].get("tolerations", ())
    if not all(any(_tolerates(row, taint) for row in accepted) for taint in taints):
        return False
    if not (pod["spec"].get("nodeSelector") or {}).items() <= labels_of(node).items():
        return False
    name = node["metadata"]["name"]
    there = [p for p in store.all("pods") if p["spec"].get("nodeName") == name and not is_over(p)]
    free = int(node["status"]["allocatable"].get(GPU, 0)) - sum(map(_gpus, there))
    return _gpus(pod) <= free


def _tolerates(row: Object, taint: Object) -> bool:
    """ToleratesTaint of k8s.io/api/core/v1, as of 1.26.1."""
    if row.get("effect") not in (None, "", taint["effect"]):
        return False
    if row.get("key") not in (None, "", taint["key"]):
        return False
    if row.get("operator", "Equal") == "Exists":
        return True
    return str(row.get("value", "")) == str(taint.get("value", ""))


def _gpus(pod: Object) -> int:
    rows = pod["spec"].get("containers", ())
    return sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in rows)


def _collect_garbage(store: Store) -> None:
    """Dependents whose owner is gone go too."""
    alive = {item["metadata"]["uid"] for item in store.objects.values()} | store.owners
    for job in [j for j in store.all("jobs") if owner_of(j) not in ("", *alive)]:
        store.drop("jobs", namespace_of(job), job["metadata"]["name"])
    for pod in [p for p in store.all("pods") if owner_of(p) not in ("", *alive)]:
        if "deletionTimestamp" not in pod["metadata"]:
            end_pod(store, pod, 0 if is_over(pod) else None)
