"""Runs as rows: the list, the steps of one run, its guards; pure."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.model.nodeset import fold
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Safety
from brctl.model.runs.result import NodeResult, RunState
from brctl.playbook.node_runs import split_instance
from brctl.playbook.run import Run, UnreadableRun
from brctl.playbook.steps import StepState
from brctl.tui.rows.row import (
    Row,
    Span,
    Tone,
    blank,
    heading,
    paragraph,
    place_of,
    row,
    safe,
    table,
)
from brctl.tui.rows.run_views import NodeRunView, StepView, guards_of, node_runs_of, steps_of
from brctl.tui.rows.times import Times

WORDS: Mapping[StepState, Span] = {
    StepState.PENDING: (".       ", Tone.DIM),
    StepState.RUNNING: ("running ", Tone.WARN),
    StepState.DONE: ("ok      ", Tone.SPARE),
    StepState.FAILED: ("FAILED  ", Tone.CRIT),
    StepState.SKIPPED: ("skipped ", Tone.DIM),
    StepState.UNCERTAIN: ("IN DOUBT", Tone.UNKNOWN),
    StepState.UNDOING: ("undoing ", Tone.WARN),
    StepState.UNDONE: ("undone  ", Tone.CORDON),
    StepState.UNDO_FAILED: ("NOT UNDONE", Tone.CRIT),
}

NODE_RUN_TONES: Mapping[str, Tone] = {
    NodeResult.OK: Tone.SPARE, RunState.RUNNING: Tone.WARN, NodeResult.FAILED: Tone.CORDON,
    NodeResult.NEEDS_HUMAN: Tone.CRIT,
}  # fmt: skip

_QUIET = (NodeResult.OK, NodeResult.SKIPPED)
"""Nodes that nobody needs to look at."""

STATE_TONES: Mapping[RunState, Tone] = {
    RunState.OK: Tone.SPARE, RunState.PARTIAL: Tone.WARN, RunState.RUNNING: Tone.WARN,
    RunState.STARTING: Tone.WARN, RunState.WAITING: Tone.WARN, RunState.ROLLED_BACK: Tone.CORDON,
    RunState.NEEDS_HUMAN: Tone.CRIT, RunState.LOST: Tone.CRIT, RunState.UNREADABLE: Tone.CRIT,
    RunState.REFUSED: Tone.UNKNOWN,
}  # fmt: skip


def run_list(runs: Iterable[Run | UnreadableRun], times: Times) -> list[Row]:
    """One line a run, newest first."""
    body = [
        (
            (
                run.name,
                (
                    run.state.upper() if run.waiting else run.state,
                    STATE_TONES.get(run.state, Tone.UNKNOWN),
                ),
                safe(playbook_of(run), 30),
                safe(fold(run.nodes) or "-", 40),
                safe(run.verdict_id or "-", 20),
                safe(run.by, 24),
                times.of(run.began_at),
            ),
            f"run:{run.name}",
        )
        for run in runs
    ]
    if not body:
        return [row(("no run yet; f on a verdict opens its plan", Tone.DIM))]
    return table(("RUN", "STATE", "PLAYBOOK", "NODES", "VERDICT", "BY", "STARTED"), body, widest=24)


def playbook_of(run: Run | UnreadableRun) -> str:
    """The name of a run's playbook; "" when that cannot be read."""
    return run.playbook.name if isinstance(run, Run) else ""


def gate_of(run: Run) -> str:
    """The step before which its playbook asks people; "" without one."""
    return run.playbook.approval.gate_before if run.playbook.approval else ""


def run_rows(run: Run | UnreadableRun, width: int, times: Times) -> list[Row]:
    """One run: steps, guards, and what it waits for."""
    if isinstance(run, UnreadableRun):
        state = (run.state.upper(), STATE_TONES[run.state])
        head = row((run.name, Tone.HEAD), "  ", state)
        return [head, *paragraph("why  ", safe(run.why, 1000), width)]
    head = row(
        (run.name, Tone.HEAD), f"  {safe(run.playbook.name, 40)}",
        f"  for {safe(run.verdict_id, 20)}" if run.verdict_id else "",
        f"  nodes {safe(fold(run.nodes), 100) or '-'}  started {times.of(run.began_at)}"
        f" by {safe(run.by, 30)}  ",
        (run.state.upper(), STATE_TONES.get(run.state, Tone.UNKNOWN)),
    )  # fmt: skip
    rows = [head, *_standing(run, width), blank()]
    node_runs = node_runs_of(run.record)
    rows += _node_runs(run, node_runs) if node_runs else _steps(run, steps_of(run))
    rows += [blank(), heading("GUARDS, as last checked"), *_guards(run, width)]
    return rows


