"""What brctl writes on nodes and reads from Jobs and pods, without any cluster."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest

from brctl.backends.contract import Cordon
from brctl.backends.kubernetes import marks
from brctl.backends.kubernetes.evict import covers, is_ours_to_ask
from brctl.backends.kubernetes.jobs import Workload, anew, read_workload
from brctl.backends.kubernetes.kinds import JOBSET
from brctl.backends.kubernetes.pods import placed, read_pods, state_of
from brctl.model.errors import ConfigError
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job, example_job
from tests.fakes.kube.cluster import job_spec
from tests.fakes.kube.rules import check_node

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)
INDEX = "batch.kubernetes.io/job-completion-index"
GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


def node(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": {"a": "b"}}, "spec": spec}


def must(found: dict[str, Any] | None) -> dict[str, Any]:
    assert found is not None
    return found


def test_uncordon_leaves_the_node_as_it_was_before() -> None:
    """Taints, labels and annotations of others survive both ways."""
    before = node(taints=[GPU_TAINT])
    there = must(marks.cordon(before, "brctl:R-0012", "ecc\nline two", AT))
    check_node(there)
    assert there["spec"]["unschedulable"] is True
    assert there["spec"]["taints"] == [
        GPU_TAINT,
        {"key": "brctl.dev/cordoned", "value": "R-0012", "effect": "NoSchedule"},
    ]
    assert marks.cordon_of(there) == Cordon("n1", "brctl:R-0012", "ecc\nline two", AT)
    assert marks.cordon(there, "brctl:R-0013", "again", AT) is None
    back = must(marks.uncordon(there))
    assert back["spec"] == before["spec"]
    assert back["metadata"]["labels"] == {"a": "b"}
    assert back["metadata"]["annotations"] == {}


@pytest.mark.parametrize("owner", ["brctl:R-1", "brctl:ann@corp", "brctl:" + "x" * 90, "brctl:_"])
def test_any_owner_fits_into_a_taint(owner: str) -> None:
    """The API server refuses a taint whose value is no label value."""
    check_node(must(marks.cordon(node(), owner, "r", AT)))


def test_a_node_somebody_else_cordoned_names_the_program_that_did() -> None:
    """The API server keeps who set the field; without that it is still not nobody."""
    found = node(unschedulable=True)
    assert must_cordon(found) == ("kubernetes", None)
    entry = {"manager": "cluster-autoscaler", "time": "2026-07-05T12:00:00Z"}
    entry["fieldsV1"] = {"f:spec": {"f:unschedulable": {}}}  # type: ignore[assignment]  # as read
    found["metadata"]["managedFields"] = [{"manager": "kubelet"}, entry]
    assert must_cordon(found) == ("cluster-autoscaler", AT)


def must_cordon(found: dict[str, Any]) -> tuple[str, datetime | None]:
    cordon = marks.cordon_of(found)
    assert cordon is not None
    return cordon.owner, cordon.at


def test_a_label_changed_by_hand_is_nobodys() -> None:
    """Undo restores only what is still the undoer's."""
    there = must(marks.label(node(), "burnin", "due", "brctl:R-1"))
    there["metadata"]["labels"]["brctl.dev/burnin"] = "never"
    assert must_label(there).owner == ""
    assert marks.unlabel(there, "burnin", "brctl:R-1") is None
    there["metadata"]["annotations"]["brctl.dev/label.burnin"] = "[not json"
    assert must_label(there).value == "never"


def must_label(found: dict[str, Any]) -> Any:
    label = marks.label_of(found, "burnin")
    assert label is not None
    return label


def job_of(nodes: int, ranks_per_node: int = 1) -> Job:
    job = example_job()
    size = nodes * ranks_per_node
    names = tuple(f"n{i}" for i in range(1, nodes + 1))
    return Job(
        job.name, names, ranks_per_node, (("dp", size),), job.launch, job.checkpoint_dir,
        job.log_dir, job.progress_dir,
    )  # fmt: skip


def plain(pods: int, **spec: Any) -> dict[str, Any]:
    meta = {"name": "trainer", "namespace": "train", "uid": "u1"}
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": meta,
        "spec": {**job_spec(pods, ()), **spec},
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (plain(4, completionMode="NonIndexed"), "not Indexed"),
        (plain(4, parallelism=2), "parallelism and completions differ"),
        (plain(3), "3 pods, job example 4 nodes"),
    ],
)
def test_a_job_whose_pods_are_no_ranks_is_refused(value: dict[str, Any], words: str) -> None:
    """Rather than guess which pod is which rank."""
    with pytest.raises(ConfigError, match=words):
        read_workload(value, "/path", job_of(4))


def pod(
    name: str, index: int, node_name: str, phase: str = "Running", **more: Any
) -> dict[str, Any]:
    meta = {"name": name, "uid": name, "annotations": {INDEX: str(index)}, **more}
    return {"metadata": meta, "spec": {"nodeName": node_name}, "status": {"phase": phase}}


