"""When people outside are told: a sure verdict, a run that starts, waits, ends; never in the way.

What goes wrong here is said on stderr and counted, and changes nothing else.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load_all
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.run_files import load_request
from brctl.engine.runs.wait import NOBODY
from brctl.journal.store import EVENTS, is_running, run_dirs
from brctl.model.errors import BrctlError
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.notice import dedup_key, verdict_key
from brctl.model.runs.event import EventType
from brctl.model.verdict import Confidence, Verdict
from brctl.notify.notifier import Delivery, DeliveryState, Notifier
from brctl.view.notices.contents import Notice, RunFacts
from brctl.view.notices.notice import (
    advanced_notice,
    crowd_notice,
    dismissed_notice,
    ended_notice,
    recovered_notice,
    started_notice,
    verdict_notice,
)

ONE_BY_ONE = 10
"""Sure verdicts of one look that are told each; the rest are counted in one notice."""

RUNS_LOOKED_AT, TAIL_BYTES = 50, 65536
"""How far back a sweep looks for runs that were cut off, and how much of a journal it reads."""

_NO_FAULT = frozenset({FaultClass.NO_FAULT, FaultClass.UNKNOWN})
Say = Callable[[str], None]


def say_on_stderr(text: str) -> None:
    """A line for the run's own log, or for cron's mail."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the only voice of a run's process


def complain(deliveries: Iterable[Delivery], say: Say = say_on_stderr) -> None:
    """Say which sinks could not be told."""
    for delivery in deliveries:
        if delivery.state is DeliveryState.FAILED:
            say(f"warning: {delivery.sink} was not told: {delivery.why}")


def run_facts(context: RunContext, run_dir: Path) -> RunFacts:
    """A run as its folder tells it.

    Raises:
        BrctlError: A file of the folder is missing or damaged.
    """
    run = read_run(run_dir)
    return RunFacts(context.name, run, _verdict(context, run.verdict_id))


def _verdict(context: RunContext, verdict_id: str) -> Verdict | None:
    try:
        return context.verdicts.get(verdict_id) if verdict_id else None
    except BrctlError:
        # The verdict's file is gone; the run can still be told about.
        return None


class RunNotifier:
    """Notifies of how one process of a run starts and ends, beside its work."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._context: RunContext | None = None
        self._starting: asyncio.Task[None] | None = None

    def started(self, context: RunContext) -> None:
        """Tell that the run is at work; returns at once."""
        if not context.notifier.configured:
            return
        self._context = context
        # A run that goes on because nobody answered has nobody who acknowledged the fault.
        if load_request(self._run_dir).by != NOBODY:
            self._starting = asyncio.create_task(self._notify(started_notice))

    async def ended(self) -> None:
        """Notify how it ended; at most two deadlines long, and only where sinks are configured."""
        if self._starting is not None:
            await self._starting
        await self._notify(ended_notice)

    async def _notify(self, notice_of: Callable[[RunFacts, datetime], Notice]) -> None:
        context = self._context
        if context is None:
            return
        with beside_the_work(say_on_stderr):
            notice = notice_of(run_facts(context, self._run_dir), context.clock.now())
            complain(await context.notifier.notify_async(notice))


def sure(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts worth waking somebody for."""
    return [v for v in verdicts if v.confidence is Confidence.HIGH and v.fault not in _NO_FAULT]


async def notify_verdicts(
    notifier: Notifier,
    context: str,
    verdicts: Sequence[Verdict],
    at: datetime,
    fresh_nodes: frozenset[str] = frozenset(),
    say: Say = say_on_stderr,
) -> tuple[Delivery, ...]:
    """Tell every sure verdict; one that was told before is not told again.

    Args:
        notifier: The sinks.
        context: Name of the context, part of the key.
        verdicts: What was decided.
        at: This moment.
        fresh_nodes: Nodes whose trouble is new, so that having told it before does not count.
        say: Where failures are said.

    Returns:
        What became of each notice at each sink.
    """
    runbook, certain = notifier.settings.runbook, sure(verdicts)
    notices = [
        verdict_notice(v, context, at, fresh=bool(fresh_nodes & set(v.nodes)), runbook=runbook)
        for v in certain[:ONE_BY_ONE]
    ]
    if len(certain) > ONE_BY_ONE:
        notices.append(crowd_notice(context, len(certain) - ONE_BY_ONE, at))
    found: list[Delivery] = []
    for number, notice in enumerate(notices, start=1):
        deliveries = await notifier.notify_async(notice)
        found += deliveries
        complain(deliveries, say)
        if (
            deliveries
            and all(d.state is DeliveryState.FAILED for d in deliveries)
            and number < len(notices)
        ):
            say(f"warning: {len(notices) - number} more notices were not tried")
            break
    return tuple(found)


