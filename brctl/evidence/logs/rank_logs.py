"""Evidence from the end of each rank's log: the bridge from logs to the joined verdict.

Silence counts: when every rank that speaks is a victim, the rank without a line is the likeliest
cause. Survivors of a killed rank name a ring neighbour or themselves, never the dead one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from brctl.evidence.logs.attribution import Weighed, attribute
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.health import split
from brctl.evidence.logs.judge import chances_of
from brctl.evidence.logs.order import sort_key
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import CONVICTING, Part, Signature
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import CATALOGUE

_CODE = frozenset(
    {
        FaultClass.USER_CODE,
        FaultClass.ENVIRONMENT_MISMATCH,
        FaultClass.NCCL_CONFIG,
        FaultClass.GPU_OOM,
        # Trainers print the mean over all ranks, and one rank prints it: it names nobody.
        FaultClass.NUMERIC_NAN,
    }
)
"""Classes for which the rank that says it is not the one that has it: no node is named."""


COMMON_SHARE = 0.5
"""What more of the ranks say has a cause that they have in common (own)."""

COMMON_NODES_SHARE, COMMON_NODES = 0.2, 3
"""What ranks on so many nodes say of one that does not answer is none of theirs (own)."""

_NOT_SHOWN = frozenset({Part.CONTEXT, Part.HINT, Part.HEALTHY, Part.BENIGN})


@dataclass(frozen=True, slots=True)
class RankLog:
    """The end of one rank's log, and how the rank ended.

    Attributes:
        text: Its last lines, at most a few KiB; "" when it said nothing.
        exit_status: Its status, negative for a signal; None when not known or still running.
        alive: Whether the process runs; None when that could not be read.
        at: When the log was read or the rank ended, UTC.
    """

    rank: int
    node: str
    text: str
    exit_status: int | None = None
    alive: bool | None = None
    source: str = ""
    at: datetime | None = None


def assess_log_lines(
    logs: Iterable[RankLog],
    signatures: Sequence[Signature] = SHIPPED,
    *,
    advancing: bool = False,
) -> tuple[Evidence, ...]:
    """Evidence of all ranks together, deciding lines first.

    Give every rank of the job, the silent ones too. Inputs in any order give the same evidence.
    The lines are weighed as `logs classify` weighs them, and its probability is their strength.

    Args:
        logs: The end of each rank's log.
        signatures: The shipped ones and the site's own.
        advancing: Every rank goes on after what it said: then a line stopped nobody, and hints.
    """
    ranks = sorted(logs, key=lambda log: log.rank)
    index = LineIndex(signatures)
    read = {w.rank: _events(w, index) for w in ranks}
    everything = [event for events in read.values() for event in events]
    standing, _ = split(sorted(everything, key=lambda e: (*sort_key(e), e.signature.name)))
    weighed = attribute(standing)
    by_source = {_source(w): w for w in ranks}
    ranked = sorted(weighed, key=lambda w: (w.role is not Role.ROOT, -w.weight, w.event.source))
    shown = [item for item in ranked if item.event.signature.part not in _NOT_SHOWN]
    chances = chances_of(weighed)
    common = _common({w.rank: w.node for w in ranks}, read)
    evidence = [
        _evidence(item, by_source[item.event.source], read, chances, common) for item in shown
    ]
    evidence = [_of_a_running_job(item) if advancing else item for item in evidence]
    return (*evidence, *_silent(ranks, read, weighed))


def _source(log: RankLog) -> str:
    return log.source or f"rank-{log.rank:05d}.log"


def _events(log: RankLog, index: LineIndex) -> list[LogEvent]:
    reader = LineReader(_source(log), index)
    for number, line in enumerate(log.text.splitlines(), 1):
        reader.read(number, line.encode("utf-8", "replace"))
    return reader.events()


def _of_a_running_job(item: Evidence) -> Evidence:
    """What stopped nobody; a loss that is no number does not stop training either, and counts."""
    if item.strength is None or item.fault is FaultClass.NUMERIC_NAN:
        return item
    return replace(item, weight=Weight.HINTS, strength=None)


def _evidence(
    item: Weighed,
    log: RankLog,
    read: dict[int, list[LogEvent]],
    chances: Mapping[FaultClass, float],
    common: frozenset[str],
) -> Evidence:
    signature = item.event.signature
    fault = signature.fault if item.role is Role.ROOT else None
    same = _who_said(signature.name, read)
    more = f", and {len(same) - 1} more ranks" if len(same) > 1 else ""
    return Evidence(
        kind=f"log.{signature.name}",
        subject=_subject(signature, log, common=signature.name in common, alone=len(same) == 1),
        weight=_weight(item),
        fault=fault,
        role=item.role,
        source=item.event.source,
        text=f"rank {log.rank} said{more}: {item.event.text.strip()[:200]}",
        raw=item.event.text,
        at=log.at,
        strength=chances.get(fault) if fault not in (None, FaultClass.UNKNOWN) else None,
        origin=signature.origin if fault else None,
    )


def _who_said(name: str, read: Mapping[int, list[LogEvent]]) -> list[int]:
    return [rank for rank, events in read.items() if any(e.signature.name == name for e in events)]


def _common(nodes: Mapping[int, str], read: Mapping[int, list[LogEvent]]) -> frozenset[str]:
    """Signatures that most ranks show, on more than one node, or the ranks of many nodes."""
    ranks_of: dict[str, set[int]] = {}
    for rank, events in read.items():
        for event in events:
            ranks_of.setdefault(event.signature.name, set()).add(rank)
    waits = {e.signature.name for events in read.values() for e in events if _waits(e.signature)}
    many = max(COMMON_NODES, COMMON_NODES_SHARE * len(set(nodes.values())))
    common = set()
    for name, ranks in ranks_of.items():
        there = len({nodes[rank] for rank in ranks})
        most = len(ranks) > COMMON_SHARE * len(read) and there > 1
        if most or (name in waits and there >= many):
            common.add(name)
    return frozenset(common)


def _waits(signature: Signature) -> bool:
    """Whether a line tells of somebody else who does not answer, and of no device of its own."""
    return signature.fault is FaultClass.NETWORK_ETH and not signature.physical


def _subject(signature: Signature, log: RankLog, *, common: bool, alone: bool) -> Subject:
    """Whom a line speaks of: what most ranks say is nobody's, whoever said it first.

    What is wrong with code is no node's either; one rank that alone says it is where it was seen.
    """
    if signature.fault in _CODE and not signature.physical:
        is_place = alone and not CATALOGUE[signature.fault].per_node
        return Subject(log.node, f"rank:{log.rank}") if is_place else Subject("", "code:job")
    if common:
        return Subject("", "job")
    return Subject(log.node, f"rank:{log.rank}")


def _weight(item: Weighed) -> Weight:
    if item.role is not Role.ROOT or item.event.signature.fault is FaultClass.UNKNOWN:
        return Weight.CONTEXT
    return Weight.CONVICTS if item.weight >= CONVICTING else Weight.HINTS


def _silent(
    ranks: Sequence[RankLog], read: dict[int, list[LogEvent]], weighed: Sequence[Weighed]
) -> list[Evidence]:
    """Hints at ranks that ended without a word while every other one reports a lost peer."""
    if any(w.role is Role.ROOT and w.fault is not FaultClass.UNKNOWN for w in weighed):
        return []
    victims = {
        r for r, events in read.items() if any(e.signature.part is Part.VICTIM for e in events)
    }
    spoke = {r for r, events in read.items() if any(_reports(event) for event in events)}
    quiet = [w for w in ranks if w.alive is not True and w.rank not in spoke]
    if not victims or not quiet or len(quiet) * 2 > len(ranks):
        return []
    return [_silence(w, len(victims)) for w in quiet]


def _reports(event: LogEvent) -> bool:
    """Whether a line tells of a failure; steps and known harmless lines do not."""
    return event.signature.part not in (Part.HEALTHY, Part.BENIGN)


def _silence(log: RankLog, victims: int) -> Evidence:
    how = f"ended with status {log.exit_status}" if log.exit_status is not None else "is gone"
    text = (
        f"rank {log.rank} {how} without a word; {victims} ranks that lost a peer did report it,"
        " so it stopped first"
    )
    subject = Subject(log.node, f"rank:{log.rank}")
    return Evidence(
        "log.silent-rank", subject, Weight.HINTS, FaultClass.UNKNOWN, Role.ROOT,
        _source(log), text, at=log.at,
    )  # fmt: skip
