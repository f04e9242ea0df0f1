"""What every backend must do, whoever schedules the nodes.

With BRCTL_TEST_KUBECONFIG also on the real cluster that it names; see docs/kubernetes.md.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

import pytest

from brctl.backends.contract import Backend, Label
from brctl.backends.kubernetes.backend import KubernetesBackend
from brctl.backends.slurm.backend import SlurmBackend
from brctl.backends.static.backend import StaticBackend
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.fanout.local import LocalTransport
from brctl.model.errors import BrctlError
from brctl.model.inventory import Inventory, Node, NodeRole
from brctl.model.jobs.job import Job
from tests.fakes.file_backend import FileBackend
from tests.fakes.kube.cluster import KubeCluster, kube_cluster, no_kubectl
from tests.fakes.kube.real_cluster import VARIABLE, RealCluster, real_cluster
from tests.fakes.slurm_cluster import missing, slurm_cluster
from tests.fakes.world_file import WorldFile
from tests.timeouts import TIMEOUT_S

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)
SLEEPER = ("/bin/sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.05; done")


class Nodes(NamedTuple):
    """Four nodes and two standbys, by the names that their scheduler has for them."""

    n1: str = "n1"
    n2: str = "n2"
    n3: str = "n3"
    n4: str = "n4"
    s1: str = "s1"
    s2: str = "s2"


T = TypeVar("T")


def inventory(nodes: Nodes = Nodes()) -> Inventory:  # noqa: B008 - a tuple of texts
    roles = {name: NodeRole.ACTIVE for name in nodes[:4]}
    roles |= {name: NodeRole.STANDBY for name in nodes[4:]}
    return Inventory({n: Node(n, "127.0.0.1", role=role) for n, role in roles.items()})


def ours(found: Mapping[str, T], nodes: Nodes) -> dict[str, T]:
    """A real cluster has other nodes, and cordons of other people on them."""
    return {name: value for name, value in found.items() if name in nodes}


def job_in(folder: Path, nodes: Nodes = Nodes()) -> Job:  # noqa: B008 - a tuple of texts
    return Job(
        name=f"contract-{folder.name}",
        nodes=nodes[:4],
        ranks_per_node=1,
        axes=(("dp", 4),),
        launch=SLEEPER,
        checkpoint_dir=PurePosixPath(folder / "ckpt"),
        log_dir=PurePosixPath(folder / "logs"),
        progress_dir=PurePosixPath(folder / "progress"),
    )


@pytest.fixture
def job(tmp_path: Path, nodes: Nodes) -> Job:
    return job_in(tmp_path, nodes)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real Slurm for as long as this module runs."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), list(inventory().nodes)):
        yield


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """A stand-in API server for the real kubectl, for as long as this module runs."""
    if no_kubectl():
        pytest.skip("not installed: kubectl")
    with kube_cluster(tmp_path_factory.mktemp("kube"), list(inventory().nodes)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def real_kube() -> Iterator[RealCluster]:
    """The cluster that BRCTL_TEST_KUBECONFIG names, for as long as this module runs."""
    with real_cluster() as cluster:
        yield cluster


@pytest.fixture(
    params=[
        "static",
        "file",
        pytest.param("kubernetes-stand-in", marks=pytest.mark.xdist_group("backends: kubectl")),
        pytest.param(
            "slurm", marks=[pytest.mark.slurm, pytest.mark.xdist_group("backends: slurm")]
        ),
        *(["kubernetes-real"] if os.environ.get(VARIABLE) else []),
    ]
)
def scheduler(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def nodes(request: pytest.FixtureRequest, scheduler: str) -> Nodes:
    if scheduler == "kubernetes-real":
        return Nodes(*request.getfixturevalue("real_kube").nodes)
    return Nodes()


@pytest.fixture
async def backend(
    request: pytest.FixtureRequest, scheduler: str, tmp_path: Path, job: Job, nodes: Nodes
) -> AsyncIterator[Backend]:
    if scheduler == "slurm":
        request.getfixturevalue("slurm")
        yield await fresh_slurm(tmp_path, job)
        return
    if scheduler == "kubernetes-stand-in":
        yield await fresh_kubernetes(request.getfixturevalue("kube"), tmp_path, job)
        return
    if scheduler == "kubernetes-real":
        cluster: RealCluster = request.getfixturevalue("real_kube")
        await cluster.forget()
        await cluster.add_job(job.name, len(job.nodes), job.launch)
        yield KubernetesBackend(Kubectl(), inventory(nodes), tmp_path / "kubernetes")
        return
    if scheduler == "file":
        world = WorldFile(tmp_path / "world.json")
        with world.change() as data:
            data |= {"ranks": {}, "dead": []}
        yield FileBackend(world)
        return
    transport = LocalTransport()
    static = StaticBackend(tmp_path / "static" / "c.json", transport, inventory(), 8)
    yield static
    await static.stop_job(job, 0.2)
    await transport.close()


async def fresh_slurm(folder: Path, job: Job) -> SlurmBackend:
    """The module's Slurm with nothing left of the test before."""
    found = SlurmBackend(folder / "static" / "c.json", LocalTransport(), inventory(), 8)
    (folder / "logs").mkdir()
    await found.uncordon(list(inventory().nodes))
    return found


