"""`brctl doctor` on Kubernetes: the real kubectl against a stand-in API server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.kubernetes.permissions import PERMISSIONS
from brctl.engine.controller.doctor_kubernetes import kubernetes
from brctl.engine.controller.doctor_node_pods import node_pods
from brctl.fanout.kubernetes.pod_finder import manifest
from brctl.library.config import NodePods, Settings, load_settings
from brctl.model.sweeps.sweep import Health
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster, kube_cluster, no_kubectl

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
contexts:
  here:
    inventory: [{k8s: stand-in}]
    scheduler: kubernetes
    jobs: [job.yaml]
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[1-2]
launch: [train]
checkpoint: {directory: /ckpt}
logs: /logs
progress: /progress
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "job.yaml").write_text(JOB)
    return load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubeCluster]:
    if no_kubectl():
        pytest.skip("not installed: kubectl")
    with kube_cluster(tmp_path, ["n1", "n2"]) as cluster:
        yield cluster


def test_the_cluster_is_the_one_the_nodes_come_from(settings: Settings) -> None:
    """Nodes of one cluster and cordons in another would be a bad mix."""
    assert settings.kubernetes.context == "stand-in"


def test_stand_in_missing_permissions_and_deaf_jobs_are_named(
    settings: Settings, cluster: KubeCluster
) -> None:
    """Each by verb and resource, with what fails without it."""
    cluster.server.denied |= {("update", "nodes"), ("create", "pods/eviction")}
    cluster.add_job("trainer", "demo", 2, ["/bin/true"])
    findings = list(kubernetes(settings))
    assert [f.text for f in findings if f.health is Health.CRITICAL] == [
        "not allowed: update nodes in all namespaces: cordon, reserve, label, place a job",
        "not allowed: create pods/eviction in all namespaces: drain",
    ]
    assert findings[-1].health is Health.WARNING
    assert "trainer has no way to hear of a checkpoint" in findings[-1].text


def test_stand_in_a_missing_namespace_and_a_job_that_vanishes_are_said(
    settings: Settings, cluster: KubeCluster
) -> None:
    """Whoever may do everything may do it in a namespace that is not there."""
    cluster.add_job("trainer", "demo", 2, ["/bin/true"], hears=True, ttlSecondsAfterFinished=60)
    found = list(kubernetes(settings))
    assert [f.health for f in found] == [Health.OK, Health.WARNING]
    assert "trainer is deleted by the cluster" in found[-1].text
    cluster.server.namespaces.clear()
    found = list(kubernetes(settings))
    assert [f.text for f in found] == ["context stand-in, namespace train: no such namespace"]


def test_stand_in_the_way_to_nodes_without_ssh_is_examined(
    settings: Settings, cluster: KubeCluster
) -> None:
    """Which pods are used, whether they can enter a node, and which are made and were left."""
    assert list(node_pods(settings)) == []
    cluster.add_daemonset("agent", privileged=False)
    texts = [f.text for f in node_pods(reached_by(settings, daemonset="agent"))]
    assert texts == ["DaemonSet agent of namespace train cannot enter its nodes"]
    left = {**manifest("brctl-node-x", "n1", "busybox", "old"), "status": {"phase": "Failed"}}
    cluster.store.create("pods", NAMESPACE, left)
    found = list(node_pods(reached_by(settings, image="busybox")))
    assert [f.health for f in found] == [Health.OK, Health.WARNING]
    assert "makes a privileged pod of busybox in namespace train" in found[0].text
    assert found[1].text.startswith("1 pods of commands that were killed")
    (refused,) = node_pods(replace(reached_by(settings, image="busybox"), readonly=True))
    assert (refused.health, "read-only" in refused.text) == (Health.CRITICAL, True)


def reached_by(settings: Settings, **pods: str) -> Settings:
    ssh = replace(settings.ssh, transport="kubectl", node_pods=NodePods(**pods))
    return replace(settings, ssh=ssh)


def test_without_kubectl_or_kubernetes_it_says_so_or_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only a context that uses Kubernetes is asked for kubectl."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [f.text for f in kubernetes(settings)] == ["kubectl not found"]
    assert list(kubernetes(replace(settings, scheduler="slurm"))) == []


def test_the_table_in_the_reference_is_the_table_that_is_asked() -> None:
    """Who sets up roles by hand must not find out at night what is missing."""
    text = (ROOT / "brctl" / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    for row in PERMISSIONS:
        assert f"| {row.resource} | {', '.join(row.verbs)} | {row.scope} | {row.purpose} |" in text
