"""What may be said after the last round: findings, what is undecidable, what is ruled out."""

import math
from dataclasses import replace

import numpy as np

from brctl.localise.problem import Conclusion, Exclusion, FaultKind, Finding, Stage
from brctl.localise.strategy import Localiser

_SURENESS = 0.99
_OPEN = 0.05
_MOST_NAMED = 16


def conclude(search: Localiser) -> Conclusion:
    """The answer so far; `complete` is False when the search was cut short."""
    findings = _convicted(search)
    if search.joint is not None:
        findings += [_with_tests(search, finding) for finding in search.joint.findings]
    findings += _undecided(search)
    if not findings:
        findings.append(_nothing(search))
    unit = search.problem.unit
    findings = [replace(f, kind=unit) if f.kind is FaultKind.NODE else f for f in findings]
    return Conclusion(
        tuple(findings),
        exclusion(search, {name for f in findings for name in f.members}),
        len(search.rounds),
        search.ledger.node_tests,
        search.failing is not None and search.plan() is None,
    )


def _nothing(search: Localiser) -> Finding:
    if search.failing is None or not search.ledger.measured:
        return Finding(FaultKind.UNDECIDABLE, (), 0.0, why="nothing was measured")
    why = "no cause is visible in the groups that were tested"
    return Finding(FaultKind.NONE, (), search.failing.nothing, why=why)


def _convicted(search: Localiser) -> list[Finding]:
    found = []
    for cause, posterior in sorted(search.convicted().items(), key=lambda item: -item[1]):
        failing = search.failing is not None and (
            search.failing.probability[cause] >= search.problem.convict_at
        )
        kind = search.causes.kind(cause)
        tests = supporting(search, cause)
        if failing:
            found.append(Finding(kind, names_of(search, cause), posterior, tests))
            continue
        ratio = speed_ratio(search, cause)
        if ratio is not None and ratio > search.problem.bar:
            continue
        percent = 0 if ratio is None else round(100 * (1 - ratio))
        kind = FaultKind.SLOW if kind is FaultKind.NODE else kind
        why = f"its groups are about {percent} % slower than the others"
        found.append(Finding(kind, names_of(search, cause), posterior, tests, 0, why))
    return found


def speed_ratio(search: Localiser, cause: int) -> float | None:
    """Typical bandwidth of a cause's groups against the fleet's median; None if never measured."""
    ratios = [s.log_ratio for s in search.ledger.speeds if cause in s.causes]
    return math.exp(float(np.median(ratios))) if ratios else None


def names_of(search: Localiser, cause: int) -> tuple[str, ...]:
    """Node or leaf names of a cause."""
    causes = search.causes
    kind = causes.kind(cause)
    if kind is FaultKind.NODE:
        return (search.problem.nodes[cause],)
    if kind is FaultKind.LEAF:
        return (causes.leaf_names[cause - causes.node_count],)
    low, high = causes.leaves_of_pair(cause)
    return causes.leaf_names[low], causes.leaf_names[high]


def supporting(search: Localiser, cause: int) -> tuple[tuple[int, int], ...]:
    """Failing, else slow tests that exercised a cause: round number and position in it."""
    failures = [(f.round_number, f.position) for f in search.ledger.failures if cause in f.causes]
    if failures:
        return tuple(failures)
    return tuple(
        (s.round_number, s.position)
        for s in search.ledger.speeds
        if cause in s.causes and s.log_ratio < -_OPEN
    )


def _with_tests(search: Localiser, finding: Finding) -> Finding:
    """A finding of the joint engine with the failing tests that held all its members."""
    members = {search.problem.nodes.index(name) for name in finding.members}
    tests = tuple(
        (tested.plan.number, position)
        for tested in search.rounds
        for position, group in enumerate(tested.plan.groups)
        if tested.results[position].failed and members <= set(group)
    )
    return replace(finding, tests=tests)


def _undecided(search: Localiser) -> list[Finding]:
    """Who failed with somebody and could be neither cleared nor convicted."""
    if search.failing is None or not search.ledger.measured:
        return []
    if search.joint is not None:
        return [] if search.joint.findings else [_joint_undecided(search)]
    suspicion, convicted = search.suspicion(), search.convicted()
    suspects = np.nonzero(suspicion[: search.causes.node_count] > _OPEN)[0].tolist()
    left = [
        v
        for v in suspects
        if v not in convicted and supporting(search, v) and not _fast_enough(search, v)
    ]
    if not left:
        return []
    names = tuple(search.problem.nodes[v] for v in left)
    tests = sorted({test for v in left for test in supporting(search, v)})
    best = float(suspicion[left].max())
    return [Finding(FaultKind.UNDECIDABLE, names, best, tuple(tests), 0, _why_open(search, names))]


def _fast_enough(search: Localiser, node: int) -> bool:
    """Suspected for its bandwidth alone, and that is above the bar."""
    if search.failing is not None and search.failing.probability[node] > _OPEN:
        return False
    ratio = speed_ratio(search, node)
    return ratio is not None and ratio > search.problem.bar


def _why_open(search: Localiser, names: tuple[str, ...]) -> str:
    if len(names) == 2:
        more = len(search.problem.nodes) == 2
        return "one of two; need one more node" if more else "one of two"
    if len(names) == 1:
        return "suspected, but the tests do not convict it"
    return f"one or more of {len(names)}; the tests cannot tell them apart"


def _joint_undecided(search: Localiser) -> Finding:
    """The full job fails and no group of part of the fleet says why."""
    joint = search.joint
    tests = tuple(
        (tested.plan.number, position)
        for tested in search.rounds
        for position, result in enumerate(tested.results)
        if tested.plan.stage in (Stage.FULL, Stage.JOINT) and result.failed
    )
    members: tuple[str, ...] = ()
    best = 0.0
    if joint is not None:
        by_node = joint.now.by_node
        likely = np.argsort(-by_node)[:_MOST_NAMED]
        fleet = [int(joint.joint.fleet[v]) for v in likely if by_node[v] > _OPEN]
        members = tuple(search.problem.nodes[v] for v in fleet)
        best = float(by_node.max())
    why = "large groups fail, small ones do not, and the tests name no node and no pair"
    return Finding(FaultKind.UNDECIDABLE, members, best, tests, 0, why)


def exclusion(search: Localiser, named: set[str]) -> Exclusion:
    """Faults per repetition at least this likely would have shown, at 99 %."""
    clean = {
        name: float(search.ledger.passed[i])
        for i, name in enumerate(search.problem.nodes)
        if name not in named
    }
    tested = [count for count in clean.values() if count > 0]
    untested = tuple(name for name, count in clean.items() if count == 0)
    least = int(min(tested)) if tested else 0
    rate = 1.0 - (1.0 - _SURENESS) ** (1.0 / least) if least else 1.0
    return Exclusion(rate, _SURENESS, least, untested)