async def fresh_kubernetes(cluster: KubeCluster, folder: Path, job: Job) -> KubernetesBackend:
    """The module's stand-in with a suspended Job and nothing left of the test before."""
    cluster.forget()
    cluster.add_job("trainer", job.name, len(job.nodes), job.launch)
    return KubernetesBackend(Kubectl(), inventory(), folder / "kubernetes")


async def test_a_cordon_keeps_its_first_owner(backend: Backend, nodes: Nodes) -> None:
    """Cordoning twice changes nothing, so brctl never takes credit for others' cordons."""
    await backend.cordon([nodes.n1], "brctl:ann", "fan", AT)
    await backend.cordon([nodes.n1, nodes.n2], "brctl:R-1", "ecc", AT)
    cordons = ours(await backend.cordons(), nodes)
    assert {n: (c.owner, c.reason) for n, c in cordons.items()} == {
        nodes.n1: ("brctl:ann", "fan"),
        nodes.n2: ("brctl:R-1", "ecc"),
    }
    assert all(c.at is not None and c.at.tzinfo is not None for c in cordons.values())
    await backend.uncordon([nodes.n1, nodes.n3])
    assert set(ours(await backend.cordons(), nodes)) == {nodes.n2}


async def test_a_standby_is_reserved_once(backend: Backend, nodes: Nodes) -> None:
    """The second run is told no, and cannot release what it does not hold."""
    assert await backend.reserve(nodes.s1, "brctl:R-1", AT)
    assert await backend.reserve(nodes.s1, "brctl:R-1", AT)
    assert not await backend.reserve(nodes.s1, "brctl:R-2", AT)
    await backend.release([nodes.s1], "brctl:R-2")
    assert set(ours(await backend.reservations(), nodes)) == {nodes.s1}
    await backend.release([nodes.s1], "brctl:R-1")
    assert not ours(await backend.reservations(), nodes)


async def test_a_label_goes_back_to_what_it_was(backend: Backend, nodes: Nodes) -> None:
    """Undoing restores the former value, and only where the value is still the undoer's."""
    await backend.label([nodes.n1, nodes.n2], "state", "suspect", "brctl:R-1")
    await backend.label([nodes.n1, nodes.n2], "state", "suspect", "brctl:R-1")
    await backend.label([nodes.n2], "state", "burnin", "brctl:R-2")
    assert await backend.labels([nodes.n1, nodes.n2, nodes.n3], "state") == {
        nodes.n1: Label("suspect", "brctl:R-1", None),
        nodes.n2: Label("burnin", "brctl:R-2", "suspect"),
    }
    for _ in range(2):
        await backend.unlabel([nodes.n1, nodes.n2, nodes.n3], "state", "brctl:R-1")
    assert set(await backend.labels([nodes.n1, nodes.n2], "state")) == {nodes.n2}
    await backend.unlabel([nodes.n2], "state", "brctl:R-2")
    found = await backend.labels([nodes.n1, nodes.n2], "state")
    assert {n: label.value for n, label in found.items()} == {nodes.n2: "suspect"}
    await backend.unlabel([nodes.n2], "state", "brctl:R-2")
    assert nodes.n2 in await backend.labels([nodes.n2], "state")


async def test_an_idle_node_has_nothing_to_evict(backend: Backend, job: Job, nodes: Nodes) -> None:
    """A drain of an idle node is over at once."""
    assert await backend.evict([nodes.n1, nodes.s1], [job]) == {}


async def test_a_swap_keeps_every_other_rank_where_it_is(
    backend: Backend, job: Job, nodes: Nodes
) -> None:
    """The standby takes the place, not the end of the list; doing it twice is doing it once."""
    for _ in range(2):
        after = await backend.replace_nodes(job, {nodes.n2: nodes.s1})
        assert after.nodes == (nodes.n1, nodes.s1, nodes.n3, nodes.n4)
    assert (await backend.place(job)).nodes == (nodes.n1, nodes.s1, nodes.n3, nodes.n4)
    assert (await backend.replace_nodes(job, {nodes.s1: nodes.n2})).nodes == job.nodes


