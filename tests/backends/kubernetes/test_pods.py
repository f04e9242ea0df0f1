"""What pods, their containers and nodes say, without any cluster."""

from typing import Any

import pytest

from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.evict import names_of
from brctl.backends.kubernetes.jobs import read_workload
from brctl.backends.kubernetes.kinds import JOBSET
from brctl.backends.kubernetes.managed import refuse_managed
from brctl.backends.kubernetes.pods import containers_on, read_pods, state_of
from brctl.backends.kubernetes.reasons import reasons_of
from brctl.backends.kubernetes.silence import silent_beside_others
from brctl.fanout.kubernetes.kubectl import BudgetError, error_of
from brctl.model.command import CommandResult, Outcome
from brctl.model.errors import (
    BrctlError,
    DeniedError,
    UnavailableError,
    UnreachableError,
    UsageError,
)
from brctl.model.jobs.job_run_state import JobRunState
from tests.backends.kubernetes.test_marks import job_of, plain, pod
from tests.fakes.kube.cluster import job_spec
from tests.fakes.kube.defaults import default

RUNNING = {"running": {"startedAt": "2026-07-05T12:00:00Z"}}
SIDECAR = {"name": "a-log-shipper", "state": RUNNING}
WORKLOAD = read_workload(plain(2), "/path", job_of(2))


def with_containers(name: str, index: int, *rows: dict[str, Any], **status: Any) -> dict[str, Any]:
    """A pod whose trainer has the GPUs; the kubelet lists containers by name."""
    found = pod(name, index, f"n{index + 1}")
    containers = [{"name": "a-log-shipper"}, *job_spec(1, ())["template"]["spec"]["containers"]]
    found["spec"]["containers"] = containers
    found["status"] |= {"containerStatuses": list(rows), **status}
    return found


def trainer(**more: Any) -> dict[str, Any]:
    return {"name": "trainer", "containerID": "containerd://0a1b2c", **more}


def state(*items: dict[str, Any]) -> JobRunState:
    return state_of(WORKLOAD, job_of(2), read_pods(WORKLOAD, items), {})


def test_a_rank_that_ended_beside_a_sidecar_has_ended() -> None:
    """The pod is Running as long as the log shipper is."""
    ended = trainer(state={"terminated": {"exitCode": 7, "reason": "Error"}})
    found = state(
        with_containers("a", 0, SIDECAR, trainer(state=RUNNING)),
        with_containers("b", 1, SIDECAR, ended),
    )
    assert (found.alive, found.gone, found.exits) == ((0,), (1,), {1: 7})


def test_a_rank_that_is_started_again_and_again_does_not_run() -> None:
    """CrashLoopBackOff: its last end is what counts."""
    again = trainer(
        state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    )
    found = state(
        with_containers("a", 0, SIDECAR, trainer(state=RUNNING)),
        with_containers("b", 1, SIDECAR, again),
    )
    assert (found.alive, found.gone, found.exits) == ((0,), (1,), {1: -9})


def test_processes_are_found_by_the_container_that_trains_else_by_the_pod() -> None:
    """A sidecar's cgroup is another one; without a container id the pod's uid is in the name."""
    pods = read_pods(
        WORKLOAD, [with_containers("a", 0, SIDECAR, trainer(state=RUNNING)), pod("b", 1, "n2")]
    )
    assert containers_on(("n1", "n2", "n3"), pods) == ("0a1b2c", "b", "")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"reason": "Evicted", "message": "The node was low on resource: memory."}, "Evicted"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True",
                             "reason": "DeletionByTaintManager"}]},
            "DeletionByTaintManager",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False",
                             "reason": "Unschedulable", "message": "0/4 nodes"}]},
            "Unschedulable",
        ),
    ],
)  # fmt: skip
def test_the_clusters_own_word_for_an_end_comes_along(status: Any, reason: str) -> None:
    """Of a pod that does not run; a running one has no reason."""
    gone = with_containers("a", 0, trainer(state={"waiting": {"reason": "ContainerCreating"}}))
    gone["status"] |= {"phase": "Failed", **status}
    fine = with_containers("b", 1, trainer(state=RUNNING), **status)
    found = reasons_of(job_of(2), read_pods(WORKLOAD, [gone, fine]), {})
    assert [(r.reason, r.node, r.ranks, r.what) for r in found] == [(reason, "n1", (0,), "pod a")]


def test_an_oom_kill_is_named_before_the_error_it_ends_with() -> None:
    """The container's own reason is nearer to the cause than the pod's."""
    killed = with_containers(
        "a", 0, trainer(state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
    )
    killed["status"] |= {"phase": "Failed", "reason": "Whatever"}
    found = reasons_of(job_of(2), read_pods(WORKLOAD, [killed]), {})
    assert [r.reason for r in found] == ["OOMKilled"]


def test_conditions_of_nodes_come_along_when_they_say_that_a_node_is_not_well() -> None:
    """True is good of some and bad of the others."""
    rows = [
        {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."},
        {"type": "MemoryPressure", "status": "False"},
        {"type": "KernelDeadlock", "status": "True", "reason": "DockerHung"},
        {"type": "AcceleratedHardwareReady", "status": "True"},
    ]
    found = reasons_of(job_of(2), (), {"n1": {"status": {"conditions": rows}}, "n2": None})
    assert [(r.node, r.reason, r.message) for r in found] == [
        ("n1", "NodeNotReady", "Kubelet stopped posting node status."),
        ("n1", "NodeKernelDeadlock", "DockerHung"),
    ]


def answered(stderr: str) -> BrctlError:
    return error_of(CommandResult("localhost", Outcome.ANSWERED, 1, b"", stderr.encode(), 0.1))


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("The connection to the server 10.0.0.1:6443 was refused - did you specify the right host"
         " or port?", UnreachableError),
        ("Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout", UnreachableError),
        ("Unable to connect to the server: net/http: TLS handshake timeout", UnreachableError),
        ("error: unexpected EOF", UnreachableError),
        ("Error from server (TooManyRequests): the server has received too many requests and has"
         " asked us to try again later", UnreachableError),
        ("Error from server (ServiceUnavailable): the server is currently unable to handle the"
         " request", UnreachableError),
        ("Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's"
         " disruption budget.", BudgetError),
        ("error: You must be logged in to the server (Unauthorized)", DeniedError),
        ("Error from server (InternalError): something broke", UnavailableError),
        ("error: context \"prod\" does not exist", UnavailableError),
    ],
)  # fmt: skip
def test_what_may_be_asked_again_is_told_from_a_refusal(stderr: str, kind: type) -> None:
    """An overloaded server is no disruption budget; both say 429."""
    assert type(answered(stderr)) is kind


