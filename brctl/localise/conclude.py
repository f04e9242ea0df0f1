"""What may be said after the last round: findings, what is undecidable, what is ruled out."""

import numpy as np

from brctl.localise.problem import Conclusion, Exclusion, FaultKind, Finding
from brctl.localise.strategy import Localiser

_SURENESS = 0.99
_OPEN = 0.05


def conclude(search: Localiser) -> Conclusion:
    """The answer so far; `complete` is False when the search was cut short."""
    findings = [*_convicted(search), *(search.joint.findings if search.joint else [])]
    open_suspects = _undecided(search)
    if open_suspects is not None:
        findings.append(open_suspects)
    if not findings and search.failing is not None:
        why = "no cause is visible in the groups that were tested"
        findings.append(Finding(FaultKind.NONE, (), search.failing.nothing, why=why))
    return Conclusion(
        tuple(findings),
        exclusion(search, {name for f in findings for name in f.members}),
        len(search.rounds),
        search.ledger.node_tests,
        search.failing is not None and search.plan() is None,
    )


def _convicted(search: Localiser) -> list[Finding]:
    found = []
    for cause, posterior in sorted(search.convicted().items(), key=lambda item: -item[1]):
        slow_only = (
            search.failing is not None
            and search.failing.probability[cause] < search.problem.convict_at
        )
        kind = search.causes.kind(cause)
        if slow_only and kind is FaultKind.NODE:
            kind = FaultKind.SLOW
        why = "bandwidth of its groups is low" if slow_only else ""
        found.append(
            Finding(kind, names_of(search, cause), posterior, supporting(search, cause), 0, why)
        )
    return found


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
    """Failing or slow tests that exercised a cause."""
    failures = [(f.round_number, f.position) for f in search.ledger.failures if cause in f.causes]
    if failures:
        return tuple(failures)
    return tuple(
        (s.round_number, s.position)
        for s in search.ledger.speeds
        if cause in s.causes and s.log_ratio < -_OPEN
    )


def _undecided(search: Localiser) -> Finding | None:
    """Nodes that failed with somebody and could be neither cleared nor convicted."""
    if search.failing is None:
        return None
    suspicion = search.suspicion()
    convicted = search.convicted()
    left = [
        int(v)
        for v in np.nonzero(suspicion[: search.causes.node_count] > _OPEN)[0]
        if int(v) not in convicted and supporting(search, int(v))
    ]
    if not left or (search.joint is not None and search.joint.findings):
        return None
    names = tuple(search.problem.nodes[v] for v in left)
    best = float(suspicion[left].max())
    if len(names) == 2 and len(search.problem.nodes) == 2:
        why = "one of two; need one more node"
    else:
        why = f"one or more of {len(names)}; the tests cannot tell them apart"
    return Finding(
        FaultKind.UNDECIDABLE,
        names,
        best,
        tuple({t for v in left for t in supporting(search, v)}),
        0,
        why,
    )


def exclusion(search: Localiser, named: set[str]) -> Exclusion:
    """Faults per repetition at least this likely would have shown, at 99 %."""
    nodes = search.problem.nodes
    clean = {
        name: float(search.ledger.clean_reps[i])
        for i, name in enumerate(nodes)
        if name not in named
    }
    tested = [count for count in clean.values() if count > 0]
    untested = tuple(name for name, count in clean.items() if count == 0)
    least = int(min(tested)) if tested else 0
    rate = 1.0 - (1.0 - _SURENESS) ** (1.0 / least) if least else 1.0
    return Exclusion(rate, _SURENESS, least, untested)
