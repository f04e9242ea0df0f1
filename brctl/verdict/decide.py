"""Evidence in, verdicts out: the strongest explanation first, with what was not looked at.

What to do about a verdict is not decided here: brctl/playbook/recommend.py asks the decision tree.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from brctl.model.evidence import Evidence, Gap, Role, Weight
from brctl.model.evidence_kinds import DISKS_CHECK, REPLAY_DIFFERS, SLOW_LOADER, WAY_TO_NODES
from brctl.model.fault import Branch, FaultClass, Origin
from brctl.model.fault_catalogue import CATALOGUE, FaultRow
from brctl.model.sweeps.reach import UnreachedTogether
from brctl.model.verdict import Alternative, RuledOut, Suspect, Verdict
from brctl.verdict.agreement import agreed
from brctl.verdict.belief import Hypothesis, hypothesis_of, weigh
from brctl.verdict.calm import chance_of_calm
from brctl.verdict.clocks import beside_other_clocks, only_clocks
from brctl.verdict.leads import cross_checks, leads, settling
from brctl.verdict.places import places
from brctl.verdict.roots import TIE, convicted_by_own_ranks, convicted_of_numbers, roots

SUSPECT_FLOOR = 0.5
"""A node is a suspect when it is likelier bad than good."""

NAMED_FLOOR = 0.2
"""Below this even the best explanation is not worth a name; the verdict is `unknown`."""

CLIENTS = 3
"""So many nodes that a file system keeps waiting share it (own)."""

CHAIN_LIMIT, AILING_SHOWN = 24, 8
_COST_OF_A_WAY = "a look at this machine's network"

_ORDER = {Weight.CONVICTS: 0, Weight.HINTS: 1, Weight.CONTEXT: 2, Weight.CLEARS: 3}
_FOR = (Weight.CONVICTS, Weight.HINTS)
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What is known besides the evidence.

    Attributes:
        job: Name of the job, "" without one.
        job_step: Newest step any rank reported.
        stalled: The job makes no progress; None when there is no job or it is not known.
        decided_at: The moment of the decision, UTC.
        ranks: Ranks each node carries.
        usual_pace: Steps go on as quickly as they used to, or the job has ended well; None when
            nobody knows how quick they were.
        leaves: The leaf switch of each node that was asked, where its labels name one.
        unreached: Nodes that were not reached: most of those asked, or all behind a gateway.
        ailing: What is known against the nodes, also where it stops or slows nothing.
    """

    decided_at: datetime
    job: str = ""
    job_step: int | None = None
    stalled: bool | None = None
    ranks: Mapping[str, tuple[int, ...]] | None = None
    usual_pace: bool | None = None
    leaves: Mapping[str, str] = field(default_factory=dict)
    unreached: UnreachedTogether | None = None
    ailing: tuple[Evidence, ...] = ()


def decide(
    evidence: Iterable[Evidence], gaps: Iterable[Gap], context: DecisionContext
) -> tuple[Verdict, ...]:
    """The verdicts that stand; never empty.

    Where the job does not run, what may keep it from running comes before what slows it, whatever
    is likelier: the second is no reason for the first.

    The order of the evidence never matters. With no root cause the single verdict is `no-fault`
    only when nothing was left unlooked at and the job, if any, makes progress; else `unknown`.
    """
    sound = agreed(
        set(evidence), context.leaves, context.unreached, context.ranks or (), context.stalled
    )
    chain = sorted(beside_other_clocks(sound, context.stalled), key=_chain_key)
    missing = tuple(sorted(set(gaps), key=lambda gap: (gap.subject, gap.what, gap.why)))
    beliefs = weigh(chain)
    clocks = only_clocks(chain)
    causes = roots(beliefs, convicted_by_own_ranks(chain), clocks)
    runs = context.stalled is False
    numbers = convicted_of_numbers(chain) if runs else frozenset()
    groups = _group(_claimable(causes, context, chain), clocks, numbers, runs=runs)
    if not groups:
        likely = any(belief >= SUSPECT_FLOOR for belief in causes.values())
        return (_nothing_found(chain, missing, beliefs, context, likely=likely),)
    verdicts = [
        _verdict(fault, members, chain, missing, beliefs, context) for fault, members in groups
    ]
    return tuple(verdicts)


