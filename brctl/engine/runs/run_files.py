"""The files of a run besides its journal: what was asked, what was planned, how it ended."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeVar, cast

import msgspec

from brctl.library.durable_files import append_line, write_atomic
from brctl.library.playbooks import read_playbook
from brctl.model.errors import ConfigError, GuardError
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.plan import Plan
from brctl.model.runs.playbook import Arguments, Json, Playbook
from brctl.model.runs.result import PastRun, read_result
from brctl.model.units import rfc3339
from brctl.playbook.overrides import Override

PLAYBOOK, INPUTS, PLAN, RESULT = "playbook.yaml", "inputs.json", "plan.json", "result.json"
REQUEST, APPROVALS = "request.json", "approvals.ndjson"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Who asked for what, and how to open the same context again.

    Attributes:
        yes: `--yes` was given; counts for playbooks of low risk only.
        typed: What was given with `--confirm`.
        undo: Take everything back instead of going on.
        forward: Do again what a rollback took back that could not be finished.
        override: The guard this person lets the run pass.
        also: Other verdicts whose nodes the run takes along; they end with it.
    """

    by: str
    context: str = ""
    config: str = ""
    yes: bool = False
    typed: str | None = None
    undo: bool = False
    forward: bool = False
    override: Override | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What the expressions of a run read, frozen when it was planned.

    Attributes:
        verdicts: The newest verdict of each node of `for_each`.
    """

    inputs: Arguments
    verdict: Arguments
    verdict_id: str
    job: Arguments
    verdicts: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """One person's answer."""

    by: str
    at: datetime
    plan: str
    yes: bool


def write_json(path: Path, value: Json) -> None:
    """Write plain data so that people can read it."""
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n")


Row = TypeVar("Row", bound=msgspec.Struct)


def _read(path: Path, kind: type[Row]) -> Row:
    """One of our own files; one that is torn, or says something else, is an error that names it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc


def read_json(path: Path) -> dict[str, Json]:
    """Plain data of one of our own files; a damaged one is an error, never empty."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: not a JSON object")
    return value


def save_request(run_dir: Path, request: RunRequest) -> None:
    """Leave for the run's process what it was asked."""
    write_json(
        run_dir / REQUEST,
        {
            "by": request.by,
            "context": request.context,
            "config": request.config,
            "yes": request.yes,
            "typed": request.typed,
            "undo": request.undo,
            "forward": request.forward,
            "override": _override_document(request.override),
            "also": list(request.also),
        },
    )


class _Override(msgspec.Struct):
    guard: str
    by: str
    why: str
    at: datetime


class _Request(msgspec.Struct):
    """request.json; what a newer brctl adds is passed over."""

    by: str
    context: str = ""
    config: str = ""
    yes: bool = False
    typed: str | None = None
    undo: bool = False
    forward: bool = False
    override: _Override | None = None
    also: tuple[str, ...] = ()


def load_request(run_dir: Path) -> RunRequest:
    """What the run was asked last."""
    row = _read(run_dir / REQUEST, _Request)
    over = row.override
    override = Override(over.guard, over.by, over.why, over.at) if over else None
    return RunRequest(
        row.by, row.context, row.config, row.yes, row.typed, row.undo, row.forward, override,
        row.also,
    )  # fmt: skip


def _override_document(override: Override | None) -> Json:
    if override is None:
        return None
    return {
        "guard": override.guard, "by": override.by, "why": override.why, "at": rfc3339(override.at),
    }  # fmt: skip


def save_inputs(run_dir: Path, inputs: RunInputs) -> None:
    """Freeze what the expressions read."""
    write_json(
        run_dir / INPUTS,
        {
            "inputs": inputs.inputs,
            "verdict": inputs.verdict,
            "verdict_id": inputs.verdict_id,
            "job": inputs.job,
            "verdicts": inputs.verdicts,
        },
    )


class _Inputs(msgspec.Struct):
    """inputs.json."""

    inputs: dict[str, object]
    verdict: dict[str, object]
    verdict_id: str
    job: dict[str, object]
    verdicts: dict[str, object] = {}


def load_inputs(run_dir: Path) -> RunInputs:
    """What the expressions of a run read."""
    row = _read(run_dir / INPUTS, _Inputs)
    inputs, verdict, job, verdicts = map(_plain, (row.inputs, row.verdict, row.job, row.verdicts))
    return RunInputs(inputs, verdict, row.verdict_id, job, verdicts)


def _plain(value: dict[str, object]) -> Arguments:
    """What a JSON decoder gave is what JSON can hold; the type says so from here on."""
    return cast("Arguments", value)


def frozen_playbook(run_dir: Path) -> Playbook:
    """The text the run follows, whatever became of the file it was read from."""
    path = run_dir / PLAYBOOK
    return read_playbook(path.read_bytes(), str(path))


