"""Where the time of a job went: every moment is in one book, and the books sum to the wall time.

Times are whole microseconds. A step that is done again makes its earlier execution lost, also in
hours that are long past: what is known then and what is known now differ, and both are had by
leaving out what was not known yet.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice, takewhile
from operator import attrgetter
from statistics import mean, median

from brctl.model.jobs.job_time import US, BookedSpan, DoneStep, IncidentCost, JobIncident, JobTime
from brctl.model.simulation import Book

MADS = 3
"""A step this many deviations above the median is no ideal one (ml-goodput's rule)."""

SLOW_RATIO = 1.2
"""And only one that takes a fifth longer than the job's normal is called slow."""

SAME_USUAL = 0.05
"""Usual times no further apart book the same time as productive, but for a few steps (own)."""

USUAL_SAMPLE = 5000
"""Steps that tell the usual time of a moment well enough to see whether it changed."""

LONGEST_SAVE_US = 600 * US
"""Between two steps a job saves or evaluates; what takes longer nobody accounted for (own)."""

MOMENTS = (
    "fault_us", "suspected_us", "verdict_us", "asked_us", "agreed_us", "stopped_us", "started_us",
)  # fmt: skip
LOST = (Book.REDO, Book.DETECT, Book.LOCATE, Book.WAIT_HUMAN, Book.START, Book.LOAD)
"""What an incident costs; time that nobody recorded is charged to none."""


def usual_step_us(steps: Sequence[DoneStep]) -> int:
    """The mean of the steps that are no outliers; 0 without steps.

    Examples:
        >>> usual_step_us([DoneStep(n, 10 * n, 10) for n in range(5)] + [DoneStep(9, 900, 400)])
        10
    """
    times = [step.seconds_us for step in steps]
    if not times:
        return 0
    middle = median(times)
    spread = median(abs(time - middle) for time in times)
    return round(mean(time for time in times if time <= middle + MADS * spread))


def booked(
    began_us: int, until_us: int, steps: Sequence[DoneStep], incidents: Sequence[JobIncident]
) -> tuple[BookedSpan, ...]:
    """All of a job's time as spans that follow one another without a gap.

    Args:
        began_us: When the job began.
        until_us: Up to when it is accounted.
        steps: In the order in which they ended; those that ended later are left out.
        incidents: In order of time; what is dated later is not known yet.
    """
    known = [step for step in steps if began_us <= step.begin_us and step.end_us <= until_us]
    dated = [_known_by(incident, until_us) for incident in incidents]
    runs = list(_runs(known, dated))
    usual_us = usual_step_us(known)
    spoils = [(i, _mended_by(i, runs)) for i in dated if i.spoilt_step is not None and _moment(i)]
    spans: list[BookedSpan] = []
    at_us = began_us
    for number, run in enumerate(runs):
        firsts = [later[0].step for later in runs[number + 1 :]]
        firsts += [i.spoilt_step or 0 for i, mended in spoils if mended > number]
        at_us, before = run[0].begin_us, at_us
        spans += (
            _between(before, at_us, usual_us, dated, _standing(spoils, number, at_us))
            if number
            else [BookedSpan(Book.FIRST_START, before, at_us)]
        )
        spans += _of_run(run, min(firsts, default=None), usual_us)
        at_us = run[-1].end_us
    spans += _between(at_us, until_us, usual_us, dated, _standing(spoils, len(runs), until_us))
    return tuple(span for span in _whose(spans, dated) if span.to_us > span.from_us)


def _known_by(incident: JobIncident, until_us: int) -> JobIncident:
    """An incident as it was known at a moment."""
    later = {name: None for name in MOMENTS if (getattr(incident, name) or 0) > until_us}
    return replace(incident, **later)  # type: ignore[arg-type]  # only moments


def _mended_by(incident: JobIncident, runs: Sequence[Sequence[DoneStep]]) -> int:
    """Number of the start that did the spoilt step anew; behind the last one while it stands."""
    at_us, step = _moment(incident) or 0, incident.spoilt_step or 0
    anew = (n for n, run in enumerate(runs) if run[0].begin_us > at_us and run[0].step <= step)
    return next(anew, len(runs))


def _standing(
    spoils: Sequence[tuple[JobIncident, int]], number: int, to_us: int
) -> JobIncident | None:
    """The incident that had spoilt what was done before the start of this number."""
    found = (i for i, mended in spoils if mended >= number and (_moment(i) or 0) <= to_us)
    return next(found, None)


def _runs(steps: Sequence[DoneStep], incidents: Sequence[JobIncident]) -> Iterator[list[DoneStep]]:
    """Steps from one start to the next: a number that does not grow, or an incident in between."""
    run: list[DoneStep] = []
    for step in steps:
        if run and (step.step <= run[-1].step or _stopped(run[-1], step, incidents)):
            yield run
            run = []
        run.append(step)
    if run:
        yield run


def _stopped(before: DoneStep, after: DoneStep, incidents: Sequence[JobIncident]) -> bool:
    """Where every step is saved, no number tells that the job was started again."""
    return any(_lies_in(incident, before.end_us, after.begin_us) for incident in incidents)


def _of_run(run: Sequence[DoneStep], lost_from: int | None, usual_us: int) -> Iterator[BookedSpan]:
    """The steps between two starts, and what lies between two steps."""
    at_us = run[0].begin_us
    for step in run:
        begin_us = max(step.begin_us, at_us)
        save = begin_us - at_us <= LONGEST_SAVE_US
        yield BookedSpan(Book.CHECKPOINT if save else Book.UNKNOWN, at_us, begin_us)
        at_us = max(step.end_us, at_us)
        if lost_from is not None and step.step >= lost_from:
            yield BookedSpan(Book.REDO, begin_us, at_us)
            continue
        is_slow = at_us - begin_us > SLOW_RATIO * usual_us
        good_us = begin_us + usual_us if is_slow else at_us
        yield BookedSpan(Book.PRODUCTIVE, begin_us, good_us)
        yield BookedSpan(Book.DEGRADED, good_us, at_us)


def _between(
    from_us: int,
    to_us: int,
    usual_us: int,
    incidents: Sequence[JobIncident],
    standing: JobIncident | None,
) -> Iterator[BookedSpan]:
    """The time between the last step and the first one after it, or now."""
    found = next((i for i in incidents if _lies_in(i, from_us, to_us)), standing)
    if found is None:
        yield BookedSpan(Book.UNKNOWN, from_us, to_us)
        return
    # What nobody dated ends where the next thing that is dated begins.
    ends: list[tuple[Book, int | None]] = [
        (Book.REDO, found.fault_us or from_us + usual_us),
        (Book.DETECT, found.suspected_us or found.verdict_us),
        (Book.LOCATE, found.verdict_us),
        (Book.WAIT_HUMAN, found.agreed_us if found.asked_us else None),
        (Book.START, found.started_us or (to_us if found.verdict_us else None)),
        (Book.LOAD, to_us if found.started_us else None),
    ]
    latest = max((end for _, end in ends[1:] if end is not None and end > from_us), default=None)
    at_us = from_us
    for book, end in ends:
        if end is None:
            continue
        limit = to_us if book is not Book.REDO else min(to_us, latest or to_us)
        end_us = min(max(end, at_us), limit)
        yield BookedSpan(book, at_us, end_us)
        at_us = end_us
    yield BookedSpan(Book.DETECT if found.suspected_us is None else Book.LOCATE, at_us, to_us)


def _lies_in(incident: JobIncident, from_us: int, to_us: int) -> bool:
    return any(from_us <= moment <= to_us for moment in _moments(incident))


def _moments(incident: JobIncident) -> list[int]:
    """Those that tell where the job stood: a person may be asked at any time."""
    moments = (
        incident.fault_us, incident.suspected_us, incident.verdict_us, incident.stopped_us,
        incident.started_us,
    )  # fmt: skip
    return [moment for moment in moments if moment is not None]


def _whose(spans: Sequence[BookedSpan], incidents: Sequence[JobIncident]) -> Iterator[BookedSpan]:
    """Spans with the incident that cost them: the one that follows a step that is done again."""
    dated = [number for number, incident in enumerate(incidents) if _moments(incident)]
    for span in spans:
        if span.book not in LOST:
            yield span
            continue
        if span.book is Book.REDO:
            number = _who_undid(span, incidents)
        else:
            number = next((n for n in reversed(dated) if _within(incidents[n], span)), None)
        yield replace(span, incident=number)


def _who_undid(span: BookedSpan, incidents: Sequence[JobIncident]) -> int | None:
    """The incident that ended after steps that are lost, else the one that spoilt them."""
    later = (n for n, i in enumerate(incidents) if max(_moments(i), default=-1) >= span.from_us)
    spoilt = (n for n in reversed(range(len(incidents))) if incidents[n].spoilt_step is not None)
    return next(later, next(spoilt, None))


def _moment(incident: JobIncident) -> int | None:
    """Any moment of it: the first that is dated."""
    return next(
        (
            at
            for at in (incident.fault_us, incident.suspected_us, incident.verdict_us)
            if at is not None
        ),
        None,
    )


def _within(incident: JobIncident, span: BookedSpan) -> bool:
    """The span begins no earlier than the incident, by a step at most."""
    moments = _moments(incident)
    return bool(moments) and min(moments) <= span.to_us


def account(spans: Sequence[BookedSpan], from_us: int, to_us: int) -> JobTime:
    """The books of a window, of spans that follow one another."""
    books = dict.fromkeys(Book, 0)
    first = bisect_right(spans, from_us, key=attrgetter("to_us"))
    for span in takewhile(lambda span: span.from_us < to_us, islice(spans, first, None)):
        books[span.book] += min(span.to_us, to_us) - max(span.from_us, from_us)
    return JobTime(from_us, to_us, books)


def known_otherwise(
    steps: Sequence[DoneStep], incidents: Sequence[JobIncident]
) -> Callable[[int], bool]:
    """Whether what is productive was known otherwise at a moment than it is known now.

    Steps done by then were done again or found to be spoilt after it, or a step usually takes
    another time since.
    """
    undone, usual_us = _undone_after(steps, incidents), _usual_of_first(steps, len(steps))
    ends = [step.end_us for step in steps]

    def otherwise(at_us: int) -> bool:
        done = bisect_right(ends, at_us)
        then_us = _usual_of_first(steps, done)
        return done > 0 and (undone(at_us) or abs(then_us - usual_us) > SAME_USUAL * usual_us)

    return otherwise


def _usual_of_first(steps: Sequence[DoneStep], count: int) -> int:
    """About the usual time of the first steps, from some thousand of them."""
    return usual_step_us(steps[: count : count // USUAL_SAMPLE + 1])


def _undone_after(
    steps: Sequence[DoneStep], incidents: Sequence[JobIncident]
) -> Callable[[int], bool]:
    """Whether steps that were done by a moment were done again, or found to be spoilt, after it."""
    ends = [step.end_us for step in steps]
    highest = list(accumulate((step.step for step in steps), max))
    lowest_later = list(accumulate((step.step for step in reversed(steps)), min))[::-1]
    spoils = [(i.spoilt_step, max(_moments(i), default=0)) for i in incidents]

    def undone(at_us: int) -> bool:
        done = bisect_right(ends, at_us)
        if not done:
            return False
        newest = highest[done - 1]
        again = done < len(steps) and lowest_later[done] <= newest
        return again or any(s is not None and s <= newest and us > at_us for s, us in spoils)

    return undone


def costs(
    spans: Sequence[BookedSpan], incidents: Sequence[JobIncident]
) -> tuple[IncidentCost, ...]:
    """What each incident cost, in order of time."""
    found = []
    for number, incident in enumerate(incidents):
        own = [span for span in spans if span.incident == number]
        books: dict[Book, int] = {}
        for span in own:
            books[span.book] = books.get(span.book, 0) + span.to_us - span.from_us
        began_us = _moment(incident) or (own[0].from_us if own else 0)
        stands = bool(own) and own[-1].to_us == spans[-1].to_us
        found.append(IncidentCost(incident, began_us, books, stands))
    return tuple(found)


def lost_by_cause(found: Sequence[IncidentCost]) -> Mapping[str, int]:
    """Microseconds by cause, the dearest first."""
    lost: dict[str, int] = {}
    for cost in found:
        cause = cost.incident.cause or "unknown"
        lost[cause] = lost.get(cause, 0) + cost.lost_us
    return dict(sorted(lost.items(), key=lambda row: -row[1]))
