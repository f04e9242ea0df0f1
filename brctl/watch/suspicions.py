"""Sightings become suspicions, are confirmed by further looks, and end with a clean one."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from brctl.model.watch.state import Sighting, Suspicion, WatchAct
from brctl.watch.rules import RULES

Looked = Set[tuple[str, str]]
"""Rules and subjects that were looked at and could be seen."""


@dataclass(frozen=True, slots=True)
class SuspicionNews:
    """Suspicions after a tick, and what is new about them."""

    suspicions: Mapping[str, Suspicion]
    opened: tuple[Suspicion, ...] = ()
    confirmed: tuple[Suspicion, ...] = ()
    ended: tuple[Suspicion, ...] = ()


def after_look(
    before: Mapping[str, Suspicion], seen: Iterable[Sighting], looked: Looked, now: datetime
) -> SuspicionNews:
    """The suspicions after one tick.

    What nobody could look at stays as it was: silence ends no suspicion.
    """
    known = dict(before)
    opened, confirmed, ended = [], [], []
    fresh = {f"{s.rule}/{s.subject}": s for s in seen}
    for key, sighting in fresh.items():
        held = known.get(key)
        after = _again(held, sighting) if held else _first(sighting, now)
        if after.confirmed_at is None and _weight(after) >= RULES[after.rule].looks:
            after = replace(after, confirmed_at=now)
            confirmed.append(after)
        if held is None:
            opened.append(after)
        known[key] = after
    for key, held in before.items():
        if key not in fresh and (held.rule, held.subject) in looked and _is_over(held, now):
            ended.append(known.pop(key))
    return SuspicionNews(known, tuple(opened), tuple(confirmed), tuple(ended))


def undiagnosed(held: Suspicion) -> Suspicion:
    """The suspicion as if nobody had diagnosed it: what a diagnosis said of it goes as well."""
    return replace(held, diagnosed=False, verdicts=(), named_at=None, named=())


def reopened(held: Suspicion, acts: Iterable[WatchAct]) -> Suspicion:
    """The suspicion to be diagnosed anew, unless something was done about it."""
    acted = {act.verdict for act in acts}
    return held if acted.intersection(held.verdicts) else undiagnosed(held)


def verdicts_that_cover(
    suspicion: Suspicion,
    others: Iterable[Suspicion],
    subjects: Set[str],
    beside: Set[str] = frozenset(),
) -> tuple[str, ...]:
    """The verdicts that another sign of the same trouble has led to; none when it needs its own.

    Only a diagnosis begun after this sign was confirmed has looked at it, and what named no cause
    explains no further sign.

    Args:
        suspicion: Confirmed, and not diagnosed.
        others: All that stand; itself among them is passed over.
        subjects: Nodes and jobs whose trouble would be the same.
        beside: What was looked at in the same diagnosis: it covers a node that it also named.
    """
    seen_at = suspicion.confirmed_at
    return next(
        (
            other.verdicts
            for other in others
            if other.key != suspicion.key
            and (
                other.subject in subjects
                or (other.subject in beside and suspicion.subject in other.named)
            )
            and other.named_at is not None
            and seen_at is not None
            and other.named_at >= seen_at
        ),
        (),
    )


def only_of(suspicions: Mapping[str, Suspicion], subjects: Set[str]) -> Mapping[str, Suspicion]:
    """Those of nodes and jobs that are still looked at: a node that was swapped out is none."""
    return {key: held for key, held in suspicions.items() if held.subject in subjects}


def _first(sighting: Sighting, now: datetime) -> Suspicion:
    return Suspicion(
        sighting.rule, sighting.subject, now, sighting.look, sighting.text,
        sources=sighting.sources,
    )  # fmt: skip


def _again(held: Suspicion, sighting: Sighting) -> Suspicion:
    """A look that was counted already adds none; after a reconnect they count from one again."""
    fresh = sighting.look not in (0, held.look)
    return replace(
        held,
        look=sighting.look,
        looks=held.looks + fresh,
        text=sighting.text,
        sources=tuple(dict.fromkeys((*held.sources, *sighting.sources))),
    )


def _weight(suspicion: Suspicion) -> int:
    """Looks, and further checks that say it: looks at one stuck driver are not independent."""
    return suspicion.looks + max(0, len(suspicion.sources) - 1)


def _is_over(held: Suspicion, now: datetime) -> bool:
    return now - held.since >= timedelta(seconds=RULES[held.rule].holds_s)
