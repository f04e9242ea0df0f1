"""What a playbook would do to the world now: changes, guards with their numbers, approvals."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.runs.estimate import Estimate
from brctl.model.runs.playbook import Arguments, Json, Need, Safety


class Sign(StrEnum):
    """How a plan marks a change."""

    ADD = "+"
    ALTER = "~"
    REMOVE = "-"


@dataclass(frozen=True, slots=True)
class Change:
    """One object of the world before and after; `what` is a sentence without markup.

    Attributes:
        node: The node that would be reserved; "" for every other change.
    """

    sign: Sign
    subject: str
    what: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class GuardResult:
    """What one guard said.

    Attributes:
        sentence: Number and limit in one sentence.
        origin: `file:line` of the limit, or `built in`.
        way_out: What the person can do about a refusal.
        people: How many must say yes, whatever the playbook's own policy says.
        skips: Nodes that a `for_each` passes over.
        overridden_by: Who let the run go on against this refusal, and why; "" for nobody.
    """

    kind: str
    ok: bool
    sentence: str
    origin: str
    way_out: str = ""
    people: Need = Need.NONE
    skips: tuple[str, ...] = ()
    overridden_by: str = ""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step as it would run now; arguments that depend on earlier steps stay unknown.

    Attributes:
        node: The node of `for_each` it runs for; "" without one.
    """

    id: str
    name: str
    uses: str
    safety: Safety
    arguments: Arguments
    changes: tuple[Change, ...]
    skipped: str = ""
    undoable: bool = False
    node: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A playbook bound to inputs and to the world as it was at one moment.

    Attributes:
        digest: Hash over playbook, inputs, steps and changes; an approval is bound to it.
        longest_path_s: Sum of all timeouts, retries included.
        people: How many must approve before `gate_before`.
        roles: Unix groups some of them must be in.
        waves: The nodes of `for_each` that run side by side, in turn; empty without it.
        pause: When failed nodes stop the waves until a person says go on; "" for never.
        estimate: What it is expected to cost; None where nobody looked.
    """

    playbook: str
    playbook_sha256: str
    verdict: str
    inputs: Mapping[str, Json]
    nodes: tuple[str, ...]
    steps: tuple[PlannedStep, ...]
    guards: tuple[GuardResult, ...]
    people: Need
    gate_before: str
    longest_path_s: float
    planned_at: datetime
    digest: str
    roles: tuple[str, ...] = ()
    waves: tuple[tuple[str, ...], ...] = ()
    pause: str = ""
    estimate: Estimate | None = None

    @property
    def refused(self) -> tuple[GuardResult, ...]:
        """The guards that say no."""
        return tuple(guard for guard in self.guards if not guard.ok)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change of every step, in order."""
        return tuple(change for step in self.steps for change in step.changes)
