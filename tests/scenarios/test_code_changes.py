"""A real job on a lab changes its code, takes a bad change back, and finds a node by replaying.

Real torch ranks over real SSH; the nodes share this machine's network and disk.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml

from brctl.engine.code_updates import Wish, record_change
from brctl.engine.diagnose import keep, look
from brctl.engine.ground import WorldGround
from brctl.engine.planning import prepare
from brctl.engine.proposing import propose
from brctl.engine.remediate import RunView, start_run, view
from brctl.engine.replay import COMMAND_VARIABLE
from brctl.engine.run_files import Request
from brctl.engine.wiring import open_world
from brctl.journal.follow import follow
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.spec import Isolation, LabSpec
from brctl.library.config import load_settings
from brctl.library.playbooks import load_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.fault import FaultClass
from brctl.model.playbook import Json
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import confirmation_text

pytestmark = [pytest.mark.system, pytest.mark.torch, pytest.mark.ssh]
SPEC = LabSpec(nodes=4, standbys=1, gpus=1, isolation=Isolation.NONE, checkpoint_every=5)
PATIENCE_S = 90.0
TRAIN = """\
print("this is release NAME", flush=True)
import runpy
runpy.run_module("brctl.training", run_name="__main__", alter_sys=True)
"""
BROKEN = 'print("this is release NAME", flush=True)\nraise TypeError("loss() takes 2 arguments")\n'
# The job reduced to a moment of whole-number work; the node's fault is the one its ranks show.
REPLAY = """\
import json, os
faults = json.load(open(os.environ["BRCTL_LAB_FAULTS"]))
total = sum(n * n for n in range(10000))
print(json.dumps({"loss": float("nan") if faults.get("nan") else 1.0, "digest": str(total)}))
"""


class Site:
    """The lab's job with releases of its code, and the engine that works on it."""

    def __init__(self, lab: Lab, home: Path) -> None:
        self.lab, self.home = lab, home
        self.releases = lab.paths.root / "code"
        self.progress = lab.paths.work / "progress" / "steps.ndjson"
        self.ground: WorldGround

    def write_job(self, nodes: int) -> None:
        """The job of the lab on its first nodes, started from a release."""
        document = yaml.safe_load(self.lab.paths.job.read_text())
        document["launch"][1:3] = ["train.py"]
        document["code"] = {"releases": str(self.releases), "start": "r1"}
        document["nodes"] = [f"n{i}" for i in range(1, nodes + 1)]
        document["parallel"] = {"dp": nodes}
        program = self.lab.paths.root / "replay.py"
        program.write_text(REPLAY)
        document["environment"][COMMAND_VARIABLE] = f"{document['launch'][0]} {program}"
        del document["workdir"]
        self.lab.paths.job.write_text(yaml.safe_dump(document))
        self.release("r1")

    def release(self, name: str, text: str = TRAIN) -> None:
        (self.releases / name).mkdir(parents=True, exist_ok=True)
        (self.releases / name / "train.py").write_text(text.replace("NAME", name))

    async def wish(self, version: str, *, urgent: bool) -> str:
        job = await self.ground.job("lab-train")
        wish = Wish(version, f"try {version}", "ann", urgent)
        return (await record_change(self.ground, job, wish))[0].id

    async def play(self, name: str, verdict: Verdict | None = None, **values: Json) -> RunView:
        """Run a playbook to its end as `fix` does, with the words typed that it asks for."""
        playbook = load_playbook(shipped_dir("playbooks") / f"{name}.yaml")
        given: Mapping[str, Json] = {"steps": 2, "grace": "5s", "within": "2m", **values}
        known = {key: value for key, value in given.items() if key in playbook.inputs}
        if verdict is None:
            known["job"] = "lab-train"
        prepared = await prepare(self.ground, playbook, verdict, known)
        typed = confirmation_text(playbook, len(prepared.plan.nodes), "lab-train")
        request = Request("ann", "lab", str(self.lab.paths.config), yes=True, typed=typed)
        run_dir = await start_run(self.ground, prepared, request)
        async for _ in follow(run_dir):
            pass
        return view(run_dir)

    def last_step(self) -> int:
        lines = self.progress.read_text().split("\n")[:-1] if self.progress.exists() else []
        return int(json.loads(lines[-1])["step"]) if lines else -1

    async def steps_until(self, step: int) -> None:
        limit_s = monotonic() + PATIENCE_S
        while self.last_step() < step:
            assert monotonic() < limit_s, f"step {step} does not come: {self.logs()}"
            await asyncio.sleep(0.1)

    def logs(self) -> dict[int, str]:
        files = sorted((self.lab.paths.work / "logs").glob("rank-*.log"))
        return {int(path.stem[5:]): path.read_text() for path in files}

    def said(self) -> set[str]:
        """Which release the ranks say they are."""
        return {
            text.split("\n")[0].removeprefix("this is release ") for text in self.logs().values()
        }

    def changes(self) -> list[tuple[str, str, str]]:
        record = self.ground.code_ledger("lab-train").read()
        return [(c.version, str(c.state), c.state_by) for c in record.changes]


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


