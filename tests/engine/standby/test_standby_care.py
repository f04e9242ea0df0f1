"""Processes wait only on standbys that are fit and well, and only while the pool wants them."""

import json
import os
import signal
import venv
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brctl.backends.ranks import commands as rank_commands
from brctl.backends.ranks.parking import Setup
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.standby.care import (
    _difference,
    check_standbys,
    park_standbys,
    unpark_standbys,
)
from brctl.engine.standby.pool import Pool
from brctl.engine.standby.pool_file import load_pool, save_pool
from brctl.engine.standby.report import standby_rows
from brctl.library.checks import load_checks
from brctl.library.config import load_settings
from brctl.model.errors import UsageError
from brctl.model.jobs.job import Job
from brctl.model.runs.playbook import Json
from brctl.view.fleet.standby import standby_list_page
from tests.timeouts import TIMEOUT_S

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: here
state_dir: state
ssh: {transport: local}
contexts:
  here: {inventory: [{file: inventory.yaml}], jobs: [one.yaml, two.yaml]}
"""
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {gpus: 0, python: PYTHON}
nodes:
  n1-PID: {address: 127.0.0.1}
  n2-PID: {address: 127.0.0.1}
  s1-PID: {address: 127.0.0.1, role: standby}
  s2-PID: {address: 127.0.0.1, role: standby}
  s3-PID: {address: 127.0.0.1, role: standby, python: /no/such/python}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: NAME-TAG
nodes: NODE
launch: [PYTHON, -c, pass]
workdir: FOLDER
warm: [json]
checkpoint: {directory: FOLDER/NAME/ckpt}
logs: FOLDER/NAME/logs
progress: FOLDER/NAME/progress
"""
CHECK = """\
apiVersion: brctl.dev/v1
kind: Check
name: site.stand
title: Stand-in
why: A test decides whether nodes are well.
source: own
level: 2
deadline: 60s
foreign:
  command: [sh, -c, "echo told; exit $(cat FOLDER/code)"]
  fault: gpu-slow
cross_check: none
"""
LEASE_S = TIMEOUT_S
# A start ends what is parked for other jobs on its node, and other workers of this run, on the same
# machine, have an s1 too.
N1, N2, S1, S2, S3 = (f"{name}-{os.getpid()}" for name in ("n1", "n2", "s1", "s2", "s3"))


@dataclass
class StandbyContext:
    """One opened context on this machine."""

    controller: Controller
    folder: Path

    @property
    def one(self) -> Job:
        return next(job for name, job in self.controller.jobs.items() if name.startswith("one"))

    @property
    def two(self) -> Job:
        return next(job for name, job in self.controller.jobs.items() if name.startswith("two"))

    async def park(self, pool: Pool, *nodes: str) -> Pool:
        return await park_standbys(self.controller, pool, nodes, self.one, LEASE_S)

    async def row(self, pool: Pool, node: str) -> dict[str, Json]:
        rows = await standby_rows(self.controller, pool)
        return next(row for row in rows if row["node"] == node)

    def pids(self, node: str) -> list[int]:
        records = (self.folder / "one" / "logs").glob(f"parked-{node}-*.record")
        return [json.loads(path.read_text())["pid"] for path in records]


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandbyContext]:
    # On a machine with twenty processes for each core, a process that answers may take its time.
    monkeypatch.setattr(rank_commands, "ANSWER_S", rank_commands.START_DEADLINE_S - 10.0)
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    (tmp_path / "train.py").write_text("import time\ntime.sleep(3600)\n")
    (tmp_path / "code").write_text("0")
    (tmp_path / "checks" / "site" / "stand").mkdir(parents=True)
    texts = {
        "config.yaml": CONFIG, "inventory.yaml": INVENTORY, "one.yaml": JOB, "two.yaml": JOB,
        "checks/site/stand/check.yaml": CHECK,
    }  # fmt: skip
    for path, text in texts.items():
        name = path.partition(".")[0]
        text = text.replace("[PYTHON, -c, pass]", f"[{python}, train.py]")
        text = text.replace("NAME", name).replace("NODE", N1 if name == "one" else N2)
        text = text.replace("FOLDER", str(tmp_path)).replace("PYTHON", python)
        text = text.replace("PID", str(os.getpid()))
        (tmp_path / path).write_text(text.replace("TAG", tmp_path.name))
    settings = load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")
    async with open_controller(settings) as controller:
        controller.__dict__["checks"] = load_checks((tmp_path / "checks",))
        found = StandbyContext(controller, tmp_path)
        yield found
        pool = Pool().with_known(
            replace(Pool().of(node), parked_for=found.one.name) for node in (N1, S1, S2)
        )
        await unpark_standbys(controller, pool, list(pool.known))
        for job in controller.jobs.values():
            moved = replace(await controller.backend.place(job))
            await controller.backend.stop_job(moved, 0.1)


def ready(rows: Sequence[dict[str, Json]]) -> str:
    """The table's third column."""
    text = standby_list_page(rows).text
    return text.splitlines()[1][text.index("READY") : text.index("AGE")].strip()


