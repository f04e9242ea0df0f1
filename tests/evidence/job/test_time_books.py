"""Where a job's time went: the worked example to the microsecond, and sums that always hold."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.job.time_books import (
    account,
    booked,
    costs,
    known_otherwise,
    lost_by_cause,
)
from brctl.model.jobs.job_time import US, BookedSpan, DoneStep, JobIncident, JobTime
from brctl.model.simulation import Book

INCIDENT = JobIncident(
    "V-7K3", "gpu-lost", fault_us=1005 * US, suspected_us=1015 * US, verdict_us=1075 * US
)


def steps(first: int, begin_s: int, until_s: int) -> list[DoneStep]:
    """Steps of 10 s, one after the other."""
    count = (until_s - begin_s) // 10
    return [DoneStep(first + n, (begin_s + 10 * (n + 1)) * US, 10 * US) for n in range(count)]


def example(again: int = 81) -> list[DoneStep]:
    """Start 60 s, fault in step 95, the first new step begins at 1,195 s."""
    return [*steps(1, 60, 1000), *steps(again, 1195, 7195)]


def spans(until_s: int, again: int = 81) -> tuple[BookedSpan, ...]:
    return booked(0, until_s * US, example(again), [INCIDENT])


def seconds(time: JobTime) -> dict[str, float]:
    """The books anything is in, in seconds."""
    return {book.value: us / US for book, us in time.books_us.items() if us}


@pytest.mark.parametrize(
    ("window_s", "known_s", "again", "books", "ettr"),
    [
        ((0, 1005), 1005, 81, {"productive": 940, "first-start": 60, "redo": 5}, 0.9353),
        ((0, 1005), 7195, 81, {"productive": 800, "first-start": 60, "redo": 145}, 0.7960),
        ((0, 3595), 3595, 81, {"productive": 3200, "first-start": 60, "redo": 145, "detect": 10,
                               "locate": 60, "start": 120}, 0.8901),
        ((0, 7195), 7195, 81, {"productive": 6800, "first-start": 60, "redo": 145, "detect": 10,
                               "locate": 60, "start": 120}, 0.9451),
        ((995, 4595), 7195, 81, {"productive": 3400, "redo": 10, "detect": 10, "locate": 60,
                                 "start": 120}, 0.9444),
        ((3595, 7195), 7195, 81, {"productive": 3600}, 1.0),
        ((0, 3595), 3595, 95, {"productive": 3340, "first-start": 60, "redo": 5, "detect": 10,
                               "locate": 60, "start": 120}, 0.9291),
    ],
    ids=["then", "now", "3595", "7195", "sliding", "later", "every step saved"],
)  # fmt: skip
def test_the_worked_example(
    window_s: tuple[int, int], known_s: int, again: int, books: dict[str, int], ettr: float
) -> None:
    time = account(spans(known_s, again), window_s[0] * US, window_s[1] * US)
    assert seconds(time) == books
    assert round(time.ettr or 0, 4) == ettr
    assert sum(time.books_us.values()) == time.wall_us


def test_what_was_known_differs_from_what_is_only_until_lost_steps_are_done_again() -> None:
    """From the first step that is lost to its second time; and until it is seen to be spoilt."""
    otherwise = known_otherwise(example(), [INCIDENT])
    told = {at_s: otherwise(at_s * US) for at_s in (0, 60, 860, 870, 1005, 1194, 1325, 1335, 7195)}
    assert [at_s for at_s, later in told.items() if later] == [870, 1005, 1194, 1325]
    spoilt = known_otherwise(steps(1, 0, 1000), [NAN])
    assert [at_s for at_s in (449, 460, 511, 512, 900) if spoilt(at_s * US)] == [460, 511]
    assert not known_otherwise((), [NAN])(US)


@pytest.mark.parametrize(("later_s", "changed"), [(5, True), (9.8, False)])
def test_what_was_slow_is_told_by_the_steps_that_were_known_then(
    later_s: float, changed: bool
) -> None:
    """A hot update halves the step: hours before it were wholly productive when they ended."""
    before = steps(1, 0, 1000)
    each_us = round(later_s * US)
    after = [DoneStep(101 + n, 1000 * US + (n + 1) * each_us, each_us) for n in range(300)]
    otherwise = known_otherwise([*before, *after], [])
    assert [otherwise(at_s * US) for at_s in (5, 500, 1000)] == [False, changed, changed]
    assert not otherwise(after[-1].end_us)


def test_an_incident_costs_what_it_made_lost() -> None:
    (cost,) = costs(spans(7195), [INCIDENT])
    assert {book.value: us // US for book, us in cost.books_us.items()} == {
        "redo": 145, "detect": 10, "locate": 60, "start": 120,
    }  # fmt: skip
    assert lost_by_cause([cost]) == {"gpu-lost": 335 * US}


def test_time_that_nobody_recorded_is_unknown_and_not_productive() -> None:
    time = account(booked(0, 7195 * US, example(), []), 0, 7195 * US)
    assert seconds(time)["unknown"] == 195
    assert sum(time.books_us.values()) == time.wall_us


def test_a_person_who_was_waited_for_has_a_book() -> None:
    asked = JobIncident(
        "V-1", "gpu-lost", 1005 * US, 1015 * US, 1075 * US, asked_us=1075 * US,
        agreed_us=1135 * US, started_us=1165 * US,
    )  # fmt: skip
    time = account(booked(0, 7195 * US, example(), [asked]), 0, 7195 * US)
    found = seconds(time)
    assert (found["wait-human"], found["start"], found["load"]) == (60, 30, 30)


def test_a_slow_step_is_good_for_as_long_as_one_usually_takes() -> None:
    slow = [*steps(1, 0, 100), DoneStep(11, 125 * US, 25 * US)]
    time = account(booked(0, 125 * US, slow, []), 0, 125 * US)
    assert seconds(time) == {"productive": 110, "degraded": 15}


def test_what_lies_between_two_steps_is_a_save() -> None:
    saved = [*steps(1, 0, 100), *steps(11, 130, 230)]
    assert seconds(account(booked(0, 230 * US, saved, []), 0, 230 * US))["checkpoint"] == 30


NAN = JobIncident("V-2", "numeric-nan", suspected_us=503 * US, verdict_us=512 * US, spoilt_step=46)
"""Seen in step 51; the job goes on, with numbers that are none since step 46."""


def test_steps_without_numbers_are_lost_while_nobody_did_them_anew() -> None:
    """The verdict came before the last step, and the incident costs all that followed."""
    found = booked(0, 1300 * US, steps(1, 0, 1000), [NAN])
    assert seconds(account(found, 0, 1300 * US)) == {"productive": 450, "redo": 560, "start": 290}
    (cost,) = costs(found, [NAN])
    assert (cost.lost_us, cost.stands) == (850 * US, True)
    then = booked(0, 505 * US, steps(1, 0, 1000), [NAN])
    assert costs(then, [NAN])[0].lost_us == 55 * US


def test_steps_without_numbers_that_were_done_anew_stand_no_more() -> None:
    """A person went back to step 41 without a run; what follows is as good as any."""
    again = [*steps(1, 0, 1000), *steps(41, 1100, 2000)]
    found = booked(0, 2005 * US, again, [NAN])
    books = seconds(account(found, 0, 2005 * US))
    assert books == {"productive": 1300, "redo": 610, "start": 90, "unknown": 5}
    (cost,) = costs(found, [NAN])
    assert (cost.lost_us, cost.stands) == (700 * US, False)


def test_a_run_that_stopped_the_job_later_is_what_the_pause_is_charged_to() -> None:
    """The job went on for two steps after the verdict, and nothing says when it was started."""
    slow = JobIncident("V-3", "straggler", verdict_us=80 * US, stopped_us=101 * US)
    found = booked(0, 400 * US, [*steps(1, 0, 100), *steps(11, 300, 400)], [slow])
    assert costs(found, [slow])[0].books_us == {Book.REDO: 10 * US, Book.START: 190 * US}


def test_the_step_at_work_is_charged_to_no_incident_of_before() -> None:
    found = booked(0, 7200 * US, example(), [INCIDENT])
    (cost,) = costs(found, [INCIDENT])
    assert (cost.lost_us, cost.stands) == (335 * US, False)


MOMENTS = st.one_of(st.none(), st.integers(0, 400))


@given(
    runs=st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 60), st.integers(1, 12)), max_size=4
    ),
    moments=st.lists(st.tuples(*[MOMENTS] * 8), max_size=3),
    until=st.integers(0, 600),
)
def test_the_books_sum_to_the_wall_time_whatever_was_recorded(
    runs: list[tuple[int, int, int]], moments: list[tuple[int | None, ...]], until: int
) -> None:
    """Restarts in any order, moments that contradict each other: no second twice, none lost."""
    done, at = [], 0
    for first, pause, count in runs:
        at += pause
        for number in range(count):
            at += 7
            done.append(DoneStep(first + number, at, 7))
    incidents = [
        JobIncident(str(n), "", a, b, c, d, e, f, stopped_us=g, spoilt_step=h)
        for n, (a, b, c, d, e, f, g, h) in enumerate(moments)
    ]
    found = booked(0, until, done, incidents)
    time = account(found, 0, until)
    assert sum(time.books_us.values()) == until
    assert all(a.to_us == b.from_us for a, b in pairwise(found))
    assert min(time.books_us.values()) >= 0
    assert set(time.books_us) == set(Book)
