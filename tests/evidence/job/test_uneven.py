"""Some steps of many take far longer: news where they did not always, and whose doing if told."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.evidence.job.assess import assess_job
from brctl.evidence.job.history import slow_down, uneven_since, usual_pace
from brctl.evidence.job.status import read_job
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Subject, Weight
from brctl.model.evidence_kinds import SLOW_LOADER, UNEVEN_STEPS
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory
from brctl.model.jobs.rank_history import RankHistory
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.verdict import Confidence, Verdict
from brctl.verdict.decide import DecisionContext, decide
from tests.checks.probes import read

JOB = example_job()
RANKS = 8
NOW = datetime(2026, 11, 23, 21, 0, tzinfo=UTC)
USUAL_S, LONG_S, EVERY, SINCE, STEPS = 0.1, 1.3, 3, 110, 170

Times = Callable[[random.Random], Sequence[float]]


def history_of(folder: Path, times: Sequence[float]) -> StepHistory:
    """The past as the probe reads it from the file that rank 0 writes."""
    rows = [{"step": n, "seconds": seconds} for n, seconds in enumerate(times, 1)]
    (folder / "steps.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read("job.ranks", {"ranks": [0], "log_dir": str(folder), "progress_dir": str(folder)})
    told = tuple(Measurement(name, subject, v) for (name, subject), v in found.values.items())
    result = CheckResult("job.ranks", ProbeStatus.MEASURED, told)
    return read_job(JOB, [NodeReport(JOB.node_of(0), Outcome.ANSWERED, (result,))]).history


def times(usual_s: float = USUAL_S, *, every: int = EVERY, long_s: float = LONG_S) -> list[float]:
    """Quick steps for a while, since then every third a long one."""
    return [
        long_s if n > SINCE and n % every == 0 else usual_s for n in range(1, STEPS + 1)
    ]  # fmt: skip


def status(history: StepHistory, ledgers: Sequence[RankHistory | None] = ()) -> JobStatus:
    own = [*ledgers, *(None for _ in range(RANKS - len(ledgers)))]
    views = tuple(
        RankView(
            rank, JOB.node_of(rank), alive=True, step=STEPS, phase="forward", progress_age_s=0.1,
            wait_s=0.01, step_s=USUAL_S, load_s=0.002, recent_steps=20, ledger=own[rank],
        )
        for rank in range(RANKS)
    )  # fmt: skip
    return JobStatus(JOB, views, STEPS, 0.1, stalled=False, silent=(), history=history)


def ledgers(late: Callable[[int], int], *, loads: bool, more_s: float = 1.2) -> list[RankHistory]:
    """The last 60 steps of all ranks; in each long one `late` tells who takes longer by itself."""
    steps = range(STEPS - 59, STEPS + 1)
    return [
        RankHistory(
            steps[0],
            tuple(0.002 + (more_s if loads and _is_late(n, rank, late) else 0.0) for n in steps),
            tuple(0.05 + (0.0 if loads or not _is_late(n, rank, late) else more_s) for n in steps),
            tuple(0.01 + (more_s if n % EVERY == 0 and late(n) != rank else 0.0) for n in steps),
            (100.0,) * len(steps),
        )
        for rank in range(RANKS)
    ]


def _is_late(step: int, rank: int, late: Callable[[int], int]) -> bool:
    return step % EVERY == 0 and late(step) == rank


def busy_reports() -> list[NodeReport]:
    """Three processes want each processor of every host."""
    load = CheckResult(
        "host.cpu", ProbeStatus.MEASURED, (Measurement("host.cpu.load_per_cpu", "", 3.0),)
    )
    return [NodeReport(node, Outcome.ANSWERED, (load,)) for node in JOB.nodes]


def verdict(found: Sequence[Evidence], job: JobStatus) -> Verdict:
    told = DecisionContext(NOW, stalled=False, usual_pace=usual_pace(job))
    return decide(found, (), told)[0]


def test_long_steps_between_quick_ones_are_no_sound_job(tmp_path: Path) -> None:
    """The usual step is as ever, and the job a third as fast: it was `no-fault` HIGH."""
    job = status(history_of(tmp_path, times()))
    assert slow_down(job.history) is None
    (item,) = assess_job(job, ())
    assert (item.kind, item.subject.node, item.weight) == (UNEVEN_STEPS, "", Weight.HINTS)
    assert usual_pace(job) is False
    found = verdict([item], job)
    assert (found.fault, found.confidence) == (FaultClass.UNKNOWN, Confidence.LOW)
    assert "some take far longer" in " ".join(e.text for e in found.evidence)


@pytest.mark.parametrize(("every", "long_s"), [(2, 0.5), (4, 0.6), (6, 1.3)])
def test_so_are_fewer_or_shorter_ones(tmp_path: Path, every: int, long_s: float) -> None:
    change = uneven_since(history_of(tmp_path, times(every=every, long_s=long_s)))
    assert change is not None
    assert change.since > SINCE - 25


def test_a_usual_step_of_seconds_is_read_too(tmp_path: Path) -> None:
    """The newest steps are then six."""
    assert uneven_since(history_of(tmp_path, times(2.0, every=2, long_s=6.0))) is not None


def _every(period: int, usual_s: float, long_s: float) -> Times:
    return lambda rng: [
        (long_s if n % period == 0 else usual_s) * rng.uniform(0.99, 1.01) for n in range(400)
    ]


SOUND: dict[str, Times] = {
    "even": lambda rng: [0.1 * rng.uniform(0.99, 1.01) for _ in range(400)],
    "evaluates every 10": _every(10, 0.2, 6.0),
    "evaluates every 50": _every(50, 2.0, 60.0),
    "evaluates every 100": _every(100, 0.1, 10.0),
    "saves every 5": _every(5, 1.0, 5.0),
    "saves every 8": _every(8, 0.1, 2.0),
    "accumulates over 4": _every(4, 0.5, 1.5),
    "saves every second": _every(2, 0.5, 2.0),
    "batches of any length": lambda rng: [rng.lognormvariate(0.0, 0.5) for _ in range(400)],
    "short batches of any length": lambda rng: [
        0.3 * rng.lognormvariate(0.0, 0.5) for _ in range(400)
    ],
    "one pause now": lambda _: [0.1] * 395 + [30.0] + [0.1] * 4,
    "one pause before": lambda _: [0.1] * 100 + [600.0] + [0.1] * 299,
    "evaluates first now": lambda _: [0.2] * 390 + [8.0] + [0.2] * 9,
    "a busy minute that is over": lambda _: (
        [0.1] * 150 + [0.1, 0.1, 0.9] * 20 + [0.1] * 190
    ),
    "was uneven and is even": lambda _: [0.1, 0.1, 1.3] * 60 + [0.1] * 200,
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_job_that_was_always_uneven_did_not_become_it(tmp_path: Path, name: str) -> None:
    """Evaluations, saves, accumulated gradients and texts of any length are no fault."""
    alarms = [
        seed
        for seed in range(20)
        if uneven_since(history_of(tmp_path, SOUND[name](random.Random(seed)))) is not None
    ]
    assert alarms == []


def _share(
    folder: Path, made: Times, asked: Callable[[StepHistory], bool], jobs: int = 60
) -> float:
    """Of so many jobs, those of which it is true."""
    return sum(asked(history_of(folder, made(random.Random(seed)))) for seed in range(jobs)) / jobs


def _batches(usual_s: float, spread: float, *, since: int = 400, by: float = 1.0) -> Times:
    """400 steps of batches of any length; so many times as long since one of them."""
    return lambda rng: [
        usual_s * (by if n >= since else 1.0) * rng.lognormvariate(0.0, spread) for n in range(400)
    ]


@pytest.mark.parametrize("spread", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("usual_s", [0.3, 1.0])
def test_steps_that_differ_by_themselves_are_not_slower_by_it(
    tmp_path: Path, usual_s: float, spread: float
) -> None:
    """Up to a third of such jobs were: their newest six steps happened to be long ones."""
    made = _batches(usual_s, spread)
    assert _share(tmp_path, made, lambda history: slow_down(history) is not None) <= 0.05


@pytest.mark.parametrize(
    ("spread", "by", "least"), [(0.01, 1.3, 1.0), (0.1, 1.6, 1.0), (0.3, 1.6, 0.9), (0.5, 2.5, 0.9)]
)
def test_such_a_job_that_becomes_slower_is_found_within_a_window(
    tmp_path: Path, spread: float, by: float, least: float
) -> None:
    made = _batches(1.0, spread, since=380, by=by)
    assert _share(tmp_path, made, lambda history: slow_down(history) is not None) >= least


def test_a_longer_step_that_may_be_luck_is_no_usual_pace(tmp_path: Path) -> None:
    """Whoever has long batches just now may as well be slower: it is not called sound for sure."""

    def is_told(history: StepHistory) -> bool:
        return slow_down(history) is None and usual_pace(status(history)) is None

    assert _share(tmp_path, _batches(1.0, 0.5), is_told) > 0.05
    assert _share(tmp_path, _batches(1.0, 0.01), is_told) == 0.0


@pytest.mark.parametrize("steps", range(30, 100, 5))
def test_a_job_that_saves_often_and_becomes_slower_is_found_by_its_second_window(
    tmp_path: Path, steps: int
) -> None:
    """Its steps are even whatever their mean, and no chunk of a few steps hides the newest."""
    was, since = _every(4, 0.3, 3.0)(random.Random(1)), _every(4, 0.5, 5.0)(random.Random(2))
    assert slow_down(history_of(tmp_path, [*was[:300], *since[:steps]])) is not None


def test_the_rank_whose_batch_all_wait_for_in_the_long_steps_is_named(tmp_path: Path) -> None:
    job = status(history_of(tmp_path, times()), ledgers(lambda _: 5, loads=True))
    (item,) = assess_job(job, ())
    assert (item.kind, item.subject) == (SLOW_LOADER, Subject(JOB.node_of(5), "rank:5"))
    assert (item.fault, item.weight) == (FaultClass.DATA_LOADER, Weight.CONVICTS)
    assert "in 20 of 20 long steps rank 5 waits for its batch" in item.text


@pytest.mark.parametrize(
    ("long_s", "weight"), [(1.3, Weight.CONVICTS), (0.24, Weight.HINTS)], ids=["most", "half"]
)
def test_busy_hosts_account_for_less_than_most_of_a_step(
    tmp_path: Path, long_s: float, weight: Weight
) -> None:
    """They delay loaders by themselves, and not by a second in the same rank each time."""
    held = ledgers(lambda _: 5, loads=True, more_s=(long_s - USUAL_S) * 0.9)
    slower = tuple(replace(one, compute_s=(0.1,) * 60) for one in held)
    job = status(history_of(tmp_path, times(every=2, long_s=long_s)), slower)
    found = [item for item in assess_job(job, busy_reports()) if item.kind == SLOW_LOADER]
    assert [item.weight for item in found] == [weight]


def test_a_rank_that_is_late_by_itself_is_a_lead(tmp_path: Path) -> None:
    """A neighbour, an evaluation that began or hardware: long steps do not tell these apart."""
    job = status(history_of(tmp_path, times()), ledgers(lambda _: 5, loads=False))
    (item,) = [e for e in assess_job(job, ()) if e.kind == UNEVEN_STEPS]
    assert (item.subject.node, item.weight) == (JOB.node_of(5), Weight.HINTS)
    assert "rank 5 is late by itself" in item.text
    assert verdict([item], job).confidence is Confidence.LOW


def held(late: Callable[[int, int], float], *, loads: bool = True) -> list[RankHistory]:
    """The last 60 steps, in which `late` tells by step and rank what each takes longer itself."""
    steps = range(STEPS - 59, STEPS + 1)
    own = {rank: [late(n, rank) for n in steps] for rank in range(RANKS)}
    last = [max(row) for row in zip(*own.values(), strict=True)]
    return [
        RankHistory(
            steps[0],
            tuple(0.002 + (more if loads else 0.0) for more in own[rank]),
            tuple(0.05 + (0.0 if loads else more) for more in own[rank]),
            tuple(0.01 + most - more for most, more in zip(last, own[rank], strict=True)),
        )
        for rank in range(RANKS)
    ]


def _all_late(step: int, rank: int) -> float:
    """The shared store is slow; one rank waits a millisecond more."""
    return 1.2 + 0.001 * (rank == 5) if step % EVERY == 0 else 0.0


def _two_of_one_node(step: int, rank: int) -> float:
    return 1.2 + 0.002 * (rank == step % 2) if step % EVERY == 0 and rank < 2 else 0.0


@pytest.mark.parametrize("loads", [True, False])
def test_where_all_ranks_are_late_none_is_named(tmp_path: Path, loads: bool) -> None:
    """One of them is always the last: that a millisecond decides names nobody."""
    for late in (_all_late, lambda n, _: 1.2 if n % EVERY == 0 else 0.0):
        job = status(history_of(tmp_path, times()), held(late, loads=loads))
        (item,) = [e for e in assess_job(job, ()) if e.kind in (UNEVEN_STEPS, SLOW_LOADER)]
        assert (item.subject, item.weight) == (Subject(""), Weight.HINTS)


def test_two_ranks_of_one_node_name_the_node(tmp_path: Path) -> None:
    """Which of the two comes last changes from step to step."""
    two = replace(JOB, ranks_per_node=2, nodes=JOB.nodes[: RANKS // 2])
    job = replace(status(history_of(tmp_path, times()), held(_two_of_one_node)), job=two)
    (item,) = [e for e in assess_job(job, ()) if e.kind == SLOW_LOADER]
    assert (item.subject, item.weight) == (Subject(two.nodes[0]), Weight.CONVICTS)
    assert "ranks 0, 1 wait for their batches" in item.text


def test_a_rank_that_was_always_late_did_not_make_the_job_so(tmp_path: Path) -> None:
    """Rank 2 has waited .4 s in every fourth step for ever; rank 5's long steps are new."""
    since = 110

    def late(step: int, rank: int) -> float:
        new = 2.0 if step > since and step % 8 == 0 and rank == 5 else 0.0
        return new + (0.4 if step % 4 == 2 and rank == 2 else 0.0)

    took = [0.1 + max(late(n, 2), late(n, 5)) for n in range(1, STEPS + 1)]
    job = status(history_of(tmp_path, took), held(late))
    named = {e.subject.node for e in assess_job(job, ()) if e.kind in (UNEVEN_STEPS, SLOW_LOADER)}
    assert JOB.node_of(2) not in named


