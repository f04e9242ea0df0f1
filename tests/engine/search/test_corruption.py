"""The search for a machine that computes wrongly, from what burn-ins and replays say."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from brctl.engine.search import corruption
from brctl.engine.search.bisect import BisectOptions
from brctl.engine.search.corruption import planned, report_of_burnin, report_of_replay
from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder
from brctl.engine.search.replay_phases import run_dual_phase
from brctl.engine.sweeps.burnin import BurninPlan, convicted_at
from brctl.localise.replay import sharpest_phases
from brctl.model.errors import UsageError
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import example_job
from brctl.model.localisation import Bisection, FaultKind, GroupResult
from brctl.model.sweeps.burnin import Burnin, BurninState, NodeBurnin
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch, Method, MethodReport
from brctl.view.job.corruption import search_sentences

NOON = datetime(2026, 7, 5, 12, 0, tzinfo=UTC)
NODES = tuple(f"n{i}" for i in range(1, 10))
ORDER = CorruptionOrder(44, 0.01, 600.0, 60.0)
GOOD, BAD, NAN = GroupResult(1, 0), GroupResult(1, 1), GroupResult(1, 1, nonfinite=1)
WRONG = GroupResult(1, 1, differs=1)


def burnin(*nodes: NodeBurnin) -> Burnin:
    return Burnin("B-1", 4, ("gpu.gemm",), NOON, 60.0, 12.0, 1, nodes)


def failed(name: str, fault: FaultClass) -> NodeBurnin:
    item = Evidence(
        "k", Subject(name), Weight.CONVICTS, fault, Role.ROOT, "own", "wrong elements", ""
    )
    return NodeBurnin(name, BurninState.FAILED, 1, item.text, (item,), repetitions=44)


def test_only_wrong_results_accuse_a_node() -> None:
    """One that died, was slow, or has no peer of its kind says nothing, and is named with why."""
    report = report_of_burnin(
        Method.PRODUCTS,
        burnin(
            NodeBurnin("n1", BurninState.PASSED, 1, repetitions=44),
            failed("n2", FaultClass.SILENT_CORRUPTION),
            failed("n3", FaultClass.NODE_FAILURE),
            NodeBurnin("n4", BurninState.UNFINISHED, 1, "no answer in 60 s", repetitions=16),
            NodeBurnin("n5", BurninState.PASSED, 1),
        ),
    )
    assert report.wrong == ("n2",)
    assert set(report.unmeasured) == {"n3", "n4", "n5"}
    assert report.repetitions == 44


def test_the_newest_burn_in_that_found_wrong_results_is_the_one_that_counts() -> None:
    """A later one that the node passed takes nothing back; one of another fault is none."""
    first = burnin(failed("n2", FaultClass.SILENT_CORRUPTION), failed("n3", FaultClass.GPU_SLOW))
    second = replace(first, started_at=NOON + timedelta(hours=1))
    passed = burnin(NodeBurnin("n2", BurninState.PASSED, 1))
    third = replace(passed, started_at=NOON + timedelta(hours=2))
    assert convicted_at((third, second, first)) == {"n2": NOON + timedelta(hours=1, seconds=12)}


@dataclass
class Replays:
    """Groups end as a function of the phase and its members says; see `GroupRunner`."""

    ends: Callable[[int, Sequence[str]], GroupResult]
    orders: list[RoundOrder] = field(default_factory=list)
    name: str = "fake"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        self.orders.append(order)
        return RoundMeasurement(tuple(self.ends(order.number, group) for group in order.groups))

    async def close(self) -> None:
        """Nothing runs."""


async def replayed(
    ends: Callable[[int, Sequence[str]], GroupResult], repetitions: int = 1
) -> tuple[Bisection, list[int]]:
    runner = Replays(ends)
    found = await run_dual_phase(
        NODES, sharpest_phases(9, 1), BisectOptions("replay", 0, 600.0, 60.0), runner,
        lambda: NOON, lambda report: None, repetitions,
    )  # fmt: skip
    return found, [order.number for order in runner.orders]


def with_n5(rounds: Iterable[int]) -> Callable[[int, Sequence[str]], GroupResult]:
    return lambda number, group: WRONG if "n5" in group and number in rounds else GOOD


async def test_a_phase_is_replayed_until_one_of_its_groups_fails() -> None:
    """The fault shows in round 3 and 6; the first phase is not asked again after round 3.

    What follows are rounds that rule out chance.
    """
    found, rounds = await replayed(with_n5({3, 6, *range(7, 20)}), repetitions=5)
    assert rounds == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert report_of_replay(found, 1.0).wrong == ("n5",)


async def test_a_node_whose_replays_fail_without_a_result_is_not_said_to_compute_wrongly() -> None:
    """It is named, in other words: those of wrong results keep it out until it is repaired."""
    found, _ = await replayed(lambda number, group: BAD if "n5" in group else GOOD)
    report = report_of_replay(found, 1.0)
    assert (report.wrong, report.by_results) == (("n5",), False)
    lines = search_sentences(CorruptionSearch(ORDER, (report,)))
    assert lines[-1] == "n5 fails in every replay, without a result"


async def test_replays_that_now_and_then_come_to_no_end_accuse_nobody() -> None:
    """A busy machine hangs in a round of each phase; what meets there is innocent."""
    late = {1: "n1", 4: "n1"}
    found, rounds = await replayed(
        lambda number, group: BAD if late.get(number) in group else GOOD, repetitions=5
    )
    report = report_of_replay(found, 1.0)
    assert (report.wrong, report.undecided, len(rounds)) == ((), (), 10)


async def test_a_replay_that_came_to_no_end_is_run_again_before_it_counts() -> None:
    """One run of each phase was asked for, and a group with n1 hangs once in both."""
    found, rounds = await replayed(
        lambda number, group: BAD if number <= 2 and "n1" in group else GOOD
    )
    assert (report_of_replay(found, 1.0).wrong, rounds) == ((), [1, 2, 3, 4])


async def test_a_replay_that_came_to_no_end_once_accuses_nobody_where_time_is_up() -> None:
    """Both phases took all of it, and none was run again."""
    now = [NOON]

    def clock() -> datetime:
        now[0] += timedelta(seconds=60)
        return now[0]

    runner = Replays(lambda number, group: BAD if "n1" in group else GOOD)
    found = await run_dual_phase(
        NODES, sharpest_phases(9, 1), BisectOptions("replay", 0, 400.0, 60.0), runner, clock,
        lambda report: None,
    )  # fmt: skip
    assert [order.number for order in runner.orders] == [1, 2]
    assert report_of_replay(found, 1.0).wrong == ()


async def test_a_wrong_result_counts_beside_replays_that_came_to_no_end() -> None:
    """What hung elsewhere in the same round takes nothing away from it."""

    def end(number: int, group: Sequence[str]) -> GroupResult:
        hangs = number == 1 and "n9" in group
        return BAD if hangs else WRONG if "n5" in group else GOOD

    report = report_of_replay((await replayed(end, repetitions=3))[0], 1.0)
    assert (report.wrong, report.by_results) == (("n5",), True)


async def test_a_replay_that_hangs_costs_a_few_times_what_others_took() -> None:
    """Not all of the budget: a round began with five minutes left and had them all to hang in."""
    now, runner = [NOON], Replays(with_n5(()))

    def clock() -> datetime:
        now[0] += timedelta(seconds=10)
        return now[0]

    options = BisectOptions("replay", 0, 600.0, 400.0)
    await run_dual_phase(
        NODES, sharpest_phases(9, 1), options, runner, clock, lambda report: None, 44
    )
    first, *rest = (order.deadline_s for order in runner.orders)
    assert first == 400.0
    assert all(deadline <= 150.0 for deadline in rest)
    assert len(rest) < 2 * 44


async def test_a_round_without_an_answer_does_not_say_how_long_a_replay_takes() -> None:
    """The network was away for a moment: later rounds had a minute, and all of them "failed"."""
    runner = Replays(lambda number, group: GroupResult(1, None) if number == 1 else GOOD)
    await run_dual_phase(
        NODES, sharpest_phases(9, 1), BisectOptions("replay", 0, 600.0, 400.0), runner,
        lambda: NOON, lambda report: None, 2,
    )  # fmt: skip
    assert [order.deadline_s for order in runner.orders] == [400.0, 400.0, 60.0, 60.0]


EIGHT = tuple(f"n{i}" for i in range(1, 9))


def computed(bad: str, digest: str) -> Callable[[int, Sequence[str]], GroupResult]:
    """What a group with the bad node computes is `digest`, with the round in it where it says."""

    def end(number: int, group: Sequence[str]) -> GroupResult:
        told = digest.format(number) if bad in group else "right"
        return GroupResult(1, 0, digests=(told,))

    return end


@pytest.mark.parametrize(("span", "rounds"), [(1, 4), (4, 6)])
async def test_eight_machines_of_which_one_computes_wrongly_each_time_name_it(
    span: int, rounds: int
) -> None:
    """Replicas of one machine by a majority, of four in three rounds more.

    There are but two groups a phase: who repeats itself is right, and a round more parts the two
    machines that the failing groups have in common.
    """
    runner = Replays(computed("n3", "wrong in {}"))
    found = await run_dual_phase(
        EIGHT, sharpest_phases(8, span), BisectOptions("replay", 0, 600.0, 60.0), runner,
        lambda: NOON, lambda report: None,
    )  # fmt: skip
    report = report_of_replay(found, 1.0)
    assert (report.wrong, report.by_results, len(runner.orders)) == (("n3",), True, rounds)


SIXTEEN = tuple(f"n{i}" for i in range(1, 17))


async def named_of_sixteen(seed: int, p: float, within: str = "") -> tuple[str, ...]:
    """Whom ten repetitions of four groups a phase convict.

    A group, or only those with one machine, strays with probability p; no stray digest comes twice.
    """
    random, count = Random(seed), iter(range(10_000))

    def end(number: int, group: Sequence[str]) -> GroupResult:
        strays = (not within or within in group) and random.random() < p
        return GroupResult(1, 0, digests=(f"stray {next(count)}" if strays else "right",))

    found = await run_dual_phase(
        SIXTEEN, sharpest_phases(16, 4), BisectOptions("replay", 0, 600.0, 60.0), Replays(end),
        lambda: NOON, lambda report: None, 10,
    )  # fmt: skip
    return report_of_replay(found, 1.0).wrong


async def test_sound_machines_whose_replays_are_not_always_equal_are_not_named() -> None:
    """One replay in twenty gives another digest: some machine is common to two of them."""
    for seed in range(30):
        assert await named_of_sixteen(seed, 0.05) == ()


async def test_a_machine_whose_groups_alone_give_other_digests_is_named() -> None:
    """It computes wrongly in every other replay, and chance is ruled out."""
    for seed in range(10):
        assert await named_of_sixteen(seed, 0.5, within="n6") == ("n6",)


async def test_two_groups_that_each_repeat_their_own_digest_are_not_told_apart() -> None:
    """Either may be right: nobody is named, and the two repetitions are all that is spent on it."""
    runner = Replays(computed("n3", "always wrong alike"))
    found = await run_dual_phase(
        EIGHT, sharpest_phases(8, 4), BisectOptions("replay", 0, 600.0, 60.0), runner,
        lambda: NOON, lambda report: None,
    )  # fmt: skip
    report = report_of_replay(found, 1.0)
    assert (report.wrong, set(report.undecided), len(runner.orders)) == ((), set(EIGHT), 4)


async def test_what_never_fails_is_replayed_as_often_as_planned_and_accuses_nobody() -> None:
    """Clean rounds exclude a frequency, and not more."""
    found, rounds = await replayed(with_n5(()), repetitions=3)
    report = report_of_replay(found, 1.0)
    assert (len(rounds), report.repetitions, report.wrong) == (6, 3, ())
    assert found.conclusion.exclusion.failure_probability == pytest.approx(1 - 0.01 ** (1 / 6))


async def test_numbers_that_are_none_on_every_machine_are_code_or_data() -> None:
    """The same steps on other machines: nobody is named, and no further round is run."""
    found, rounds = await replayed(lambda number, group: NAN, repetitions=9)
    report = report_of_replay(found, 1.0)
    assert (report.everywhere, report.wrong, report.undecided, rounds) == (True, (), (), [1, 2])
    assert found.conclusion.findings[0].kind is FaultKind.JOB


def test_what_is_known_by_its_step_is_computed_by_others_before_any_machine_is_checked() -> None:
    """Once: a batch that is bad, or code, shows there, and no check accuses whoever had it."""
    first, *rest = planned(replace(ORDER, replay_first=True))
    assert first == (Method.REPLAY, 1)
    assert tuple(rest) == planned(ORDER)
    assert planned(ORDER)[0] == (Method.PRODUCTS, 44)


async def test_a_command_that_fails_everywhere_is_no_numeric_trouble() -> None:
    """A replay that cannot run says nothing of machines, code or data."""
    found, _ = await replayed(lambda number, group: BAD)
    report = report_of_replay(found, 1.0)
    assert (report.everywhere, report.wrong, report.undecided) == (False, (), ())
    assert "its command or its checkpoint" in report.why


async def test_digests_without_a_majority_are_no_sign_of_health() -> None:
    """One of the two groups computes wrongly, or no two replays are equal: nothing is excluded."""
    found, _ = await replayed(
        lambda number, group: GroupResult(1, None, apart="n9" not in group), repetitions=1
    )
    replay = report_of_replay(found, 1.0)
    assert set(replay.undecided) == set(NODES) - {"n9"}
    products = MethodReport(Method.PRODUCTS, 12.0, 44)
    last = search_sentences(CorruptionSearch(ORDER, (products, replay)))[-1]
    assert last == "not settled: n[1-8] cannot be told apart"


def clean_but(wrong: str) -> Callable[[BurninPlan], Burnin]:
    def answer(plan: BurninPlan) -> Burnin:
        passed = (NodeBurnin(n, BurninState.PASSED, 1, repetitions=44) for n in plan.nodes)
        wrongly = failed(wrong, FaultClass.SILENT_CORRUPTION)
        return burnin(*(wrongly if node.node == wrong else node for node in passed))

    return answer


@dataclass
class ControllerAtNoon:
    """Time stands; see `Controller`."""

    def now(self) -> datetime:
        return NOON


@pytest.mark.parametrize(
    ("wrong", "asked"), [("r1", [("r1", "r2"), ("r2",)]), ("n2", [("r1", "r2")])]
)
async def test_the_search_goes_on_until_a_node_of_the_job_is_named(
    wrong: str, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference that computes wrongly is named, and neither asked again nor the end of it."""
    plans: list[BurninPlan] = []

    async def burn_in(_: object, plan: BurninPlan, __: object) -> Burnin:
        plans.append(plan)
        return clean_but(wrong)(plan)

    async def no_replay(*_: object) -> Bisection:
        raise UsageError("job.yaml does not say how")

    monkeypatch.setattr(corruption, "burn_in", burn_in)
    monkeypatch.setattr(corruption, "replay_job", no_replay)
    order, job = replace(ORDER, references=("r1", "r2")), example_job()
    found = await corruption.locate_corruption(ControllerAtNoon(), job, order)  # type: ignore[arg-type]  # asked for nothing else
    assert [plan.nodes for plan in plans] == [(*job.nodes, *others) for others in asked]
    assert {plan.until_wrong for plan in plans} == {job.nodes}
    assert found.wrong_references == (("r1",) if wrong == "r1" else ())
    lines = search_sentences(found)
    assert any(line.endswith(f"{wrong} computes wrongly") for line in lines)
    assert ("not reproduced" in lines[-1]) is (wrong == "r1")


