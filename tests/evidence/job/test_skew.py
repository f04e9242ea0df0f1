"""Slow data, slow loaders and slow hardware are told apart by what many steps of all ranks cost."""

import json
import math
import random
from collections.abc import Callable, Mapping

import pytest

from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.data.ledger import read_ledger
from brctl.evidence.job.data.skew import Cause, LoadComparison, SlowCause, compare_loads
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.rank_history import RankHistory
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.verdict.decide import DecisionContext, decide
from tests.evidence.job.test_loaders import NOW

STEPS, RANKS, BAD = 100, 64, 17
TOKENS, PACKED = 8192, 4


def packed_cost(rng: random.Random) -> float:
    """Sum of squared lengths of four packed sequences of 8,192 tokens, log-normal lengths."""
    total = 0.0
    for _ in range(PACKED):
        left = float(TOKENS)
        while left > 0:
            length = min(left, rng.lognormvariate(math.log(1500), 1.0))
            total += length**2
            left -= length
    return total


def histories(
    *, skew: bool, slower: float = 1.0, cost: bool = True,
    load: Callable[[int], float] = lambda _: 0.0,
    source: Callable[[int], str] = lambda _: "", ranks: int = RANKS, step_s: float = 10.0,
) -> dict[int, RankHistory]:  # fmt: skip
    """What the ranks wrote of 100 steps of about 10 s, with 1 % noise; rank 17 may be slower."""
    rng = random.Random(7)
    costs = [[packed_cost(rng) if skew else 1.2e8 for _ in range(STEPS)] for _ in range(ranks)]
    usual = sum(map(sum, costs)) / ranks / STEPS
    busy = [
        [
            step_s * (0.7 + 0.3 * c / usual) * rng.gauss(1.0, 0.01) * (slower if r == BAD else 1.0)
            for c in costs[r]
        ]
        for r in range(ranks)
    ]
    ends = [max(busy[r][s] + load(r) for r in range(ranks)) for s in range(STEPS)]
    return {
        r: RankHistory(
            1, (load(r),) * STEPS, tuple(busy[r]),
            tuple(end - busy[r][s] - load(r) + 0.2 for s, end in enumerate(ends)),
            tuple(costs[r]) if cost else (), source(r),
        )
        for r in range(ranks)
    }  # fmt: skip


def nodes(ranks: int = RANKS) -> dict[int, str]:
    return {rank: f"n{rank // 8 + 1}" for rank in range(ranks)}


def compared(found: Mapping[int, RankHistory]) -> LoadComparison:
    result = compare_loads(found, nodes(len(found)))
    assert result is not None
    return result


