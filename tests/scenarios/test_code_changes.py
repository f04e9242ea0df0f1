"""A real job on a lab changes its code, takes a bad change back, and finds a node by replaying.

Real torch ranks over real SSH; the nodes share this machine's network and disk.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from brctl.engine.job.diagnose import diagnose_once, keep
from brctl.engine.runs.propose import propose
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.model.fault import FaultClass
from brctl.playbook.run import Run
from tests.scenarios.code_site import CodeSite, open_site

pytestmark = [pytest.mark.system, pytest.mark.torch, pytest.mark.ssh]
SPEC = LabSpec(nodes=4, standbys=1, gpus=1, isolation=Isolation.NONE, checkpoint_every=5)
BROKEN = 'print("this is release NAME", flush=True)\nraise TypeError("loss() takes 2 arguments")\n'


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        lab = up(SPEC, tmp_path_factory.mktemp("code") / "lab")
    record = lab.record
    lab.adopt_children()
    yield lab
    lab.down()
    assert leftovers(record) == ()


@pytest.fixture
async def pair(lab: Lab, tmp_path: Path) -> AsyncIterator[CodeSite]:
    """Two ranks are enough to change code."""
    async for site in open_site(lab, tmp_path, 2):
        yield site


@pytest.fixture
async def four(lab: Lab, tmp_path: Path) -> AsyncIterator[CodeSite]:
    """The smallest job that two rounds of groups can be made of."""
    async for site in open_site(lab, tmp_path, 4):
        yield site


def out(run: Run, step: str) -> Mapping[str, Any]:
    return run.record.steps[step].out


async def test_an_urgent_change_is_applied_in_place(pair: CodeSite) -> None:
    """Same nodes, new code, and training passes the step it had."""
    before, old_step = await pair.context.jobs.get("lab-train"), pair.last_step()
    pair.release("r2")
    await pair.request("r2", urgent=True)
    run = await pair.play("hot-update", only="urgent")
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    await pair.steps_until(old_step + 1)
    assert pair.said() == {"r2"}
    assert (await pair.context.jobs.get("lab-train")).nodes == before.nodes
    assert pair.changes() == [("r2", "applied", run.name)]
    record = pair.context.jobs.code_ledger("lab-train").read()
    start = record.start_of(record.changes[0])
    assert start is not None
    assert start.checkpoint == out(run, "choose")["path"]


@pytest.mark.deep
async def test_a_lazy_change_comes_with_the_next_restart_and_a_bad_one_is_taken_back(
    pair: CodeSite,
) -> None:
    """Nothing happens until a failure; then an exception of newer code leads back to it."""
    version = f"r{len(pair.changes()) + 2}"
    pair.release(version)
    await pair.request(version, urgent=False)
    assert pair.said() != {version}
    run = await pair.play("restart-in-place")
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    assert pair.said() == {version}
    old_step = pair.last_step()

    pair.release("bad", BROKEN)
    await pair.request("bad", urgent=True)
    assert (await pair.play("hot-update")).state == "needs_human"
    job = await pair.context.jobs.get("lab-train")
    found = await diagnose_once(pair.controller, job, job.nodes)
    verdict = found.verdicts[0]
    assert verdict.fault is FaultClass.USER_CODE, found
    keep(pair.controller, found)
    state_dir, now = pair.context.state_dir, pair.context.clock.now()
    assert propose(state_dir, "lab", verdict, now).playbook == "code-rollback"
    run = await pair.play("code-rollback", verdict)
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    await pair.steps_until(old_step + 1)
    assert pair.said() == {version}
    assert pair.changes()[-1] == ("bad", "rolled-back", run.name)
    assert "bad" not in {c[0] for c in pair.changes() if c[1] == "applied"}


@pytest.mark.deep
async def test_replay_convicts_the_node_that_computes_wrongly_and_swaps_it(four: CodeSite) -> None:
    """Its row and its column of groups fail; the standby takes its rank and the loss is back."""
    old_step = four.last_step()
    await asyncio.to_thread(four.lab.break_node, "rank-nan", "n3")
    run = await four.play("replay")
    assert run.state == "ok", (run.record.failed_error, four.logs())
    assert out(run, "replay") == {"suspects": ["n3"], "undecided": []}
    assert (await four.context.jobs.get("lab-train")).nodes == ("n1", "n2", "n5", "n4")
    assert set(await four.context.backend.cordons()) == {"n3"}
    await four.steps_until(old_step + 1)
    last = json.loads(four.progress.read_text().split("\n")[-2])
    assert last["loss"] is not None