async def test_a_well_standby_is_parked_and_its_rank_starts_warm(place: StandbyContext) -> None:
    """Self-checks, then processes; the swapped-in node's rank runs in one of them."""
    pool = await place.park(Pool(), S1)
    save_pool(place.controller.state_dir, "here", pool)
    assert load_pool(place.controller.state_dir, "here") == pool
    assert pool.of(S1).health == "ok"
    row = await place.row(pool, S1)
    assert (row["state"], ready([row])) == ("free", f"parked for {place.one.name}")
    job = await place.controller.backend.replace_nodes(place.one, {N1: S1})
    report = await place.controller.backend.start_job(job, "", "R-1")
    assert (report.warm, report.cold) == ((0,), {})
    row = await place.row(pool, S1)
    assert row["state"] == f"in {place.one.name}"
    assert ready([row]) == f"cold, was parked for {place.one.name}"


async def test_a_standby_that_fails_its_self_checks_is_not_parked(place: StandbyContext) -> None:
    """And one that was parked is parked no more once a later test fails."""
    pool = await place.park(Pool(), S1)
    (place.folder / "code").write_text("2")
    pool = await place.park(pool, S2)
    assert pool.of(S2).parked_for is None
    assert "not parked, its self-checks say" in pool.of(S2).note
    pool = await check_standbys(place.controller, pool, [S1, S2])
    assert pool.of(S1).parked_for is None
    assert place.pids(S1) == []


async def test_a_standby_nobody_can_ask_is_not_called_parked(place: StandbyContext) -> None:
    """Neither when parking, nor later in the list."""
    pool = await place.park(Pool(), S3)
    assert "not parked" in pool.of(S3).note
    claimed = replace(pool.of(S3), parked_for=place.one.name, parked_at="2026-01-01T00:00:00Z")
    row = await place.row(pool.with_known([claimed]), S3)
    assert ready([row]) == f"parked for {place.one.name}? no answer"


async def test_the_regular_test_parks_anew_what_is_gone(place: StandbyContext) -> None:
    """Killed, or ended with the node: the next test puts it back and says nothing is wrong."""
    pool = await place.park(Pool(), S1, S2)
    kept, killed = place.pids(S1), place.pids(S2)
    os.kill(killed[0], signal.SIGKILL)
    row = await place.row(pool, S2)
    assert ready([row]) == f"cold, was parked for {place.one.name}"
    pool = await check_standbys(place.controller, pool, [S1, S2])
    assert place.pids(S1) == kept
    assert len(place.pids(S2)) == 1
    assert place.pids(S2) != killed
    assert (pool.of(S1).note, pool.of(S2).note) == ("", "")


async def test_processes_wait_beside_ranks_for_the_next_start(place: StandbyContext) -> None:
    """On the job's own node; they go when the node leaves the job."""
    await place.controller.backend.start_job(place.one, "", "R-1")
    pool = await place.park(Pool(), N1)
    assert pool.of(N1).beside
    assert (await place.row(pool, N1))["state"] == f"in {place.one.name}"
    await place.controller.backend.stop_job(place.one, 2.0)
    assert (await place.controller.backend.start_job(place.one, "", "R-2")).warm == (0,)
    pool = await check_standbys(place.controller, pool, [N1])
    assert len(place.pids(N1)) == 1
    moved = await place.controller.backend.replace_nodes(place.one, {N1: S2})
    place.controller.jobs[place.one.name] = moved  # type: ignore[index]  # a dict behind the mapping
    pool = await check_standbys(place.controller, pool, [N1])
    assert (pool.of(N1).parked_for, place.pids(N1)) == (None, [])
    await place.controller.backend.stop_job(replace(moved, nodes=(N1,)), 0.2)


async def test_a_start_of_another_job_ends_what_waits_for_this_one(place: StandbyContext) -> None:
    """It would keep GPU memory from the ranks; the other job's end file says what happened."""
    pool = await place.park(Pool(), S1)
    job = await place.controller.backend.replace_nodes(place.two, {N2: S1})
    report = await place.controller.backend.start_job(job, "", "R-1")
    assert (report.started, report.warm) == ((0,), ())
    assert place.pids(S1) == []
    assert "it ended by signal 15" in str((await place.row(pool, S1))["note"])


async def test_nothing_is_parked_on_another_jobs_node_or_under_a_scheduler(
    place: StandbyContext,
) -> None:
    """The reason is one sentence, before anything is done."""
    with pytest.raises(UsageError, match=f"{N2} carries ranks of two"):
        await place.park(Pool(), N2)
    place.controller.backend.name = "slurm"  # type: ignore[misc]  # the one thing asked of it
    with pytest.raises(UsageError, match="steps of its own"):
        await place.park(Pool(), S1)
    with pytest.raises(UsageError, match="there are no standbys to make ready"):
        await park_standbys(place.controller, Pool(), (), place.one, 60.0)


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        (Setup(python="3.11.7", torch="2.13.0"), Setup(python="3.11.7", torch="2.13.0"), ""),
        (Setup(python="3.11.2"), Setup(python="3.11.7"), "Python 3.11.2, the job has 3.11.7"),
        (Setup(torch="2.12.0"), Setup(torch="2.13.0"), "torch 2.12.0, the job has 2.13.0"),
        (Setup(), Setup(torch="2.13.0"), "torch is absent, the job has 2.13.0"),
        (Setup(problem="no directory"), Setup(), "no directory"),
    ],
)
def test_other_versions_than_the_jobs_are_told(have: Setup, want: Setup, expected: str) -> None:
    """A rank with another torch would fail at the first collective, or worse, not fail."""
    assert _difference(have, want) == expected
