"""Who keeps the others waiting, from the dumps of all ranks.

The rules:

1. Each rank waits in its first pending operation; later ones queue behind it.
2. Members that never entered it are waited for. Members that completed it prove that the rank
   itself stopped: what its peers ran to the end, its own GPU did not.
3. Another operation or size under one number is a mismatch; the minority is suspected, a tie
   suspects both sides.
4. Whoever is waited for and waits for nobody is a suspect. Who is waited for and waits is a victim.
5. All entered, none completed, nobody missing: a common cause (fabric), and no rank is named.

Source: PyTorch's torchfrtrace compares last enqueued and completed per group over all ranks; the
wait-for graph on top keeps pipeline neighbours of a stuck rank from being blamed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.evidence.flight.dump import Dump, Operation
from brctl.model.jobs.hang import FlightRecorderAnalysis, GroupProgress, SuspectRank, SuspectReason

STALE_AFTER_S = 600.0
"""A dump whose newest record is this much older than the others' was written before the hang."""


@dataclass(frozen=True, slots=True)
class _Finding:
    """Why one rank holds up others, before it is known whether it waits itself."""

    rank: int
    reason: SuspectReason
    operation: Operation | None
    by: int


def analyse(
    dumps: Sequence[Dump], expected: Sequence[int] = (), notes: Sequence[str] = ()
) -> FlightRecorderAnalysis:
    """Compare the dumps of all ranks.

    Args:
        dumps: One a rank, any order.
        expected: All ranks of the job; empty means those that the dumps' groups name.
        notes: What could not be read.
    """
    by_rank = {dump.rank: dump for dump in sorted(dumps, key=lambda d: d.rank)}
    members = _members(by_rank, expected)
    if expected:
        # A dump may name any rank; who is none of the job's cannot be waited for.
        known = frozenset(expected)
        members = {n: tuple(r for r in ranks if r in known) for n, ranks in members.items()}
    ranks = tuple(sorted(set(expected) or {r for m in members.values() for r in m} | set(by_rank)))
    heads = {rank: head for rank, dump in by_rank.items() if (head := _first_pending(dump))}
    findings = [f for rank, op in heads.items() for f in _findings(rank, op, by_rank, members)]
    findings += _stale(by_rank)
    suspects = _suspects(findings, heads)
    accused = {s.rank for s in suspects}
    waiting = tuple(rank for rank in heads if rank not in accused)
    return FlightRecorderAnalysis(
        ranks=ranks,
        suspects=suspects,
        waiting=waiting,
        common_cause=bool(heads) and not suspects and len(heads) == len(ranks),
        groups=tuple(_progress(name, members[name], by_rank) for name in _pending_groups(heads)),
        notes=(*notes, *_gaps(ranks, by_rank)),
    )


