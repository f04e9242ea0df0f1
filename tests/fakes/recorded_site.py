"""A site in memory whose nodes answer what a lab's nodes answered, healthy or with one fault."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from brctl.backends.static.backend import StaticBackend
from brctl.engine.application.diagnose import DiagnosisScope, diagnose
from brctl.engine.controller.wiring import Controller
from brctl.engine.job.diagnose import Diagnosis
from brctl.library.config import Settings, SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job import Job
from brctl.model.sweeps.report import CheckResult
from tests.bench.verdicts.answers import changed_by, healthy
from tests.fakes.transport import FakeTransport, answered

BEGAN = datetime(2026, 7, 5, 3, 2, 9, 412000, tzinfo=UTC)
NODES = ("n1", "n2", "n3", "n4")
SICK, SILENT = "n3", "n4"
_HEALTHY_RANK = {
    "alive": True, "process_state": "R", "step": 100, "phase": "forward",
    "phase_age_s": 0.1, "progress_age_s": 0.2, "loss_finite": True,
}  # fmt: skip


class RecordedSite:
    """Nodes n1 to n4 with a job on them; n3 has the fault, n4 may be silent.

    Attributes:
        words: What the sick node's rank said last.
        user: Who logs in on the nodes.
    """

    def __init__(
        self,
        state_dir: Path,
        fault: str = "",
        *,
        silent: bool = False,
        words: str = "",
        user: str = "",
    ) -> None:
        self.job = Job(
            "pretrain", NODES, 1, (("dp", 4),), ("train",), PurePosixPath("/ckpt"),
            PurePosixPath("/logs"), PurePosixPath("/progress"),
        )  # fmt: skip
        self._fault, self._silent, self._words = fault, silent, words
        self._ticks = 0
        self.transport = FakeTransport(self._answer)
        inventory = Inventory({name: Node(name, f"10.0.0.{name[1:]}", user=user) for name in NODES})
        settings = Settings("here", (), (), "static", state_dir, SshSettings())
        backend = StaticBackend(state_dir / "static.json", self.transport, inventory, 4)
        self.controller = Controller(
            settings, inventory, {"pretrain": self.job}, self.transport, backend, self._now
        )

    def diagnose(self) -> Diagnosis:
        """One `dx` of the job, recorded and kept as usual."""
        scope = DiagnosisScope(self.job, NODES)
        return asyncio.run(diagnose(self.controller, scope, lambda _line: None))

    def _now(self) -> datetime:
        """Every reading is another one, as of a real clock."""
        self._ticks += 1
        return BEGAN + timedelta(milliseconds=self._ticks)

    def _answer(self, node: Node, command: Command) -> CommandResult:
        if self._silent and node.name == SILENT:
            return CommandResult(node.name, Outcome.CONNECT_TIMED_OUT, None, b"", b"", 10.0, "late")
        found = dict(healthy())
        found |= changed_by(self._fault) if self._fault and node.name == SICK else {}
        lines = [{"type": "hello", "python": "3.9.2", "node": node.name, "login_s": 0.3}]
        lines += [self._line(node.name, check, found) for check in command.asks if check != "reach"]
        text = "".join(json.dumps(line) + "\n" for line in [*lines, {"type": "end"}])
        return replace(answered(node, text.encode()), seconds=0.5)

    def _line(self, node: str, check: str, found: Mapping[str, CheckResult]) -> dict[str, object]:
        rows: list[dict[str, object]] = []
        if check == "host.clock":
            rows = [
                {"name": "host.clock.unix_s", "subject": "", "value": BEGAN.timestamp()},
                {"name": "host.clock.synchronised", "subject": "", "value": True},
            ]
        elif check == "job.ranks":
            said = {**_HEALTHY_RANK, "last_words": self._words if node == SICK else "step 100"}
            rows = [
                {"name": f"job.rank.{key}", "subject": f"rank:{NODES.index(node)}", "value": value}
                for key, value in said.items()
            ]
        elif check == "fabric.tcp":
            rows = [{"name": "fabric.tcp.peers", "subject": "", "value": 0}]
        elif check in found:
            rows = [
                {"name": m.name, "subject": m.subject, "value": m.value}
                for m in found[check].measurements
            ]
        stdout = json.dumps({"measurements": rows, "notes": []})
        return {"type": "result", "check": check, "exit": 0, "seconds": 0.1, "stdout": stdout}
