"""A parked process becomes the rank, or the rank starts cold and somebody is told why."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.ranks import commands as rank_commands
from brctl.model.inventory import Inventory, Node
from tests.contract.parking.site import (
    LEASE_S,
    N1,
    N2,
    ParkingSite,
    command_line,
    job_in,
    processes_of,
    until,
)
from tests.timeouts import TIMEOUT_S


async def test_the_parked_processes_become_the_ranks(site: ParkingSite) -> None:
    """Same processes, with the ranks' environment, arguments, log, record and command line."""
    await site.park()
    parked = site.parked_pids()
    state = await site.backend.job_status(site.job)
    assert (state.alive, state.gone) == ((), (0, 1))
    report = await site.backend.start_job(site.job, "/ckpt/step-3", "R-1")
    assert (report.started, report.warm, report.cold) == ((0, 1), (0, 1), {})
    await until(
        lambda: all((site.folder / "logs" / f"rank-0000{r}.log").stat().st_size for r in (0, 1))
    )
    for rank in (0, 1):
        actual = site.said(rank)
        assert actual == {
            "pid": parked[rank], "argv": ["train.py", "--depth"], "name": "__main__",
            "main": "train.py", "parked": None,
            "environment": {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                            "BRCTL_RESUME_FROM": "/ckpt/step-3", "SHADE": "teal"},
        }  # fmt: skip
        assert command_line(parked[rank]) == site.job.launch
    state = await site.backend.job_status(site.job)
    assert state.alive == (0, 1)
    assert state.incarnations == {"R-1"}
    stopped = await site.backend.stop_job(site.job, TIMEOUT_S)
    assert (stopped.stopped, stopped.killed) == ((0, 1), ())
    await recorded_ends(site)
    assert (await site.backend.job_status(site.job)).exits == {0: -15, 1: -15}


async def recorded_ends(site: ParkingSite) -> None:
    """Until the supervisors of both ranks wrote down how they ended."""
    logs = site.folder / "logs"
    await until(lambda: all((logs / f"rank-0000{r}.exit.json").exists() for r in (0, 1)))


async def test_a_module_runs_in_the_parked_process_and_its_exit_status_is_kept(
    site: ParkingSite,
) -> None:
    """`python -m MODULE` too, and the supervisor writes how it ended."""
    site.job = replace(site.job, launch=(site.job.launch[0], "-m", "train", "--nap", "0.05"))
    await site.park()
    parked = site.parked_pids()
    report = await site.backend.start_job(site.job, "", "R-1")
    assert report.warm == (0, 1)
    await recorded_ends(site)
    assert [site.said(rank)["pid"] for rank in (0, 1)] == parked
    assert (await site.backend.job_status(site.job)).exits == {0: 7, 1: 7}


async def test_parking_again_keeps_what_is_fit(site: ParkingSite) -> None:
    """Asking again renews the lease of the same processes."""
    await site.park()
    before = site.parked_pids()
    await site.park()
    assert site.parked_pids() == before


async def test_changed_code_is_imported_anew(site: ParkingSite) -> None:
    """A file that was imported and has changed ends the parked process, which says so."""
    await site.park()
    (site.folder / "helper.py").write_text("shade = 2222\n")
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm) == ((0, 1), ())
    assert "helper.py changed since it was imported" in report.cold[N1]


async def test_changed_code_is_parked_anew(site: ParkingSite) -> None:
    """Parking again after a change of code does not keep the old process."""
    await site.park()
    before = site.parked_pids()
    (site.folder / "helper.py").write_text("shade = 2222\n")
    os.utime(site.folder / "helper.py", (1, 1))
    await site.park()
    assert not set(site.parked_pids()) & set(before)


@pytest.mark.parametrize("late_s", [1.0, 5.0], ids=["waited for", "later than anybody waits"])
async def test_the_late_end_of_an_old_process_is_not_the_new_one_s(
    site: ParkingSite, late_s: float
) -> None:
    """A busy host's supervisor wrote that end over the new process, which was taken for dead."""
    await site.park()
    logs = site.folder / "logs"
    supervisors = [
        json.loads(path.read_text())["supervisor"] for path in logs.glob(f"parked-{N1}-*.record")
    ]
    before = site.parked_pids()
    (site.folder / "helper.py").write_text("shade = 2222\n")
    os.utime(site.folder / "helper.py", (1, 1))
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    parking = asyncio.create_task(site.park())
    try:
        await until(lambda: not any(any(command_line(pid)) for pid in before))
        # Long enough for a new process to be parked, had it not waited.
        await asyncio.sleep(late_s)
    finally:
        for pid in supervisors:
            os.kill(pid, signal.SIGCONT)
    await parking
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in supervisors))
    assert len(site.parked_pids()) == len(before)
    assert list(logs.glob(f"parked-{N1}-*.end")) == []