def test_what_was_not_reproduced_says_what_is_excluded_and_what_an_hour_more_would_buy() -> None:
    """44 clean products a node in 12 s exclude p of a tenth; an hour of them goes a lot further."""
    clean = MethodReport(Method.PRODUCTS, 12.0, 44, unmeasured={"n4": "no answer"})
    text = "; ".join(search_sentences(CorruptionSearch(ORDER, (clean,), out_of_budget=True)))
    assert "44 times in 12.0 s" in text
    assert "n4 says nothing of itself (no answer)" in text
    assert "a fault in 0.099 of all calls or more is excluded but for 0.01 on the nodes" in text
    assert "on the nodes that answered, and nothing of n4" in text
    assert "another hour of exact products would be 13200 more and reach 0.00035" in text
    assert "budget is used up" in text


def test_a_node_is_unmeasured_where_no_method_knows_anything_of_it() -> None:
    """What one method missed another may have measured."""
    first = MethodReport(Method.PRODUCTS, 12.0, 44, unmeasured={"n4": "late", "n5": "late"})
    second = MethodReport(Method.REFERENCE, 12.0, 44, unmeasured={"n5": "late"})
    assert CorruptionSearch(ORDER, (first, second)).unmeasured == ("n5",)
    assert CorruptionSearch(ORDER, ()).unmeasured == ()


