"""A run as people read it: one line per event while it goes, and the whole of it afterwards."""

from collections.abc import Callable, Mapping, Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Arguments, Json, Playbook
from brctl.model.runs.result import NodeResult, RunState
from brctl.model.units import describe_duration, rfc3339, utc_text
from brctl.playbook.node_runs import split_instance
from brctl.playbook.run import Run, UnreadableRun
from brctl.playbook.run_record import RunRecord, node_run_row
from brctl.playbook.steps import StepState
from brctl.view.notices.page import Json as PageJson
from brctl.view.notices.page import Page
from brctl.view.runs.way_back import way_back
from brctl.view.text import columns, printable

_SIGN = {
    StepState.DONE: "ok", StepState.FAILED: "FAIL", StepState.SKIPPED: "skip",
    StepState.UNCERTAIN: "DOUBT", StepState.UNDONE: "undone", StepState.UNDO_FAILED: "FAIL",
    StepState.PENDING: "to do", StepState.RUNNING: "run", StepState.UNDOING: "undo",
}  # fmt: skip


_RESUMABLE = (
    RunState.LOST, RunState.STARTING, RunState.INTERRUPTED, RunState.NEEDS_HUMAN,
)  # fmt: skip


def event_line(playbook: Playbook, event: Event) -> str | None:
    """One line for people about an event; None for those that say nothing to them."""
    say = _SENTENCES.get(event.type)
    step = str(event.fields.get("step", ""))
    return say(event.fields, _number(playbook, step), step) if say else None


def _result(fields: Arguments, number: str, step: str) -> str:
    if fields.get("ok") is True:
        return _line("ok", number, step, fields.get("say"), fields.get("seconds"))
    sign = "retry" if fields.get("final") is not True else "FAIL"
    return _line(sign, number, step, fields.get("error"), fields.get("seconds"))


def _undone(fields: Arguments, number: str, step: str) -> str:
    sign = "undone" if fields.get("ok") is True else "FAIL"
    return _line(sign, number, step, fields.get("say") or fields.get("error"), None)


def _node_ended(fields: Arguments, number: str, step: str) -> str:
    result, node = str(fields.get("result")), printable(str(fields.get("node")))
    sign = result if result == NodeResult.OK else "FAIL"
    return _line(sign, "", f"{node} is through", fields.get("why"), fields.get("seconds"))


_SENTENCES: Mapping[EventType, Callable[[Arguments, str, str], str | None]] = {
    EventType.STEP_RESULT: _result,
    EventType.STEP_SKIPPED: lambda f, n, step: _line("skip", n, step, f.get("why"), None),
    EventType.STEP_SETTLED: lambda f, n, step: _line("ok", n, step, f.get("say"), None),
    EventType.ROLLBACK_STARTED: lambda f, n, s: f"undo  because {printable(str(f.get('because')))}",
    EventType.NOTE: lambda f, n, s: f"note  {printable(str(f.get('text')))}",
    EventType.UNDO_RESULT: _undone,
    EventType.NODE_ENDED: _node_ended,
    EventType.APPROVAL_ASKED: lambda f, n, step: _line("ASK", n, step, _ask(f), None),
    EventType.APPROVAL_GIVEN: lambda f, n, s: f"      approved by {printable(str(f.get('by')))}",
    EventType.GUARDS_CHECKED: lambda f, n, s: _guards_text(f),
}


def _ask(fields: Mapping[str, Json]) -> str:
    why = f"{fields['why']}: " if "why" in fields else ""
    return f"{why}{fields.get('who')} must approve; type `{fields.get('answer')}`"


def _number(playbook: Playbook, instance: str) -> str:
    ids, step = [each.id for each in playbook.steps], split_instance(instance)[0]
    return str(ids.index(step) + 1) if step in ids else ""


def _line(sign: str, number: str, step: str, what: Json, seconds: Json) -> str:
    text = f"{sign:<6}{number:>2} {step:<10} {printable(str(what or ''))}"
    if isinstance(seconds, int | float):
        text = f"{text}  {describe_duration(seconds)}"
    return text.rstrip()


