"""What a verdict, a run or a test becomes when people outside are told of it."""

from dataclasses import replace
from datetime import datetime

from brctl.model.evidence import Weight
from brctl.model.nodeset import fold
from brctl.model.notice import NoticeEvent, NoticeState, PageSeverity, dedup_key, verdict_key
from brctl.model.runs.event import EventType
from brctl.model.runs.result import RunState
from brctl.model.verdict import Verdict
from brctl.playbook.node_runs import split_instance
from brctl.playbook.run_record import RunRecord
from brctl.playbook.steps import StepState
from brctl.view.next_move import move_command
from brctl.view.notices.contents import Notice, RunFacts, last_text

CHAIN, STEPS = 8, 100
_PROOF = "job.wait_progress"


def verdict_notice(
    verdict: Verdict, context: str, at: datetime, *, fresh: bool = False, runbook: str = ""
) -> Notice:
    """A fault was found, surely."""
    where = fold(verdict.nodes) or "no node"
    about = f"{verdict.job}: " if verdict.job else ""
    sure = verdict.confidence.value.upper()
    why = f"brctl why {verdict.id}"
    return Notice(
        event=NoticeEvent.VERDICT_HIGH,
        state=NoticeState.FIRING,
        key=verdict_key(context, verdict),
        mark=f"{NoticeEvent.VERDICT_HIGH}:{where}",
        severity=PageSeverity.CRITICAL if verdict.job else PageSeverity.ERROR,
        context=context,
        summary=f"{about}{verdict.title}, {where} ({verdict.id}, {sure})",
        at=at,
        fresh=fresh,
        subject=verdict.job or where,
        fault=verdict.fault.value,
        nodes=verdict.nodes,
        devices=verdict.called,
        job=verdict.job,
        do=move_command(verdict) or why,
        why=why,
        cost_if_wrong=verdict.cost_if_wrong,
        needs=f"{verdict.action.value} ({verdict.playbook or verdict.say})",
        runbook=runbook,
        details=tuple(_chain(verdict)),
        verdict=verdict,
    )


def _chain(verdict: Verdict) -> list[str]:
    evidence = [e for e in verdict.evidence if e.weight in (Weight.CONVICTS, Weight.HINTS)]
    lines = [f"{e.subject.node} {e.text} ({e.source})".strip() for e in evidence[:CHAIN]]
    lines += [f"{len(evidence) - CHAIN} more lines of evidence"] if len(evidence) > CHAIN else []
    lines += [
        f"instead: {other.fault.value} {fold(other.nodes)} {other.probability:.2f}"
        for other in verdict.alternatives[:2]
    ]
    unseen = len(verdict.not_checked)
    return [*lines, *([f"{unseen} things were not looked at"] if unseen else [])]


def crowd_notice(context: str, count: int, at: datetime) -> Notice:
    """More sure verdicts at once than anybody reads one by one."""
    return Notice(
        event=NoticeEvent.VERDICT_HIGH,
        state=NoticeState.FIRING,
        key=dedup_key(context, "fleet", "many-verdicts"),
        mark=f"many:{count}",
        severity=PageSeverity.CRITICAL,
        context=context,
        summary=f"{count} more sure verdicts at once; a cause they share is likely",
        at=at,
        subject="fleet",
        fault="many-verdicts",
        do="brctl verdict list --open",
        why="brctl sweep --diff",
        needs="a person: look for what these nodes share",
    )


def watched_notice(
    context: str, about: str, text: str, nodes: tuple[str, ...], at: datetime, *, over: bool
) -> Notice:
    """What befalls many nodes at once, told once for all of them, and once when it is over."""
    return Notice(
        event=NoticeEvent.VERDICT_HIGH,
        state=NoticeState.RESOLVED if over else NoticeState.FIRING,
        key=dedup_key(context, "fleet", about),
        mark="over" if over else "many",
        severity=PageSeverity.INFO if over else PageSeverity.CRITICAL,
        context=context,
        summary=text,
        at=at,
        subject="fleet",
        fault=about,
        nodes=nodes,
        do="" if over else f"brctl dx -w {fold(nodes)}" if nodes else "brctl doctor",
        why="brctl watch status",
        needs="" if over else "a person: look for what these nodes share",
    )


