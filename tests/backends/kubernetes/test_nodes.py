"""What the backend does to nodes, and what it leaves alone: real kubectl, stand-in API server."""

import asyncio
import os
from pathlib import Path

import pytest

from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.backends.kubernetes.workloads import change_node
from brctl.fanout.kubernetes.kubectl import ConflictError, Kubectl
from brctl.model.errors import DeniedError, UnavailableError, UsageError
from brctl.model.jobs.job import Job
from tests.backends.kubernetes.site import SLEEP, kubectl, needs_kubectl, open_backend, until
from tests.backends.kubernetes.test_marks import AT
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster

pytestmark = needs_kubectl


async def test_stand_in_a_node_cordoned_by_hand_keeps_its_owner(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """`kubectl cordon` leaves no name but the program's; brctl does not put its own over it."""
    kubectl("cordon", "n1")
    await backend.cordon(["n1"], "brctl:R-1", "ecc", AT)
    assert (await backend.cordons())["n1"].owner == "kubectl"
    assert not cluster.node("n1")["metadata"]["annotations"]


async def test_stand_in_a_node_uncordoned_by_hand_is_out_until_the_taint_goes_too(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """Pods still do not come, so it is not called in service; `brctl uncordon` clears it."""
    await backend.cordon(["n1"], "brctl:R-1", "ecc", AT)
    kubectl("uncordon", "n1")
    found = await backend.cordons()
    assert {node: cordon.lasting for node, cordon in found.items()} == {"n1": False}
    await backend.uncordon(["n1"])
    assert not await backend.cordons()
    assert not cluster.node("n1")["spec"].get("taints")


async def test_stand_in_people_see_in_describe_what_was_done(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """An Event for each change, none for what was so already; not allowed, nothing fails."""
    for _ in range(2):
        await backend.cordon(["n1"], "brctl:R-1", "ecc", AT)
    (event,) = cluster.store.all("events")
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Node", "n1")
    assert (event["reason"], event["message"]) == ("BrctlCordoned", "brctl:R-1: ecc")
    assert event["lastTimestamp"] == cluster.node("n1")["metadata"]["managedFields"][0]["time"]
    cluster.server.denied.add(("create", "events"))
    await backend.uncordon(["n1"])
    assert not await backend.cordons()


async def test_stand_in_of_two_controllers_one_gets_the_standby(
    cluster: KubeCluster, tmp_path: Path
) -> None:
    """Both read it free; the API server refuses the second write."""
    one, other = open_backend(tmp_path), open_backend(tmp_path)
    for _ in range(3):
        won = await asyncio.gather(
            one.reserve("s1", "brctl:R-1", AT), other.reserve("s1", "brctl:R-2", AT)
        )
        assert sorted(won) == [False, True]
        held = (await one.reservations())["s1"].owner
        assert held == ("brctl:R-1" if won[0] else "brctl:R-2")
        await one.release(["s1"], held)


async def test_stand_in_a_change_is_made_again_when_somebody_else_wrote_meanwhile(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """Nothing of theirs is lost; who writes all the time is an error, not a silent loss."""
    client = Kubectl()
    observed: list[int] = []

    def meddle(node: dict[str, object]) -> dict[str, object]:
        observed.append(1)
        if len(observed) < 3:
            with cluster.store.lock:
                cluster.store.touch(cluster.node("n1"))
        return {**node, "metadata": {**node["metadata"], "labels": {"mine": "x"}}}  # type: ignore[dict-item]  # as read

    await change_node(client, "n1", meddle)
    assert len(observed) == 3
    assert cluster.node("n1")["metadata"]["labels"] == {"mine": "x"}

    def always(node: dict[str, object]) -> dict[str, object]:
        with cluster.store.lock:
            cluster.store.touch(cluster.node("n1"))
        return node

    with pytest.raises(ConflictError, match="has been modified"):
        await change_node(client, "n1", always)


async def test_stand_in_a_budget_that_refuses_is_named_and_daemons_stay(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """The eviction API is asked again until the budget allows it."""
    cluster.keep("x")
    cluster.add_pod("db-0", "n1", labels={"app": "db"})
    cluster.add_pod("batch-0", "n1")
    daemon = {"kind": "DaemonSet", "name": "dcgm", "uid": "x", "controller": True}
    cluster.add_pod("dcgm-0", "n1", ownerReferences=[daemon], annotations={"keep": "me"})
    cluster.add_pod("kube-proxy-n1", "n1", annotations={"kubernetes.io/config.mirror": "x"})
    budget = cluster.add_budget("db-quorum", {"app": "db"}, allowed=0)
    left = await backend.evict(["n1", "n2"], [])
    assert left == {
        "n1": "pod train/db-0 is kept by PodDisruptionBudget db-quorum; pod train/batch-0 is ending"
    }
    budget["status"]["disruptionsAllowed"] = 1

    async def empty() -> bool:
        return not await backend.evict(["n1"], [])

    await until(empty)
    assert {p["metadata"]["name"] for p in cluster.pods()} == {"dcgm-0", "kube-proxy-n1"}
    assert await backend.work_on(["n1"], []) == {}


async def test_stand_in_an_overloaded_server_is_asked_again(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """By kubectl itself, which honours Retry-After."""
    cluster.server.overloaded = 1
    assert await backend.cordons() == {}


async def test_stand_in_what_is_forbidden_is_denied_with_a_way_to_see_it(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """A refusal is not an empty answer."""
    cluster.server.denied |= {("list", "nodes"), ("update", "nodes")}
    try:
        with pytest.raises(DeniedError, match="cannot list") as caught:
            await backend.cordons()
        assert "brctl doctor" in str(caught.value.hint)
        with pytest.raises(DeniedError, match="cannot update"):
            await backend.cordon(["n1"], "o", "r", AT)
    finally:
        cluster.server.denied.clear()
    with pytest.raises(UsageError, match="not in the inventory"):
        await backend.cordon(["nX"], "o", "r", AT)


async def test_stand_in_an_idle_node_is_ready_in_service_and_without_gpu_pods(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Standbys are not idle nodes: they have a purpose."""
    assert await backend.idle_nodes() == ("n1", "n2", "n3")
    kubectl("cordon", "n1")
    cluster.power_off("n2")
    assert await backend.idle_nodes() == ("n3",)
    taint = {"key": "team", "value": "nlp", "effect": "NoSchedule"}
    cluster.node("n3")["spec"]["taints"] = [taint]
    assert await backend.idle_nodes() == ()
    cluster.add_job("trainer", job.name, 3, SLEEP)
    template = cluster.store.get("jobs", NAMESPACE, "trainer")["spec"]["template"]
    template["spec"]["tolerations"] = [{"key": "team", "operator": "Exists"}]
    assert await backend.idle_nodes(job) == ("n3",)


async def test_without_kubectl_the_error_names_it(tmp_path: Path) -> None:
    """A missing program is not an empty list of cordons."""
    path = os.environ["PATH"]
    os.environ["PATH"] = str(tmp_path)
    try:
        with pytest.raises(UnavailableError, match="kubectl: cannot be run"):
            await open_backend(tmp_path, kubectl=Kubectl()).cordons()
    finally:
        os.environ["PATH"] = path


async def test_an_api_server_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not a cluster without nodes."""
    config = tmp_path / "config"
    config.write_text(
        '{"clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],'
        '"contexts": [{"name": "x", "context": {"cluster": "x"}}], "current-context": "x"}'
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(UnavailableError, match="was refused"):
        await open_backend(tmp_path).cordons()
