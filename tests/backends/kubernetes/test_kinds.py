"""Jobs of other controllers: seen as any job, changed by nobody but these. Without any cluster."""

import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from brctl.backends.kubernetes.jobs import Workload
from brctl.backends.kubernetes.kinds import JOBSET
from brctl.backends.kubernetes.reasons import of_whole_job
from brctl.backends.kubernetes.workloads import Workloads
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.model.errors import DeniedError, UsageError
from tests.backends.kubernetes.test_marks import job_of, plain

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
RUNNING = {"phase": "Running"}
KUBEFLOW = "training.kubeflow.org/"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_PART = "jobset.sigs.k8s.io/replicatedjob-name"
MASTER: Object = {"pytorchReplicaSpecs": {"Master": {}}}
COMPLETION = "batch.kubernetes.io/job-completion-index"


class _Api(Kubectl):
    """An API server with one job of some kind and its pods; it forbids what it is told to."""

    def __init__(self, path: str, item: Object, pods: list[Object]) -> None:
        super().__init__(namespace="ml")
        self._listed = {f"/apis/{path}": [item], "/api/v1/namespaces/ml/pods": pods}
        self.denied: tuple[str, ...] = ()

    async def get(self, path: str, **query: str) -> Object | None:
        if any(part in path for part in self.denied):
            raise DeniedError(f"cannot list {path}")
        if path.startswith("/api/v1/nodes"):
            return {"metadata": {"name": path.rpartition("/")[2]}, "spec": {}, "status": READY}
        wanted = dict([query["labelSelector"].split("=")]) if query else {}
        found = [
            item
            for item in self._listed.get(path, ())
            if wanted.items() <= item["metadata"]["labels"].items()
        ]
        return {"metadata": {}, "items": found} if path in self._listed else None


def _pod(node: str, **marks: str) -> Object:
    return {
        "metadata": {"name": f"on-{node}", "uid": node, "labels": marks},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": RUNNING,
    }


def _item(spec: Object, **more: Any) -> Object:
    meta = {"name": "llm", "uid": "u1", "labels": {"brctl.dev/job": "example"}}
    return {"metadata": meta, "spec": spec, **more}


def _kubeflow_pod(node: str, part: str, index: int) -> Object:
    marks = {"job-name": "llm", "replica-type": part, "replica-index": str(index)}
    return _pod(node, **{KUBEFLOW + key: value for key, value in marks.items()})


PYTORCHJOB = (
    "kubeflow.org/v1/namespaces/ml/pytorchjobs",
    _item({"pytorchReplicaSpecs": {"Worker": {"replicas": 2}, "Master": {"replicas": 1}}}),
    [_kubeflow_pod("n3", "worker", 1), _kubeflow_pod("n1", "master", 0),
     _kubeflow_pod("n2", "worker", 0)],
)  # fmt: skip
VOLCANO = (
    "batch.volcano.sh/v1alpha1/namespaces/ml/jobs",
    _item({"tasks": [{"name": "head"}, {"name": "rest", "replicas": 2}]}),
    [
        _pod(node, **{"volcano.sh/job-name": "llm", "volcano.sh/task-spec": task,
                      "volcano.sh/task-index": index})
        for node, task, index in (("n2", "rest", "0"), ("n1", "head", "0"), ("n3", "rest", "1"))
    ],
)  # fmt: skip
TRAINJOB = (
    "trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs",
    _item({"trainer": {"numNodes": 3}}),
    [
        _pod(node, **{JOBSET_NAME: "llm", JOBSET_PART: part, COMPLETION: index})
        for node, part, index in (
            ("n9", "dataset-initializer", "0"), ("n1", "node", "0"), ("n3", "node", "2"),
            ("n2", "node", "1"),
        )
    ],
)  # fmt: skip
Listed = tuple[str, Object, list[Object]]


@pytest.mark.parametrize("listed", [PYTORCHJOB, VOLCANO, TRAINJOB])
async def test_the_ranks_of_any_kind_are_where_its_pods_are(listed: Listed) -> None:
    """In the order of its parts, whatever helpers it has besides."""
    workloads = Workloads(_Api(*listed))
    observe = await workloads.must_observe(job_of(3))
    assert observe.job.nodes == ("n1", "n2", "n3")
    assert (await workloads.state(observe)).alive == (0, 1, 2)
    assert not observe.workload.suspended


