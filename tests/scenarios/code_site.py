"""The lab's job with releases of its code, and the engine that works on it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from time import monotonic

import yaml

from brctl.actions.context import RunContext
from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.job.code_updates import CodeRequest, record_change
from brctl.engine.runs.context import run_context
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import start_run
from brctl.engine.runs.run_files import RunRequest
from brctl.engine.search.replay_runner import COMMAND_VARIABLE
from brctl.journal.follow import follow
from brctl.lab.cluster import Lab
from brctl.library.config import load_settings
from brctl.library.playbooks import load_playbook
from brctl.library.programs.preloaded import PreloadedProcess
from brctl.library.shipped import shipped_dir
from brctl.model.runs.playbook import Json
from brctl.model.verdict import Verdict
from brctl.playbook.approvals import confirmation_text
from brctl.playbook.run import Run
from tests.timeouts import TIMEOUT_S

TRAIN = """\
print("this is release NAME", flush=True)
import runpy
runpy.run_module("brctl.training", run_name="__main__", alter_sys=True)
"""
# The job reduced to a moment of whole-number work; the node's fault is the one its ranks show.
REPLAY = """\
import json, os
faults = json.load(open(os.environ["BRCTL_LAB_FAULTS"]))
total = sum(n * n for n in range(10000))
print(json.dumps({"loss": float("nan") if faults.get("nan") else 1.0, "digest": str(total)}))
"""


class CodeSite:
    """See the head of this file."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.releases = lab.paths.root / "code"
        self.progress = lab.paths.work / "progress" / "steps.ndjson"
        self.controller: Controller
        self.context: RunContext

    def write_job(self, nodes: int) -> None:
        """The job of the lab on its first nodes, started from a release."""
        document = yaml.safe_load(self.lab.paths.job.read_text())
        if "workdir" in document:
            document["launch"][1:3] = ["train.py"]
            del document["workdir"]
        document["code"] = {"releases": str(self.releases), "start": "r1"}
        document["nodes"] = [f"n{i}" for i in range(1, nodes + 1)]
        document["parallel"] = {"dp": nodes}
        program = self.lab.paths.root / "replay.py"
        program.write_text(REPLAY)
        document["environment"][COMMAND_VARIABLE] = f"{document['launch'][0]} {program}"
        self.lab.paths.job.write_text(yaml.safe_dump(document))
        self.release("r1")

    def release(self, name: str, text: str = TRAIN) -> None:
        (self.releases / name).mkdir(parents=True, exist_ok=True)
        (self.releases / name / "train.py").write_text(text.replace("NAME", name))

    async def request(self, version: str, *, urgent: bool) -> str:
        job = await self.context.jobs.get("lab-train")
        request = CodeRequest(version, f"try {version}", "ann", urgent)
        return (await record_change(self.context, job, request))[0].id

    async def play(
        self,
        name: str,
        verdict: Verdict | None = None,
        preloaded: PreloadedProcess | None = None,
        **values: Json,
    ) -> Run:
        """Run a playbook to its end as `fix` does, with the words typed that it asks for."""
        playbook = load_playbook(shipped_dir("playbooks") / f"{name}.yaml")
        arguments: Mapping[str, Json] = {"steps": 2, "grace": "5s", "within": "2m", **values}
        known = {key: value for key, value in arguments.items() if key in playbook.inputs}
        if verdict is None:
            known["job"] = "lab-train"
        prepared = await prepare(self.context, playbook, verdict, known)
        typed = confirmation_text(playbook, len(prepared.plan.nodes), "lab-train")
        request = RunRequest("ann", "lab", str(self.lab.paths.config), yes=True, typed=typed)
        run_dir = await start_run(self.context, prepared, request, preloaded=preloaded)
        async for _ in follow(run_dir):
            pass
        return read_run(run_dir)

    def last_step(self) -> int:
        steps = self.steps()
        return steps[-1][1] if steps else -1

    def steps(self) -> list[tuple[float, int]]:
        """Every step on record with the time of its end; the last line may be half written."""
        lines = self.progress.read_text().split("\n")[:-1] if self.progress.exists() else []
        return [(float(row["at"]), int(row["step"])) for row in map(json.loads, lines)]

    async def steps_until(self, step: int) -> None:
        limit_s = monotonic() + TIMEOUT_S
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
        record = self.context.jobs.code_ledger("lab-train").read()
        return [(c.version, str(c.state), c.state_by) for c in record.changes]


async def open_site(lab: Lab, home: Path, nodes: int) -> AsyncIterator[CodeSite]:
    """The job in training from release r1, with at least one whole checkpoint, and no past."""
    site = CodeSite(lab)
    site.write_job(nodes)
    settings = load_settings({"HOME": str(home)}, config=lab.paths.config)
    async with open_controller(settings) as controller:
        site.controller, site.context = controller, run_context(controller)
        assert (await site.play("start-job")).state == "ok"
        await site.steps_until(7)
        yield site
        await controller.backend.stop_job(await site.context.jobs.get("lab-train"), 0.2)
    for path in site.progress.parent.iterdir():
        path.unlink()