@pytest.mark.parametrize("change", ["launch", "environment"])
async def test_another_start_than_was_parked_for_is_cold(site: ParkingSite, change: str) -> None:
    """A flag or a variable more is another program."""
    await site.park()
    other = {
        "launch": replace(site.job, launch=(*site.job.launch, "60")),
        "environment": replace(site.job, environment={"SHADE": "red"}),
    }[change]
    report = await site.backend.start_job(other, "", "R-1")
    assert report.warm == ()
    assert "parked for another launch command, environment, directory" in report.cold[N1]
    assert site.parked_pids() == []


async def test_a_node_that_started_anew_starts_cold_and_says_so(site: ParkingSite) -> None:
    """Power loss leaves the record, but neither process nor supervisor."""
    await site.park()
    for path in (site.folder / "logs").glob(f"parked-{N1}-*.record"):
        record = json.loads(path.read_text())
        os.kill(record["supervisor"], signal.SIGKILL)
        os.kill(record["pid"], signal.SIGKILL)
    found = (await site.parking.list_parked(site.job, [N1]))[N1]
    assert found.ready == 0
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm) == ((0, 1), ())
    assert "the node started anew" in report.cold[N1]


async def test_a_killed_parked_process_is_told_from_one_that_never_was(site: ParkingSite) -> None:
    """Its supervisor writes the signal down; a node where nothing was parked says nothing."""
    await site.park()
    os.kill(site.parked_pids()[0], signal.SIGKILL)
    end = site.folder / "logs" / f"parked-{N1}-0.end"
    await until(end.exists)
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm) == ((0, 1), (1,))
    assert "it ended by signal 9" in report.cold[N1]
    await site.backend.stop_job(site.job, TIMEOUT_S)
    assert (await site.backend.start_job(site.job, "", "R-2")).cold == {}


