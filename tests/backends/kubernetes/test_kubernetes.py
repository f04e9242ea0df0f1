"""The real kubectl against a stand-in API server: what brctl does, and what it leaves alone."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from time import monotonic

import pytest

from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.backends.kubernetes.control import AskNodes, nobody_asked
from brctl.backends.kubernetes.workloads import change_node
from brctl.fanout.kubernetes.kubectl import ConflictError, Kubectl
from brctl.model.errors import DeniedError, UnavailableError, UsageError
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job
from tests.backends.kubernetes.test_marks import AT
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster, kube_cluster, no_kubectl
from tests.timeouts import TIMEOUT_S

pytestmark = pytest.mark.skipif(no_kubectl(), reason="not installed: kubectl")
NAMES = ("n1", "n2", "n3", "s1")
SLEEP = ("/bin/sleep", "600")


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube"), NAMES, ["s1"]) as cluster:
        yield cluster


@pytest.fixture
def cluster(module_cluster: KubeCluster) -> KubeCluster:
    """The stand-in with nothing left of the test before."""
    module_cluster.forget()
    return module_cluster


@pytest.fixture
def backend(cluster: KubeCluster, tmp_path: Path) -> KubernetesBackend:
    return open_backend(tmp_path)


def open_backend(folder: Path, ask: AskNodes = nobody_asked) -> KubernetesBackend:
    nodes = {name: Node(name, "127.0.0.1") for name in NAMES}
    nodes["s1"] = replace(nodes["s1"], role=NodeRole.STANDBY)
    found = KubernetesBackend(Kubectl(), Inventory(nodes), folder / "keep", ask)
    found.control.start_deadline_s = 60.0
    found.control.settle_s = 0.3
    return found


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        name="demo",
        nodes=("n1", "n2", "n3"),
        ranks_per_node=1,
        axes=(("dp", 3),),
        launch=SLEEP,
        checkpoint_dir=PurePosixPath(tmp_path),
        log_dir=PurePosixPath(tmp_path),
        progress_dir=PurePosixPath(tmp_path),
    )


def kubectl(*argv: str) -> None:
    subprocess.run(["kubectl", *argv], check=True, capture_output=True)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what the stand-in's controllers do next."""
    limit_s = monotonic() + TIMEOUT_S
    while monotonic() < limit_s:
        if await holds():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it does not come")


def placement(cluster: KubeCluster) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in cluster.pods()}


def written(folder: Path) -> list[str]:
    """What ranks wrote of their environment, as far as they have begun."""
    files = [folder / str(rank) for rank in range(3)]
    return [file.read_text() for file in files if file.exists()]


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