def test_ranks_of_a_jobset_count_through_its_parts() -> None:
    """Parts in the order of the manifest, then their jobs, then completion indexes."""
    rows = [
        {"name": "leader", "replicas": 1, "template": {"spec": job_spec(1, ())}},
        {"name": "workers", "replicas": 2, "template": {"spec": job_spec(2, ())}},
    ]
    value = {
        "kind": "JobSet",
        "metadata": {"name": "set", "uid": "u"},
        "spec": {"replicatedJobs": rows},
    }
    found = read_workload(value, "/path", job_of(5), JOBSET)
    labels = {
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "1",
    }
    assert found.order(pod("w", 1, "n5", labels=labels)) == 4
    assert found.order({"metadata": {"name": "x"}, "spec": {}}) is None


def test_a_pod_on_a_silent_node_is_neither_alive_nor_gone() -> None:
    """Nor is a rank whose pod has yet to come; eight ranks a pod share its fate."""
    job = job_of(4, ranks_per_node=8)
    found = read_workload(plain(4), "/path", job)
    ended = pod("c", 2, "n3", "Failed")
    ended["status"]["containerStatuses"] = [{"state": {"terminated": {"exitCode": 137}}}]
    pods = read_pods(found, [pod("a", 0, "n1"), pod("b", 1, "n2"), ended])
    state = state_of(found, job, pods, {"n1": "the node is NotReady"})
    assert state.alive == tuple(range(8, 16))
    assert state.gone == tuple(range(16, 24))
    assert state.exits == dict.fromkeys(range(16, 24), -9)
    assert state.unreachable == {"n1": "the node is NotReady", "n4": "its pod is not made yet"}


def test_made_anew_a_job_loses_what_the_server_set_and_hears_of_checkpoints() -> None:
    """A manifest with the old selector or uid would be refused."""
    old = plain(2, selector={"matchLabels": {"controller-uid": "u1"}})
    old["metadata"] |= {"resourceVersion": "7", "labels": {"brctl.dev/job": "example"}}
    old["spec"]["template"]["metadata"]["labels"] = {"job-name": "trainer", "mine": "x"}
    job = job_of(2)
    assert not read_workload(old, "/path", job).hears_checkpoint
    new = anew(read_workload(old, "/path", job), job)
    assert set(new["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert "selector" not in new["spec"]
    assert new["spec"]["suspend"] is True
    assert new["spec"]["template"]["metadata"]["labels"] == {"mine": "x"}
    again = {**new, "metadata": {**new["metadata"], "uid": "u2"}}
    made = read_workload(again, "/path", job)
    assert made.misses(job, "/ckpt/1") == ""
    assert anew(made, job)["spec"]["template"]["spec"] == new["spec"]["template"]["spec"]
    coded = replace(job, code=JobCode(PurePosixPath("/code"), "r1", "r1"))
    assert made.misses(coded, "/ckpt/1") == "a release"
    assert read_workload(old, "/path", job).misses(coded, "/ckpt/1") == "a checkpoint or a release"
    told = Workload(anew(made, coded), "/path", ())
    assert told.misses(coded, "/ckpt/1") == ""


def test_daemons_and_mirror_pods_are_left_alone() -> None:
    """They would come back at once, or cannot be evicted at all."""
    owner = {"kind": "DaemonSet", "controller": True}
    assert not is_ours_to_ask(pod("d", 0, "n1", ownerReferences=[owner]))
    mirror = {"kubernetes.io/config.mirror": "x"}
    assert not is_ours_to_ask({**pod("m", 0, "n1"), "metadata": {"annotations": mirror}})
    assert not is_ours_to_ask(pod("e", 0, "n1", "Succeeded"))
    assert is_ours_to_ask(pod("p", 0, "n1"))


@pytest.mark.parametrize(
    ("selector", "means"),
    [
        ({"matchLabels": {"app": "db"}}, True),
        ({"matchLabels": {"app": "web"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Guess"}]}, False),
        ({}, True),
    ],
)
def test_a_budget_is_named_for_the_pods_it_selects(selector: dict[str, Any], means: bool) -> None:
    """An empty selector means every pod of the namespace (policy/v1)."""
    labelled = {"metadata": {"labels": {"app": "db"}}}
    assert covers({"spec": {"selector": selector}}, labelled) is means


@pytest.mark.parametrize(
    ("bound", "nodes"),
    [
        ({}, ("n1", "n2", "n3")),
        ({0: "n2"}, ("n2", "n1", "n3")),
        ({0: "n3", 2: "n2"}, ("n3", "n1", "n2")),
        ({1: "n9"}, ("n1", "n9", "n3")),
        ({0: "n3", 1: "n3"}, ("n3", "n3", "n1")),
    ],
)
def test_a_place_still_to_be_filled_never_doubles_a_node(
    bound: dict[int, str], nodes: tuple[str, ...]
) -> None:
    """The scheduler permutes; what is bound is a fact, the rest fills up."""
    job = job_of(3)
    found = read_workload(plain(3), "/path", job)
    pods = read_pods(found, [pod(f"p{i}", i, name) for i, name in bound.items()])
    assert placed(found, pods, job) == nodes