async def notify_progress(
    notifier: Notifier, context: str, status: JobStatus | None, at: datetime, say: Say
) -> None:
    """A job that takes steps again closes every page of its faults, whoever repaired it."""
    if status is None or status.stalled is not False or status.ended:
        return
    job = status.job.name
    for key in open_keys(notifier, dedup_key(context, job, "")[:-1], say):
        notice = advanced_notice(context, key, job, status.step, at)
        complain(await notifier.notify_async(notice), say)


async def notify_recovered(
    notifier: Notifier, context: str, nodes: Iterable[str], at: datetime, say: Say
) -> None:
    """Faults of single nodes end when the node is well; those of a job when training advances."""
    for node in nodes:
        for key in open_keys(notifier, dedup_key(context, node, "")[:-1], say):
            notice = recovered_notice(context, key, node, at)
            complain(await notifier.notify_async(notice), say)


async def notify_dismissed(
    notifier: Notifier,
    context: str,
    state_dir: Path,
    stored: StoredVerdict,
    by: str,
    at: datetime,
    say: Say,
) -> None:
    """Close the page of a verdict that a person dismissed, unless another open one keeps it."""
    verdict = stored.verdict
    key = verdict_key(context, verdict)
    if not notifier.configured or key not in open_keys(notifier, key, say):
        return
    with beside_the_work(say):
        others = [s.verdict for s in load_all(state_dir) if s.state is VerdictState.OPEN]
        keeps = [other.id for other in others if verdict_key(context, other) == key]
        if keeps:
            say(f"its page stays open: {', '.join(keeps)} says the same")
            return
        notice = dismissed_notice(context, verdict, by, stored.note, at)
        complain(await notifier.notify_async(notice), say)


async def notify_lost(context: RunContext, state_dir: Path, say: Say) -> None:
    """Runs whose process died before the last line of their journal: nobody else tells of them."""
    for run_dir in run_dirs(state_dir)[-RUNS_LOOKED_AT:]:
        with beside_the_work(say):
            if is_running(run_dir) or not _was_cut_off(run_dir):
                continue
            notice = ended_notice(run_facts(context, run_dir), context.clock.now())
            complain(await context.notifier.notify_async(notice), say)


def _was_cut_off(run_dir: Path) -> bool:
    """Whether a journal has begun and its last line is not the end."""
    path = run_dir / EVENTS
    if not path.exists():
        return False
    with path.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(stream.tell() - TAIL_BYTES, 0))
        lines = stream.read().splitlines()
    return bool(lines) and f'"type":"{EventType.END}"'.encode() not in lines[-1]


@contextmanager
def beside_the_work(say: Say) -> Iterator[None]:
    """A notification that fails is reported, and never becomes the result of the work."""
    try:
        yield
    except Exception as exc:  # noqa: BLE001 - see the head of this file
        say(f"warning: nobody was told: {type(exc).__name__}: {exc}")


def open_keys(notifier: Notifier, prefix: str, say: Say) -> tuple[str, ...]:
    """Faults under a prefix that some sink still holds open; none when that cannot be read."""
    with beside_the_work(say):
        return notifier.ledger.open_keys(prefix)
    return ()


def is_dismissed(state_dir: Path, verdict: Verdict) -> bool:
    """Whether the last word on this fault of these nodes was a person's: it is none."""
    same = [
        stored
        for stored in load_all(state_dir)
        if (stored.verdict.fault, stored.verdict.nodes, stored.verdict.job)
        == (verdict.fault, verdict.nodes, verdict.job)
    ]
    newest = max(same, key=lambda stored: stored.verdict.decided_at, default=None)
    return newest is not None and newest.state is VerdictState.DISMISSED


def standing(state_dir: Path, verdict: Verdict) -> Verdict | None:
    """An open verdict that says the same of the same nodes; a sweep does not store it again."""
    for stored in load_all(state_dir):
        old = stored.verdict
        same = (old.fault, old.nodes, old.job) == (verdict.fault, verdict.nodes, verdict.job)
        if same and stored.state is VerdictState.OPEN:
            return old
    return None
