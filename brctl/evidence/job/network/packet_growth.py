"""Packets lost between two looks: a longer sample than a probe may take.

The probe watches connections for 0.4 s, in which a path that loses every twentieth packet may lose
none. What its counters say since the connection was made may be old. Asked a second time, the
counters themselves tell what was sent and lost since the first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from brctl.evidence.job.network.paths import CHECK, LEAST_LOST, LOST_SHARE
from brctl.evidence.operators import is_number
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport

_COUNTERS = ("segments", "lost")
_PEER = "peer:"


def worth_a_second_look(reports: Iterable[NodeReport]) -> bool:
    """Some path lost more than a sound one does, and nobody knows when."""
    return any(
        counted.get("lost", 0.0) >= max(LEAST_LOST, LOST_SHARE * counted.get("segments", 0.0))
        for report in reports
        for counted in _counted(report).values()
    )


def with_growth(first: NodeReport, second: NodeReport) -> NodeReport:
    """The first look, whose newest packets are those from it to the second."""
    before, after = _counted(first), _counted(second)
    grown = {
        (f"{CHECK}.{name}_now", peer): after[peer][name] - before[peer][name]
        for peer in before.keys() & after.keys()
        if _only_grew(before[peer], after[peer])
        for name in _COUNTERS
    }
    return replace(first, results=tuple(_with(result, grown) for result in first.results))


def _only_grew(before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """Counters that went back are those of other connections."""
    return all(n in before and after.get(n, -1.0) >= before[n] for n in _COUNTERS)


def _counted(report: NodeReport) -> dict[str, dict[str, float]]:
    """The counters of each peer."""
    by_peer: dict[str, dict[str, float]] = {}
    for m in report.measured_by(CHECK):
        name = m.name.removeprefix(f"{CHECK}.")
        if name in _COUNTERS and m.subject.startswith(_PEER) and is_number(m.value):
            by_peer.setdefault(m.subject, {})[name] = float(m.value)
    return by_peer


def _with(result: CheckResult, grown: Mapping[tuple[str, str], float]) -> CheckResult:
    if result.check != CHECK:
        return result
    rows = tuple(_larger(m, grown) for m in result.measurements)
    return replace(result, measurements=rows)


def _larger(m: Measurement, grown: Mapping[tuple[str, str], float]) -> Measurement:
    found = grown.get((m.name, m.subject))
    return m if found is None else replace(m, value=found)