def changed_playbook(run_dir: Path, playbook: Playbook, events: Sequence[Event]) -> str:
    """A sentence when the run's copy is not what its journal, or before that its plan, says."""
    started = next((event for event in events if event.type is EventType.RUN_STARTED), None)
    if started is not None:
        recorded = started.fields.get("sha256", playbook.sha256)
    else:
        recorded = read_json(run_dir / PLAN).get("playbook_sha256")
    if recorded == playbook.sha256:
        return ""
    return f"{run_dir / PLAYBOOK} was changed after the run was planned"


def refuse_changed_playbook(run_dir: Path, playbook: Playbook, events: Sequence[Event]) -> None:
    """Do nothing that nobody has read and approved.

    Raises:
        GuardError: The text is another one.
    """
    changed = changed_playbook(run_dir, playbook, events)
    if changed:
        raise GuardError(
            f"refused: {changed}. Nothing is done.",
            hint=f"put the old text back, or plan anew: brctl play plan {playbook.name}",
        )


def listed_playbook(run_dir: Path) -> Playbook:
    """The same for lists of many runs: read once for each text, so its lines name no folder."""
    return _read_text((run_dir / PLAYBOOK).read_bytes())


@lru_cache(maxsize=64)
def _read_text(raw: bytes) -> Playbook:
    return read_playbook(raw, PLAYBOOK)


def plan_document(plan: Plan) -> dict[str, Json]:
    """A plan as plain data, for plan.json and `-o json`."""
    return {
        "playbook": plan.playbook,
        "playbook_sha256": plan.playbook_sha256,
        "verdict": plan.verdict or None,
        "inputs": plan.inputs,
        "nodes": list(plan.nodes),
        "steps": [
            {
                "id": step.id,
                **({"node": step.node} if step.node else {}),
                "name": step.name,
                "uses": step.uses,
                "safety": step.safety.value,
                "with": step.arguments,
                "changes": [
                    {"sign": c.sign.value, "object": c.subject, "what": c.what}
                    for c in step.changes
                ],
                "skipped": step.skipped or None,
                "undo": step.undoable,
            }
            for step in plan.steps
        ],
        "guards": [
            {
                "guard": g.kind,
                "ok": g.ok,
                "says": g.sentence,
                "origin": g.origin,
                "way_out": g.way_out or None,
                "overridden_by": g.overridden_by or None,
            }
            for g in plan.guards
        ],
        "approval": {
            "people": plan.people.value,
            "roles": list(plan.roles),
            "before": plan.gate_before or None,
        },
        **({"waves": [list(w) for w in plan.waves], "pause": plan.pause} if plan.waves else {}),
        "longest_path_seconds": plan.longest_path_s,
        "planned_at": rfc3339(plan.planned_at),
        "digest": plan.digest,
    }


def add_answer(run_dir: Path, approval: ApprovalAnswer) -> None:
    """Leave an answer for the run's process to find."""
    line = {
        "by": approval.by,
        "at": rfc3339(approval.at),
        "plan": approval.plan,
        "yes": approval.yes,
    }
    append_line(run_dir / APPROVALS, json.dumps(line))


def load_answers(run_dir: Path) -> tuple[ApprovalAnswer, ...]:
    """Every answer given so far; a torn line is no answer."""
    path = run_dir / APPROVALS
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.MsgspecError, UnicodeError):
            found.append(msgspec.json.decode(line, type=ApprovalAnswer))
    return tuple(found)


def save_result(run_dir: Path, result: PastRun) -> None:
    """Write how the run ended; the journal's END says the same."""
    write_json(
        run_dir / RESULT,
        {
            "run": result.run,
            "playbook": result.playbook,
            "verdict": result.verdict,
            "nodes": list(result.nodes),
            "taken": list(result.taken),
            "job": result.job,
            "by": result.by,
            "result": result.result,
            "exit_code": result.exit_code,
            "seconds": result.seconds,
            "ended_at": rfc3339(result.ended_at),
            "steps": dict(result.steps),
            **({"lanes": dict(result.node_runs)} if result.node_runs else {}),
        },
    )


class _Result(msgspec.Struct):
    """result.json."""

    run: str
    playbook: str
    verdict: str
    nodes: tuple[str, ...]
    taken: tuple[str, ...]
    job: str
    by: str
    result: str
    exit_code: int
    seconds: float
    ended_at: Annotated[datetime, msgspec.Meta(tz=True)]
    steps: dict[str, str] = {}
    node_runs: dict[str, dict[str, object]] = msgspec.field(name="lanes", default_factory=dict)


def load_result(run_dir: Path) -> PastRun | None:
    """How a run ended; None while it runs or when it was cut off."""
    if not (run_dir / RESULT).exists():
        return None
    row = _read(run_dir / RESULT, _Result)
    return PastRun(
        run=row.run, playbook=row.playbook, verdict=row.verdict, nodes=row.nodes, taken=row.taken,
        job=row.job, by=row.by, result=read_result(row.result), exit_code=row.exit_code,
        seconds=row.seconds, ended_at=row.ended_at, steps=row.steps,
        node_runs={node: _plain(fields) for node, fields in row.node_runs.items()},
    )  # fmt: skip