def _claimable(
    causes: Mapping[Hypothesis, float], context: DecisionContext, chain: Iterable[Evidence]
) -> dict[Hypothesis, float]:
    """Causes that may be named; the others are leads.

    What code does wrong ends or stops a job: a job that trains on has no such fault, but for a
    loader that makes every step wait or gives other batches than before. And a class that machines
    have says nothing where it is hinted at and no machine is.
    """
    survived = {hypothesis_of(item) for item in chain if item.kind in (SLOW_LOADER, REPLAY_DIFFERS)}
    return {
        hypothesis: belief
        for hypothesis, belief in causes.items()
        if not (
            context.stalled is False
            and hypothesis.row.branch is Branch.USER
            and hypothesis not in survived
        )
        and (hypothesis.node or not hypothesis.row.per_node or belief >= SUSPECT_FLOOR)
    }


def _group(
    causes: Mapping[Hypothesis, float],
    clocks: frozenset[Hypothesis],
    numbers: frozenset[FaultClass],
    *,
    runs: bool,
) -> list[tuple[FaultClass, dict[Hypothesis, float]]]:
    """Causes of one class form one verdict; classes ordered by their best member.

    A clock that is off hinders no step, and comes last however sure it is. What only slows a job
    comes after wrong numbers: it costs time, they cost every step since.
    """
    likely = {h: p for h, p in causes.items() if p >= SUSPECT_FLOOR} or _weak(causes)
    by_fault: dict[FaultClass, dict[Hypothesis, float]] = {}
    for hypothesis, belief in likely.items():
        by_fault.setdefault(hypothesis.fault, {})[hypothesis] = belief
    return sorted(
        by_fault.items(),
        key=lambda item: (
            clocks >= set(item[1]),
            CATALOGUE[item[0]].slows and not runs,
            bool(numbers) and item[0] not in numbers and _only_slows(item[0]),
            -max(item[1].values()),
            item[0],
        ),
    )


def _only_slows(fault: FaultClass) -> bool:
    """Whether a job that trains on is but slower for it; of code only loaders are claimed then."""
    return CATALOGUE[fault].slows or CATALOGUE[fault].branch is Branch.USER


def _weak(causes: Mapping[Hypothesis, float]) -> dict[Hypothesis, float]:
    """The best explanation where none is likely; of equals of one class, the class and no node.

    Equals of different classes name nothing: they stand among the alternatives.
    """
    best = max(causes.values(), default=0.0)
    equals = sorted(h for h, p in causes.items() if best - p < TIE)
    if best < NAMED_FLOOR or len({h.fault for h in equals}) > 1:
        return {}
    if len(equals) == 1:
        return {equals[0]: best}
    return {Hypothesis(equals[0].fault, ""): best}


def _verdict(
    fault: FaultClass,
    members: Mapping[Hypothesis, float],
    chain: Sequence[Evidence],
    gaps: tuple[Gap, ...],
    beliefs: Mapping[Hypothesis, float],
    context: DecisionContext,
) -> Verdict:
    row = CATALOGUE[fault]
    nodes = [hypothesis.node for hypothesis in sorted(members) if hypothesis.node]
    nodes = nodes or _odd_ones(fault, chain)
    kept = _relevant(chain, fault, nodes)
    return Verdict(
        id=_name(fault, nodes, context),
        fault=fault,
        title=_title(fault, kept),
        suspects=tuple(_suspect(node, kept, fault, context) for node in nodes),
        origin=_origin(fault, kept),
        probability=min(members.values()),
        evidence=kept,
        alternatives=_rivals(beliefs, fault, nodes),
        ruled_out=_ruled_out(kept, fault, beliefs),
        not_checked=gaps,
        decided_at=context.decided_at,
        job=context.job,
        job_step=context.job_step,
        cost_if_wrong=row.cost_if_wrong,
        stalled=context.stalled,
        settle=cross_checks(kept, nodes),
        places=() if nodes else places(fault, chain, context.ranks or ()),
    )


