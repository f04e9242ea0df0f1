"""Who failed first: demotes victims, teardown and symptoms until root candidates are left.

The rules, from the attribution chapter of the fault sheet:

1. Roots first; a victim's line never carries a class.
2. What a program says after its scheduler stopped it proves nothing; the kernel still does.
3. A cause explains its symptoms: what it is known to produce is demoted when it is near in time,
   but for a network's hardware that failed before something waited for it, and for a part that
   reported itself before others missed its node.
4. Of two unrelated candidates the earlier wins, unless it is much the weaker.
5. A stop order is the cause only when nothing failed before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.order import is_before, seconds_between, sort_key
from brctl.evidence.logs.signature import Part
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass as F
from brctl.model.fault_catalogue import CATALOGUE

COLLECTIVE_TIMEOUT_S = 1800.0
"""PyTorch's longest default: a cause may stand this long before its victims speak."""

AFTERMATH_S = 600.0
"""How long after an exception a GPU still reports what the exception left undone."""

_NETWORK = frozenset({F.NETWORK_ETH, F.NETWORK_LINK, F.NETWORK_IB, F.NETWORK_SWITCH})
_WAITS = frozenset({F.STORAGE_CHECKPOINT, F.HOST_KERNEL})
"""Classes whose lines tell of waiting: a file server without a network, a task that hangs on it."""

CREDIBLE = 0.5
"""A candidate weaker than this neither explains nor outranks another."""

