"""One lab for many scenarios: heal it, train, break one thing, look until a verdict stands."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic

import pytest

from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.job.diagnose import Diagnosis, diagnose_once
from brctl.lab import namespaces
from brctl.lab.cluster import Lab, leftovers, up
from brctl.lab.spec import LabSpec
from brctl.library.config import load_settings
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job
from brctl.model.verdict import Confidence, Verdict
from tests.timeouts import TIMEOUT_S

WARM_STEPS = 8
_SETTLED = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
_starts = iter(range(1_000_000))


@contextmanager
def scenario_lab(spec: LabSpec, factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of namespaces that is gone afterwards, with everything that ran in it."""
    why_not = namespaces.missing()
    if why_not is not None:
        pytest.skip(f"nodes with network namespaces cannot be made: {why_not}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(factory.mktemp("cache")))
        lab = up(spec, factory.mktemp("scenarios") / "lab")
    record = lab.record
    yield lab
    lab.down()
    assert leftovers(record) == ()


class Site:
    """The lab and an open controller of it."""

    def __init__(self, lab: Lab, controller: Controller) -> None:
        self.lab, self.controller = lab, controller
        self.job: Job = controller.job(None)
        self.seen: list[Verdict] = []

    async def train(self) -> None:
        """Heal everything and start the job afresh; returns when it makes steps."""
        await asyncio.to_thread(self.lab.heal)
        await self.controller.backend.stop_job(self.job, 0.2)
        await asyncio.to_thread(self._forget)
        started = await self.controller.backend.start_job(self.job, "", f"scenario-{next(_starts)}")
        assert not started.failed, dict(started.failed)
        await self.steps_until(WARM_STEPS)

    def _forget(self) -> None:
        """What the ranks of the scenario before wrote says nothing of this one."""
        for folder in (self.job.progress_dir, self.job.log_dir):
            for path in Path(folder).iterdir():
                # A starter that collects its last rank is just renaming what it wrote.
                path.unlink(missing_ok=True)

    async def steps_until(self, step: int) -> None:
        """Wait until rank 0 has finished a step."""
        deadline = monotonic() + TIMEOUT_S
        while self.last_step() < step:
            assert monotonic() < deadline, f"step {step} does not come: {self._words()}"
            await asyncio.sleep(0.1)

    async def break_node(self, fault: str, node: str) -> None:
        await asyncio.to_thread(self.lab.break_node, fault, node)

    async def diagnose_once(self) -> Diagnosis:
        """One look; every verdict of it is kept."""
        found = await diagnose_once(self.controller, self.job, self.job.nodes)
        self.seen += found.verdicts
        return found

    async def verdict(self) -> Diagnosis:
        """Look again and again, as a person does, until a verdict is at least likely."""
        deadline = monotonic() + TIMEOUT_S
        while True:
            found = await self.diagnose_once()
            main = found.verdicts[0]
            if main.fault not in _SETTLED and main.confidence is not Confidence.LOW:
                return found
            assert monotonic() < deadline, f"only {main.fault} {main.not_checked} {self._words()}"
            await asyncio.sleep(0.5)

    def last_step(self) -> int:
        return self.steps()[-1] if self.steps() else -1

    def steps(self) -> list[int]:
        """Every step that rank 0 has finished, in order; after a restart some come again."""
        return [int(row["step"]) for row in self._rows()]

    def mean_step_s(self, first: int, last: int) -> float:
        """What the steps from one number to another took on average; of no step it is 0."""
        times = [row["seconds"] for row in self._rows() if first <= row["step"] <= last]
        return sum(times) / len(times) if times else 0.0

    def _rows(self) -> list[dict[str, float]]:
        path = Path(self.job.progress_dir) / "steps.ndjson"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def named(self) -> set[str]:
        """Every node that any verdict of any look named."""
        return {node for verdict in self.seen for node in verdict.nodes}

    def _words(self) -> str:
        logs = sorted(Path(self.job.log_dir).glob("*.log"))
        return "\n".join(path.read_text(errors="replace")[-300:] for path in logs)


@asynccontextmanager
async def open_site(lab: Lab, home: Path) -> AsyncIterator[Site]:
    """The lab's job, with a controller for as long as the block."""
    settings = load_settings({"HOME": str(home)}, config=lab.paths.config)
    async with open_controller(settings) as controller:
        yield Site(lab, controller)