def advanced_notice(context: str, key: str, job: str, step: int | None, at: datetime) -> Notice:
    """Training takes new steps, whoever brought it back."""
    word = f"step {step}" if step is not None else "new steps"
    return Notice(
        event=NoticeEvent.TRAINING_ADVANCED,
        state=NoticeState.RESOLVED,
        key=key,
        mark=NoticeEvent.TRAINING_ADVANCED,
        severity=PageSeverity.INFO,
        context=context,
        summary=f"{job}: training advances, {word}",
        at=at,
        subject=job,
        fault=key.rpartition("/")[2],
        job=job,
    )


def recovered_notice(context: str, key: str, node: str, at: datetime) -> Notice:
    """A node's checks pass again; nothing says who or what repaired it."""
    return Notice(
        event=NoticeEvent.VERDICT_HIGH,
        state=NoticeState.RESOLVED,
        key=key,
        mark="recovered",
        severity=PageSeverity.INFO,
        context=context,
        summary=f"{node}: its checks pass again",
        at=at,
        subject=node,
        fault=key.rpartition("/")[2],
        nodes=(node,),
        why=f"brctl nodes show {node}",
    )


def dismissed_notice(context: str, verdict: Verdict, by: str, why: str, at: datetime) -> Notice:
    """A person says that the verdict was wrong: nobody needs to get up for it any more."""
    where = fold(verdict.nodes) or "no node"
    return Notice(
        event=NoticeEvent.VERDICT_HIGH,
        state=NoticeState.RESOLVED,
        key=verdict_key(context, verdict),
        mark=f"dismissed:{verdict.id}",
        severity=PageSeverity.INFO,
        context=context,
        summary=f"{verdict.title}, {where} ({verdict.id}): dismissed by {by}: {why}",
        at=at,
        subject=verdict.job or where,
        fault=verdict.fault.value,
        nodes=verdict.nodes,
        job=verdict.job,
        why=f"brctl why {verdict.id}",
    )


_ENDS = {
    RunState.WAITING: (NoticeEvent.RUN_WAITING, NoticeState.FIRING, PageSeverity.WARNING),
    RunState.NEEDS_HUMAN: (NoticeEvent.RUN_NEEDS_HUMAN, NoticeState.FIRING, PageSeverity.CRITICAL),
    RunState.ROLLED_BACK: (NoticeEvent.RUN_ENDED, NoticeState.FIRING, PageSeverity.ERROR),
    RunState.EXPIRED: (NoticeEvent.RUN_WAITING, NoticeState.FIRING, PageSeverity.CRITICAL),
    RunState.LOST: (NoticeEvent.RUN_NEEDS_HUMAN, NoticeState.FIRING, PageSeverity.CRITICAL),
}
_WHY = {RunState.LOST: "its process died before the end"}
_OTHER_END = (NoticeEvent.RUN_ENDED, NoticeState.INFO, PageSeverity.INFO)
AGAIN_FOR = frozenset({RunState.NEEDS_HUMAN, RunState.ROLLED_BACK, RunState.EXPIRED, RunState.LOST})
"""Endings that leave the fault without anybody at work on it."""


def started_notice(facts: RunFacts, at: datetime) -> Notice:
    """Somebody, or something, acknowledged the fault."""
    return _run_notice(
        facts,
        at,
        (NoticeEvent.RUN_STARTED, NoticeState.ACKNOWLEDGED, PageSeverity.INFO),
        RunState.RUNNING,
        f"started by {facts.run.by}",
    )


def ended_notice(facts: RunFacts, at: datetime) -> Notice:
    """How a run ended; one whose journal has no end was lost."""
    result = facts.result
    if result is RunState.OK:
        return _run_notice(facts, at, _good_end(facts), result, _proof(facts) or "done")
    reason = facts.why or _WHY.get(result, "")
    # A run by hand that came to nothing concerns whoever typed it, and pages nobody.
    idle = result in (RunState.ROLLED_BACK, RunState.EXPIRED) and facts.verdict is None
    kind = _OTHER_END if idle else _ENDS.get(result, _OTHER_END)
    return _run_notice(
        facts, at, kind, result, f"{result}: {reason or facts.run.record.failed_error}"
    )


def page_notice(facts: RunFacts, at: datetime, severity: PageSeverity, summary: str) -> Notice:
    """What a playbook pages by itself; the run's own page of the same ending is then not sent."""
    ending = ended_notice(facts, at)
    event = ending.event if ending.state is NoticeState.FIRING else NoticeEvent.RUN_NEEDS_HUMAN
    page = replace(ending, event=event, state=NoticeState.FIRING, severity=severity)
    return replace(page, summary=f"{page.subject}: {summary}".removeprefix(": "), pages_again=True)


