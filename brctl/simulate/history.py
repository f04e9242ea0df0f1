"""A site's own incidents as a recorded trace, and as a fleet with rates of its own.

Counted is a verdict that was acted on or confirmed; of several from one look the likeliest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta

from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.model.fault import FaultClass
from brctl.model.simulation import PastStop, SiteHistory
from brctl.model.verdict import Verdict
from brctl.simulate.fleet import Fleet
from brctl.simulate.recorded import COLUMNS
from brctl.simulate.symptoms import SYMPTOMS, Cause

_HAPPENED = (VerdictState.ACTED_ON, VerdictState.CONFIRMED)
_MACHINE, _CODE, _SERVICE = Cause.MACHINE, Cause.CODE, Cause.SERVICE

SYMPTOM_OF: Mapping[FaultClass, tuple[str, Cause | None]] = {
    FaultClass.GPU_MEMORY_ECC: ("gpu-memory", _MACHINE),
    FaultClass.GPU_LOST: ("gpu-unavailable", _MACHINE),
    FaultClass.NVLINK: ("gpu-unavailable", _MACHINE),
    FaultClass.PCIE: ("gpu-unavailable", _MACHINE),
    FaultClass.DRIVER_FIRMWARE: ("gpu-unavailable", _MACHINE),
    FaultClass.THERMAL_POWER: ("mfu-decline", _MACHINE),
    FaultClass.GPU_SLOW: ("mfu-decline", _MACHINE),
    FaultClass.STRAGGLER_SLOW: ("mfu-decline", _MACHINE),
    FaultClass.SILENT_CORRUPTION: ("nan", _MACHINE),
    FaultClass.NUMERIC_NAN: ("nan", None),
    FaultClass.NETWORK_IB: ("infiniband-error", _MACHINE),
    FaultClass.NETWORK_ETH: ("infiniband-error", _MACHINE),
    FaultClass.NETWORK_LINK: ("infiniband-error", _MACHINE),
    FaultClass.NETWORK_SWITCH: ("infiniband-error", _SERVICE),
    FaultClass.NODE_FAILURE: ("kernel-panic", _MACHINE),
    FaultClass.HOST_KERNEL: ("kernel-panic", _MACHINE),
    FaultClass.CPU_OOM: ("cpu-oom", None),
    FaultClass.DISK_FULL: ("disk-space", _SERVICE),
    FaultClass.STORAGE_CHECKPOINT: ("filesystem-mount", _SERVICE),
    FaultClass.HANG_MISMATCH: ("hang", None),
    FaultClass.GPU_OOM: ("cuda-error", _CODE),
    FaultClass.USER_CODE: ("cuda-error", _CODE),
    FaultClass.DATA_LOADER: ("cuda-error", _CODE),
    FaultClass.NCCL_CONFIG: ("cuda-error", _CODE),
    FaultClass.ENVIRONMENT_MISMATCH: ("cuda-error", _CODE),
    FaultClass.PREEMPTION_SIGTERM: ("manual", Cause.PERSON),
}
"""The simulated symptom nearest to a class, and its cause; None where the class leaves it open."""


def site_history(
    stored: Iterable[StoredVerdict], job: str, nodes: int, now: datetime, span: timedelta
) -> SiteHistory:
    """The incidents of a job since so long; time counts from the site's first verdict on."""
    every = [s for s in stored if now - span <= s.verdict.decided_at <= now]
    own = [s.verdict for s in every if s.verdict.job == job and s.state in _HAPPENED]
    looks: dict[datetime, Verdict] = {}
    for verdict in sorted(own, key=lambda v: v.probability):
        if verdict.fault in SYMPTOM_OF:
            looks[verdict.decided_at] = verdict
    began_at = min((s.verdict.decided_at for s in every), default=now)
    left_out = sum(verdict.fault not in SYMPTOM_OF for verdict in own)
    stops = tuple(_stop(looks[at]) for at in sorted(looks))
    return SiteHistory(job, nodes, began_at, (now - began_at) / timedelta(days=1), stops, left_out)


def _stop(verdict: Verdict) -> PastStop:
    symptom, cause = SYMPTOM_OF[verdict.fault]
    if cause is None and verdict.nodes:
        cause = Cause.MACHINE
    return PastStop(verdict.decided_at, symptom, cause or "", verdict.nodes)


def remark(history: SiteHistory) -> str:
    """How many stops there were, and the rate they mean with its 95 % interval."""
    rate, low, high = history.per_1000_node_days
    return (
        f"{len(history.stops)} stops of {history.job} on {history.nodes} nodes in"
        f" {history.days:.1f} days: {rate:.2f} per 1,000 node-days ({low:.2f}-{high:.2f})"
    )


def trace_text(history: SiteHistory) -> str:
    """The history as a table that `--trace` reads."""
    rows = [
        f"{(stop.at - history.began_at) / timedelta(hours=1):.4f},{stop.symptom},{stop.cause},"
        + " ".join(stop.nodes)
        for stop in history.stops
    ]
    return "\n".join((f"# {remark(history)}", ",".join(COLUMNS), *rows))


def symptom_counts(history: SiteHistory, usual: Mapping[str, float]) -> Mapping[str, float]:
    """How often each symptom came; one that never did keeps its usual share."""
    seen = Counter(stop.symptom for stop in history.stops)
    unseen = {name: share for name, share in usual.items() if name not in seen}
    left = 1.0 - sum(unseen.values())
    return {
        name: seen[name] * left if name in seen else unseen.get(name, 0.0) * seen.total()
        for name in SYMPTOMS
    }


def fleet_text(history: SiteHistory, gpus_per_node: int, usual: Fleet) -> str:
    """A fleet file with this history's rate and symptoms; times are those of another fleet."""
    seen = {stop.symptom for stop in history.stops}
    rows = [
        f"    {name}: {count:.4f}" + ("" if name in seen else f"  # 0 seen: as {usual.name}")
        for name, count in symptom_counts(history, usual.shares).items()
        if count
    ]
    times = [f"  {field.name.removesuffix('_s')}: {getattr(usual.times, field.name):g}s"
             for field in fields(usual.times)]  # fmt: skip
    head = (
        "apiVersion: brctl.dev/v1",
        "kind: SimulatedFleet",
        f'metadata: {{name: {history.job}, title: "{history.job} by its own incidents"}}',
        f"job: {{nodes: {history.nodes}, gpus_per_node: {gpus_per_node}}}",
        "faults:",
        f"  # {remark(history)}",
        f"  per_1000_node_days: {history.per_1000_node_days[0]:.4f}",
        '  counts: "verdicts that were acted on or confirmed, one a look"',
        "  symptoms:",
    )
    return "\n".join((*head, *rows, f"times:  # of {usual.name}, not measured here", *times))
