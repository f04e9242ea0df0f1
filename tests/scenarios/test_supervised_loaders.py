"""A whole job that reads through supervised loaders: what dies, what comes back elsewhere."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from brctl.lab.cluster import Lab
from brctl.lab.faults import BATCHES_BEHIND
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.fault import FaultClass
from brctl.training.model import BATCH
from tests.scenarios.site import Site, open_site, scenario_lab
from tests.timeouts import TIMEOUT_S

pytestmark = [
    pytest.mark.system, pytest.mark.torch, pytest.mark.netns, pytest.mark.ssh, pytest.mark.deep,
]  # fmt: skip
SPEC = LabSpec(
    nodes=4, standbys=0, gpus=2, isolation=Isolation.NETNS, on_loader="shadow", stall_after_s=10.0
)
CULPRIT, RANK = "n3", 2
COMPARED = 60
"""More steps than `job data` needs of every rank."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with scenario_lab(SPEC, tmp_path_factory) as lab:
        yield lab


@pytest.fixture
async def site(lab: Lab, tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(lab, tmp_path) as site:
        await site.controller.backend.stop_job(site.job, 0.2)
        forget_checkpoints(Path(site.job.checkpoint_dir))
        await site.train()
        yield site


def forget_checkpoints(directory: Path) -> None:
    """Steps are counted anew: those of the job before would be the newest."""
    for saved in directory.glob("step-*"):
        shutil.rmtree(saved)


def brctl(lab: Lab, *words: str) -> Any:
    """The document of a command of the lab's job, whatever its exit code says."""
    done = subprocess.run(
        [sys.executable, "-m", "brctl", "-o", "json", "--context", "lab", *words],
        env={**os.environ, "BRCTL_LAB_DIR": str(lab.paths.root)},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return json.loads(done.stdout)


async def restarted(site: Site, checkpoint: str, name: str) -> None:
    """Stop all ranks and start them from a checkpoint; returns some steps after it."""
    await site.controller.backend.stop_job(site.job, 0.2)
    before = len(site.steps())
    started = await site.controller.backend.start_job(site.job, checkpoint, name)
    assert not started.failed, dict(started.failed)
    deadline = monotonic() + TIMEOUT_S
    while len(site.steps()) < before + BATCHES_BEHIND:
        assert monotonic() < deadline, f"no steps after {checkpoint}"
        await asyncio.sleep(0.1)


async def test_a_killed_loader_costs_the_job_neither_a_step_nor_a_sample(site: Site) -> None:
    """Its shadow goes on; nobody is named, and every rank's ledger has every step once."""
    await site.break_node("loader-killed", CULPRIT)
    await site.steps_until(site.last_step() + COMPARED)
    log = Path(site.job.log_dir) / f"rank-{RANK:05d}.log"
    assert "batches made anew and found equal" in log.read_text()
    found = await site.diagnose_once()
    assert found.verdicts[0].fault in (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
    assert site.named() == set()
    data = brctl(site.lab, "job", "data")
    assert data["steps"] >= 50
    assert [row["rank"] for row in data["ranks"]] == [0, 1, 2, 3]
    ledger = Path(site.job.progress_dir) / f"ledger-{RANK:05d}.ndjson"
    rows = [json.loads(line) for line in ledger.read_text().split("\n")[:-1]]
    assert [row["position"] for row in rows] == [row["step"] for row in rows]
    assert len({row["digest"] for row in rows}) == len(rows)


async def test_an_old_loader_state_is_told_before_and_after_and_left_by_an_older_checkpoint(
    site: Site,
) -> None:
    """The warning has the number of samples; from the checkpoint before all is as it was."""
    await site.steps_until(2 * SPEC.checkpoint_every + 1)
    good = Path(brctl(site.lab, "ckpt", "latest")["latest"]["path"])
    # The job keeps four, and trains on while somebody looks.
    put_aside = shutil.copytree(good, site.lab.paths.work / "put-aside" / good.name)
    await site.break_node("loader-rewound", CULPRIT)
    # A rank that has begun its step looks for faults at the next one.
    begun, every = site.last_step() + 2, SPEC.checkpoint_every
    await site.steps_until((begun // every + 1) * every + BATCHES_BEHIND)
    await site.controller.backend.stop_job(site.job, 0.2)
    seen = brctl(site.lab, "ckpt", "latest")
    repeated = BATCHES_BEHIND * BATCH
    assert seen["latest"]["loader"].endswith(f"a restart from it repeats {repeated}")
    await restarted(site, seen["latest"]["path"], "rewound")
    data = brctl(site.lab, "job", "data")
    (wrong,) = [row for row in data["replays"] if row["differs_at_step"] is not None]
    assert (wrong["rank"], wrong["batches_repeated"]) == (RANK, BATCHES_BEHIND)
    assert wrong["samples"] == repeated
    main = (await site.verdict()).verdicts[0]
    assert main.fault is FaultClass.DATA_LOADER
    assert site.named() == set()
    assert any("go back to a checkpoint before step" in e.text for e in main.evidence)
    site.lab.heal()
    await restarted(site, str(put_aside), "back")
    replays = brctl(site.lab, "job", "data")["replays"]
    assert [row["differs_at_step"] for row in replays] == [None] * 4
