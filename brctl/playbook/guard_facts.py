"""What guards may know, how they answer, and how the values of their lines are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from brctl.model.runs.calendar import Calendar
from brctl.model.runs.playbook import Arguments, Need
from brctl.model.runs.result import PastRun
from brctl.model.units import parse_duration_s
from brctl.playbook.expressions import ExpressionError


@dataclass(frozen=True, slots=True)
class Taken:
    """A node somebody took out of service, and when."""

    node: str
    by: str
    at: datetime


class Fact(StrEnum):
    """What has to be looked up before a guard can answer; the value is its name for people."""

    CORDONS = "who cordoned what"
    BURNINS = "which nodes computed wrongly in a burn-in"
    TAKEN = "which nodes were taken"
    HEALTH = "which nodes are well"
    SILENCE = "which nodes answer"
    STANDBYS = "which standbys are free"
    JOBS = "which nodes carry jobs"
    LOCKS = "who holds the locks"
    VERDICT = "the verdict"
    PAST_RUNS = "other runs"
    CALENDARS = "the calendars"


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """What the guards may know; only what the lines that apply declare was looked up.

    Attributes:
        taken: Nodes that carry somebody else's cordon; what other runs took is in `past_runs`.
        goes_on: The job of a verdict that found it standing still takes steps again; None when
            nobody could tell, or no line asks.
        unknown: Why a fact could not be had; a guard that needs it refuses.
        nodes: Nodes the plan takes out of service; empty for one that takes none.
        at_once: The same nodes by batch, where a playbook gives a batch back before it takes the
            next; empty when all of them are out together.
        named: Nodes the plan touches in any way.
        fleet: Nodes that count as the whole.
        healthy: Nodes of the fleet known to be in service and well.
        silent: Nodes of the fleet that nobody could measure.
        standbys: Standbys that are free to take.
        spares: Idle ordinary nodes that make up for standbys that are missing.
        cordon_owners: Who cordoned each cordoned node; `cordon_reasons` what they wrote on it.
        computed_wrongly: Cordoned nodes of which a burn-in since then says so.
        busy: Node to the job it carries.
        held: Wanted lock keys that another run holds, with the holder.
        racks: Node to rack, for the nodes whose rack is known; `leaves` likewise.
        past_runs: Other runs that took nodes, or that are alive and may.
        uncounted: What other runs there are that do not count, in sentences.
        calendars: What the calendars that guards ask say now.
        left_s: Seconds until every timeout and retry of what is still to do is used up.
        can_ask: The playbook has a gate at which people can be asked.
        per_node: Its steps run once per node, so that single nodes can be passed over.
    """

    now_at: datetime
    run: str
    playbook: str = ""
    nodes: tuple[str, ...] = ()
    at_once: tuple[tuple[str, ...], ...] = ()
    named: tuple[str, ...] = ()
    job: str = ""
    fleet: tuple[str, ...] = ()
    taken: tuple[Taken, ...] = ()
    healthy: frozenset[str] = frozenset()
    silent: frozenset[str] | None = None
    standbys: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    warmed_at: Mapping[str, datetime] = field(default_factory=dict)
    job_nodes: tuple[str, ...] = ()
    cordon_owners: Mapping[str, str] = field(default_factory=dict)
    cordon_reasons: Mapping[str, str] = field(default_factory=dict)
    computed_wrongly: frozenset[str] = frozenset()
    busy: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    verdict: str = ""
    verdict_at: datetime | None = None
    still_true: bool | None = None
    goes_on: bool | None = None
    past_runs: tuple[PastRun, ...] = ()
    uncounted: tuple[str, ...] = ()
    racks: Mapping[str, str] = field(default_factory=dict)
    leaves: Mapping[str, str] = field(default_factory=dict)
    calendars: Mapping[str, Calendar] = field(default_factory=dict)
    left_s: float = 0.0
    can_ask: bool = False
    per_node: bool = False
    unknown: Mapping[Fact, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """What one guard answers.

    Attributes:
        people: How many must say yes, whatever the playbook's own policy says.
        skips: Nodes that a `for_each` passes over instead of refusing all.
    """

    ok: bool
    sentence: str
    way_out: str = ""
    people: Need = Need.NONE
    skips: tuple[str, ...] = ()


def number(parameters: Arguments, key: str, default: float) -> float:
    """A number of a guard's line.

    Raises:
        ExpressionError: It is something else.
    """
    value = parameters.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"{key!r} must be a number, not {value!r}")
    return value


def seconds(parameters: Arguments, key: str, default: str) -> float:
    """A duration of a guard's line, in seconds."""
    return parse_duration_s(str(parameters.get(key, default)))


def names(parameters: Arguments, key: str) -> tuple[str, ...]:
    """One name or several."""
    value = parameters.get(key, ())
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)  # type: ignore[union-attr]  # a list after `validate`