def chat_notice(facts: RunFacts, at: datetime, channel: str, text: str) -> Notice:
    """What a playbook says in chat: its own text, or how the run ends."""
    ending = replace(ended_notice(facts, at), channel=channel)
    if not text:
        return ending
    mark = f"chat:{facts.run.name}:{text}"
    return replace(
        ending, event=NoticeEvent.RUN_ENDED, state=NoticeState.INFO, mark=mark, summary=text
    )


def _good_end(facts: RunFacts) -> tuple[NoticeEvent, NoticeState, PageSeverity]:
    """Only a run that saw new steps says that training advances; one of no job closes its own."""
    if _proof(facts):
        return NoticeEvent.TRAINING_ADVANCED, NoticeState.RESOLVED, PageSeverity.INFO
    about_job = facts.verdict is not None and facts.verdict.job
    state = NoticeState.INFO if about_job else NoticeState.RESOLVED
    return NoticeEvent.RUN_ENDED, state, PageSeverity.INFO


def _proof(facts: RunFacts) -> str:
    """What the step that waited for progress saw; "" without one."""
    proving = {step.id for step in facts.run.playbook.steps if step.uses == _PROOF}
    for name, record in facts.run.record.steps.items():
        if split_instance(name)[0] in proving and record.state is StepState.DONE:
            return f"training advances, {record.say}"
    return ""


def _run_notice(
    facts: RunFacts,
    at: datetime,
    kind: tuple[NoticeEvent, NoticeState, PageSeverity],
    result: RunState,
    summary: str,
) -> Notice:
    event, state, severity = kind
    run, verdict = facts.run, facts.verdict
    subject = run.job or fold(run.nodes)
    yes = sum(map(len, run.record.approvals.values()))
    about = f" for {verdict.id}" if verdict else ""
    do, needs = _next(facts, event)
    return Notice(
        event=event,
        state=state,
        key=run_key(facts),
        mark=f"{event}:{run.name}:{result}:{yes}",
        severity=severity,
        context=facts.context,
        summary=f"{subject}: {run.name} {run.playbook.name}{about} {summary}".removeprefix(": "),
        at=at,
        pages_again=result in AGAIN_FOR,
        subject=subject,
        fault=verdict.fault.value if verdict else run.playbook.name,
        nodes=run.nodes or (verdict.nodes if verdict else ()),
        job=run.job,
        do=do,
        why=f"brctl play show {run.name}",
        needs=needs,
        runbook=run.playbook.runbook,
        details=tuple(step_lines(run.record)),
        verdict=verdict,
        run=replace(facts, ending=(result, summary)),
    )


def run_key(facts: RunFacts) -> str:
    """A run's page is its fault's page; a run by hand has one of its own."""
    if facts.verdict is not None:
        return verdict_key(facts.context, facts.verdict)
    return dedup_key(facts.context, facts.run.job or fold(facts.run.nodes), facts.run.playbook.name)


def _next(facts: RunFacts, event: NoticeEvent) -> tuple[str, str]:
    """The command to type now, and who or what it needs."""
    if event is NoticeEvent.RUN_WAITING and facts.result is RunState.WAITING:
        words = last_text(facts.run.events, EventType.APPROVAL_ASKED, "answer")
        asked = f", type `{words}`" if words else ""
        return f"brctl play approve {facts.run.name}", f"an approval{asked}"
    if event is NoticeEvent.RUN_WAITING:
        return f"brctl play show {facts.run.name}", "a person: nobody approved in time"
    if event is NoticeEvent.RUN_NEEDS_HUMAN:
        return f"brctl play show {facts.run.name}", "a person: changes were left in place"
    return "", ""


def step_lines(record: RunRecord) -> list[str]:
    """One line for every step that was touched, the first STEPS of them."""
    lines = [
        f"{step.state.value} {name}: {step.error or step.say}".rstrip(": ")
        for name, step in record.steps.items()
        if step.state is not StepState.PENDING
    ]
    more = len(lines) - STEPS
    return [*lines[:STEPS], *([f"and {more} more steps"] if more > 0 else [])]


def trial_notice(context: str, at: datetime, state: NoticeState) -> Notice:
    """A marked one, which nobody can take for a fault."""
    return Notice(
        event=NoticeEvent.TEST,
        state=state,
        key=dedup_key(context, "test", "test"),
        mark=f"test:{at.timestamp():.3f}",
        severity=PageSeverity.INFO,
        context=context,
        summary=f"TEST ({state.value}): brctl notify test; nothing is wrong",
        at=at,
        fresh=True,
        subject="test",
        fault="test",
        do="nothing",
        why="brctl notify list",
    )