async def test_stand_in_a_dead_nodes_rank_comes_back_on_the_standby_with_the_checkpoint(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """Stop, swap, start: and what ran on the dead node is called unreachable, not stopped."""
    writes = f'echo "$BRCTL_RESUME_FROM" > {tmp_path}/$JOB_COMPLETION_INDEX; exec sleep 600'
    cluster.add_job("trainer", job.name, 3, ["/bin/sh", "-c", writes])
    assert not (await backend.start_job(job, "", "R-1")).failed
    before = await backend.place(job)
    assert sorted(before.nodes) == ["n1", "n2", "n3"]
    rank = before.nodes.index("n3")
    cluster.power_off("n3")
    state = await backend.job_status(job)
    assert rank not in (*state.alive, *state.gone)
    assert set(state.unreachable) == {"n3"}
    stopped = await backend.stop_job(job, 5.0)
    assert set(stopped.unreachable) == {"n3"}
    assert set(stopped.stopped) == {0, 1, 2} - {rank}
    after = await backend.replace_nodes(before, {"n3": "s1"})
    assert after.nodes[rank] == "s1"
    report = await backend.start_job(after, "/ckpt/step-00000020", "R-2")
    assert (report.started, report.failed) == ((0, 1, 2), {})
    assert (await backend.job_status(job)).incarnations == {"R-2"}
    assert sorted((await backend.place(job)).nodes) == ["n1", "n2", "s1"]

    async def all_told() -> bool:
        return written(tmp_path) == ["/ckpt/step-00000020\n"] * 3

    await until(all_told)
    again = await backend.start_job(after, "/ckpt/step-00000021", "R-3")
    assert set(again.failed.values()) == {"trainer runs already, started by R-2"}
    with pytest.raises(UsageError, match="its pods cannot move before it is stopped"):
        await backend.replace_nodes(after, {"n1": "n3"})


async def test_stand_in_a_failed_job_is_made_anew_to_start_again(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """Kubernetes never runs a Failed Job again; the exit code was seen before it goes."""
    crash = f"[ -e {tmp_path}/well ] && exec sleep 600; exit 7"
    cluster.add_job("trainer", job.name, 3, ["/bin/sh", "-c", crash], backoffLimit=0)
    failed = await backend.start_job(job, "", "R-1")
    assert failed.failed

    async def settled() -> bool:
        return len((await backend.job_status(job)).gone) == 3

    await until(settled)
    state = await backend.job_status(job)
    assert 7 in state.exits.values()
    assert set(state.exits.values()) <= {7, -15}
    assert state.alive == ()
    (tmp_path / "well").touch()
    uid = cluster.store.get("jobs", NAMESPACE, "trainer")["metadata"]["uid"]
    assert not (await backend.start_job(job, "/ckpt/1", "R-2")).failed
    made = cluster.store.get("jobs", NAMESPACE, "trainer")
    assert made["metadata"]["uid"] != uid
    assert not list((tmp_path / "keep").iterdir())
    await backend.stop_job(job, 1.0)


async def test_stand_in_a_making_cut_short_is_finished_by_the_next_start(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """Killed between delete and create, the manifest is on disk, for this user only."""
    cluster.add_job("trainer", job.name, 3, SLEEP)
    cluster.server.denied.add(("create", "jobs"))
    with pytest.raises(DeniedError, match="forbidden"):
        await backend.start_job(job, "/ckpt/1", "R-1")
    cluster.server.denied.clear()
    kept = tmp_path / "keep" / "demo.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not list(cluster.store.all("jobs"))
    assert not (await open_backend(tmp_path).start_job(job, "/ckpt/1", "R-1")).failed
    assert not kept.exists()
    await backend.stop_job(job, 1.0)


async def test_stand_in_a_job_that_hears_of_checkpoints_is_never_made_anew(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Not for what the server added to its manifest; so one with an owner starts, too."""
    cluster.add_job("trainer", job.name, 3, SLEEP, owner="u-7", hears=True)
    uid = cluster.store.get("jobs", NAMESPACE, "trainer")["metadata"]["uid"]
    assert not (await backend.start_job(job, "/ckpt/1", "R-1")).failed
    after = cluster.store.get("jobs", NAMESPACE, "trainer")
    assert after["metadata"]["uid"] == uid
    env = after["spec"]["template"]["spec"]["containers"][0]["env"][-1]
    assert env["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    await backend.stop_job(job, 1.0)


async def test_stand_in_a_release_reaches_the_ranks_without_a_new_job(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """Made anew once, so that it can be told; from then on each start tells another one."""
    writes = f'echo "$BRCTL_CODE_DIR $BRCTL_CODE_VERSION" > {tmp_path}/$JOB_COMPLETION_INDEX'
    cluster.add_job("trainer", job.name, 3, ["/bin/sh", "-c", f"{writes}; exec sleep 600"])
    uids = set()
    for version in ("r1", "r2"):
        code = JobCode(PurePosixPath("/code"), "r1", version)
        assert not (await backend.start_job(replace(job, code=code), "", version)).failed
        uids.add(cluster.store.get("jobs", NAMESPACE, "trainer")["metadata"]["uid"])

        async def all_told(reported: str = f"/code/{version} {version}\n") -> bool:
            return written(tmp_path) == [reported] * 3

        await until(all_told)
        await backend.stop_job(job, 5.0)
    assert len(uids) == 1


async def test_stand_in_a_job_that_the_cluster_forgot_after_its_end_comes_back(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """`ttlSecondsAfterFinished` deletes the manifest with the Job; brctl kept it at the start."""
    may_crash, well = tmp_path / "may-crash", tmp_path / "well"
    crash = f"[ -e {well} ] && exec sleep 600; until [ -e {may_crash} ]; do sleep 0.1; done; exit 7"
    cluster.add_job(
        "trainer", job.name, 3, ["/bin/sh", "-c", crash], backoffLimit=0, ttlSecondsAfterFinished=0
    )
    await backend.start_job(job, "", "R-1")
    may_crash.touch()

    async def forgotten() -> bool:
        return not list(cluster.store.all("jobs"))

    await until(forgotten)
    well.touch()
    moved = await backend.replace_nodes(job, {"n3": "s1"})
    assert not (await backend.start_job(moved, "/ckpt/1", "R-2")).failed
    assert placement(cluster) == {"n1", "n2", "s1"}
    await backend.stop_job(job, 1.0)


async def test_stand_in_a_job_that_runs_for_a_moment_has_not_started(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Its pods were Running when they were looked at; they are not a moment later."""
    backend.control.settle_s = 2.0
    crash = ["/bin/sh", "-c", "sleep 1; exit 7"]
    cluster.add_job("trainer", job.name, 3, crash, backoffLimit=0)
    report = await backend.start_job(job, "", "R-1")
    assert set(report.failed) == set(job.nodes)


async def test_stand_in_a_job_does_not_take_the_nodes_of_one_that_runs(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Their label would go, and a pod that the other job makes anew would find no node."""
    cluster.add_job("trainer", job.name, 3, SLEEP)
    cluster.node("n2")["metadata"]["labels"]["brctl.dev/job"] = "other"
    cluster.add_pod("other-0", "n2")
    theirs = cluster.store.get("pods", NAMESPACE, "other-0")
    theirs["spec"]["nodeSelector"] = {"brctl.dev/job": "other"}
    with pytest.raises(UsageError, match="n2 is a node of job other, which runs there"):
        await backend.start_job(job, "", "R-1")
    assert cluster.node("n2")["metadata"]["labels"]["brctl.dev/job"] == "other"
    theirs["status"]["phase"] = "Succeeded"
    assert not (await backend.start_job(job, "", "R-1")).failed
    await backend.stop_job(job, 1.0)


async def test_stand_in_a_node_that_died_is_not_waited_for_until_the_cluster_notices(
    cluster: KubeCluster, tmp_path: Path, job: Job
) -> None:
    """For 40 s 1.26.1 calls it Ready; that it does not answer us, while others do, is enough."""

    async def ask(nodes: Sequence[str]) -> Mapping[str, str]:
        return {"n3": "no route to host"} if "n3" in nodes else {}

    found = open_backend(tmp_path, ask)
    cluster.add_job("trainer", job.name, 3, SLEEP)
    await found.start_job(job, "", "R-1")
    before = await found.place(job)
    cluster.cut_power("n3")
    report = await asyncio.wait_for(found.stop_job(job, 600.0), TIMEOUT_S)
    assert dict(report.unreachable) == {"n3": "no route to host"}
    assert set(report.stopped) == {0, 1, 2} - {before.nodes.index("n3")}


async def test_stand_in_a_cluster_without_jobsets_has_no_job_and_forbids_nothing(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """1.26.1 says 403 before 404; where there are JobSets the refusal is told."""
    cluster.server.denied.add(("list", "jobsets"))
    with pytest.raises(DeniedError, match="jobsets is forbidden"):
        await backend.place(job)
    cluster.server.without.add("jobsets")
    assert await backend.place(job) == job
    with pytest.raises(UsageError, match="no Job or JobSet carries the label"):
        await backend.start_job(job, "", "R-1")


async def test_stand_in_an_overloaded_server_is_asked_again(
    cluster: KubeCluster, backend: KubernetesBackend
) -> None:
    """By kubectl itself, which honours Retry-After."""
    cluster.server.overloaded = 1
    assert await backend.cordons() == {}


async def test_stand_in_a_start_without_room_is_withdrawn_and_says_why(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """The scheduler's own words; and no pod is left to hold a node."""
    cluster.add_job("trainer", job.name, 3, SLEEP)
    kubectl("cordon", "n2")
    backend.control.start_deadline_s = 0.5
    report = await backend.start_job(job, "", "R-1")
    assert len(report.failed) == 1
    assert "0/4 nodes are available" in next(iter(report.failed.values()))

    async def empty() -> bool:
        return not cluster.pods()

    await until(empty)


async def test_stand_in_a_rank_that_ignores_sigterm_is_killed_after_the_grace(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Through its kubelet, never by forgetting the pod."""
    stubborn = '[ $JOB_COMPLETION_INDEX = 1 ] && trap "" TERM; while :; do sleep 0.05; done'
    cluster.add_job("trainer", job.name, 3, ["/bin/sh", "-c", stubborn])
    await backend.start_job(job, "", "R-1")
    report = await backend.stop_job(job, 0.5)
    assert (report.killed, report.stuck, dict(report.unreachable)) == ((1,), (), {})
    deleted = [verb for verb, what, _ in cluster.server.said if (verb, what) == ("delete", "pods")]
    assert deleted


@pytest.mark.deep
async def test_stand_in_a_jobset_is_stopped_moved_and_started_like_a_job(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """Its webhook lets annotations and node selectors change while it is suspended, no more."""
    cluster.add_jobset("set", job.name, {"leader": (1, 1), "workers": (2, 1)}, SLEEP)
    assert not (await backend.start_job(job, "", "R-1")).failed
    assert not (await backend.stop_job(job, 5.0)).killed
    moved = await backend.replace_nodes(await backend.place(job), {"n1": "s1"})
    assert (await backend.start_job(moved, "", "R-2")).started == (0, 1, 2)
    assert placement(cluster) == {"n2", "n3", "s1"}
    assert (await backend.job_status(job)).incarnations == {"R-2"}
    await backend.stop_job(job, 5.0)


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
            await open_backend(tmp_path).cordons()
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