async def test_a_node_that_no_replay_could_measure_is_named_beside_what_is_excluded() -> None:
    """It died in the middle: groups with it are not measured, its peers are in others."""
    found, _ = await replayed(
        lambda number, group: GroupResult(1, None) if "n4" in group else GOOD, repetitions=3
    )
    replay = report_of_replay(found, 1.0)
    assert set(replay.unmeasured) == {"n4"}
    products = MethodReport(Method.PRODUCTS, 12.0, 44, unmeasured={"n4": "no answer"})
    search = CorruptionSearch(ORDER, (products, replay))
    assert search.unmeasured == ("n4",)
    last = search_sentences(search)[-1]
    assert "n4 was never measured, and more time buys nothing of it before it answers" in last


def test_replays_are_planned_for_a_fault_that_may_be_missed_in_either_phase() -> None:
    """Half of the wanted miss each."""
    order = replace(ORDER, replays=51)
    assert planned(order) == (
        (Method.PRODUCTS, 44),
        (Method.REFERENCE, 44),
        (Method.REPLAY, 51),
    )


def test_nothing_measured_excludes_nothing() -> None:
    """Silence is no result."""
    silent = MethodReport(Method.PRODUCTS, 60.0, 0, unmeasured={"n1": "no answer"})
    left = MethodReport(Method.REPLAY, 0.0, 0, why="not done: job.yaml does not say how")
    lines = search_sentences(CorruptionSearch(replace(ORDER, repetitions=1), (silent, left)))
    assert lines[-1] == "not reproduced, and nothing is excluded of n1"
    assert "not done: job.yaml does not say how" in lines[1]
