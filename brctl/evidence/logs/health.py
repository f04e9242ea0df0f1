"""What is over and what is well: no-fault needs a proof that is newer than every warning.

1. A warning is over when a line says that it is (`nfs: server x OK`), or when steps or the job's
   own success follow it and nothing was torn down in between: a retry, a caught exception.
2. Hardware, the kernel and what steps themselves show are over only when their own line says so.
3. A corrected error below its rate was never a warning.
4. A proof counts when every warning left is older than it; a weak one only where none is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.order import is_before
from brctl.evidence.logs.signature import Part

_WARNINGS = frozenset(
    {Part.ROOT, Part.GENERIC, Part.VICTIM, Part.TEARDOWN, Part.STOPPED, Part.UNEXPLAINED}
)
_ENDINGS = frozenset({Part.TEARDOWN, Part.STOPPED})
_CAUSES = frozenset({Part.ROOT, Part.GENERIC, Part.HINT})
_WITHOUT_CLOCK = 10
"""Where no line has a clock, this many minutes' worth of a corrected error accuse."""

_COMES_AND_GOES = 3
"""A sensor that alarmed so often in one log is not well because its last alarm ended."""

_ANSWERS = frozenset({"over.scsi-refusal"})
"""Ends that say what each warning was: a disk that refuses a command is as well the tenth time."""

GOES_ON = 0.8
"""A proof at least this strong shows that the job itself went on or ended well."""


@dataclass(frozen=True, slots=True)
class LogHealth:
    """What speaks for health in a set of events.

    Attributes:
        proof: Strength of the best proof that is newer than every warning left; 0 for none.
        explained: Lines of alarm were seen, and each is known to be harmless or over.
    """

    proof: float
    explained: bool


def split(events: Sequence[LogEvent]) -> tuple[list[LogEvent], list[LogEvent]]:
    """The events that still stand, and those that are over or were never a warning."""
    proofs = [event.newest() for event in events if event.signature.part is Part.HEALTHY]
    endings = [event for event in events if _is_ending(event)]
    families = {(e.source, e.family): e for e in reversed(events) if e.last_line}
    over = {
        key
        for key, first in families.items()
        if _is_quiet(first) or _is_over(first, proofs, endings)
    }
    standing = [e for e in events if (e.source, e.family) not in over]
    return standing, [e for e in events if (e.source, e.family) in over]


def health_of(standing: Iterable[LogEvent], over: Sequence[LogEvent]) -> LogHealth:
    """What the standing events and those that are over prove."""
    standing = list(standing)
    warnings = [e.newest() for e in standing if e.signature.part in _WARNINGS]
    proofs = [
        event.signature.strength
        for event in standing
        if event.signature.part is Part.HEALTHY
        and (not warnings or event.signature.strength >= GOES_ON)
        and all(is_before(warning, event.newest()) for warning in warnings)
    ]
    harmless = any(e.signature.part is Part.BENIGN for e in standing)
    return LogHealth(max(proofs, default=0.0), (harmless or bool(over)) and not warnings)


def _name(event: LogEvent) -> str:
    return event.signature.name


def _is_ending(event: LogEvent) -> bool:
    return event.signature.part in _ENDINGS or _name(event).startswith("exit.")


def _is_quiet(first: LogEvent) -> bool:
    """Whether a corrected error stays below the rate at which it accuses."""
    limit = first.signature.per_minute
    if not limit:
        return False
    if first.rate_per_min is None:
        return first.reported < limit * _WITHOUT_CLOCK
    return first.rate_per_min < limit


def _is_over(first: LogEvent, proofs: Sequence[LogEvent], endings: Sequence[LogEvent]) -> bool:
    signature, newest = first.signature, first.newest()
    if signature.part not in _WARNINGS or signature.part is Part.STOPPED:
        return False
    for proof in proofs:
        settled = signature.name in proof.signature.settles and _ended(first, proof)
        if settled and is_before(newest, proof):
            return True
        if proof.signature.strength < GOES_ON or proof.source != first.source:
            continue
        if signature.physical or signature.own or not is_before(newest, proof):
            continue
        if signature.part not in _CAUSES or not _was_torn_down(first, proof, endings):
            return True
    return False


def _ended(first: LogEvent, proof: LogEvent) -> bool:
    """Whether a recovery is that of the same sensor, and a state that does not come and go.

    Where neither line names a sensor, only one of the same input tells of the same thing.
    """
    sensors = {event.fields.get("sensor", "").lower() for event in (first, proof)} - {""}
    if not sensors and first.source != proof.source:
        return False
    if len(sensors) > 1:
        return False
    return not sensors or first.count < _COMES_AND_GOES or _name(proof) in _ANSWERS


def _was_torn_down(first: LogEvent, proof: LogEvent, endings: Sequence[LogEvent]) -> bool:
    """Whether the job ended between a warning and the proof: then it began anew, not on."""
    if int(proof.fields.get("restarted", "0")) > first.line:
        return True
    return any(
        ending.source == first.source and ending.newest().line >= first.line for ending in endings
    )
