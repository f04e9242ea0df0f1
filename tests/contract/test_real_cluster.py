"""How the contract finds its way on a cluster that is not its own, tried on the stand-in."""

import asyncio
from pathlib import Path

import pytest

from brctl.backends.kubernetes import marks
from brctl.fanout.kubernetes.kubectl import Kubectl
from tests.backends.kubernetes.site import needs_kubectl
from tests.backends.kubernetes.test_marks import AT
from tests.fakes.kube.cluster import kube_cluster
from tests.fakes.kube.real_cluster import VARIABLE, real_cluster

pytestmark = [needs_kubectl, pytest.mark.deep]


def test_nodes_that_others_use_are_left_alone_and_ours_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of nine nodes one is cordoned, one tainted and one busy; the Job goes with its marks."""
    with kube_cluster(tmp_path, [f"gpu-{i}" for i in range(9)]) as cluster:
        monkeypatch.setenv(VARIABLE, str(tmp_path / "kubeconfig"))
        cluster.node("gpu-2")["spec"]["unschedulable"] = True
        cluster.node("gpu-4")["spec"]["taints"] = [{"key": "x", "effect": "NoSchedule"}]
        cluster.add_pod("somebody", "gpu-5")
        with real_cluster() as real:
            assert real.nodes == ("gpu-0", "gpu-1", "gpu-3", "gpu-6", "gpu-7", "gpu-8")
            before = cluster.node("gpu-0")["metadata"]["labels"]
            asyncio.run(real.add_job("demo", 4, ["sleep", "600"]))
            cordoned = marks.cordon(cluster.node("gpu-0"), "brctl:ann", "fan", AT)
            assert cordoned is not None
            asyncio.run(Kubectl().put("/api/v1/nodes/gpu-0", cordoned))
        assert not list(cluster.store.all("jobs"))
        assert cluster.node("gpu-0")["metadata"]["labels"] == before
        assert "unschedulable" not in cluster.node("gpu-0")["spec"]
        assert cluster.node("gpu-2")["spec"]["unschedulable"] is True