def _members(by_rank: Mapping[int, Dump], expected: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Ranks of each group; gloo's dumps leave them out, then everyone that used the group.

    The first group is of all ranks, also of those that left no dump.
    """
    members: dict[str, tuple[int, ...]] = {}
    used: dict[str, set[int]] = {}
    for rank, dump in by_rank.items():
        for name, ranks in dump.members.items():
            if ranks:
                members.setdefault(name, ranks)
        for op in dump.operations:
            used.setdefault(op.group, set()).add(rank)
    everyone = tuple(sorted({*by_rank, *expected}))
    for name, users in used.items():
        members.setdefault(name, everyone if name == "0" else tuple(sorted(users)))
    return members


def _first_pending(dump: Dump) -> Operation | None:
    pending = [op for op in dump.operations if op.pending]
    return min(pending, key=lambda op: op.order, default=None)


def _findings(
    rank: int, op: Operation, by_rank: Mapping[int, Dump], members: Mapping[str, tuple[int, ...]]
) -> list[_Finding]:
    """Whom this rank's first pending operation accuses."""
    if op.peer is not None:
        return _peer_findings(rank, op, by_rank)
    others = [r for r in members.get(op.group, ()) if r != rank]
    read = [r for r in others if r in by_rank]
    found = [_Finding(r, SuspectReason.NO_DUMP, op, rank) for r in others if r not in by_rank]
    if any(by_rank[r].completed.get(op.group, -1) >= op.sequence for r in read):
        # Whoever left no dump may be the one whose data never came.
        return [_Finding(rank, SuspectReason.STALLED, op, rank), *found]
    absent = [r for r in read if by_rank[r].enqueued.get(op.group, -1) < op.sequence]
    found += [_Finding(r, SuspectReason.NEVER_JOINED, op, rank) for r in absent]
    return found + _mismatches(rank, op, read, by_rank)


def _peer_findings(rank: int, op: Operation, by_rank: Mapping[int, Dump]) -> list[_Finding]:
    assert op.peer is not None  # noqa: S101 - the caller checked it
    if op.peer not in by_rank:
        return [_Finding(op.peer, SuspectReason.NO_DUMP, op, rank)] if op.peer >= 0 else []
    answers = [o for o in by_rank[op.peer].operations if o.peer == rank and o.pending]
    head = _first_pending(by_rank[op.peer])
    if answers and head in answers:
        return []
    return [_Finding(op.peer, SuspectReason.NEVER_JOINED, op, rank)]


def _mismatches(
    rank: int, op: Operation, others: Sequence[int], by_rank: Mapping[int, Dump]
) -> list[_Finding]:
    """Members in another operation under the same number, when they are not the majority."""
    entered = {rank: op.name}
    for other in others:
        same = [o for o in by_rank[other].operations if _is_same_number(o, op)]
        if same:
            entered[other] = same[-1].name
    counts = Counter(entered.values())
    if len(counts) < 2:
        return []
    usual = max(counts.values())
    return [
        _Finding(r, SuspectReason.MISMATCH, op, rank)
        for r, name in entered.items()
        if counts[name] < usual or list(counts.values()).count(usual) > 1
    ]


def _is_same_number(one: Operation, other: Operation) -> bool:
    return one.group == other.group and one.sequence == other.sequence and one.peer is None


def _stale(by_rank: Mapping[int, Dump]) -> list[_Finding]:
    newest = max((dump.newest_s for dump in by_rank.values()), default=0.0)
    return [
        _Finding(rank, SuspectReason.STALE_DUMP, None, rank)
        for rank, dump in by_rank.items()
        if dump.operations and dump.newest_s and newest - dump.newest_s > STALE_AFTER_S
    ]


_OWN_FAULT = frozenset({SuspectReason.STALLED, SuspectReason.MISMATCH, SuspectReason.STALE_DUMP})
"""Reasons that hold although the rank waits itself."""


def _suspects(
    findings: Sequence[_Finding], heads: Mapping[int, Operation]
) -> tuple[SuspectRank, ...]:
    waits_for: dict[int, set[int]] = {}
    for finding in findings:
        if finding.by != finding.rank:
            waits_for.setdefault(finding.by, set()).add(finding.rank)
    own = {f.rank: f for f in reversed(findings) if f.reason in _OWN_FAULT}
    chosen: dict[int, _Finding] = dict(own)
    for finding in findings:
        if finding.rank not in chosen and not waits_for.get(finding.rank):
            chosen.setdefault(finding.rank, finding)
    absent = SuspectReason.NEVER_JOINED
    chosen = {r: f for r, f in chosen.items() if f.reason is not absent or r not in heads}
    chosen = chosen or {f.rank: f for f in _deadlocked(waits_for, findings)}
    listed = [_suspect(f, _waiters(f.rank, waits_for)) for f in chosen.values()]
    return tuple(sorted(listed, key=lambda s: (-len(s.waiting), s.rank)))


def _deadlocked(waits_for: Mapping[int, set[int]], found: Sequence[_Finding]) -> list[_Finding]:
    """Ranks that wait for each other in a circle: each entered what the other did not."""
    circle = {rank for rank in waits_for if rank in _waiters_raw(rank, waits_for)}
    first: dict[int, _Finding] = {}
    for finding in found:
        if finding.rank in circle:
            first.setdefault(finding.rank, replace(finding, reason=SuspectReason.MISMATCH))
    return list(first.values())


def _waiters(rank: int, waits_for: Mapping[int, set[int]]) -> tuple[int, ...]:
    """Everybody that waits for a rank, directly or through others."""
    return tuple(sorted(_waiters_raw(rank, waits_for) - {rank}))


def _waiters_raw(rank: int, waits_for: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    front = {rank}
    while front:
        front = {w for w, targets in waits_for.items() if targets & front} - found
        found |= front
    return found


_SENTENCES = {
    SuspectReason.NEVER_JOINED: "never entered {op} that rank {by} waits in; it waits for nobody",
    SuspectReason.STALLED: "entered {op} and never completed it, although its peers did",
    SuspectReason.MISMATCH: "entered another operation than its peers under the number of {op}",
    SuspectReason.NO_DUMP: "left no dump although rank {by} waits for it in {op}",
    SuspectReason.STALE_DUMP: "has a dump far older than the others: it could not write a new one",
}


def _suspect(finding: _Finding, waiting: tuple[int, ...]) -> SuspectRank:
    op = finding.operation
    text = f"{op.name} #{op.sequence} of group {op.group}" if op else "its last operation"
    return SuspectRank(
        rank=finding.rank,
        reason=finding.reason,
        group=op.group if op else "",
        sequence=op.sequence if op and op.peer is None else None,
        waiting=waiting,
        detail=f"rank {finding.rank} " + _SENTENCES[finding.reason].format(op=text, by=finding.by),
    )


def _pending_groups(heads: Mapping[int, Operation]) -> list[str]:
    return sorted({op.group for op in heads.values()})


def _progress(name: str, ranks: tuple[int, ...], by_rank: Mapping[int, Dump]) -> GroupProgress:
    known = [(r, by_rank[r]) for r in ranks if r in by_rank]
    text = next((d.descriptions[name] for _, d in known if d.descriptions.get(name)), "")
    return GroupProgress(
        name, text, ranks,
        tuple((r, d.enqueued[name]) for r, d in known if name in d.enqueued),
        tuple((r, d.completed[name]) for r, d in known if name in d.completed),
    )  # fmt: skip


def _gaps(ranks: Sequence[int], by_rank: Mapping[int, Dump]) -> list[str]:
    missing = [rank for rank in ranks if rank not in by_rank]
    return [f"no dump of rank {', '.join(map(str, missing))}"] if missing else []
