"""What verdicts, runs and sweeps hold against nodes over weeks; no node is asked."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState, load_all
from brctl.engine.runs.read_run import sound_runs
from brctl.engine.sweeps.history import SweepHistory
from brctl.evidence.lemons import LemonSign, LemonSignal, NodePast, lemons
from brctl.model.fault import FaultClass, Origin
from brctl.model.jobs.job import Job
from brctl.model.sweeps.transition import Transition
from brctl.playbook.run import Run, nodes_held
from brctl.playbook.steps import StepState

_XID = re.compile(r"\bXid (\d{1,4})\b")
_NAMELESS = (FaultClass.NO_FAULT, FaultClass.UNKNOWN)
_WRONG = (VerdictState.DISMISSED, VerdictState.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class LemonReport:
    """Lemons of a fleet, and how much was looked through for them."""

    pasts: tuple[NodePast, ...]
    nodes: int
    sweeps: int
    verdicts: int
    runs: int


def lemon_report(controller: Controller, chosen: Iterable[str], back: timedelta) -> LemonReport:
    """Who of the chosen nodes fails again and again; all nodes are what they are held against."""
    since, state_dir = controller.now() - back, controller.state_dir
    history = SweepHistory(state_dir)
    stored = [one for one in load_all(state_dir) if one.verdict.decided_at >= since]
    runs = [run for run in sound_runs(state_dir, since) if _began_after(run, since)]
    signs = [
        *of_transitions(history.news_since(since)),
        *of_runs(runs),
        *of_verdicts(stored, controller.jobs),
    ]
    known, wanted = set(controller.inventory.nodes), set(chosen)
    found = lemons((sign for sign in signs if sign.node in known), len(known), back)
    pasts = tuple(past for past in found if past.node in wanted)
    return LemonReport(pasts, len(known), history.sweeps_since(since), len(stored), len(runs))


def _began_after(run: Run, since: datetime) -> bool:
    return run.began_at is not None and run.began_at >= since


def of_transitions(news: Iterable[Transition]) -> Iterator[LemonSign]:
    """Xids that sweeps saw."""
    for item in news:
        for code in _XID.findall(item.detail):
            yield LemonSign(item.node, LemonSignal.XIDS, f"Xid {code}")


def of_verdicts(stored: Iterable[StoredVerdict], jobs: Mapping[str, Job]) -> Iterator[LemonSign]:
    """Faults of jobs that a node was named for; what people dismissed counts for nothing.

    A job that is configured no more is taken for one on many nodes, as most are.
    """
    for one in stored:
        verdict = one.verdict
        if one.state in _WRONG or verdict.fault in _NAMELESS or verdict.origin is Origin.USER:
            continue
        job = jobs.get(verdict.job)
        alone = job is not None and len(job.nodes) == 1
        fails = LemonSignal.SINGLE_NODE_FAILS if alone else LemonSignal.MULTI_NODE_FAILS
        nodes = one.nodes or verdict.nodes
        if verdict.job:
            yield from (LemonSign(node, fails, verdict.id) for node in nodes)
        for item in verdict.evidence:
            if item.subject.node in nodes:
                codes = _XID.findall(item.text)
                yield from (
                    LemonSign(item.subject.node, LemonSignal.XIDS, f"Xid {c}") for c in codes
                )


def of_runs(runs: Iterable[Run]) -> Iterator[LemonSign]:
    """Nodes taken out of service or out of a job, and tickets that were opened for them."""
    for run in runs:
        drained = run.nodes if _did(run, "node.drain") else ()
        moved = _did(run, "job.replace_nodes")
        for node in {*nodes_held(run.playbook, run.record), *drained}:
            yield LemonSign(node, LemonSignal.OUTS, run.name)
            if moved and run.job:
                yield LemonSign(node, LemonSignal.EXCLUDED_JOBS, run.job)
        for name, step in run.record.steps.items():
            if run.playbook.step(name).uses == "ticket.create" and step.state is StepState.DONE:
                about, ticket = step.arguments.get("node"), step.out.get("ticket")
                if isinstance(about, str) and isinstance(ticket, str) and ticket:
                    yield LemonSign(about, LemonSignal.TICKETS, ticket)


def _did(run: Run, verb: str) -> bool:
    return any(
        run.playbook.step(name).uses == verb and step.state is StepState.DONE
        for name, step in run.record.steps.items()
    )