def test_of_a_long_refusal_object_and_reason_are_both_shown() -> None:
    """1.26.1 prints the whole template between them."""
    dump = "core.PodTemplateSpec{" + "x" * 5000 + "}"
    told = str(answered(f'The Job "trainer" is invalid: spec.template: {dump}: field is immutable'))
    assert 'The Job "trainer" is invalid: spec.template' in told
    assert told.endswith("field is immutable")
    assert len(told) < 500


def test_a_taint_keeps_a_node_from_a_job_that_does_not_tolerate_it() -> None:
    """Offered as a spare, it would leave a pod pending."""
    there: dict[str, Any] = {
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": "team", "value": "nlp", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert not marks.takes_work(there)
    assert not marks.takes_work(there, [{"key": "team", "value": "vision"}])
    assert not marks.takes_work(
        there, [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]
    )
    assert marks.takes_work(there, [{"key": "team", "value": "nlp", "effect": "NoSchedule"}])
    assert marks.takes_work(there, [{"operator": "Exists"}])
    there["spec"]["taints"][0]["effect"] = "PreferNoSchedule"
    assert marks.takes_work(there)


def test_a_drain_names_what_does_not_come_back() -> None:
    """`kubectl drain` wants a flag for each; brctl says it in the plan."""
    kept = {"namespace": "a", "ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}
    rows: list[dict[str, Any]] = [
        {"metadata": {"name": "web", **kept}, "spec": {}},
        {"metadata": {"name": "db", **kept}, "spec": {"volumes": [{"name": "x", "emptyDir": {}}]}},
        {"metadata": {"name": "shell", "namespace": "a"}, "spec": {}},
    ]
    assert names_of(rows) == (
        "a/db (its emptyDir is lost), a/shell (no controller makes it again), a/web"
    )


def test_a_node_is_only_silent_beside_others_that_answer() -> None:
    """Where nobody answers, the way there is broken, and not every node dead."""

    def result(node: str, outcome: Outcome) -> CommandResult:
        return CommandResult(node, outcome, None, b"", b"", 0.0, "no route")

    dead = {n: result(n, Outcome.UNREACHABLE) for n in ("n1", "n2")}
    assert silent_beside_others(dead) == {}
    alive = {**dead, "n1": result("n1", Outcome.ANSWERED), "n3": result("n3", Outcome.DIED)}
    assert silent_beside_others(alive) == {"n2": "no route; what ran there may still run"}


def test_what_kueue_suspends_is_refused_with_the_words_that_make_kueue_do_it() -> None:
    """It would be admitted, or suspended, again after us."""
    value = plain(2)
    value["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "train"}
    queued = read_workload(value, "/path", job_of(2))
    with pytest.raises(UsageError, match="stopped by Kueue alone \\(queue train\\)") as caught:
        refuse_managed(queued, "ml", "stopped")
    assert "kueue.x-k8s.io/job-uid=u1" in str(caught.value.hint)
    assert '{"spec": {"active": false}}' in str(caught.value.hint)
    refuse_managed(WORKLOAD, "ml", "stopped")


def test_a_jobset_of_a_trainjob_is_left_to_it_with_the_words_to_type() -> None:
    """The TrainJob's controller writes its own `suspend` over ours; a Job it only made does not."""
    value = {**plain(2), "kind": "JobSet"}
    part = {"name": "node", "replicas": 1, "template": {"spec": value["spec"]}}
    value["spec"] = {"replicatedJobs": [part]}
    value["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "llm", "uid": "u9"}]
    owned = read_workload(value, "/path", job_of(2), JOBSET)
    with pytest.raises(UsageError, match="is stopped by its TrainJob llm alone") as caught:
        refuse_managed(owned, "ml", "stopped")
    assert str(caught.value.hint) == (
        'kubectl -n ml patch trainjob llm --type merge -p \'{"spec": {"suspend": true}}\''
    )
    job = plain(2)
    job["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "llm", "uid": "u9"}]
    refuse_managed(read_workload(job, "/path", job_of(2)), "ml", "started")


def test_a_variable_with_what_the_server_adds_still_hears_of_the_checkpoint() -> None:
    """1.26.1 writes `apiVersion: v1` into every fieldRef; the Job need not be made anew."""
    value = plain(2)
    path = "metadata.annotations['brctl.dev/checkpoint']"
    source = {"fieldRef": {"fieldPath": path}}
    container = value["spec"]["template"]["spec"]["containers"][0]
    container["env"].append({"name": "BRCTL_RESUME_FROM", "valueFrom": source})
    default("jobs", value)
    assert source["fieldRef"] == {"apiVersion": "v1", "fieldPath": path}
    assert read_workload(value, "/path", job_of(2)).hears_checkpoint