@pytest.mark.parametrize(
    ("listed", "stop"),
    [
        (PYTORCHJOB, "kubectl -n ml patch pytorchjob llm --type merge -p"
                     ' \'{"spec": {"runPolicy": {"suspend": true}}}\''),
        (TRAINJOB, "kubectl -n ml patch trainjob llm --type merge -p"
                   ' \'{"spec": {"suspend": true}}\''),
        (VOLCANO, "vcctl job suspend -n ml -N llm"),
    ],
)  # fmt: skip
async def test_what_another_controller_runs_is_refused_with_the_words_to_type(
    listed: Listed, stop: str
) -> None:
    """Before anything is done, and again where its nodes would be changed."""
    workloads = Workloads(_Api(*listed))
    with pytest.raises(UsageError, match="is stopped by its own controller alone") as refused:
        await workloads.must_control(job_of(3), "stopped")
    assert refused.value.hint == stop
    assert shlex.split(stop)
    with pytest.raises(UsageError, match="is moved by its own controller alone") as refused:
        await workloads.move(job_of(3), {"n3": "s1"})
    start = stop.replace("true", "false").replace("job suspend", "job resume")
    assert refused.value.hint == f"brctl cordon NODES; {stop}; {start}"


async def test_a_kind_that_we_may_not_see_is_passed_over_unless_brctl_changes_it() -> None:
    """A cluster with an operator asks for no right of those who do not use it."""
    api = _Api(*PYTORCHJOB)
    api.denied = ("pytorchjobs", "volcano")
    assert await Workloads(api).find(job_of(3)) is None
    await Workloads(api).must_control(job_of(3), "stopped")


@pytest.mark.parametrize(
    ("listed", "suspended"),
    [
        (_item({"runPolicy": {"suspend": True}, **MASTER}), "suspended"),
        (_item(MASTER, status={"conditions": [{"type": "Succeeded", "status": "True"}]}), "ended"),
    ],
)  # fmt: skip
async def test_a_pytorchjob_says_in_its_own_fields_how_it_stands(
    listed: Object, suspended: str
) -> None:
    """Its suspend lies in the run policy, and its end is called Succeeded."""
    found = await Workloads(_Api(PYTORCHJOB[0], listed, [])).must_find(job_of(1))
    assert (found.suspended, bool(found.ended)) == (suspended == "suspended", suspended == "ended")


@pytest.mark.parametrize(
    ("phase", "suspended", "ended"),
    [("Running", False, ""), ("Aborted", True, ""), ("Failed", False, "Failed")],
)
async def test_a_volcano_job_has_one_word_for_how_it_stands(
    phase: str, suspended: bool, ended: str
) -> None:
    """Aborted is what `vcctl job suspend` makes of it."""
    path, item, pods = VOLCANO
    stands = {**item, "status": {"state": {"phase": phase}}}
    found = await Workloads(_Api(path, stands, pods)).must_find(job_of(3))
    assert (found.suspended, found.ended) == (suspended, ended)


def _queued(**status: str) -> Workload:
    value = plain(2)
    value["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "train"}
    value["spec"]["suspend"] = True
    return Workload(value, "/path", (("", 1, 2),))


@pytest.mark.parametrize(
    ("queued", "word", "told"),
    [
        (None, "KueueNotAdmitted", "queue train"),
        (
            {"spec": {"priorityClassName": "high", "priority": 1000},
             "status": {"conditions": [
                 {"type": "QuotaReserved", "status": "False",
                  "message": "insufficient unused quota for nvidia.com/gpu"}]}},
            "KueueNotAdmitted",
            "queue train, priority high, 1000: insufficient unused quota for nvidia.com/gpu",
        ),
        (
            {"status": {"conditions": [
                {"type": "QuotaReserved", "status": "False", "message": "couldn't assign flavors"},
                {"type": "Preempted", "status": "True", "message": "to make room for another"}]}},
            "KueuePreempted",
            "queue train: to make room for another",
        ),
        ({"spec": {"active": False, "priority": 0}}, "KueueInactive", "queue train, priority 0"),
    ],
)  # fmt: skip
def test_why_a_job_in_a_queue_does_not_run_is_kueues_own_word(
    queued: Mapping[str, Any] | None, word: str, told: str
) -> None:
    """Quota, priority and who took its place; nothing of it is brctl's to change."""
    (reason,) = of_whole_job(_queued(), dict(queued) if queued is not None else None)
    assert (reason.reason, reason.message, reason.ranks) == (word, told, ())


def test_restarts_by_a_failure_policy_are_said() -> None:
    """All pods are new then, and nobody of brctl's started them."""
    value: Object = {
        "metadata": {"name": "set", "uid": "u1"},
        "spec": {"failurePolicy": {"maxRestarts": 5}},
        "status": {"restarts": 2},
    }
    (reason,) = of_whole_job(Workload(value, "/path", (), JOBSET), None)
    assert (reason.reason, reason.what) == ("JobSetRestarted", "JobSet set")
    assert reason.message == "its failure policy has made all pods anew 2 times, 5 allowed"
