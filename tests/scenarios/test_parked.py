"""A real torch job loses a node, and its ranks go on in processes that were parked for them.

One lab of two nodes and a standby with namespaces and OpenSSH of their own.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.ranks import commands as rank_commands
from brctl.backends.ranks.parking import Parking
from brctl.engine.standby.care import parking
from brctl.lab.cluster import Lab
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.jobs.job import Job
from tests.scenarios.site import Site, open_site, scenario_lab

pytestmark = [pytest.mark.system, pytest.mark.torch, pytest.mark.netns, pytest.mark.ssh]
SPEC = LabSpec(nodes=2, standbys=1, gpus=1, isolation=Isolation.NETNS)
STANDBY = "n3"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is gone afterwards, with everything that was parked in it."""
    with scenario_lab(SPEC, tmp_path_factory) as lab:
        yield lab


@pytest.fixture
async def site(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """The job in training on its own nodes."""
    # On a machine with twenty processes for each core, a process that answers may take its time.
    monkeypatch.setattr(rank_commands, "ANSWER_S", rank_commands.START_DEADLINE_S - 10.0)
    async with open_site(lab, tmp_path) as site:
        site.job = await site.controller.backend.replace_nodes(site.job, {STANDBY: "n2"})
        await site.train()
        yield site


async def park(site: Site, *nodes: str) -> Parking:
    door = parking(site.controller)
    found = await door.park(site.job, nodes, 600.0)
    assert all(each.is_whole for each in found.values()), found
    return door


async def swapped(site: Site) -> Job:
    """The job on its first node and the standby, nothing of it running."""
    await site.controller.backend.stop_job(site.job, 2.0)
    return await site.controller.backend.replace_nodes(site.job, {"n2": STANDBY})


async def test_a_lost_node_costs_no_cold_start(site: Site) -> None:
    """The parked standby and the process beside the surviving rank carry the job past its step."""
    await park(site, STANDBY, "n1")
    state = await site.controller.backend.job_status(site.job)
    assert state.alive == (0, 1)
    await site.break_node("node-dead", "n2")
    job = await swapped(site)
    (Path(job.progress_dir) / "steps.ndjson").unlink()
    report = await site.controller.backend.start_job(job, "", "after-the-loss")
    assert (report.started, report.warm, report.cold) == ((0, 1), (0, 1), {})
    await site.steps_until(1)
    assert await is_whole(site, job)


async def is_whole(site: Site, job: Job) -> bool:
    """Both ranks live, of the one start, and nobody is parked any more."""
    state = await site.controller.backend.job_status(job)
    found = await parking(site.controller).list_parked(job, list(job.nodes))
    parked = sum(each.ready or 0 for each in found.values())
    return state.alive == (0, 1) and state.incarnations == {"after-the-loss"} and parked == 0


@pytest.mark.deep
async def test_a_standby_that_started_anew_is_cold_and_says_so(site: Site) -> None:
    """Its record outlived the power loss, its process did not."""
    door = await park(site, STANDBY)
    await site.break_node("node-dead", STANDBY)
    silent = (await door.list_parked(site.job, [STANDBY]))[STANDBY]
    assert silent.ready is None
    await asyncio.to_thread(site.lab.heal)
    assert (await door.list_parked(site.job, [STANDBY]))[STANDBY].ready == 0
    job = await swapped(site)
    report = await site.controller.backend.start_job(job, "", "after-the-reboot")
    assert (report.started, report.warm) == ((0, 1), ())
    assert "the node started anew" in report.cold[STANDBY]
    await site.controller.backend.stop_job(replace(job, nodes=("n1", STANDBY)), 0.2)
