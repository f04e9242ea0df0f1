"""Bench of localisation: our search against the published methods, on the same incidents.

Run with `python -m tests.bench.localise [--quick] [--sizes 128,1250] [--incidents N]`.
"""

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from brctl.localise.conclude import conclude
from brctl.localise.problem import Conclusion, FaultKind, GroupResult, SearchProblem
from brctl.localise.strategy import Localiser
from tests.bench.localise_anchors import ANCHORS, Answer
from tests.bench.localise_fleet import Cause, InjectedCause, LocalisedFleet

OURS = "brctl"
_UNNAMED = (FaultKind.NONE, FaultKind.UNDECIDABLE)


@dataclass(frozen=True)
class Goal:
    """What our search must reach; None for no demand."""

    exact: float | None = None
    rounds: float | None = None
    within: int | None = None
    wrong: float | None = None
    recall: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A family of incidents at one size, with the goal for it."""

    name: str
    count: int
    make: Callable[[random.Random, int, int], InjectedCause]
    goal: Goal
    span: int = 1
    reps: int = 8
    share: float = 1.0


@dataclass
class Score:
    """What one method did on one scenario."""

    incidents: int = 0
    exact: int = 0
    exact_within: int = 0
    rounds: int = 0
    wrong: int = 0
    accused: int = 0
    found: int = 0
    causes: int = 0
    node_tests: int = 0
    plan_s: float = 0.0
    plans: int = 0
    worst_plan_s: float = 0.0
    graded: list[tuple[float, bool]] = field(default_factory=list)

    def add(self, other: "Score") -> None:
        for name, value in vars(other).items():
            if name == "worst_plan_s":
                self.worst_plan_s = max(self.worst_plan_s, value)
            else:
                setattr(self, name, getattr(self, name) + value)


BAR = 0.97
"""`--bar 0.97`, so that 10 % of loss under 3 % of noise stands out: the product's 0.92 finds the
four slow nodes of 128 in 60 of 100 incidents, this in all, and neither names a healthy one."""


def leaf_size(count: int) -> int:
    """Nodes under one leaf switch, as such fleets are built."""
    return 16 if count <= 512 else 32


def search(
    fleet: LocalisedFleet, scenario: Scenario, seed: int, score: Score
) -> tuple[Answer, Conclusion]:
    """Run our search against the fleet and translate its findings."""
    names = tuple(f"n{v}" for v in range(fleet.count))
    leaves = tuple(f"l{leaf}" for leaf in fleet.leaf) if fleet.leaves > 1 else ()
    problem = SearchProblem(
        names, leaves, reps=scenario.reps, span=scenario.span, seed=seed, bar=BAR
    )
    localiser = Localiser(problem)
    while True:
        started = time.process_time()
        plan = localiser.plan()
        spent = time.process_time() - started
        if plan is None:
            break
        answers = fleet.test(plan.groups, plan.reps)
        results = tuple(GroupResult(plan.reps, failed, speed) for failed, speed in answers)
        started = time.process_time()
        localiser.absorb(plan, results)
        spent += time.process_time() - started
        score.plan_s += spent
        score.plans += 1
        score.worst_plan_s = max(score.worst_plan_s, spent)
    conclusion = conclude(localiser)
    return translate(conclusion), conclusion


def translate(conclusion: Conclusion) -> Answer:
    """Findings as the simulator writes causes."""
    causes: set[Cause] = set()
    for finding in conclusion.findings:
        if finding.kind not in _UNNAMED:
            members = tuple(sorted(int(name[1:]) for name in finding.members))
            causes.add((finding.kind.value, members))
    return frozenset(causes)


def evicted(answer: Answer) -> set[int]:
    """Nodes a person would take out on this answer."""
    return {v for kind, members in answer if kind in ("node", "slow", "pair") for v in members}


def guilty(incident: InjectedCause) -> set[int]:
    return {v for kind, m in incident.truth() if kind in ("node", "slow", "pair") for v in m}


def run_one(scenario: Scenario, method: str, seed: int) -> Score:
    """One incident with one method."""
    incident = scenario.make(random.Random(seed), scenario.count, leaf_size(scenario.count))
    fleet = LocalisedFleet(scenario.count, leaf_size(scenario.count), incident, seed)
    score = Score(incidents=1)
    truth = incident.truth()
    if method == OURS:
        answer, conclusion = search(fleet, scenario, seed, score)
        score.graded = [
            (f.posterior, next(iter(translate(_only(conclusion, f)))) in truth)
            for f in conclusion.findings
            if f.kind not in _UNNAMED
        ]
    else:
        answer = ANCHORS[method](fleet, seed)
    # The published methods know only "node"; a slow node they name counts as named.
    if method != OURS:
        answer = frozenset(("slow", m) if ("slow", m) in truth else (kind, m) for kind, m in answer)
    score.exact = int(answer == truth)
    limit = scenario.goal.within or 10**6
    score.exact_within = int(answer == truth and fleet.rounds <= limit)
    score.rounds, score.node_tests = fleet.rounds, fleet.node_tests
    score.wrong = len(evicted(answer) - guilty(incident))
    score.accused = int(bool(evicted(answer) - guilty(incident)))
    score.found, score.causes = len(answer & truth), len(truth)
    return score


def _only(conclusion: Conclusion, finding: object) -> Conclusion:
    kept = tuple(f for f in conclusion.findings if f is finding)
    return Conclusion(kept, conclusion.exclusion, 0, 0, complete=True)


def _nodes(k: int, p: float, q: float) -> Callable[[random.Random, int, int], InjectedCause]:
    def make(rng: random.Random, count: int, size: int) -> InjectedCause:
        return InjectedCause(nodes=dict.fromkeys(rng.sample(range(count), k), p), noise=q)

    return make


def _uplink(rng: random.Random, count: int, size: int) -> InjectedCause:
    return InjectedCause(uplinks={rng.randrange(round(count / size)): 1.0}, noise=0.01)


def _path(rng: random.Random, count: int, size: int) -> InjectedCause:
    low, high = sorted(rng.sample(range(round(count / size)), 2))
    return InjectedCause(paths={(low, high): 1.0}, noise=0.01)


def _scale_node(rng: random.Random, count: int, size: int) -> InjectedCause:
    threshold = rng.choice([s for s in (4, 8, 16, 32, 64, 128, 256, 512) if s <= count // 2])
    return InjectedCause(scale_nodes={rng.randrange(count): (threshold, 1.0)})


def _bad_pair(rng: random.Random, count: int, size: int) -> InjectedCause:
    low, high = sorted(rng.sample(range(count), 2))
    return InjectedCause(pairs={(low, high): 1.0})


def _pure_scale(rng: random.Random, count: int, size: int) -> InjectedCause:
    return InjectedCause(scale=(count // 2, 1.0))


def _slow(k: int, loss: float) -> Callable[[random.Random, int, int], InjectedCause]:
    def make(rng: random.Random, count: int, size: int) -> InjectedCause:
        return InjectedCause(slow=dict.fromkeys(rng.sample(range(count), k), loss), sigma=0.03)

    return make


def _sessions(rng: random.Random, count: int, size: int) -> InjectedCause:
    return InjectedCause(nodes={rng.randrange(count): 0.7}, noise=0.001, sessions=True)


def _partners(rng: random.Random, count: int, size: int) -> InjectedCause:
    return InjectedCause(nodes={rng.randrange(count): 1.0}, noise=0.001, partner_share=0.7)


def _rates(rng: random.Random, count: int, size: int) -> InjectedCause:
    bad = rng.sample(range(count), 3)
    return InjectedCause(nodes=dict(zip(bad, (1.0, 0.6, 0.35), strict=True)), noise=0.01)


def _nothing(rng: random.Random, count: int, size: int) -> InjectedCause:
    return InjectedCause(noise=rng.choice((0.0, 0.01)))


# Kind of incident, weight: an assumption, weights of localisation.md section 8.
_MIX: tuple[tuple[str, float], ...] = (
    ("node1", 46), ("node.7", 14), ("node.3", 10), ("leaf", 5), ("path", 5),
    ("scale-node", 6), ("pair", 3), ("scale", 2), ("none", 9),
)  # fmt: skip


def _mixed(rng: random.Random, count: int, size: int) -> InjectedCause:
    kind = rng.choices([k for k, _ in _MIX], [w for _, w in _MIX])[0]
    noise = rng.choice((0.0, 0.01))
    if kind.startswith("node"):
        p = {"node1": 1.0, "node.7": 0.7, "node.3": 0.3}[kind]
        k = rng.choices((1, 2, 4, 8), (80, 12, 6, 2))[0]
        return _nodes(k, p, noise)(rng, count, size)
    make = {
        "leaf": _uplink, "path": _path, "scale-node": _scale_node,
        "pair": _bad_pair, "scale": _pure_scale, "none": _nothing,
    }[kind]  # fmt: skip
    return make(rng, count, size)


def _small(rng: random.Random, count: int, size: int) -> InjectedCause:
    k = rng.randint(0, count // 2)
    return InjectedCause(nodes=dict.fromkeys(rng.sample(range(count), k), rng.choice((1.0, 0.7))))


def scenarios(count: int) -> Iterator[Scenario]:
    """The families at one size, with the goals of the project."""
    if count <= 8:
        yield Scenario(f"up to {count // 2} of {count} bad", count, _small, Goal(wrong=0.0))
        return
    for k in (1, 4, 8):
        yield Scenario(f"k={k} p=1 q=0", count, _nodes(k, 1, 0), Goal(1.0, 2.1), share=0.5)
    for k in (1, 4, 8):
        goal = Goal(0.99, 2.1, wrong=0.01)
        yield Scenario(f"k={k} p=1 q=1%", count, _nodes(k, 1, 0.01), goal)
    yield Scenario("k=1 p=.7 q=1%", count, _nodes(1, 0.7, 0.01), Goal(0.99, 2.5))
    yield Scenario("k=1 p=.3 q=1%", count, _nodes(1, 0.3, 0.01), Goal(0.97, 5.0))
    yield Scenario("leaf uplink", count, _uplink, Goal(0.98, 3.0, wrong=0.0))
    yield Scenario("leaf pair", count, _path, Goal(0.98, 3.0, wrong=0.0))
    big = count > 512
    scale_goal = Goal(within=16 if big else 10, exact=0.95)
    yield Scenario("scale-only node", count, _scale_node, scale_goal, share=0.5)
    yield Scenario(
        "bad pair", count, _bad_pair, Goal(within=20 if big else 16, exact=0.95), share=0.5
    )
    yield Scenario("pure scale", count, _pure_scale, Goal(), share=0.25)
    yield Scenario("slow 10% k=1", count, _slow(1, 0.1), Goal(recall=0.99, rounds=3.5, wrong=0.01))
    yield Scenario("slow 10% k=4", count, _slow(4, 0.1), Goal(), share=0.5)
    yield Scenario("sessions p=.7", count, _sessions, Goal(), share=0.5)
    yield Scenario("70% of partners", count, _partners, Goal(), share=0.5)
    yield Scenario("rates 1/.6/.35", count, _rates, Goal(), share=0.5)
    yield Scenario("nothing wrong", count, _nothing, Goal(wrong=0.0), share=0.5)
    if count == 128:
        yield Scenario("replay span 8 k=4", 128, _nodes(4, 1, 0), Goal(0.97, 3.5), span=8, reps=1)
    yield Scenario("mixed", count, _mixed, Goal(0.98, 4.0, wrong=0.01), share=2.0)


def _work(task: tuple[int, int, str, int, int]) -> tuple[int, int, str, Score]:
    count, number, method, start, incidents = task
    scenario = list(scenarios(count))[number]
    total = Score()
    for seed in range(start, start + incidents):
        total.add(run_one(scenario, method, seed))
    return count, number, method, total


def _tasks(
    sizes: list[int], incidents: int, anchors: bool
) -> Iterator[tuple[int, int, str, int, int]]:
    for count in sizes:
        for number, scenario in enumerate(scenarios(count)):
            wanted = max(4, round(incidents * scenario.share))
            for method in (OURS, *(ANCHORS if anchors and scenario.span == 1 else ())):
                few = wanted if method == OURS else max(4, wanted // 2)
                for start in range(0, few, 25):
                    yield count, number, method, 1000 + start, min(25, few - start)


def judge(scenario: Scenario, score: Score) -> list[str]:
    """Goals not met, in words; empty when all are."""
    goal, n = scenario.goal, score.incidents
    exact = (score.exact_within if goal.within else score.exact) / n
    misses = []
    if goal.exact is not None and exact < goal.exact:
        misses.append(f"exact {exact:.3f} < {goal.exact}")
    if goal.rounds is not None and score.rounds / n > goal.rounds:
        misses.append(f"rounds {score.rounds / n:.2f} > {goal.rounds}")
    if goal.wrong is not None and score.wrong / n > goal.wrong:
        misses.append(f"evicted {score.wrong / n:.3f} > {goal.wrong}")
    if goal.recall is not None and score.found / max(1, score.causes) < goal.recall:
        misses.append(f"recall {score.found / max(1, score.causes):.3f} < {goal.recall}")
    return misses


def report(sizes: list[int], scores: dict[tuple[int, int, str], Score]) -> bool:
    """Print the table and the goals; True when every goal is met."""
    graded: list[tuple[float, bool]] = []
    failed = False
    print(f"{'N':>5} {'incident':20} {'method':14} {'n':>4} {'rounds':>6} {'exact%':>6} "
          f"{'wrong':>6} {'tests/node':>10} {'ms/round':>8}")  # fmt: skip
    for (count, number, method), score in sorted(scores.items(), key=_order):
        scenario = list(scenarios(count))[number]
        n = score.incidents
        exact = (score.exact_within if scenario.goal.within else score.exact) / n
        mean_ms = 1000 * score.plan_s / score.plans if score.plans else 0.0
        line = (f"{count:>5} {scenario.name:20} {method:14} {n:>4} {score.rounds / n:>6.2f} "
                f"{100 * exact:>6.1f} {score.wrong / n:>6.3f} "
                f"{score.node_tests / n / count:>10.2f} {mean_ms:>8.1f}")  # fmt: skip
        if method == OURS:
            graded += score.graded
            misses = judge(scenario, score)
            failed |= bool(misses)
            line += "  " + ("NOT MET: " + "; ".join(misses) if misses else "met")
        print(line)
    failed |= not _calibrated(graded)
    worst = max((s.worst_plan_s for s in scores.values()), default=0.0)
    print(f"slowest planning round: {worst:.3f} s of CPU time")
    return not failed


def _order(item: tuple[tuple[int, int, str], Score]) -> tuple[int, int, int, str]:
    (count, number, method), _ = item
    return count, number, method != OURS, method


def _calibrated(graded: list[tuple[float, bool]]) -> bool:
    sure = [(p, right) for p, right in graded if p >= 0.9]
    if not sure:
        return True
    stated = sum(p for p, _ in sure) / len(sure)
    right = sum(r for _, r in sure) / len(sure)
    met = right >= 0.9
    print(f"calibration: {len(sure)} verdicts stated with 0.9 to 1 (mean {stated:.4f}), "
          f"{right:.4f} right: {'met' if met else 'NOT MET'}")  # fmt: skip
    return met


def main() -> int:
    """Run the bench; exit 1 when a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few incidents, 8, 32 and 128 nodes")
    parser.add_argument("--sizes", default="", help="comma-separated fleet sizes")
    parser.add_argument("--incidents", type=int, default=0, help="incidents per scenario")
    parser.add_argument("--no-anchors", action="store_true", help="only our search")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    default = "8,32,128" if options.quick else "3,4,5,6,7,8,128,1250"
    sizes = [int(size) for size in (options.sizes or default).split(",")]
    incidents = options.incidents or (20 if options.quick else 60)
    tasks = [
        task
        for task in _tasks(sizes, incidents, not options.no_anchors)
        if options.only in list(scenarios(task[0]))[task[1]].name
    ]
    started = time.monotonic()
    scores: dict[tuple[int, int, str], Score] = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for count, number, method, score in pool.imap_unordered(_work, tasks):
            scores.setdefault((count, number, method), Score()).add(score)
    met = report(sizes, scores)
    print(f"{time.monotonic() - started:.0f} s; goals {'met' if met else 'NOT all met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