def _standing(run: Run, width: int) -> list[Row]:
    rows: list[Row] = []
    if run.waiting:
        what = run.asked("why") or f"before {gate_of(run)}"
        rows.append(row((f"WAITING FOR YOU {safe(what, 200)}: A approves, D denies; ", Tone.WARN),
                        f"words to type: {safe(run.asked('answer'), 60)}"))  # fmt: skip
    if run.state is RunState.LOST:
        text = f"its process is gone; go on with: brctl play resume {run.name}"
        rows.append(row((text, Tone.CRIT)))
    if run.state is RunState.STARTING:
        text = f"nothing in its journal yet; if that stays: runs/{run.name}/stdout/run.log"
        rows.append(row((text, Tone.WARN)))
    if run.record.why:
        rows += paragraph("why  ", safe(run.record.why, 1000), width)
    for damage in run.damage[:3]:
        rows += paragraph("!    ", safe(damage, 400), width, Tone.CRIT)
    return rows


def _node_runs(run: Run, node_runs: Sequence[NodeRunView]) -> list[Row]:
    """One line per node, then the steps of those that are not well through."""
    rows = [heading("NODES"), *(_node_run(node_run, run) for node_run in node_runs)]
    for node_run in node_runs:
        if node_run.started and node_run.result not in _QUIET:
            steps = [step for step in steps_of(run) if split_instance(step.id)[1] == node_run.node]
            rows += [blank(), heading(safe(node_run.node, 60)), *_steps(run, steps)]
    return rows


def _node_run(node_run: NodeRunView, run: Run) -> Row:
    word, tone = (
        node_run.result or (RunState.RUNNING if node_run.started and run.alive else "."),
        Tone.DIM,
    )
    tone = NODE_RUN_TONES.get(word, tone)
    took = f"{node_run.seconds:6.1f} s  " if node_run.result else "          "
    at_step = (
        f"at {node_run.at_step}  " if node_run.at_step and node_run.result not in _QUIET else ""
    )
    key = f"node-run:{run.name}:{node_run.node}"
    return row(
        (f"{word:12.12}", tone), f"{safe(node_run.node, 24):24} ", (took, Tone.DIM), at_step,
        safe(node_run.why, 300), key=key,
    )  # fmt: skip


def _steps(run: Run, steps: Iterable[StepView]) -> list[Row]:
    return [_step(number, step, run) for number, step in enumerate(steps, start=1)]


def _step(number: int, step: StepView, run: Run) -> Row:
    word = WORDS[step.state]
    gate = split_instance(step.id)[0] == gate_of(run)
    if run.waiting and gate and step.state is StepState.PENDING:
        word = ("GATE    ", Tone.WARN)
    message = safe(step.error or step.say, 300)
    last = ""
    if step.safety is Safety.DESTRUCTIVE and step.state is StepState.PENDING:
        last = "DESTRUCTIVE: no way back after this step"
    took = f"{step.seconds:6.1f} s  " if step.seconds is not None else "          "
    key = f"step:{run.name}:{step.id}"
    return row(
        word,
        f" {number} {split_instance(step.id)[0]:16.16} ",
        (took, Tone.DIM),
        message,
        (last, Tone.WARN),
        key=key,
    )


def _guards(run: Run, width: int) -> list[Row]:
    rows: list[Row] = []
    for guard in guards_of(run):
        mark, tone = ("ok ", Tone.SPARE) if guard.ok else ("NO ", Tone.CRIT)
        first = f"{mark}{guard.kind:14.14} "
        text = f"{safe(guard.says, 300)}   [{place_of(guard.origin)}]"
        rows += [Row(((first, tone), *line.spans[1:])) if i == 0 else line
                 for i, line in enumerate(paragraph(first, text, width))]  # fmt: skip
    return rows or [row(("none recorded", Tone.UNKNOWN))]


def event_line(event: Event, times: Times) -> Row:
    """One line of the journal for people."""
    fields = {k: v for k, v in event.fields.items() if k not in ("guards", "plan")}
    text = "  ".join(f"{k}={safe(str(v), 120)}" for k, v in fields.items() if v not in ("", None))
    tone = Tone.CRIT if event.fields.get("ok") is False else Tone.PLAIN
    if event.type in (EventType.APPROVAL_ASKED, EventType.APPROVAL_GIVEN):
        tone = Tone.WARN
    return row(
        (f"{event.seq:4} {times.of(event.at)}  ", Tone.DIM), (f"{event.type.value:18}", tone), text
    )