async def open_site(lab: Lab, home: Path, nodes: int) -> AsyncIterator[Site]:
    """The job in training from release r1, with at least one whole checkpoint, and no past."""
    site = Site(lab, home)
    site.write_job(nodes)
    settings = load_settings({"HOME": str(home)}, config=lab.paths.config)
    async with open_world(settings) as world:
        site.ground = WorldGround(world)
        assert (await site.play("start-job")).state == "ok"
        await site.steps_until(7)
        yield site
        await world.backend.stop_job(await site.ground.job("lab-train"), 0.2)
    for path in site.progress.parent.iterdir():
        path.unlink()


@pytest.fixture
async def pair(lab: Lab, tmp_path: Path) -> AsyncIterator[Site]:
    """Two ranks are enough to change code."""
    async for site in open_site(lab, tmp_path, 2):
        yield site


@pytest.fixture
async def four(lab: Lab, tmp_path: Path) -> AsyncIterator[Site]:
    """The smallest job that two rounds of groups can be made of."""
    async for site in open_site(lab, tmp_path, 4):
        yield site


def out(run: RunView, step: str) -> Mapping[str, Any]:
    return run.record.steps[step].out


async def test_an_urgent_change_is_applied_in_place(pair: Site) -> None:
    """Same nodes, new code, and training passes the step it had."""
    before, old_step = await pair.ground.job("lab-train"), pair.last_step()
    pair.release("r2")
    await pair.wish("r2", urgent=True)
    run = await pair.play("hot-update", only="urgent")
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    await pair.steps_until(old_step + 1)
    assert pair.said() == {"r2"}
    assert (await pair.ground.job("lab-train")).nodes == before.nodes
    assert pair.changes() == [("r2", "applied", run.run)]
    record = pair.ground.code_ledger("lab-train").read()
    start = record.start_of(record.changes[0])
    assert start is not None
    assert start.checkpoint == out(run, "choose")["path"]


async def test_a_lazy_change_comes_with_the_next_restart_and_a_bad_one_is_taken_back(
    pair: Site,
) -> None:
    """Nothing happens until a failure; then an exception of newer code leads back to it."""
    version = f"r{len(pair.changes()) + 2}"
    pair.release(version)
    await pair.wish(version, urgent=False)
    assert pair.said() != {version}
    run = await pair.play("restart-in-place")
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    assert pair.said() == {version}
    old_step = pair.last_step()

    pair.release("bad", BROKEN)
    await pair.wish("bad", urgent=True)
    assert (await pair.play("hot-update")).state == "needs_human"
    job = await pair.ground.job("lab-train")
    found = await look(pair.ground._world, job, job.nodes)
    verdict = found.verdicts[0]
    assert verdict.fault is FaultClass.USER_CODE, found
    keep(pair.ground._world, found)
    state_dir, now = pair.ground.state_dir, pair.ground.now()
    assert propose(state_dir, "lab", verdict, now).playbook == "code-rollback"
    run = await pair.play("code-rollback", verdict)
    assert run.state == "ok", (run.record.failed_error, pair.logs())
    await pair.steps_until(old_step + 1)
    assert pair.said() == {version}
    assert pair.changes()[-1] == ("bad", "rolled-back", run.run)
    assert "bad" not in {c[0] for c in pair.changes() if c[1] == "applied"}


async def test_replay_convicts_the_node_that_computes_wrongly_and_swaps_it(four: Site) -> None:
    """Its row and its column of groups fail; the standby takes its rank and the loss is back."""
    old_step = four.last_step()
    await asyncio.to_thread(four.lab.break_node, "rank-nan", "n3")
    run = await four.play("replay")
    assert run.state == "ok", (run.record.failed_error, four.logs())
    assert out(run, "replay") == {"suspects": ["n3"], "undecided": []}
    assert (await four.ground.job("lab-train")).nodes == ("n1", "n2", "n5", "n4")
    assert set(await four.ground.backend.cordons()) == {"n3"}
    await four.steps_until(old_step + 1)
    last = json.loads(four.progress.read_text().split("\n")[-2])
    assert last["loss"] is not None
