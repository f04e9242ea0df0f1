"""Judge a recorded look again with today's code: no node, no network, no configuration."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from brctl.backends.static.backend import StaticBackend
from brctl.engine.controller.wiring import Controller
from brctl.engine.job.diagnose import Diagnosis, diagnose_once
from brctl.engine.job.look_store import keep_look
from brctl.engine.job.state_past import StatePast
from brctl.engine.recording.look import Look, RecordedAnswer, result_of
from brctl.engine.recording.recorder import BASELINE, SITE_FILES, asks_of
from brctl.engine.sweeps.sweep_store import save
from brctl.library.config import Settings, SshSettings
from brctl.library.durable_files import private_dir
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.playbook.tree import NO_HISTORY, IncidentHistory
from brctl.verdict.health import judge_node

NOT_RECORDED = "was not recorded"
STATE = "state"
"""Below the folder of a replay."""

_ANY_NAME = r"(?!\.\.?/)[^/\0]{1,200}"
_SITE_FILE = re.compile(
    "|".join(re.escape(path).replace(r"\*", _ANY_NAME) for path in (BASELINE, *SITE_FILES))
)


async def judge_again(
    look: Look, answers: Iterable[RecordedAnswer], rules: Path | None = None
) -> tuple[Verdict, ...]:
    """The verdicts today's code comes to; with other site rules where a folder is given."""
    with TemporaryDirectory(prefix="brctl-replay-") as folder:
        _, found = await look_again(look, answers, Path(folder), rules)
    return found.verdicts


async def look_again(
    look: Look, answers: Iterable[RecordedAnswer], folder: Path, rules: Path | None = None
) -> tuple[Controller, Diagnosis]:
    """The whole diagnosis again, with its state below a folder, and the site it looked at."""
    controller = _controller(look, answers, folder, rules)
    return controller, await diagnose_once(
        controller, look.job, look.nodes, level=look.level, heavy=look.heavy
    )


def _controller(
    look: Look, answers: Iterable[RecordedAnswer], folder: Path, rules: Path | None
) -> Controller:
    # A folder of its own: what the site no longer had at a later look must not judge that one.
    site = _unpack_site(look.site, Path(mkdtemp(prefix="site-", dir=private_dir(folder))))
    state = private_dir(folder / STATE)
    baseline = site / BASELINE
    settings = Settings(
        context=look.context,
        inventory=(),
        jobs=(),
        scheduler="static",
        state_dir=state,
        ssh=SshSettings(fanout=max(1, min(look.fanout, 1024)), gateways=look.gateways),
        library_dirs=(rules or site,),
        baseline=baseline if baseline.is_file() else None,
        nccl_ras=look.nccl_ras,
    )
    _remember(look, state)
    inventory, transport = look.inventory, ReplayTransport(answers)
    backend = StaticBackend(state / "static.json", transport, inventory, settings.ssh.fanout)
    jobs = {look.job.name: look.job} if look.job else {}
    clock = _Clock(look.clock)
    controller = Controller(settings, inventory, jobs, transport, backend, clock.now)
    return replace(controller, past=_ReplayedPast(controller, look))


def _unpack_site(site: Mapping[str, str], folder: Path) -> Path:
    """The site's own rules as files; names are taken from the recording, so only known ones."""
    for name, text in site.items():
        if not _SITE_FILE.fullmatch(name):
            raise ConfigError(f"the recording has a rule file in a strange place: {name[:80]!r}")
        try:
            private_dir((folder / name).parent)
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as exc:
            raise ConfigError(
                f"the recorded rule file {name[:80]!r} cannot be unpacked: {exc.strerror}"
            ) from exc
    return folder


def _remember(look: Look, state: Path) -> None:
    """What the nodes and the job had said before, where a diagnosis looks for it."""
    if look.before:
        nodes = tuple(judge_node(report, (), ()) for report in look.before.values())
        save(state, Sweep("S-0", 1, (), look.clock[0], 0.0, nodes))
    if look.job_look is not None and look.job is not None:
        keep_look(state, look.context, replace(look.job_look, job=look.job.name))


class _Clock:
    """The recorded readings in order; the last one stays."""

    def __init__(self, readings: Sequence[datetime]) -> None:
        self._rest = iter(readings)
        self._last = readings[-1]

    def now(self) -> datetime:
        return next(self._rest, self._last)


class ReplayTransport:
    """RecordedLook answers, each given once; what nobody recorded is not available."""

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self._left: dict[str, list[RecordedAnswer]] = {}
        for answer in answers:
            self._left.setdefault(answer.node, []).append(answer)

    async def run(self, node: Node, command: Command) -> CommandResult:
        answer = self._take(node.name, asks_of(command))
        if answer is None:
            return CommandResult(
                node.name, Outcome.NOT_AVAILABLE, None, b"", b"", 0.0, NOT_RECORDED
            )
        result = result_of(answer)
        missing = [name for name in command.asks if name not in answer.asks]
        if missing and result.outcome is Outcome.ANSWERED:
            result = replace(result, stdout=b"".join(_unrecorded(missing)) + result.stdout)
        return result

    async def close(self) -> None:
        """Nothing was opened."""

    def _take(self, node: str, asks: Sequence[str]) -> RecordedAnswer | None:
        """The oldest answer to the same question, or to most of it; it is not given again."""
        left = self._left.get(node, [])
        same = (answer for answer in left if answer.asks == tuple(asks))
        close = (answer for answer in left if _is_close(answer.asks, asks))
        found = next(same, None) or next(close, None)
        if found is not None:
            left.remove(found)
        return found


def _is_close(recorded: Sequence[str], asked: Sequence[str]) -> bool:
    """Versions differ in a few checks; a look at ranks alone is another question than a sweep."""
    both = set(recorded) & set(asked)
    return 2 * len(both) > max(len(recorded), len(asked))


def _unrecorded(checks: Iterable[str]) -> Iterator[bytes]:
    """What the runner would say of checks that could not measure."""
    stdout = json.dumps({"measurements": [], "notes": [NOT_RECORDED]})
    for name in checks:
        line = {"type": "result", "check": name, "exit": 1, "seconds": 0, "stdout": stdout}
        yield json.dumps(line).encode() + b"\n"


class _ReplayedPast(StatePast):
    """The past of a recording: its nodes' from the state it was unpacked to, the rest as it was."""

    def __init__(self, controller: Controller, look: Look) -> None:
        super().__init__(controller)
        self._look = look
        self._schedulers = iter(look.schedulers)
        self._last = look.schedulers[-1] if look.schedulers else None

    @property
    def name(self) -> str:
        return self._look.scheduler

    def against(self, nodes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        return {name: self._look.against[name] for name in nodes if name in self._look.against}

    def history(self, verdict: Verdict, now: datetime) -> IncidentHistory:
        case = (verdict.fault.value, verdict.nodes)
        known = (t.history for t in self._look.tried if (t.fault, t.nodes) == case)
        return next(known, NO_HISTORY)

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        return next(self._schedulers, self._last)