def _origin(fault: FaultClass, chain: Sequence[Evidence]) -> Origin:
    """The class's own side, unless everything that speaks for it proves another."""
    proved = {item.origin for item in chain if item.fault is fault and item.weight in _FOR}
    (only,) = proved if len(proved) == 1 else (None,)
    return only or CATALOGUE[fault].origin


def _title(fault: FaultClass, chain: Sequence[Evidence]) -> str:
    """The class's own title, or that of the one kind of evidence that speaks for it."""
    row = CATALOGUE[fault]
    kinds = {item.kind for item in chain if item.fault is fault and item.weight in _FOR}
    (only,) = kinds if len(kinds) == 1 else ("",)
    return row.titles.get(only, row.title)


def _odd_ones(fault: FaultClass, chain: Sequence[Evidence]) -> list[str]:
    """The few nodes that have what may be everybody's, where most measured that they have not.

    Three clients of one file server, or more, are healthy: what they share is the way to it.
    """
    if not CATALOGUE[fault].may_be_local:
        return []
    mine = [item for item in chain if item.fault is fault and item.strength is None]
    has = {i.subject.node for i in mine if i.weight in _FOR and i.role is Role.ROOT}
    has_not = {i.subject.node for i in mine if i.weight is Weight.CLEARS}
    others = len(has_not - has)
    most = max(2, others)
    own = any(i.source == DISKS_CHECK and i.weight in _FOR for i in mine)
    if fault is FaultClass.STORAGE_CHECKPOINT and not own:
        most = min(most, CLIENTS)
    return sorted(has) if "" not in has and others and len(has) < most else []


def _rivals(
    beliefs: Mapping[Hypothesis, float], fault: FaultClass, nodes: Sequence[str]
) -> tuple[Alternative, ...]:
    """What else it may be; where a class names no node, also the nodes it may be on."""
    rivals = [(h, p) for h, p in beliefs.items() if h.fault is not fault or (h.node and not nodes)]
    rivals.sort(key=lambda item: (-item[1], item[0]))
    return tuple(Alternative(h.fault, (h.node,) if h.node else (), p) for h, p in rivals[:3])


def _nothing_found(
    chain: Sequence[Evidence],
    gaps: tuple[Gap, ...],
    beliefs: Mapping[Hypothesis, float],
    context: DecisionContext,
    *,
    likely: bool,
) -> Verdict:
    calm = chance_of_calm(
        chain,
        gaps,
        beliefs,
        stalled=context.stalled,
        usual_pace=context.usual_pace,
        likely=likely,
        ailing=bool(context.ailing),
    )
    fault = FaultClass.NO_FAULT if calm else FaultClass.UNKNOWN
    row = CATALOGUE[fault]
    way = context.unreached if any(item.kind == WAY_TO_NODES for item in chain) else None
    return Verdict(
        id=_name(fault, [], context),
        fault=fault,
        title=way.title if way else _why_unknown(row, chain, gaps),
        suspects=(),
        origin=row.origin,
        probability=calm,
        evidence=(*context.ailing[:AILING_SHOWN], *_relevant(chain, fault, [])),
        # Too weak to be named, but where somebody would look first.
        alternatives=leads(chain) or _rivals(beliefs, fault, ()),
        ruled_out=(),
        not_checked=gaps,
        decided_at=context.decided_at,
        job=context.job,
        job_step=context.job_step,
        cost_if_wrong=_COST_OF_A_WAY if way else row.cost_if_wrong,
        stalled=context.stalled,
        settle=(*(way.settle if way else ()), *settling(chain)),
        places=places(fault, chain, context.ranks or ()) if not calm and way is None else (),
    )


