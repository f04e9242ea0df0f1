"""What a sweep or a diagnosis tells outside: sure verdicts, and that training goes on again."""

from collections.abc import Mapping
from dataclasses import replace

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.notify_runs import (
    Say,
    beside_the_work,
    is_dismissed,
    notify_lost,
    notify_progress,
    notify_recovered,
    notify_verdicts,
    standing,
    sure,
)
from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.job.conclude import collect
from brctl.engine.job.diagnose import Diagnosis
from brctl.engine.runs.context import run_context
from brctl.engine.runs.propose import with_next_move
from brctl.model.fault import FaultClass
from brctl.model.sweeps.changes import Changes
from brctl.model.sweeps.sweep import Health, Sweep
from brctl.model.verdict import Verdict
from brctl.notify.notifier import Notifier
from brctl.verdict.decide import DecisionContext, decide


def notifier_of(controller: Controller) -> Notifier:
    """The sinks of an opened context."""
    return Notifier(controller.settings.notify, controller.state_dir, controller.now)


async def notify_diagnosis(controller: Controller, found: Diagnosis, say: Say) -> None:
    """Tell what a diagnosis is sure of; a job found sound closes its pages."""
    notifier = notifier_of(controller)
    if not notifier.configured:
        return
    context, at = controller.settings.context, controller.now()
    with beside_the_work(say):
        await notify_verdicts(notifier, context, found.verdicts, at, say=say)
        if all(verdict.fault is FaultClass.NO_FAULT for verdict in found.verdicts):
            await notify_progress(notifier, context, found.status, at, say)


async def notify_sweep(controller: Controller, sweep: Sweep, changes: Changes, say: Say) -> None:
    """Decide what a sweep's faults mean, keep the sure verdicts, and tell them once.

    Without anybody to tell, a sweep stays what it was: it stores no verdict.
    """
    notifier, context = notifier_of(controller), controller.settings.context
    if not notifier.configured:
        return
    with beside_the_work(say):
        if sweep.of(Health.CRITICAL):
            evidence, gaps = collect(sweep)
            decided = decide(evidence, gaps, DecisionContext(decided_at=controller.now()))
            fresh = _new_trouble(changes)
            found = [_placed(controller, verdict) for verdict in sure(decided)]
            verdicts = [
                _kept(controller, v) for v in found if not _is_answered(controller, v, fresh)
            ]
            await notify_verdicts(notifier, context, verdicts, controller.now(), fresh, say)
        well = {node.node for node in sweep.of(Health.OK)}
        again = sorted({t.problem.node for t in changes.recovered} & well)
        await notify_recovered(notifier, context, again, controller.now(), say)
    with beside_the_work(say):
        await notify_lost(run_context(controller), controller.state_dir, say)


def _placed(controller: Controller, verdict: Verdict) -> Verdict:
    """The job that a verdict's nodes carry is what the page is about, and what the tree asks."""
    jobs = {node: job.name for job in controller.jobs.values() for node in job.nodes}
    placed = replace(verdict, job=next((jobs[n] for n in verdict.nodes if n in jobs), ""))
    return with_next_move(
        controller.state_dir, controller.settings.context, placed, controller.now()
    )


def _is_answered(controller: Controller, verdict: Verdict, fresh: frozenset[str]) -> bool:
    """A person dismissed it, and its nodes were not well in between."""
    return not fresh & set(verdict.nodes) and is_dismissed(controller.state_dir, verdict)


def _kept(controller: Controller, verdict: Verdict) -> Verdict:
    """The verdict as it is stored: an open one that says the same, or this one."""
    before = standing(controller.state_dir, verdict)
    if before is None:
        save_new(controller.state_dir, verdict)
    return before or verdict


def _new_trouble(changes: Changes) -> frozenset[str]:
    problems = [p.node for p in (*changes.new, *changes.worse) if p.health is Health.CRITICAL]
    crowds = [node for mass in changes.mass for node in mass.nodes]
    return frozenset([*problems, *crowds])


def failure_totals(controller: Controller, say: Say) -> Mapping[str, float]:
    """Counters of what could not be told, by Prometheus series; zero for a sink that never failed.

    They are left out when they cannot be read: a zero would be a lie.
    """
    notifier = notifier_of(controller)
    counts = {sink.kind: 0.0 for sink in notifier.settings.sinks}
    if not counts:
        return {}
    try:
        counts |= {sink: float(f.count) for sink, f in notifier.ledger.failures().items()}
    except Exception as exc:  # noqa: BLE001 - a sweep's metrics do not depend on it
        say(f"warning: failures of notifiers cannot be read: {exc}")
        return {}
    return failure_series(counts)


def failure_series(counts: Mapping[str, float]) -> Mapping[str, float]:
    """Failures by sink, by whole series name."""
    return {f'brctl_notify_failures_total{{sink="{sink}"}}': n for sink, n in counts.items()}