def _guards_text(fields: Mapping[str, Json]) -> str | None:
    if fields.get("ok") is not True:
        return "\n".join(guard_lines(fields.get("guards")))
    if fields.get("when") not in ("start", "resume"):
        return None
    return "\n".join(_override_lines(fields.get("guards"))) or None


def _override_lines(guards: Json) -> list[str]:
    """Exceptions are said aloud each time a run begins to act on them."""
    rows = guards if isinstance(guards, Sequence) and not isinstance(guards, str) else ()
    return [
        printable(f"OVERRIDE {row.get('guard')} by {row['overridden_by']} ({row.get('says')})")
        for row in rows
        if isinstance(row, Mapping) and row.get("overridden_by")
    ]


def guard_lines(guards: Json) -> list[str]:
    """What the guards said, refusals in capitals."""
    rows = []
    for row in guards if isinstance(guards, Sequence) and not isinstance(guards, str) else ():
        if isinstance(row, Mapping):
            sign = "ok" if row.get("ok") is True else "REFUSED"
            rows.append([sign, str(row.get("guard")), str(row.get("says")), str(row.get("origin"))])
    return columns(rows, "  ").splitlines()


def run_page(
    run: str,
    playbook: Playbook,
    record: RunRecord,
    state: RunState,
    events: Sequence[Event],
    damage: Sequence[str],
) -> Page:
    """The answer of `play run`, `play show R-...`, `fix` and their kin."""
    end = next((e for e in reversed(events) if e.type is EventType.END), None)
    why = str(end.fields.get("why", "")) if end else "its process is gone; the journal has no end"
    code, back = _exit_code(record), way_back(run, playbook, record, state).commands
    seconds = (events[-1].at - events[0].at).total_seconds() if events else 0.0
    body: dict[str, PageJson] = {
        "run": {
            "id": run,
            "playbook": playbook.name,
            "playbook_sha256": playbook.sha256,
            "state": state,
            "why": why or None,
            "seconds": round(seconds, 3),
            "started_at": rfc3339(events[0].at) if events else None,
            "steps": [_step_document(playbook, name, record, events) for name in record.steps],
            "nodes": [
                {"node": n, **node_run_row(node_run)}
                for n, node_run in record.node_runs.items()
                if n
            ],
            "damage": list(damage),
            "undo": list(back),
        }
    }
    lines = [f"{run}  {playbook.name}"]
    lines += [line for event in events if (line := event_line(playbook, event))]
    lines += node_run_lines(record)
    lines += [f"damaged: {printable(text)}" for text in damage]
    lines.append(ending_line(run, state, why, seconds))
    lines += [f"undo:  {'; '.join(back)}"] if back else []
    rows: list[Mapping[str, PageJson]] = [event_row(event) for event in events]
    return Page("Run", body, "\n".join(lines), code, (run,), tuple(rows), _next(run, state, record))


def _exit_code(record: RunRecord) -> ExitCode:
    """As the journal says it, for a signal has its own; else that of the result."""
    if record.exit_code in list(ExitCode):
        return ExitCode(record.exit_code)
    return record.result.exit_code if record.result else ExitCode.UNKNOWN


