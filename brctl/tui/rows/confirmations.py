"""What a dialog shows before anything changes: plan, guards' arithmetic, CLI line; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from brctl.model.nodeset import fold
from brctl.model.runs.plan import GuardResult, Plan
from brctl.model.runs.playbook import Safety
from brctl.playbook.node_runs import instance_of
from brctl.playbook.run import Run
from brctl.playbook.steps import StepState
from brctl.tui.rows.row import Row, Span, Tone, blank, heading, paragraph, place_of, row, safe
from brctl.tui.rows.run_rows import gate_of, run_rows
from brctl.tui.rows.times import Times
from brctl.tui.session.engine_client import Proposal
from brctl.view.runs.plan import cost_lines

DENY_WORDS = "deny"
_NAME_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A change that a person may start.

    Attributes:
        words: What must be typed; nothing starts without them.
        command: The equal command line.
        refused: Why it cannot start at all; "" when it can.
    """

    title: str
    rows: tuple[Row, ...]
    words: str
    command: str
    refused: str = ""


def confirm_fix(proposal: Proposal, width: int, *, readonly: bool) -> Confirmation:
    """Start a run for a verdict."""
    plan = proposal.plan
    nodes = safe(fold(plan.nodes), 300) or "no node"
    refused = "this is read-only mode" if readonly else _refusal(plan)
    approval = f"{plan.people.value} before {plan.gate_before or 'nothing'}"
    rows = [
        row(("nodes   ", Tone.HEAD), (f"{nodes} ({len(plan.nodes)})", Tone.WARN)),
        *(line for cost in cost_lines(plan) for line in _named(cost, width)),
        row(("asks    ", Tone.HEAD), approval),
        blank(), heading("PLAN"), *_steps(plan), blank(),
        heading("GUARDS"), *(line for g in plan.guards for line in _guard(g, width)),
    ]  # fmt: skip
    title = f"fix {plan.verdict} with {plan.playbook}"
    return Confirmation(title, tuple(rows), proposal.words, proposal.command, refused)


def _named(cost: str, width: int) -> list[Row]:
    """`time    at most ...`, broken below its own beginning."""
    return paragraph(cost[:_NAME_WIDTH], safe(cost[_NAME_WIDTH:], 300), width)


def _refusal(plan: Plan) -> str:
    first = next(iter(plan.refused), None)
    if first is None:
        return ""
    way_out = f"; way out: {first.way_out}" if first.way_out else ""
    return f"refused by {first.kind}: {first.sentence}{way_out}"


def _steps(plan: Plan) -> Sequence[Row]:
    rows: list[Row] = []
    for number, step in enumerate(plan.steps, start=1):
        gate = step.id == plan.gate_before
        name = safe(instance_of(step.id, step.node), 80)
        spans: list[Span | str] = [
            (f"{number:2} {name:18} ", Tone.HEAD),
            f"{step.uses:22.22} ",
        ]
        if step.safety is Safety.DESTRUCTIVE:
            spans.append(("no way back after this  ", Tone.WARN))
        elif step.undoable:
            spans.append(("can be undone  ", Tone.DIM))
        if gate:
            spans.append(("GATE  ", Tone.WARN))
        if step.skipped:
            spans.append((f"skipped: {safe(step.skipped, 80)}", Tone.DIM))
        rows.append(row(*spans))
        rows += [
            row(f"     {c.sign.value} ", (safe(c.subject, 80), Tone.HEAD), f"  {safe(c.what, 300)}")
            for c in step.changes
        ]
    return rows


def _guard(guard: GuardResult, width: int) -> list[Row]:
    mark, tone = ("ok", Tone.SPARE) if guard.ok else ("NO", Tone.CRIT)
    text = f"{safe(guard.sentence, 300)}   [{place_of(guard.origin)}]"
    first, *rest = paragraph(f"{mark} {guard.kind:14.14} ", text, width)
    return [Row(((first.spans[0][0], tone), *first.spans[1:])), *rest]


def confirm_answer(
    run: Run, width: int, *, yes: bool, times: Times, refused: str = ""
) -> Confirmation:
    """Answer a run that waits; refused before anything is typed where the yes would not count."""
    verb = "approve" if yes else "deny"
    before = gate_of(run)
    gate = next((step for step in run.playbook.steps if step.id == before), None)
    warn = "no way back after it" if gate and gate.safety is Safety.DESTRUCTIVE else "can be undone"
    what = (
        run.asked("why") or f"{before} is the next step: {warn}"
        if yes
        else "the run ends; what it changed so far is taken back"
    )
    rows = [row((what, Tone.WARN)), blank(), *run_rows(run, width, times)]
    words = run.asked("answer") if yes else DENY_WORDS
    command = f"brctl play {verb} {run.name}"
    no = f"refused: {refused}; somebody else: {command}" if refused else ""
    return Confirmation(f"{verb} {run.name}?", tuple(rows), words, command, no)


def confirm_rollback(run: Run, width: int, times: Times) -> Confirmation:
    """Take back what a run changed."""
    stuck = any(
        run.playbook.step(name).safety is Safety.DESTRUCTIVE
        for name in run.record.in_state(StepState.DONE)
    )
    rows = [row(("undone newest first; what others changed since stays", Tone.WARN))]
    if stuck:
        text = "a step without a way back was done: only what came after it is taken back"
        rows.append(row((text, Tone.CRIT)))
    rows += [blank(), *run_rows(run, width, times)]
    command = f"brctl play rollback {run.name}"
    return Confirmation(f"roll back {run.name}?", tuple(rows), run.name, command)