TABLE = [
    ("skew only", {"skew": True}, SlowCause.IMBALANCE, ()),
    ("skew, one GPU +10 %", {"skew": True, "slower": 1.10}, SlowCause.HARDWARE, (BAD,)),
    ("skew, one GPU +5 %", {"skew": True, "slower": 1.05}, SlowCause.HARDWARE, (BAD,)),
    ("balanced, one GPU +10 %", {"skew": False, "slower": 1.10}, SlowCause.HARDWARE, (BAD,)),
    ("balanced", {"skew": False}, SlowCause.EVEN, ()),
    ("no cost, skew", {"skew": True, "cost": False}, SlowCause.NOT_TOLD_APART, ()),
    ("no cost, one GPU +10 %", {"skew": False, "cost": False, "slower": 1.1},
     SlowCause.NOT_TOLD_APART, ()),
    ("one node loads", {"skew": True, "load": lambda r: 3.0 if r // 8 == 2 else 0.0},
     SlowCause.LOADER_OF_NODE, tuple(range(16, 24))),
    ("one source loads", {"skew": True, "load": lambda r: 3.0 if r % 4 == 1 else 0.0,
                          "source": lambda r: "web" if r % 4 == 1 else "code"},
     SlowCause.LOADER_OF_SOURCE, tuple(range(1, 64, 4))),
    ("some load", {"skew": True, "load": lambda r: 3.0 if r in (3, 40) else 0.0},
     SlowCause.LOADERS, (3, 40)),
    ("all load", {"skew": True, "load": lambda _: 3.0}, SlowCause.ALL_LOADERS, ()),
]  # fmt: skip


@pytest.mark.parametrize(("made", "cause", "culprits"), [row[1:] for row in TABLE],
                         ids=[row[0] for row in TABLE])  # fmt: skip
def test_the_truth_table(
    made: Mapping[str, object], cause: SlowCause, culprits: tuple[int, ...]
) -> None:
    found = compared(histories(**made))  # type: ignore[arg-type]  # by name
    assert (found.cause, found.culprits) == (cause, culprits)


HARDWARE, ALL_LOADERS = (SlowCause.HARDWARE, (BAD,)), (SlowCause.ALL_LOADERS, ())


@pytest.mark.parametrize(
    ("load_s", "cause", "beside"), [(2.0, HARDWARE, ALL_LOADERS), (8.0, ALL_LOADERS, HARDWARE)]
)
def test_what_costs_most_is_the_cause_and_hides_nothing(
    load_s: float, cause: Cause, beside: Cause
) -> None:
    """Without workers every rank loads in every step, and one GPU takes half as long again."""
    found = compared(histories(skew=True, slower=1.5, load=lambda _: load_s))
    assert ((found.cause, found.culprits), found.beside) == (cause, beside)


@pytest.mark.parametrize(
    ("load_s", "faults"),
    [
        (2.0, (FaultClass.STRAGGLER_SLOW, FaultClass.DATA_LOADER)),
        (8.0, (FaultClass.DATA_LOADER, FaultClass.STRAGGLER_SLOW)),
    ],
)
def test_the_larger_of_two_causes_is_the_verdict_and_the_other_is_said(
    load_s: float, faults: tuple[FaultClass, FaultClass]
) -> None:
    found = histories(skew=True, ranks=24, slower=1.5, load=lambda _: load_s)
    status = advancing({rank - 14: h for rank, h in found.items() if 14 <= rank < 22})
    evidence = assess_job(status, ())
    context = DecisionContext(NOW, JOB.name, 100, stalled=False)
    main = decide(evidence, job_gaps(status, ()), context)[0]
    assert main.fault is faults[0]
    assert main.nodes == (("n4",) if faults[0] is FaultClass.STRAGGLER_SLOW else ())
    weights = {e.fault: e.weight for e in evidence if e.fault in faults}
    assert weights == {faults[0]: Weight.CONVICTS, faults[1]: Weight.HINTS}


@pytest.mark.parametrize(
    ("load_per_cpu", "load_s", "weight"),
    [(0.5, 3.0, Weight.CONVICTS), (8.0, 3.0, Weight.HINTS), (8.0, 30.0, Weight.CONVICTS)],
)
def test_on_busy_hosts_only_what_takes_most_of_a_step_is_called_a_slow_loader(
    load_per_cpu: float, load_s: float, weight: Weight
) -> None:
    """A loader that gets no processor is late like everything else there."""
    found = histories(skew=False, ranks=8, load=lambda _: load_s)
    load = Measurement("host.cpu.load_per_cpu", "", load_per_cpu)
    reports = [
        NodeReport(
            node, Outcome.ANSWERED, (CheckResult("host.cpu", ProbeStatus.MEASURED, (load,)),)
        )
        for node in JOB.nodes
    ]
    (item,) = assess_job(advancing(found), reports)
    assert (item.fault, item.weight) == (FaultClass.DATA_LOADER, weight)


NOT_TOLD, SOME_LOADERS = (SlowCause.NOT_TOLD_APART, ()), (SlowCause.LOADERS, (3, 40))


@pytest.mark.parametrize(
    ("load_s", "cause", "beside"), [(2.0, NOT_TOLD, SOME_LOADERS), (8.0, SOME_LOADERS, NOT_TOLD)]
)
def test_without_cost_slow_loaders_hide_no_rank_that_computes_longer(
    load_s: float, cause: Cause, beside: Cause
) -> None:
    """Whether its data or its GPU is to blame nobody knows, but that it is late is seen."""
    load = {3: load_s, 40: load_s}
    found = compared(histories(skew=False, cost=False, slower=1.5, load=lambda r: load.get(r, 0.0)))
    assert ((found.cause, found.culprits), found.beside) == (cause, beside)


def test_without_cost_slow_loaders_alone_have_nothing_beside_them() -> None:
    found = compared(histories(skew=False, cost=False, load=lambda r: 3.0 if r in (3, 40) else 0.0))
    assert (found.cause, found.beside) == (SlowCause.LOADERS, None)


def test_a_slow_rank_beside_a_slow_loader_is_said_where_no_cost_tells_why() -> None:
    found = histories(
        skew=False, cost=False, ranks=24, slower=1.5, load=lambda r: 8.0 if r == 15 else 0.0
    )
    status = advancing({rank - 14: h for rank, h in found.items() if 14 <= rank < 22})
    evidence, gaps = assess_job(status, ()), job_gaps(status, ())
    assert against(evidence) == {(FaultClass.DATA_LOADER, "n2")}
    hints = [e.text for e in evidence if e.fault is FaultClass.STRAGGLER_SLOW]
    assert len(hints) == 1
    assert "rank 3 on n4" in hints[0]
    assert hints[0].endswith("imbalance or hardware, not told apart")
    main = decide(evidence, gaps, DecisionContext(NOW, JOB.name, 100, stalled=False))[0]
    assert main.fault is FaultClass.DATA_LOADER
    assert any(gap.why.startswith("imbalance or hardware") for gap in main.not_checked)


@pytest.mark.parametrize("unit", [0.0, 1e-200, 1.0, 5e11])
@pytest.mark.parametrize("cost", [0.0, 1e-200, 1.0, 5e11])
def test_ledgers_of_nothing_or_of_next_to_nothing_are_compared_to_no_end(
    unit: float, cost: float
) -> None:
    """A rank writes what its job says; numbers whose squares are zero or endless are numbers."""
    for spread in (0.0, 1e-200, 0.5):
        made = {
            rank: RankHistory(
                1, (0.0,) * STEPS, (unit * (1 + spread * rank),) * STEPS, (0.0,) * STEPS,
                (cost * (1 + spread * rank),) * STEPS, "",
            )
            for rank in range(8)
        }  # fmt: skip
        assert compare_loads(made, nodes(8)) is not None


@pytest.mark.parametrize("slower", [1.05, 1.10])
def test_a_slow_gpu_that_hides_in_uneven_data_has_by_far_the_largest_residual(
    slower: float,
) -> None:
    """It is the slowest in few steps; what its data does not explain is what tells."""
    found = compared(histories(skew=True, slower=slower))
    z = {row.rank: row.residual or 0.0 for row in found.ranks}
    assert z.pop(BAD) > 20
    assert max(map(abs, z.values())) < 6
    assert found.ranks[BAD].late < 0.6


def test_too_few_steps_or_ranks_tell_nothing() -> None:
    found = histories(skew=True)
    short = {rank: h.part(1, 49) for rank, h in found.items()}
    assert compare_loads(short, nodes()) is None
    assert compare_loads({0: found[0], 1: found[1]}, nodes()) is None


def test_ranks_are_compared_over_the_steps_that_all_of_them_have() -> None:
    """One was read a step later than another: its newest step is nobody else's."""
    found = histories(skew=True)
    found[0] = found[0].part(4, 100)
    found[1] = found[1].part(1, 97)
    assert compared(found).steps == 94


JOB = example_job()


def advancing(found: Mapping[int, RankHistory]) -> JobStatus:
    views = [
        RankView(
            rank, JOB.node_of(rank), alive=True, step=100, phase="forward", progress_age_s=0.1,
            wait_s=h.wait_s[-1], step_s=11.0, recent_steps=1, ledger=h,
        )
        for rank, h in found.items()
    ]  # fmt: skip
    return JobStatus(JOB, tuple(views), 100, 0.1, stalled=False, silent=())


def against(evidence: tuple[Evidence, ...]) -> set[tuple[FaultClass | None, str]]:
    return {(e.fault, e.subject.node) for e in evidence if e.weight is Weight.CONVICTS}


SMALL = {"ranks": 8, "skew": True}


@pytest.mark.parametrize(
    ("made", "expected", "verdict"),
    [
        ({}, set(), (FaultClass.NO_FAULT, ())),
        ({"cost": False}, set(), (FaultClass.UNKNOWN, ())),
        ({"load": lambda r: 3.0 if r == 4 else 0.0}, {(FaultClass.DATA_LOADER, "n5")},
         (FaultClass.DATA_LOADER, ())),
        ({"load": lambda _: 3.0}, {(FaultClass.DATA_LOADER, "")}, (FaultClass.DATA_LOADER, ())),
    ],
)  # fmt: skip
def test_uneven_or_slow_data_convicts_no_machine(
    made: Mapping[str, object],
    expected: set[tuple[FaultClass, str]],
    verdict: tuple[FaultClass, tuple[str, ...]],
) -> None:
    """Today's every step has a rank that waits least, whatever its data is."""
    status = advancing(histories(**{**SMALL, **made}))  # type: ignore[arg-type]  # by name
    found, gaps = assess_job(status, ()), job_gaps(status, ())
    assert against(found) == expected
    context = DecisionContext(NOW, JOB.name, 100, stalled=False)
    main = decide(found, gaps, context)[0]
    assert (main.fault, main.nodes) == verdict
    assert any("not told apart" in gap.why for gap in gaps) is (made == {"cost": False})


def test_a_slow_rank_is_named_whatever_it_is_given() -> None:
    found = histories(skew=True, ranks=24, slower=1.05)
    few = {rank - 14: h for rank, h in found.items() if 14 <= rank < 22}
    assert against(assess_job(advancing(few), ())) == {(FaultClass.STRAGGLER_SLOW, "n4")}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"first": 1}',
     '{"first": true, "load": [1], "compute": [1], "wait": [1]}',
     '{"first": 1, "load": [1], "compute": [1, 2], "wait": [1]}',
     '{"first": 1, "load": [1], "compute": ["1"], "wait": [1]}',
     '{"first": 1, "load": [-1], "compute": [1], "wait": [1]}'],
)  # fmt: skip
def test_a_ledger_that_is_none_is_nothing(text: str) -> None:
    assert read_ledger(text) is None


def test_a_cost_that_is_not_whole_is_not_reported() -> None:
    row = {"first": 5, "load": [0, 0], "compute": [1, 2.5], "wait": [0, 1], "cost": [3]}
    assert read_ledger(json.dumps(row)) == RankHistory(5, (0.0, 0.0), (1.0, 2.5), (0.0, 1.0))