def node_run_lines(record: RunRecord) -> list[str]:
    """What became of the nodes of `for_each`, those alike in one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for node, node_run in record.node_runs.items():
        result = node_run.result or ("started" if node_run.started_at else "to do")
        if node:
            alike.setdefault((result, node_run.why), []).append(node)
    rows = [[result, fold(nodes), printable(why)] for (result, why), nodes in alike.items()]
    return columns(rows).splitlines() if rows else []


def event_row(event: Event) -> dict[str, PageJson]:
    """An event as a journal line shows it."""
    return {
        "type": event.type.value,
        "seq": event.seq,
        "run": event.run,
        "ts": rfc3339(event.at),
        **event.fields,
    }


def ending_line(run: str, state: str, why: str, seconds: float) -> str:
    """How a run ended, in one line."""
    because = f": {printable(why)}" if why else ""
    return f"{run} {state} after {describe_duration(seconds)}{because}"


def _step_document(
    playbook: Playbook, name: str, record: RunRecord, events: Sequence[Event]
) -> dict[str, PageJson]:
    step, past = playbook.step(name), record.steps[name]
    seconds = [
        e.fields.get("seconds")
        for e in events
        if e.type is EventType.STEP_RESULT and e.fields.get("step") == name
    ]
    return {
        "id": name,
        "name": step.name,
        "uses": step.verb,
        "safety": step.safety.value,
        "state": past.state.value,
        "attempts": past.attempts,
        "changed": past.changed,
        "says": past.say or None,
        "error": past.error or None,
        "out": past.out,
        "seconds": sum(s for s in seconds if isinstance(s, int | float)),
    }


def _next(run: str, state: RunState, record: RunRecord) -> tuple[str, ...]:
    if state is RunState.WAITING and record.question:
        return (f"brctl play approve {run}", f"brctl play deny {run}")
    if record.paused or state in _RESUMABLE:
        return (f"brctl play resume {run}", f"brctl play rollback {run}")
    return ()


def resume_lines(lists: Mapping[str, Sequence[str]], hint: str = "") -> list[str]:
    """What a resume would not repeat, look at and do, and which of two ways it goes."""
    names = {"done": "done", "in_doubt": "IN DOUBT", "to_do": "to do"}
    rows = [[names[key], " ".join(_folded(steps)) or "-"] for key, steps in lists.items()]
    return columns([*rows, *([["now", hint]] if hint else [])], " ").splitlines()


def _folded(instances: Sequence[str]) -> list[str]:
    """`burnin@n[1-4]` instead of four instances."""
    nodes: dict[str, list[str]] = {}
    for step, node in map(split_instance, instances):
        nodes.setdefault(step, []).append(node)
    return [f"{step}@{fold(names)}" if any(names) else step for step, names in nodes.items()]


def history_page(runs: Sequence[Run | UnreadableRun], which: str = "") -> Page:
    """The answer of `play history`; `which` says in words what was asked for, if not all."""
    rows = [_history_row(run) for run in runs]
    shown = [
        [str(r["run"]), _started(run), str(r["playbook"] or "-"), str(r["state"]),
         describe_duration(float(str(r["seconds"]))), str(r["by"] or "-"), _nodes(run)]
        for run, r in zip(runs, rows, strict=True)
    ]  # fmt: skip
    head = [["RUN", "STARTED", "PLAYBOOK", "STATE", "TOOK", "BY", "NODES"]]
    text = columns([*head, *shown]) if shown else f"no run {which or 'yet'}"
    torn = [printable(run.why, 1000) for run in runs if isinstance(run, UnreadableRun)]
    code = ExitCode.UNKNOWN if torn else ExitCode.OK
    names = tuple(run.name for run in runs)
    return Page("RunList", {"runs": list(rows)}, "\n".join([text, *torn]), code, names, tuple(rows))


def _started(run: Run | UnreadableRun) -> str:
    return utc_text(run.began_at) if isinstance(run, Run) and run.began_at else "-"


def _nodes(run: Run | UnreadableRun) -> str:
    return (fold(run.nodes) or "-") if isinstance(run, Run) else "-"


def _history_row(run: Run | UnreadableRun) -> dict[str, PageJson]:
    """A run of the list; of one that cannot be read, its name and the reason."""
    if isinstance(run, UnreadableRun):
        return {
            "run": run.name, "started_at": None, "playbook": "", "state": RunState.UNREADABLE,
            "seconds": 0.0, "nodes": "", "verdict": "", "by": "", "exit_code": None,
            "problem": run.why,
        }  # fmt: skip
    return {
        "run": run.name,
        "started_at": rfc3339(run.began_at) if run.began_at else None,
        "playbook": run.playbook.name,
        "state": run.state,
        "seconds": run.seconds,
        "nodes": ",".join(run.nodes),
        "verdict": run.verdict_id,
        "by": run.by,
        "exit_code": run.record.exit_code,
        "problem": None,
    }
