"""What one look adds to the health of a job and of its nodes over time; pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite

from brctl.evidence.operators import is_number
from brctl.model.jobs.job_status import JobStatus
from brctl.model.jobs.trends import TrendSample
from brctl.model.sweeps.report import NodeReport, ProbeStatus

TEMPERATURE, POWER = "gpu.clocks.temperature_c", "gpu.clocks.power_w"
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "ecc_errors": ("gpu.ecc.volatile_corrected", "gpu.ecc.volatile_uncorrected"),
    "link_errors": (
        "fabric.eth.rx_errors", "fabric.eth.tx_errors", "fabric.eth.carrier_changes",
        "fabric.ibport.link_downed", "fabric.ibport.symbol_error",
        "fabric.ibport.link_error_recovery", "fabric.ibport.port_rcv_errors",
        "fabric.ibport.local_link_integrity_errors",
    ),
}  # fmt: skip
"""What is added up over all GPUs, or all links, of a node."""


PARTS_KEPT = 1000
"""Of a node that names ever new parts no more is remembered than it told last."""


@dataclass(frozen=True, slots=True)
class CounterTotals:
    """A node's counters, added up so that a part which goes, comes or counts anew is no growth.

    Attributes:
        newest: Of each part that was ever read its newest count, by reading and part.
        totals: By metric: what was counted at first, and all growth since.
    """

    newest: Mapping[tuple[str, str], float] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)

    def after(self, report: NodeReport) -> "CounterTotals":
        """With what one more look read."""
        newest, totals = dict(self.newest), dict(self.totals)
        told: dict[tuple[str, str], float] = {}
        for metric, names in COUNTERS.items():
            counts = {
                (name, part): n for name in names for part, n in _numbers(report, name).items()
            }
            told |= counts
            if counts and metric not in totals:
                totals[metric] = sum(counts.values())
            elif counts:
                totals[metric] += sum(_growth(newest.get(key), n) for key, n in counts.items())
        newest |= told
        return CounterTotals(newest if len(newest) <= PARTS_KEPT else told, totals)


def _growth(before: float | None, count: float) -> float:
    """Of a part seen for the first time all is past; one that fell was reset, and counted since."""
    if before is None:
        return 0.0
    return count - before if count >= before else count


def counted(
    reports: Iterable[NodeReport], before: Mapping[str, CounterTotals]
) -> Mapping[str, CounterTotals]:
    """The totals of all nodes, with those that reported now brought up to date."""
    return {**before, **{r.node: before.get(r.node, CounterTotals()).after(r) for r in reports}}


@dataclass(frozen=True, slots=True)
class StepMark:
    """Where a job stood when, by one clock."""

    step: int
    at_s: float


def job_samples(
    status: JobStatus, earlier: StepMark | None, at_s: float
) -> tuple[TrendSample, ...]:
    """What a look tells of a job; only a step that is new has a time, a loss and a gradient.

    Args:
        status: The job now.
        earlier: The look before; None at the first one.
        at_s: When this look was, by the clock of the one before.
    """
    if status.step is None:
        return ()
    name, last = status.job.name, status.history.last
    rate = _rate(status.step, earlier, at_s)
    found: dict[str, float | None] = {"steps_per_s": rate}
    if rate is not None and last is not None and last.tokens is not None:
        found["tokens_per_s"] = rate * last.tokens
    if status.step > earlier.step if earlier else not status.stalled:
        found["step_s"] = status.history.step_s
        found |= {"loss": last.loss, "grad_norm": last.grad_norm} if last else {}
    return tuple(
        TrendSample(name, metric, value)
        for metric, value in found.items()
        if value is not None and isfinite(value)
    )


def _rate(step: int, earlier: StepMark | None, at_s: float) -> float | None:
    """Steps a second since the look before; 0 for a job that stands, None over a restart."""
    if earlier is None or step < earlier.step or at_s <= earlier.at_s:
        return None
    return (step - earlier.step) / (at_s - earlier.at_s)


def node_samples(
    reports: Iterable[NodeReport], totals: Mapping[str, CounterTotals] | None = None
) -> Iterator[TrendSample]:
    """What a look tells of nodes; a number that was not read is no zero and left out.

    In a sum it would count as one: a sum is told where all that it adds up was read.

    Args:
        reports: The look.
        totals: Of whoever looked before as well; else counters are summed as they stand.
    """
    for report in reports:
        heat, power = _numbers(report, TEMPERATURE), _numbers(report, POWER)
        if heat:
            yield TrendSample(report.node, "temperature_c", max(heat.values()))
        if power and power.keys() == heat.keys() and _is_whole(report, (POWER,)):
            yield TrendSample(report.node, "power_w", sum(power.values()))
        for metric, names in COUNTERS.items():
            counts = [count for name in names for count in _numbers(report, name).values()]
            if counts and _is_whole(report, names):
                known = totals.get(report.node) if totals else None
                total = known.totals.get(metric) if known else None
                yield TrendSample(report.node, metric, sum(counts) if total is None else total)


def _numbers(report: NodeReport, name: str) -> Mapping[str, float]:
    return {m.subject: float(m.value) for m in report.named(name) if is_number(m.value)}


def _is_whole(report: NodeReport, names: Iterable[str]) -> bool:
    """Whether the checks of these readings that were asked read all that they should."""
    checks = {name.rpartition(".")[0] for name in names}
    return all(r.status is ProbeStatus.MEASURED for r in report.results if r.check in checks)