async def test_ranks_start_once_and_end_when_told(backend: Backend, job: Job) -> None:
    """Starting again under the same mark starts nothing; stopping again stops nothing."""
    for _ in range(2):
        report = await backend.start_job(job, "", "R-1")
        assert (report.started, report.failed) == ((0, 1, 2, 3), {})
    state = await backend.job_status(job)
    assert state.alive == (0, 1, 2, 3)
    assert state.incarnations == {"R-1"}
    for _ in range(2):
        stopped = await backend.stop_job(job, TIMEOUT_S)
        assert (stopped.killed, stopped.stuck, stopped.unreachable) == ((), (), {})
    state = await backend.job_status(job)
    assert (state.alive, state.gone) == ((), (0, 1, 2, 3))


async def exits_of(backend: StaticBackend, job: Job) -> Mapping[int, int]:
    """How every rank ended; its supervisor writes it down a moment after the rank is gone."""
    async with asyncio.timeout(TIMEOUT_S):
        while len(exits := (await backend.job_status(job)).exits) < len(job.nodes):  # noqa: ASYNC110 - another process writes
            await asyncio.sleep(0.02)
    return exits


async def test_the_static_state_survives_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    """A state file that cannot be read is never taken for "nothing is cordoned"."""
    path = tmp_path / "static" / "c.json"
    first = StaticBackend(path, LocalTransport(), inventory(), 8)
    await first.cordon(["n1"], "brctl:R-1", "x", AT)
    second = StaticBackend(path, LocalTransport(), inventory(), 8)
    assert set(await second.cordons()) == {"n1"}
    path.write_text("{}")
    with pytest.raises(BrctlError, match="damaged"):
        await second.cordons()


async def test_a_node_nobody_knows_cannot_be_changed(tmp_path: Path) -> None:
    """A typing error never becomes a cordon."""
    job = job_in(tmp_path)
    static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
    with pytest.raises(BrctlError, match="'nX' is not in the inventory"):
        await static.cordon(["nX"], "o", "r", AT)
    with pytest.raises(BrctlError, match="'nX'"):
        await static.replace_nodes(job, {"n1": "nX"})
    with pytest.raises(BrctlError, match="a node twice"):
        await static.replace_nodes(job, {"n1": "n2"})


async def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    """The report says which rank had to be killed."""
    deaf = f"[ $RANK = 2 ] && trap '' TERM && touch {tmp_path}/deaf"
    stubborn = ("/bin/sh", "-c", f"{deaf}; while :; do sleep 0.05; done")
    job = replace(job_in(tmp_path), launch=stubborn)
    static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
    await static.start_job(job, "", "R-1")
    async with asyncio.timeout(TIMEOUT_S):
        while not (tmp_path / "deaf").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
    report = await static.stop_job(job, 3.0)
    assert (report.stopped, report.killed) == ((0, 1, 3), (2,))
    assert await exits_of(static, job) == {0: -15, 1: -15, 2: -9, 3: -15}


async def test_a_stopped_rank_is_woken_to_die(tmp_path: Path) -> None:
    """A hung rank (state T) does not survive a stop."""
    hung = ("/bin/sh", "-c", "kill -STOP $$; sleep 60")
    job = replace(job_in(tmp_path), launch=hung)
    static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
    await static.start_job(job, "", "R-1")
    assert (await static.stop_job(job, 2.0)).stuck == ()
    assert (await static.job_status(job)).alive == ()


async def test_a_start_beside_ranks_of_another_start_is_refused(tmp_path: Path) -> None:
    """Two copies of a rank would write the same checkpoints."""
    job = job_in(tmp_path)
    static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
    await static.start_job(job, "", "R-1")
    try:
        report = await static.start_job(job, "", "R-2")
        assert set(report.failed) == set(job.nodes)
        assert "of an earlier start still runs" in report.failed["n1"]
    finally:
        await static.stop_job(job, 2.0)


async def test_a_foreign_process_under_a_recorded_number_is_not_touched(
    tmp_path: Path, job: Job
) -> None:
    """A number proves nothing: start time and environment must match before a signal is sent."""
    unknown = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    try:
        record = f'{{"rank": 0, "pid": {unknown.pid}, "start_ticks": 1, "node": "n1"}}'
        write_record(Path(job.log_dir), record)
        static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
        report = await static.stop_job(job, 0.2)
        assert report.killed == ()
        assert unknown.returncode is None
    finally:
        unknown.kill()
        await unknown.wait()


def write_record(logs: Path, record: str) -> None:
    logs.mkdir()
    (logs / "rank-00000.process.json").write_text(record)


async def test_a_launch_that_fails_leaves_its_reason_in_the_log(tmp_path: Path) -> None:
    """A program that does not exist ends with 127 and says so where people look."""
    job = replace(job_in(tmp_path), launch=("/no/such/program",))
    static = StaticBackend(tmp_path / "static" / "c.json", LocalTransport(), inventory(), 8)
    await static.start_job(job, "", "R-1")
    assert await exits_of(static, job) == dict.fromkeys(range(4), 127)
    assert "cannot start rank 0" in (tmp_path / "logs" / "rank-00000.log").read_text()
