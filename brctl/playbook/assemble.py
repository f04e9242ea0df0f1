"""Make the plan of what was observed: pure, so that the same observations give the same digest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from brctl.model.runs.plan import GuardResult, Plan, PlannedStep
from brctl.model.runs.playbook import Arguments, Json, Playbook, Step
from brctl.playbook.approvals import Demand, strictest
from brctl.playbook.expressions import Scope, is_true
from brctl.playbook.node_runs import Waves, instance_of
from brctl.playbook.plan import digest_of, longest_path_s, nodes_named
from brctl.playbook.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class Observed:
    """What a look at the world gave for one playbook and its inputs.

    Attributes:
        steps: Every step of every node run, with the changes that its verb would make now.
        demands: Who must say yes.
        addresses: Where the nodes that it names are reached: a name may come to mean another
            machine between a plan and its run.
    """

    steps: tuple[PlannedStep, ...]
    guards: tuple[GuardResult, ...]
    demands: tuple[Demand, ...]
    waves: Waves
    at: datetime
    addresses: Mapping[str, str] = field(default_factory=dict)


def plan_of(
    playbook: Playbook, inputs: Arguments, verdict_id: str, blank: RunRecord, found: Observed
) -> Plan:
    """The plan that people read, approve by its digest, and run."""
    steps = [_unless_passed_over(step, found.guards) for step in found.steps]
    return Plan(
        playbook=playbook.name,
        playbook_sha256=playbook.sha256,
        verdict=verdict_id,
        inputs=inputs,
        nodes=nodes_named(playbook, inputs),
        steps=tuple(steps),
        guards=found.guards,
        people=strictest(found.demands),
        roles=tuple(sorted({demand.role for demand in found.demands if demand.role})),
        gate_before=playbook.approval.gate_before if playbook.approval else "",
        longest_path_s=longest_path_s(playbook, blank),
        planned_at=found.at,
        digest=digest_of(playbook.sha256, inputs, verdict_id, _changes(steps), {**found.addresses}),
        waves=found.waves if playbook.for_each else (),
        pause=_pause(playbook),
    )


def _changes(steps: Sequence[PlannedStep]) -> list[Json]:
    """What an approval is bound to, beside the text and the inputs."""
    return [
        [
            instance_of(step.id, step.node),
            step.skipped,
            *([c.sign.value, c.subject, c.what] for c in step.changes),
        ]
        for step in steps
    ]


def skip_reason(step: Step, scope: Scope) -> str | None:
    """Why a step does not run, "" when that is not known yet, or None when it does.

    Raises:
        ExpressionError: The condition cannot be evaluated.
    """
    for text, wanted in ((step.when, True), (step.skip_if, False)):
        if text:
            value = is_true(text, scope)
            if value is None:
                return ""
            if value is not wanted:
                return f"{'when' if wanted else 'skip_if'}: {text}"
    return None


def _unless_passed_over(step: PlannedStep, guards: Sequence[GuardResult]) -> PlannedStep:
    """A node that a guard passes over has no steps."""
    why = "; ".join(guard.sentence for guard in guards if step.node and step.node in guard.skips)
    return replace(step, changes=(), skipped=why) if why else step


def _pause(playbook: Playbook) -> str:
    """When failed nodes make the run wait for a person, in words; "" for never."""
    each = playbook.for_each
    if each is None:
        return ""
    limits = ["a canary fails"] if each.canary else []
    if each.max_failed_count is not None:
        limits.append(f"more than {each.max_failed_count} nodes fail")
    if each.max_failed_ratio is not None:
        limits.append(f"more than {each.max_failed_ratio:.0%} of the nodes so far fail")
    return " or ".join(limits)
