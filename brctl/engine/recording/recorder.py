"""Record a diagnosis while it looks: its transport, its clock and its past are wrapped."""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import zstandard

from brctl import __version__
from brctl.engine.controller.past import Past
from brctl.engine.controller.wiring import Controller
from brctl.engine.job.diagnose import Diagnosis
from brctl.engine.job.state_past import past_of
from brctl.engine.recording.look import Look, TriedBefore, answer_of, encode
from brctl.evidence.operators import is_number
from brctl.fanout.contract import Expecting, Transport
from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_look import JobLook
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.report import NodeReport
from brctl.model.verdict import Verdict
from brctl.playbook.tree import IncidentHistory

_LEVEL = 1
"""Answers repeat the same words; more effort would cost a diagnosis seconds."""

_NODE_CLOCK = "host.clock.unix_s"

SITE_FILES = ("checks/*/*/check.yaml", "checks/*/*/probe.py", "rules.d/*.yaml")
SITE_LIMIT, SITE_FILE_BYTES = 2_000, 256 << 10
BASELINE = "baseline.yaml"


class Recorder:
    """What one diagnosis sees; `controller` is the one to look with.

    Answers are packed as they come: a thousand nodes answer 200 MB.
    """

    def __init__(self, controller: Controller) -> None:
        self._site = controller
        self._clock: list[datetime] = []
        self._packer = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        self._packed: list[bytes] = []
        self._past = _RecordingPast(past_of(controller))
        self.controller = replace(
            controller,
            transport=_RecordingTransport(controller.transport, self),
            now=self._now,
            past=self._past,
        )

    def add(self, command: Command, answer: CommandResult) -> CommandResult:
        """Keep an answer; it carries from now on when it came."""
        came_at = self._site.now()
        line = encode(answer_of(asks_of(command), answer, came_at)) + b"\n"
        self._packed.append(self._packer.compress(line))
        return replace(answer, came_at=came_at)

    def answers(self) -> bytes:
        """All answers, packed; nothing can be added afterwards."""
        return b"".join([*self._packed, self._packer.flush()])

    def look(
        self,
        found: Diagnosis,
        job: Job | None,
        nodes: tuple[str, ...],
        level: int,
        heavy: tuple[str, ...] = (),
    ) -> Look:
        """Everything else."""
        site, past = self._site, self._past
        return Look(
            id=found.sweep.id,
            made_by=__version__,
            context=site.settings.context,
            level=level,
            heavy=heavy,
            fanout=site.settings.ssh.fanout,
            gateways=site.settings.ssh.gateways,
            nodes=nodes,
            job=job,
            inventory=site.inventory,
            scheduler=past.name,
            clock=tuple(self._clock),
            before={name: past.before[name] for name in nodes if name in past.before},
            against=past.standing,
            job_look=past.job_look,
            schedulers=tuple(past.schedulers),
            tried=tuple(past.tried),
            site=site_files(site.settings.library_dirs, site.settings.baseline),
            verdicts=found.verdicts,
            clock_ahead_s=dict(_clocks(node.report for node in found.sweep.nodes)),
            nccl_ras=site.settings.nccl_ras,
            versions={"python": platform.python_version(), "zstandard": zstandard.__version__},
        )

    def _now(self) -> datetime:
        self._clock.append(self._site.now())
        return self._clock[-1]


def _clocks(reports: Iterable[NodeReport]) -> Iterator[tuple[str, float]]:
    for report in reports:
        for one in (m for result in report.results for m in result.measurements):
            if one.name == _NODE_CLOCK and is_number(one.value) and report.received_at:
                yield report.node, round(one.value - report.received_at.timestamp(), 3)


def asks_of(command: Command) -> tuple[str, ...]:
    """What a command wants to know; one that does not say is known by what it is."""
    if command.asks:
        return command.asks
    digest = hashlib.sha256("\0".join(command.argv).encode() + b"\0" + command.stdin)
    return (f"sha256:{digest.hexdigest()}",)


def site_files(libraries: tuple[Path, ...], baseline: Path | None) -> dict[str, str]:
    """A site's own rules, by path; those of a later folder replace an earlier one's."""
    found: dict[str, str] = {}
    for folder in libraries:
        for pattern in SITE_FILES:
            for path in sorted(folder.glob(pattern))[:SITE_LIMIT]:
                found[str(path.relative_to(folder))] = _text(path)
    if baseline is not None:
        found[BASELINE] = _text(baseline)
    return found


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(SITE_FILE_BYTES).decode("utf-8", "replace")


class _RecordingTransport:
    """See `Transport`; what comes back is kept."""

    def __init__(self, inner: Transport, recorder: Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def expect(self, count: int) -> None:
        if isinstance(self._inner, Expecting):
            self._inner.expect(count)

    async def run(self, node: Node, command: Command) -> CommandResult:
        return self._recorder.add(command, await self._inner.run(node, command))

    async def close(self) -> None:
        await self._inner.close()


class _RecordingPast:
    """See `Past`; what it says is kept."""

    def __init__(self, inner: Past) -> None:
        self._inner = inner
        self.before: Mapping[str, NodeReport] = {}
        self.standing: Mapping[str, tuple[str, str]] = {}
        self.job_look: JobLook | None = None
        self.schedulers: list[JobRunState | None] = []
        self.tried: list[TriedBefore] = []

    @property
    def name(self) -> str:
        return self._inner.name

    def reports(self) -> Mapping[str, NodeReport]:
        found = self._inner.reports()
        self.before = self.before or found
        return found

    def against(self, nodes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        self.standing = self._inner.against(nodes)
        return self.standing

    def look(self, job: Job) -> JobLook | None:
        self.job_look = self._inner.look(job)
        return self.job_look

    def history(self, verdict: Verdict, now: datetime) -> IncidentHistory:
        found = self._inner.history(verdict, now)
        self.tried.append(TriedBefore(verdict.fault.value, verdict.nodes, found))
        return found

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        self.schedulers.append(await self._inner.scheduler_view(job))
        return self.schedulers[-1]
