"""The life of a job on Kubernetes: the real kubectl against a stand-in API server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.model.errors import DeniedError, UsageError
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job
from tests.backends.kubernetes.site import SLEEP, kubectl, needs_kubectl, open_backend, until
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster
from tests.timeouts import TIMEOUT_S

pytestmark = needs_kubectl


def placement(cluster: KubeCluster) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in cluster.pods()}


def written(folder: Path) -> list[str]:
    """What ranks wrote of their environment, as far as they have begun."""
    files = [folder / str(rank) for rank in range(3)]
    return [file.read_text() for file in files if file.exists()]


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
    stopped = await backend.stop_job(job, 10.0)
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
    backend.control.settle_s = 5.0  # until its kubelet has seen it end
    failed = await backend.start_job(job, "", "R-1")
    assert failed.failed
    backend.control.settle_s = 0.3

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
    backend.control.settle_s = 10.0
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


async def test_stand_in_a_start_without_room_is_withdrawn_and_says_why(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job
) -> None:
    """The scheduler's own words; and no pod is left to hold a node."""
    cluster.add_job("trainer", job.name, 3, SLEEP)
    kubectl("cordon", "n2")
    backend.control.start_deadline_s = 8.0
    report = await backend.start_job(job, "", "R-1")
    assert len(report.failed) == 1
    assert "0/4 nodes are available" in next(iter(report.failed.values()))

    async def empty() -> bool:
        return not cluster.pods()

    await until(empty)


async def test_stand_in_a_rank_that_ignores_sigterm_is_killed_after_the_grace(
    cluster: KubeCluster, backend: KubernetesBackend, job: Job, tmp_path: Path
) -> None:
    """Through its kubelet, never by forgetting the pod."""
    deaf = f'[ $JOB_COMPLETION_INDEX = 1 ] && trap "" TERM && touch {tmp_path}/deaf'
    stubborn = f"{deaf}; while :; do sleep 0.05; done"
    cluster.add_job("trainer", job.name, 3, ["/bin/sh", "-c", stubborn])
    await backend.start_job(job, "", "R-1")

    async def is_deaf() -> bool:
        return (tmp_path / "deaf").exists()

    await until(is_deaf)
    report = await backend.stop_job(job, 5.0)
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
    assert not (await backend.stop_job(job, TIMEOUT_S)).killed
    moved = await backend.replace_nodes(await backend.place(job), {"n1": "s1"})
    assert (await backend.start_job(moved, "", "R-2")).started == (0, 1, 2)
    assert placement(cluster) == {"n2", "n3", "s1"}
    assert (await backend.job_status(job)).incarnations == {"R-2"}
    await backend.stop_job(job, 5.0)