async def test_a_frozen_parked_process_is_ended_and_its_rank_starts_cold(
    site: ParkingSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are never two processes for one rank."""
    monkeypatch.setattr(rank_commands, "ANSWER_S", 15.0)
    await site.park()
    frozen = site.parked_pids()[0]
    os.kill(frozen, signal.SIGSTOP)
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm) == ((0, 1), (1,))
    assert "did not answer within 15" in report.cold[N1]
    assert frozen not in processes_of(site.job)
    assert len(processes_of(site.job)) == 2


async def test_a_foreign_process_under_a_recorded_number_is_neither_rank_nor_ended(
    site: ParkingSite,
) -> None:
    """A record that names another process by now is only paper."""
    await site.park()
    unknown = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    try:
        for path in (site.folder / "logs").glob(f"parked-{N1}-*.record"):
            record = json.loads(path.read_text())
            os.kill(record["pid"], signal.SIGKILL)
            path.write_text(json.dumps({**record, "pid": unknown.pid}))
        report = await site.backend.start_job(site.job, "", "R-1")
        assert report.warm == ()
        assert unknown.returncode is None
    finally:
        unknown.kill()
        await unknown.wait()


async def test_stopping_a_job_leaves_the_parked_alone(site: ParkingSite) -> None:
    """Neither its own next start nor that of another job on the node is stopped with the ranks."""
    other = job_in(site.folder, site.job.launch, name=f"{site.job.name}-other")
    await site.backend.start_job(site.job, "", "R-1")
    await site.park()
    before = site.parked_pids()
    await site.backend.stop_job(other, 0.5)
    assert (await site.backend.job_status(site.job)).alive == (0, 1)
    await site.backend.stop_job(site.job, TIMEOUT_S)
    assert site.parked_pids() == before
    assert sorted(processes_of(site.job)) == sorted(before)
    assert (await site.backend.start_job(site.job, "", "R-2")).warm == (0, 1)


async def test_a_parked_process_ends_with_its_lease_or_its_record(site: ParkingSite) -> None:
    """Nobody renews it, or the pool drops it: it leaves by itself."""
    # The first may have left before the second was ready.
    await site.parking.park(site.job, [N1], 0.3)
    await until(lambda: processes_of(site.job) == [])
    ends = [site.folder / "logs" / f"parked-{N1}-{number}.end" for number in (0, 1)]
    await until(lambda: all(path.exists() for path in ends))
    assert "its lease ran out" in (await site.parking.list_parked(site.job, [N1]))[N1].why
    await site.park()
    for path in (site.folder / "logs").glob(f"parked-{N1}-*.record"):
        path.unlink()
        path.with_suffix(".pipe").write_text("look")
    await until(lambda: processes_of(site.job) == [])


async def test_a_parked_process_costs_no_processor_time(site: ParkingSite) -> None:
    """It sleeps in the kernel until somebody writes to its pipe."""
    await site.park()

    def stats() -> list[list[str]]:
        """Its state comes first."""
        texts = [Path(f"/proc/{pid}/stat").read_text() for pid in site.parked_pids()]
        return [text.rpartition(")")[2].split() for text in texts]

    def ticks() -> int:
        return sum(sum(map(int, fields[11:13])) for fields in stats())

    await until(lambda: all(fields[0] == "S" for fields in stats()))
    before = ticks()
    await asyncio.sleep(1.0)
    assert ticks() - before <= 1


async def test_two_starts_at_once_start_every_rank_once(site: ParkingSite) -> None:
    """A start that a dead controller left behind on the node, and the one of its successor."""
    await site.park()
    first, second = await asyncio.gather(
        site.backend.start_job(site.job, "", "R-1"), site.backend.start_job(site.job, "", "R-1")
    )
    assert first.warm == second.warm == (0, 1)
    assert len(processes_of(site.job)) == 2


STARTER = """\
import asyncio, pickle, sys
backend_args, job = pickle.load(open(sys.argv[1], "rb"))
from brctl.backends.static.backend import StaticBackend
from brctl.fanout.local import LocalTransport
path, inventory = backend_args
asyncio.run(StaticBackend(path, LocalTransport(), inventory, 8).start_job(job, "", "R-1"))
"""


async def test_a_controller_killed_after_the_activation_starts_nothing_twice(
    site: ParkingSite,
) -> None:
    """The next start of the same run finds the ranks and leaves them alone."""
    import pickle

    await site.park()
    parked = site.parked_pids()
    asked = site.folder / "asked"
    state = (site.folder / "static.json", Inventory({N1: Node(N1, "127.0.0.1")}))
    asked.write_bytes(pickle.dumps((state, site.job)))
    controller = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, str(asked))
    logs = site.folder / "logs"
    await until(lambda: any(logs.glob("rank-*.process.json")))
    controller.kill()
    await controller.wait()
    report = await site.backend.start_job(site.job, "", "R-1")
    assert (report.started, report.warm, report.failed) == ((0, 1), (0, 1), {})
    assert sorted(processes_of(site.job)) == sorted(parked)


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        (("/bin/sh", "-c", "sleep 60"), "not `python SCRIPT ...` or `python -m MODULE ...`"),
        (("PYTHON", "-c", "pass"), "not `python SCRIPT ...`"),
        (("PYTHON", "absent.py"), "the job's script absent.py is not there"),
        (("PYTHON", "-m", "absent"), "the job's module absent is not there"),
        (("/no/such/python", "train.py"), "launch program /no/such/python is not there"),
    ],
)
async def test_what_cannot_be_parked_is_told_before(
    site: ParkingSite, python: str, launch: tuple[str, ...], expected: str
) -> None:
    """The node says what is missing, or that nothing of this kind can wait."""
    words = tuple(python if word == "PYTHON" else word for word in launch)
    setup = (await site.parking.examine(replace(site.job, launch=words), [N1]))[N1]
    assert expected in setup.problem + setup.unfit


async def test_a_module_that_cannot_be_imported_is_told(site: ParkingSite) -> None:
    """The reason comes back, and nothing is left."""
    site.job = replace(site.job, warm=("helper", "no_such_module"))
    found = (await site.parking.park(site.job, [N1], LEASE_S))[N1]
    assert (found.ready, found.wanted) == (0, 2)
    assert "No module named 'no_such_module'" in found.why


FAKE_TORCH = """\
__version__ = "9.9.9+fake"
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    set_device = staticmethod(lambda index: setattr(cuda, "index", index))
    synchronize = staticmethod(lambda: None)
    get_device_name = staticmethod(lambda index: "fake GPU %d" % index)
class zeros:
    def __init__(self, count, device):
        assert device == "cuda" and cuda.index in (0, 1)
    def add_(self, number):
        open("context-%d" % cuda.index, "w").close()
"""


async def test_a_standby_opens_its_gpus_and_a_node_with_ranks_does_not(site: ParkingSite) -> None:
    """A fake torch tells who asked for a CUDA context: beside ranks it would take their memory."""
    (site.folder / "torch").mkdir()
    (site.folder / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (site.folder / "torch" / "distributed.py").write_text("")
    found = await site.parking.park(site.job, [N1, N2], LEASE_S)
    assert (found[N1].ready, found[N1].gpu) == (2, None)
    assert (found[N2].ready, found[N2].gpu) == (2, "fake GPU 0")
    assert sorted(path.name for path in site.folder.glob("context-*")) == ["context-0", "context-1"]


async def test_versions_are_read_without_importing_torch(site: ParkingSite) -> None:
    """An interpreter without torch has none; this one has the version its metadata says."""
    from importlib.metadata import version

    setup = (await site.parking.examine(site.job, [N1]))[N1]
    assert (setup.problem, setup.torch) == ("", None)
    own = replace(site.job, launch=(sys.executable, "train.py"))
    setup = (await site.parking.examine(own, [N1]))[N1]
    assert setup.python == sys.version.split()[0]
    assert setup.torch is not None
    assert setup.torch.partition("+")[0] == version("torch").partition("+")[0]
