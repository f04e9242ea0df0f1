"""From attributed events to one verdict with a calibrated probability."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from brctl.evidence.logs.attribution import BARE_STOPS, Weighed, attribute, set_aside
from brctl.evidence.logs.claim import (
    CEILING,
    MIN_STRENGTH,
    WITHDRAWN,
    calibrate,
    is_claimed,
)
from brctl.evidence.logs.collectives import calls_that_differ, sequences_that_differ
from brctl.evidence.logs.culprit import Culprit, name_culprit, named_peers
from brctl.evidence.logs.endings import leads_of_ending
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.health import LogHealth, health_of, split
from brctl.evidence.logs.order import sort_key
from brctl.evidence.logs.signature import SPEAKING, Part
from brctl.evidence.logs.unexplained import rank_unexplained
from brctl.evidence.logs.words.components import COMPONENT
from brctl.evidence.logs.words.second_opinion import (
    NO_WORDS,
    WELL,
    second_opinion,
    side_of_words,
)
from brctl.evidence.logs.words.word_model import QUIET
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass, Origin
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.log_verdict import LogEvidence, LogLead, LogVerdict

_FURTHER = 0.35
"""How much a second family of the same class adds; families are seldom independent."""

_FAILED = frozenset({Part.VICTIM, Part.TEARDOWN, Part.STOPPED, Part.UNEXPLAINED})
_SHOWN_ODD = 5
_SHOWN = {Role.ROOT: 6, Role.VICTIM: 4, Role.TEARDOWN: 2, Role.CONTEXT: 2}


def judge(
    name: str,
    events: Iterable[LogEvent],
    notes: Sequence[str] = (),
    *,
    readable: bool = True,
    words: Mapping[FaultClass, float] = NO_WORDS,
) -> LogVerdict:
    """The verdict on a set of events.

    Args:
        name: The input's name, "" for all inputs together.
        events: What the readers kept, in any order.
        notes: What could not be read.
        readable: False when something stayed unread: then nothing found is unknown, not no-fault.
        words: How likely the model of words holds each class; empty where it was not asked.
    """
    events = list(events)
    events += (*sequences_that_differ(events), *calls_that_differ(events))
    kept = sorted(events, key=lambda event: (*sort_key(event), event.signature.name))
    standing, over = split(kept)
    weighed = (*attribute(standing), *set_aside(over))
    odds = odds_of(weighed, health_of(standing, over) if readable else None)
    total = sum(odds.values())
    ranked = sorted(odds.items(), key=lambda item: (-item[1], item[0].value))
    likeliest = by_rules = ranked[0][0]
    stated = calibrate(likeliest, odds[likeliest] / total, weighed)
    if not (_is_beyond_words(likeliest, weighed) or _names_no_reason(likeliest, weighed)):
        likeliest, stated = second_opinion(
            likeliest,
            stated,
            words,
            of_words=_rests_on_words(likeliest, weighed),
            consequences=_consequences(likeliest, weighed),
            some_well=any(event.signature.part is Part.HEALTHY for event in standing),
        )
    claimed = is_claimed(likeliest, stated, weighed, heard=bool(words))
    winner = likeliest if claimed else FaultClass.UNKNOWN
    deciding = _deciding(winner, weighed)
    culprit = _culprit(winner, deciding, standing, kept)
    # What the rules found stays on view beside another class that the words make likelier.
    others = ranked[1:4] if likeliest is by_rules or by_rules in QUIET else ranked[:3]
    most = 1.0 if likeliest is by_rules else 1.0 - stated
    if likeliest is not by_rules:
        weighed = tuple(_set_back(item, winner) for item in weighed)
    return LogVerdict(
        name=name,
        fault=winner,
        origin=_origin(winner, likeliest, weighed, odds, words),
        culprit=culprit.describe(),
        probability=round(stated if winner is likeliest else WITHDRAWN, 3),
        evidence=_lines(winner, weighed, kept, rank_unexplained(standing)),
        alternatives=tuple(
            (fault, round(min(o / total, most), 3))
            for fault, o in others
            if o / total >= 0.02 and fault is not winner
        ),
        notes=tuple(notes),
        leads=_leads(winner, likeliest, stated, weighed, standing),
        culprit_ranks=culprit.ranks,
        culprit_host=culprit.host,
        names_machine=culprit.describe() is not None or _is_physical(deciding),
    )


def _leads(
    winner: FaultClass,
    likeliest: FaultClass,
    stated: float,
    weighed: Sequence[Weighed],
    standing: Sequence[LogEvent],
) -> tuple[LogLead, ...]:
    """What to look at first where the cause is unknown: the class not claimed before all else."""
    if winner is not FaultClass.UNKNOWN:
        return ()
    usual = leads_of_ending(standing)
    if likeliest is FaultClass.UNKNOWN:
        return usual
    line = _deciding(likeliest, weighed)[0].event
    why = f"one line speaks for it, {line.signature.name}, and nothing else in the log confirms it"
    first = LogLead(likeliest, round(stated, 3), "line", (line.text[:400],), why)
    return (first, *(lead for lead in usual if lead.fault is not likeliest))[:3]


def chances_of(weighed: Sequence[Weighed]) -> dict[FaultClass, float]:
    """The stated probability of every class that lines speak for, as `judge` would state it."""
    odds = odds_of(weighed, LogHealth(0.0, explained=False))
    total = sum(odds.values())
    return {fault: calibrate(fault, value / total, weighed) for fault, value in odds.items()}


def odds_of(weighed: Sequence[Weighed], health: LogHealth | None) -> dict[FaultClass, float]:
    """Odds of every class that lines speak for, and of there being no cause or an unknown one.

    Args:
        weighed: Events with their roles.
        health: What proves health; None when something stayed unread.
    """
    by_class: dict[FaultClass, list[float]] = {}
    for item in weighed:
        if item.event.signature.part in SPEAKING:
            by_class.setdefault(item.fault, []).append(item.weight)
    odds = {
        fault: _class_odds(weights)
        for fault, weights in by_class.items()
        if max(weights) >= MIN_STRENGTH
    }
    accused = bool(odds)
    failed = (
        FaultClass.UNKNOWN in odds
        or health is None
        or any(
            item.event.signature.part in _FAILED
            and (item.weight > 0 or item.role is not Role.CONTEXT)
            for item in weighed
        )
    )
    odds[FaultClass.NO_FAULT], unknown = _rest(health, accused=accused, failed=failed)
    odds[FaultClass.UNKNOWN] = odds.get(FaultClass.UNKNOWN, 0.0) + unknown
    return odds


def _rest(health: LogHealth | None, *, accused: bool, failed: bool) -> tuple[float, float]:
    """Odds of no fault and of an unknown cause, by what else was seen."""
    if health is not None and health.proof and not accused:
        return health.proof / (1.0 - health.proof), 1.0
    if accused or failed:
        return (0.02, 0.3) if failed else (0.3, 0.15)
    if health is not None and health.explained:
        return 1.5, 0.6
    return 0.3, 0.6


def _class_odds(weights: list[float]) -> float:
    first, *rest = sorted(weights, reverse=True)
    missing = 1.0 - first
    for weight in rest:
        missing *= 1.0 - _FURTHER * weight
    chance = min(1.0 - missing, CEILING)
    return chance / (1.0 - chance)


def _deciding(winner: FaultClass, weighed: Sequence[Weighed]) -> list[Weighed]:
    mine = [w for w in weighed if w.role is Role.ROOT and w.fault is winner]
    return sorted(mine, key=lambda w: -w.weight)


def _is_beyond_words(likeliest: FaultClass, weighed: Sequence[Weighed]) -> bool:
    """Whether a rule decides that goes by what the model of words does not hear."""
    deciding = _deciding(likeliest, weighed)
    return bool(deciding) and deciding[0].event.signature.beyond_words


def _consequences(likeliest: FaultClass, weighed: Sequence[Weighed]) -> frozenset[FaultClass]:
    """Classes all of whose lines were set behind others here: words know no order of events."""
    lines = [(w.event.signature.fault, w.weight < w.event.signature.strength) for w in weighed]
    standing = {fault for fault, behind in lines if not behind} | {likeliest}
    return frozenset(fault for fault, _ in lines if fault is not None and fault not in standing)


def _rests_on_words(likeliest: FaultClass, weighed: Sequence[Weighed]) -> bool:
    """Whether nothing decides but words that the model reads too."""
    deciding = _deciding(likeliest, weighed)
    if likeliest is FaultClass.NO_FAULT:
        deciding = [w for w in weighed if w.event.signature.part is Part.HEALTHY]
    names = {w.event.signature.name for w in deciding}
    return bool(names) and all(n == WELL.name or n.startswith(COMPONENT) for n in names)


def _set_back(item: Weighed, winner: FaultClass) -> Weighed:
    """A line that the rules went by, beside a verdict on another class that goes by words."""
    is_other = item.role is Role.ROOT and item.fault is not winner
    return replace(item, role=Role.CONTEXT) if is_other else item


def _names_no_reason(likeliest: FaultClass, weighed: Sequence[Weighed]) -> bool:
    """Whether only a stop or a death without a reason decides: its words give none either."""
    deciding = _deciding(likeliest, weighed)
    unknown = likeliest is FaultClass.UNKNOWN
    return bool(deciding) and (
        unknown or all(w.event.signature.name in BARE_STOPS for w in deciding)
    )


SURE_OF_ORIGIN = 0.7
"""Whose fault it is is claimed only when classes of that side hold this much of the probability."""


def _origin(
    winner: FaultClass,
    likeliest: FaultClass,
    weighed: Sequence[Weighed],
    odds: Mapping[FaultClass, float],
    words: Mapping[FaultClass, float],
) -> Origin:
    """Whose the fault is; of a cause not claimed, whose words or its first lead make it."""
    if winner is FaultClass.UNKNOWN and words:
        return side_of_words(words)
    deciding = _deciding(likeliest, weighed)
    if winner is not likeliest:
        return deciding[0].event.signature.side
    side = deciding[0].event.signature.side if deciding else CATALOGUE[winner].origin
    if winner not in odds:
        return side
    same = sum(o for fault, o in odds.items() if fault is winner or CATALOGUE[fault].origin is side)
    return side if same / sum(odds.values()) >= SURE_OF_ORIGIN else Origin.UNKNOWN


def _is_physical(deciding: Sequence[Weighed]) -> bool:
    return bool(deciding) and deciding[0].event.signature.physical


def _culprit(
    winner: FaultClass,
    deciding: Sequence[Weighed],
    standing: Sequence[LogEvent],
    kept: Sequence[LogEvent],
) -> Culprit:
    if winner is FaultClass.NO_FAULT:
        return Culprit()
    names = {w.event.signature.name for w in deciding}
    lines = [event for event in standing if event.signature.name in names]
    blocks = [event for event in kept if event.signature.name in ("torchrun.rank", "torchrun.host")]
    culprit = name_culprit(lines, blocks)
    if culprit.describe() and not culprit.host and not culprit.peer:
        culprit = replace(culprit, host=_host_of(lines, kept))
    if winner is FaultClass.UNKNOWN and (not deciding or not culprit.describe()):
        return named_peers(e for e in kept if e.signature.part is Part.VICTIM)
    return culprit


def _host_of(deciding: Sequence[LogEvent], kept: Sequence[LogEvent]) -> str:
    """The one host that other lines of the deciding inputs were written on."""
    sources = {event.source for event in deciding}
    hosts = {e.fields["host"] for e in kept if e.source in sources and "host" in e.fields}
    return hosts.pop() if len(hosts) == 1 else ""


def _lines(
    winner: FaultClass,
    weighed: Sequence[Weighed],
    kept: Sequence[LogEvent],
    unexplained: Sequence[LogEvent],
) -> tuple[LogEvidence, ...]:
    """The deciding lines first, then some of each other role; of an unknown cause, what is odd."""
    ranked = sorted(
        (w for w in weighed if w.event.signature.part is not Part.UNEXPLAINED),
        key=lambda w: (_shown_late(w, winner), -w.weight, w.event.source, w.event.line),
    )
    odd = unexplained[:_SHOWN_ODD] if winner is FaultClass.UNKNOWN else ()
    shown = {role: [w for w in ranked if w.role is role][:limit] for role, limit in _SHOWN.items()}
    lines = [
        _line(w.event, role, _count(w.event, kept)) for role, items in shown.items() for w in items
    ]
    return (*(_line(event, Role.CONTEXT, event.count) for event in odd), *lines)


def _shown_late(item: Weighed, winner: FaultClass) -> bool:
    """What speaks for the winner comes first; for no fault that is what proves it."""
    if winner is FaultClass.NO_FAULT:
        return item.event.signature.part is not Part.HEALTHY
    return item.fault is not winner


def _line(event: LogEvent, role: Role, count: int) -> LogEvidence:
    return LogEvidence(
        role, event.source, event.line, event.text[:400], event.signature.name, count
    )


def _count(event: LogEvent, kept: Sequence[LogEvent]) -> int:
    return sum(e.count for e in kept if e.signature.name == event.signature.name)