@pytest.mark.parametrize("pause_s", [10.0, 30.0, 600.0])
def test_one_pause_before_hides_no_long_steps_since(tmp_path: Path, pause_s: float) -> None:
    """An evaluation within the first two windows was half of what steps took before."""
    took = [0.1] * 19 + [pause_s] + [0.1] * 36
    took += [1.3 if n % 3 == 0 else 0.1 for n in range(104)]
    assert usual_pace(status(history_of(tmp_path, took))) is False


def test_one_odd_window_before_hides_no_slow_down(tmp_path: Path) -> None:
    """A busy half-minute in the past is no habit of the job."""
    took = _every(4, 0.3, 3.0)(random.Random(1))[:200]
    took = [s * (1.4 if 50 <= n < 75 else 1.0) for n, s in enumerate(took)]
    took += [s * 1.6 for s in _every(4, 0.3, 3.0)(random.Random(2))[:60]]
    assert slow_down(history_of(tmp_path, took)) is not None


@pytest.mark.parametrize(
    "who",
    [ledgers(lambda n: n // EVERY % RANKS, loads=True), [*ledgers(lambda _: 5, loads=True)[:7]]],
    ids=["in turn", "one keeps no ledger"],
)
def test_nobody_is_named_where_ledgers_do_not_tell(
    tmp_path: Path, who: Sequence[RankHistory]
) -> None:
    (item,) = assess_job(status(history_of(tmp_path, times()), who), ())
    assert (item.kind, item.subject, item.weight) == (UNEVEN_STEPS, Subject(""), Weight.HINTS)
