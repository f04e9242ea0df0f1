"""The closed list of verbs: their arguments, what they give, and how dangerous they are.

This is the pure side, so that `play validate` knows every verb without touching one; the programs
are in `actions/`, and a test holds both lists together.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.runs.playbook import Safety


@dataclass(frozen=True, slots=True)
class Verb:
    """What a playbook may write after `uses`.

    Attributes:
        required: Arguments `with` must have.
        optional: Arguments it may have.
        gives: Names under `steps.ID.out`.
        safety: The least a step with this verb may declare.
        undoable: It has a tested undo, so `undo: auto` means something.
        takes_nodes: Its `nodes` count against the blast radius.
    """

    required: frozenset[str]
    gives: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    safety: Safety = Safety.READ
    undoable: bool = False
    takes_nodes: bool = False


UNCONFIRMED = "unconfirmed"
"""What a verb gives under this name are nodes that did not show what was done to them."""


def _set(*names: str) -> frozenset[str]:
    return frozenset(names)


VERBS: Mapping[str, Verb] = {
    "check.run": Verb(
        _set("nodes"),
        _set("passed", "failed", "doubtful", "wrong", "broken", "wrong_reason"),
        _set("level", "may_fail"),
    ),
    "nccl.bisect": Verb(
        _set("nodes"), _set("suspects", "undecided"), _set("size", "reps", "budget"),
        safety=Safety.DISRUPTIVE,
    ),
    "evidence.capture": Verb(
        _set("nodes"), _set("files", "directory"), _set("job", "verdict")
    ),
    "corruption.locate": Verb(
        _set("job"),
        _set("suspects", "wrong_references", "undecided", "unmeasured", "everywhere", "reason"),
        _set(
            "one_in", "missed_in", "budget", "deadline", "references", "checkpoint", "begins_at",
            "verdict",
        ),
        safety=Safety.DISRUPTIVE,
    ),
    "node.cordon": Verb(
        _set("nodes", "reason"), _set("cordoned", "already"),
        safety=Safety.REVERSIBLE, undoable=True, takes_nodes=True,
    ),
    "node.uncordon": Verb(
        _set("nodes"), _set("uncordoned"), _set("note"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
    "node.drain": Verb(
        _set("nodes", "reason"), _set("drained"), _set("within"),
        safety=Safety.DISRUPTIVE, undoable=True, takes_nodes=True,
    ),
    "node.label": Verb(
        _set("nodes"), _set("labelled"), _set("set", "remove", "owner"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
    "ckpt.select": Verb(
        _set("job"), _set("path", "step"), _set("reachable_without", "max_age", "verdict"),
    ),
    "standby.acquire": Verb(
        _set("count"), _set("nodes", "rejected", "doubtful", "spares"),
        _set("admit", "job", "only", "replacing"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
    "standby.add": Verb(
        _set("nodes", "size"), _set("added", "free"), safety=Safety.REVERSIBLE, undoable=True,
    ),
    "standby.release": Verb(
        _set("nodes"), _set("released"), safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.stop": Verb(
        _set("job"), _set("stopped", "killed", "unreachable", UNCONFIRMED, "step"), _set("grace"),
        safety=Safety.DESTRUCTIVE,
    ),
    "job.check_order": Verb(_set("job", "before"), optional=_set("after")),
    "job.order_ranks": Verb(
        _set("job", "before", "after"), _set("nodes"), safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.take_order": Verb(
        _set("job", "order"), _set("nodes"), safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.replace_nodes": Verb(
        _set("job", "out", "in"), _set("nodes"), safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.restart": Verb(
        _set("job"), _set("ranks", "checkpoint"), _set("checkpoint", "running"),
        safety=Safety.DESTRUCTIVE,
    ),
    "job.replay": Verb(
        _set("job"), _set("suspects", "undecided", "reason"), _set("deadline"),
        safety=Safety.DISRUPTIVE,
    ),
    "job.verify_code": Verb(
        _set("job"), _set("version", "digest"), _set("change", "only", "window", "rollback"),
    ),
    "job.hot_update": Verb(
        _set("job", "change"), _set("change", "version"), _set("may_wait"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.rollback_code": Verb(
        _set("job"), _set("change", "version", "why", "by"), _set("change"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
    "job.wait_progress": Verb(
        _set("job"), _set("first_step", "step"),
        _set("steps", "within", "at_most", "beyond", "stopped_at", "verdict"),
    ),
    "gpu.reset": Verb(
        _set("nodes"), _set("reset"), _set("gpus"), safety=Safety.DESTRUCTIVE,
    ),
    "node.reboot": Verb(
        _set("nodes"), _set("rebooted"), _set("within"), safety=Safety.DESTRUCTIVE,
    ),
    "burnin.run": Verb(
        _set("nodes"), _set("passed", "failed", "burnin"),
        _set("level", "duration", "stop_on", "may_fail"), safety=Safety.DISRUPTIVE,
    ),
    "nccl.test": Verb(
        _set("nodes"), _set("passed", "failed"),
        _set("against", "op", "size", "reps", "min_busbw_ratio", "may_fail"),
        safety=Safety.DISRUPTIVE,
    ),
    "stacks.dump": Verb(
        _set("job"), _set("directory", "silent", "recorders"), _set("nodes", "within")
    ),
    "ckpt.verify": Verb(_set("job"), _set("path", "step"), _set("path", "reachable_without")),
    "ansible.playbook": Verb(
        _set("nodes", "playbook"), _set("ok", "changed", "failed", "unreachable"),
        _set("vars", "tags", "check", "may_fail"), takes_nodes=True,
    ),
    "incident.note": Verb(_set("text"), _set("file")),
    "incident.timeline": Verb(_set(), _set("file"), _set("run")),
    "notify.page": Verb(_set("summary"), optional=_set("severity")),
    "notify.chat": Verb(_set(), optional=_set("channel", "template", "text")),
    "report.table": Verb(_set("columns"), _set("file", "rows")),
    "ticket.create": Verb(
        _set("queue"), _set("ticket"), _set("node", "summary", "attach", "idempotency_key"),
        safety=Safety.REVERSIBLE, undoable=True,
    ),
}  # fmt: skip

LOOK_ALWAYS, LOOK_WHEN_PLANNING, LOOK_NEVER = "always", "plan", "never"
CHECKS = (LOOK_ALWAYS, LOOK_WHEN_PLANNING, LOOK_NEVER)
"""`check` of ansible.playbook: look only; look when planning and act when running; look never."""

SAFETY_ORDER = (Safety.READ, Safety.REVERSIBLE, Safety.DISRUPTIVE, Safety.DESTRUCTIVE)


def is_at_least(safety: Safety, floor: Safety) -> bool:
    """Whether a declared safety admits to all the danger a verb has."""
    return SAFETY_ORDER.index(safety) >= SAFETY_ORDER.index(floor)