ENDS_A_JOB = 0.6
"""A candidate weaker than this, a bare exception, did not end a job that ran into its limit."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """An event with the role and weight that attribution left it."""

    event: LogEvent
    role: Role
    weight: float

    @property
    def fault(self) -> F:
        return self.event.signature.fault or F.UNKNOWN


def attribute(
    events: Iterable[LogEvent], window_s: float = COLLECTIVE_TIMEOUT_S
) -> tuple[Weighed, ...]:
    """Every event with its role; weights of root candidates say how far each still speaks.

    One representative a signature (the earliest) takes part in the pairwise rules, so that the cost
    depends on the catalogue, not on how many ranks say the same.
    """
    ordered = sorted(events, key=sort_key)
    weighed = [_initial(event) for event in _representatives(ordered)]
    weighed = _after_teardown(weighed, [e for e in ordered if e.signature.name in HARD_STOPS])
    weighed = [_explained(item, weighed, window_s) for item in weighed]
    weighed = [_stopped(item, weighed) for item in weighed]
    return tuple(_outranked(item, weighed) for item in weighed)


def set_aside(events: Iterable[LogEvent]) -> tuple[Weighed, ...]:
    """Events that are over: shown beside the others, and weighing nothing."""
    ordered = sorted(events, key=sort_key)
    return tuple(Weighed(event, Role.CONTEXT, 0.0) for event in _representatives(ordered))


HARD_STOPS = frozenset(
    {
        "slurm.preempted",
        "slurm.requeued-itself",
        "slurm.time-limit",
        "slurm.cancelled",
        "slurm.step-cancelled",
        "slurm.step-aborted",
    }
)
"""After these the processes are being killed; before the signal arrives they may still speak."""

TAKEN_BACK = frozenset({"cloud.taken-back", "slurm.preempted-by-job"})
"""Notices of a cloud: what becomes of the node afterwards was announced."""

BARE_STOPS = frozenset({"slurm.cancelled", "slurm.step-cancelled", "signal.term"})
"""Stops that name no reason."""

_ROLE_OF = {
    Part.ROOT: Role.ROOT,
    Part.GENERIC: Role.ROOT,
    Part.STOPPED: Role.ROOT,
    Part.VICTIM: Role.VICTIM,
    Part.TEARDOWN: Role.TEARDOWN,
    Part.CONTEXT: Role.CONTEXT,
    Part.BENIGN: Role.CONTEXT,
    Part.HINT: Role.CONTEXT,
    Part.HEALTHY: Role.CONTEXT,
    Part.UNEXPLAINED: Role.CONTEXT,
}


def _initial(event: LogEvent) -> Weighed:
    return Weighed(event, _ROLE_OF[event.signature.part], event.signature.strength)


def _representatives(ordered: Sequence[LogEvent]) -> list[LogEvent]:
    first: dict[str, LogEvent] = {}
    for event in ordered:
        first.setdefault(event.signature.name, event)
    return list(first.values())


def _after_teardown(weighed: list[Weighed], stops: list[LogEvent]) -> list[Weighed]:
    def weigh_again(item: Weighed) -> Weighed:
        signature = item.event.signature
        if item.role is not Role.ROOT or signature.physical or signature.part is Part.STOPPED:
            return item
        if signature.name in ("slurm.node-failure", "kernel.oom"):
            return item
        if any(is_before(stop, item.event) for stop in stops):
            return replace(item, role=Role.TEARDOWN, weight=item.weight * 0.3)
        return item

    return [weigh_again(item) for item in weighed]


def _explained(item: Weighed, all_items: Sequence[Weighed], window_s: float) -> Weighed:
    if item.role is not Role.ROOT:
        return item
    others = (o for o in all_items if o is not item and o.role is Role.ROOT)
    if any(_explains(other, item, window_s) for other in others if other.weight >= CREDIBLE):
        return replace(item, role=Role.VICTIM, weight=item.weight * 0.3)
    return item


def _explains(other: Weighed, item: Weighed, window_s: float) -> bool:
    """Whether one is the cause of what the other tells."""
    if _is_aftermath(item, other):
        return True
    if _names_reason(item) and other.weight < ENDS_A_JOB:
        return False
    if _is_aftermath(other, item) or (_is_general(other) and not _is_general(item)):
        return False
    if _only_ran_out_of_space(item, other) or _adds_nothing(item, other):
        return _is_near(item, other, window_s)
    if _only_ran_out_of_space(other, item):
        return False
    if not CATALOGUE[other.fault].produces(item.fault) or item.event.signature.own:
        return False
    if _was_announced(item, other):
        return False
    if CATALOGUE[item.fault].produces(other.fault) and not _says_more(other, item):
        return False
    if is_before(item.event, other.event) and _keeps_others_waiting(item, other):
        return False
    return _is_near(item, other, window_s)


def _is_near(item: Weighed, other: Weighed, window_s: float) -> bool:
    """Whether two lie close enough in time; what one GPU does over hours is one trouble."""
    gap = seconds_between(other.event, item.event)
    return gap is None or abs(gap) <= window_s or _is_on_card(item, other)


def _is_on_card(item: Weighed, other: Weighed) -> bool:
    """Whether the bus speaks of a function of the GPU that the other line names."""
    gpu, device = other.event.fields.get("gpu", ""), item.event.fields.get("device", "")
    return ":" in gpu and device.partition(".")[0] == gpu.partition(".")[0]


def _says_more(one: Weighed, other: Weighed) -> bool:
    """Whether of two that may each have caused the other this one did."""
    if _failed_before_it_was_missed(one, other):
        return True
    if _failed_before_it_was_missed(other, one):
        return False
    return one.weight > other.weight


def _failed_before_it_was_missed(part: Weighed, node: Weighed) -> bool:
    """Whether a part reported its own failure before others only saw that its node was gone."""
    if node.fault is not F.NODE_FAILURE or node.event.signature.physical:
        return False
    speaks = part.event.signature.physical and part.weight >= CREDIBLE
    return speaks and not is_before(node.event, part.event)


def _was_announced(notice: Weighed, node: Weighed) -> bool:
    """Whether a cloud told that it takes a machine back before its node was missed."""
    if node.fault is not F.NODE_FAILURE or node.event.signature.physical:
        return False
    return notice.event.signature.name in TAKEN_BACK and is_before(notice.event, node.event)


def _keeps_others_waiting(item: Weighed, other: Weighed) -> bool:
    """Whether one is hardware of the network that failed, the other a wait that follows from it."""
    return item.event.signature.physical and item.fault in _NETWORK and other.fault in _WAITS


def _only_ran_out_of_space(item: Weighed, other: Weighed) -> bool:
    """Whether one is a write or read that failed, as who tried it tells, the other a full disk."""
    told = item.fault is F.STORAGE_CHECKPOINT and not item.event.signature.physical
    return told and other.fault is F.DISK_FULL


def _adds_nothing(item: Weighed, other: Weighed) -> bool:
    """Whether one tells only that something failed, the other surely of something that failed."""
    if not _is_general(item) or other.event.signature.part is not Part.ROOT:
        return False
    if other.fault is F.UNKNOWN or CATALOGUE[item.fault].produces(other.fault):
        return False
    return other.weight > item.weight


def _is_general(item: Weighed) -> bool:
    """Whether its line tells only that something failed: it outranks no line that tells what."""
    return item.event.signature.part is Part.GENERIC


def _is_aftermath(item: Weighed, other: Weighed) -> bool:
    """Whether the item is what usually comes after the other, on the GPU of the other."""
    if other.event.signature.name not in item.event.signature.follows:
        return False
    gap = seconds_between(other.event, item.event)
    gpus = {weighed.event.fields.get("gpu", "") for weighed in (item, other)} - {""}
    return (
        len(gpus) < 2 and (gap is None or gap <= AFTERMATH_S) and is_before(other.event, item.event)
    )


def _stopped(item: Weighed, all_items: Sequence[Weighed]) -> Weighed:
    if item.event.signature.part is not Part.STOPPED or item.role is not Role.ROOT:
        return item
    for other in all_items:
        if other.role is Role.VICTIM and _only_stops(item) and is_before(other.event, item.event):
            return replace(item, role=Role.TEARDOWN, weight=item.weight * 0.25)
        if other.role is not Role.ROOT or other.event.signature.part is Part.STOPPED:
            continue
        least = ENDS_A_JOB if _names_reason(item) else CREDIBLE
        if other.weight >= least and not is_before(item.event, other.event):
            return replace(item, role=Role.TEARDOWN, weight=item.weight * 0.25)
    return item


def _names_reason(item: Weighed) -> bool:
    """A stop that the scheduler gives its own reason for."""
    return item.event.signature.name in HARD_STOPS - BARE_STOPS - {"slurm.step-aborted"}


def _only_stops(item: Weighed) -> bool:
    """A stop without a reason: it comes after a failure as well as by a person's wish."""
    return item.event.signature.name in BARE_STOPS


def _outranked(item: Weighed, all_items: Sequence[Weighed]) -> Weighed:
    if item.role is not Role.ROOT or item.event.signature.own:
        return item
    for other in all_items:
        if other.role is not Role.ROOT or other.fault is item.fault or other.weight < CREDIBLE:
            continue
        if _is_general(other) and not _is_general(item):
            continue
        if is_before(other.event, item.event) and other.weight > item.weight - 0.25:
            return replace(item, weight=item.weight * 0.6)
    return item