def _why_unknown(row: FaultRow, chain: Sequence[Evidence], gaps: tuple[Gap, ...]) -> str:
    """The class's title, or the reason that a kind of evidence tells.

    Where all was looked at, and no node and no other cause than slowness has a hint to look at.
    """
    told = [row.titles[item.kind] for item in chain if item.kind in row.titles]
    return told[0] if told and not gaps and not any(map(_is_lead, chain)) else row.title


def _is_lead(item: Evidence) -> bool:
    at_something = bool(item.subject.node) or item.fault is not FaultClass.STRAGGLER_SLOW
    return item.weight in _FOR and item.fault is not None and at_something


def _relevant(
    chain: Sequence[Evidence], fault: FaultClass, nodes: list[str]
) -> tuple[Evidence, ...]:
    """The part of the chain that speaks of this verdict: its nodes, its class, the job's words."""
    kept = [
        item
        for item in chain
        if item.weight is not Weight.CLEARS
        and (item.subject.node in nodes or item.fault is fault or not item.subject.node)
    ]
    victims = [item for item in chain if item.role is Role.VICTIM and item not in kept][:4]
    cleared = [i for i in chain if i.weight is Weight.CLEARS and i.subject.node in nodes]
    remaining = max(0, CHAIN_LIMIT - len(kept) - len(victims))
    return tuple(sorted(kept[:CHAIN_LIMIT] + victims + cleared[:remaining], key=_chain_key))


def _suspect(
    node: str, chain: Sequence[Evidence], fault: FaultClass, context: DecisionContext
) -> Suspect:
    devices = {
        item.subject.device
        for item in chain
        if item.subject.node == node
        and item.subject.device
        and item.fault is fault
        and item.weight in (Weight.CONVICTS, Weight.HINTS)
    }
    ranks = (context.ranks or {}).get(node, ())
    return Suspect(node, tuple(sorted(d for d in devices if not d.startswith("rank:"))), ranks)


def _ruled_out(
    chain: Sequence[Evidence], fault: FaultClass, beliefs: Mapping[Hypothesis, float]
) -> tuple[RuledOut, ...]:
    """Classes that something clears on the suspects and nothing speaks for."""
    alive = {hypothesis.fault for hypothesis, belief in beliefs.items() if belief >= NAMED_FLOOR}
    by: dict[FaultClass, list[tuple[int, Evidence]]] = {}
    for number, item in enumerate(chain, start=1):
        hypothesis = hypothesis_of(item)
        if item.weight is Weight.CLEARS and hypothesis and hypothesis.fault not in alive | {fault}:
            by.setdefault(hypothesis.fault, []).append((number, item))
    return tuple(
        RuledOut(ruled, tuple(number for number, _ in items), items[0][1].text)
        for ruled, items in sorted(by.items())
    )


def _chain_key(item: Evidence) -> tuple[object, ...]:
    """In order of time where it is known, then by weight, then stable."""
    at = item.at.timestamp() if item.at else float("inf")
    rest = (item.kind, item.source, item.text, item.raw, item.role, item.fault or "")
    # Not the subject itself: a comparison of two of those costs ten of two texts.
    return (at, _ORDER[item.weight], item.subject.node, item.subject.device, *rest)


def _name(fault: FaultClass, nodes: Sequence[str], context: DecisionContext) -> str:
    """Short and stable for the same decision: `V-` and four letters."""
    text = "|".join([fault, *nodes, context.job, context.decided_at.isoformat()])
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:3], "big")
    return "V-" + "".join(_CROCKFORD[number >> shift & 31] for shift in (15, 10, 5, 0))
