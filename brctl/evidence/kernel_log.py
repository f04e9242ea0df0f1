"""Kernel lines from a node, parsed and judged: Xids, SXids, and the host's own troubles.

Traps handled here: the first number after `Xid` is the PCI domain, not the code; some drivers print
only "fallen off the bus" without an Xid; long messages wrap (the probe joins them); one event comes
thousands of times (grouped); an event of last week is history, not the cause of today's stop.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from brctl.evidence.gpu_names import gpu_name, gpu_names
from brctl.evidence.kernel_ends import ENDED, HAS_ENDED, NOT_OVER, Over, overs
from brctl.evidence.kernel_line import YEARS, KernelLine, parse_kernel_line
from brctl.evidence.operators import is_number
from brctl.evidence.reading import RAW_LIMIT, Reading
from brctl.evidence.sxid import FOLLOWS_A_LOST_GPU, Severity, find_sxid
from brctl.evidence.xid import (
    FALLEN_OFF_THE_BUS,
    RECOVERY_ACTION,
    RECOVERY_ACTIONS,
    find_xid,
)
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.check import MeasurementSpec
from brctl.model.sweeps.report import CheckResult, NodeReport

FRESH = timedelta(hours=24)
"""An older event is history: the machine has run since, or was repaired (own judgement)."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_PCI = r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})"
_XID = re.compile(rf"NVRM: Xid \((?:PCI:)?{_PCI}(?:\.[0-7])?\):\s{{0,4}}(?P<code>\d{{1,4}})\b")
_SXID = re.compile(
    rf"nvidia-nvswitch\d{{1,3}}: SXid \((?:PCI:)?{_PCI}(?:\.[0-7])?\):"
    r"\s{0,4}(?P<code>\d{5})\b"
)
_ADDRESS = re.compile(rf"\b{_PCI}(?:\.(?P<function>[0-7]))?\b")
_IDENTITY = re.compile(rf"GPU at PCI:{_PCI}(?:\.[0-7])?: (?P<uuid>GPU-[0-9a-fA-F-]{{8,40}})")
_OFF_THE_BUS = re.compile(r"fallen off the bus")
_RECOVERY = re.compile(
    r"recovery action changed from 0x[0-9a-fA-F]{1,4}[^0]{0,40}to 0x(?P<to>[0-9a-fA-F]{1,4})"
)
_FATAL = re.compile(r"(?<![-\w])Fatal\b")
_NOT_FATAL = re.compile(r"\bNon-fatal\b", re.IGNORECASE)
_NVLINK5 = range(144, 151)
_FOLLOW_A_LOST_GPU = {f"gpu.sxid.{FOLLOWS_A_LOST_GPU}", "gpu.xid.74", "gpu.xid.45"}


@dataclass(frozen=True, slots=True)
class _KernelEvent:
    """One judged line before grouping; `over` says why it is history, and when it ended."""

    kind: str
    device: str
    fault: FaultClass | None
    weight: Weight
    role: Role
    text: str
    line: KernelLine
    over: Over = NOT_OVER


def judge_xid_lines(report: NodeReport, result: CheckResult, spec: MeasurementSpec) -> Reading:
    """Evidence from the GPU driver's kernel lines."""
    return _judge(report, result, spec, _gpu_event, FaultClass.GPU_LOST)


def judge_kernel_lines(report: NodeReport, result: CheckResult, spec: MeasurementSpec) -> Reading:
    """Evidence from all other kernel lines."""
    return _judge(report, result, spec, _host_event, FaultClass.HOST_KERNEL)


def _judge(
    report: NodeReport,
    result: CheckResult,
    spec: MeasurementSpec,
    event_of: Callable[[KernelLine], _KernelEvent | None],
    cleared: FaultClass,
) -> Reading:
    boot_at = _boot_at(report, result)
    texts = [m.value for m in result.measurements if m.name == spec.name]
    lines = [parse_kernel_line(text, boot_at) for text in texts if isinstance(text, str)]
    said = [(line, event_of(line)) for line in lines]
    whys = overs([(line, event.kind if event else "") for line, event in said])
    events = [replace(e, over=why) for (_, e), why in zip(said, whys, strict=True) if e]
    uuids = {**_uuids_in(lines), **_uuid_by_pci(report)}
    names = gpu_names(report) if events else {}
    judged = [_evidence(report, result, uuids, names, group) for group in _grouped(events)]
    found = tuple(_with_victims(judged))
    if not any(_speaks_against(item) for item in found):
        found += tuple(_all_quiet(report, result, cleared))
    return Reading(evidence=found)


def _speaks_against(item: Evidence) -> bool:
    """Whether a log is not quiet for it: a trouble of today that ended was one."""
    return item.kind.endswith(HAS_ENDED) or item.weight in (Weight.HINTS, Weight.CONVICTS)


def _all_quiet(report: NodeReport, result: CheckResult, cleared: FaultClass) -> Iterator[Evidence]:
    """The log was read and nothing in it speaks against the node; an unread log clears nothing."""
    for measurement in result.measurements:
        if measurement.name.endswith(".lines_read") and is_number(measurement.value):
            text = f"{measurement.value} kernel lines read, no trouble in them"
            yield Evidence(
                kind=measurement.name,
                subject=Subject(report.node),
                weight=Weight.CLEARS,
                fault=cleared,
                role=Role.CONTEXT,
                source=result.check,
                text=text,
                at=report.received_at,
            )


def _boot_at(report: NodeReport, result: CheckResult) -> datetime | None:
    """When the node booted, from the uptime the probe read and the moment its answer came."""
    uptimes = [m.value for m in result.measurements if m.name.endswith(".uptime_s")]
    if not uptimes or not is_number(uptimes[0]) or report.received_at is None:
        return None
    try:
        boot_at = report.received_at - timedelta(seconds=uptimes[0])
    except OverflowError:
        return None
    return boot_at if boot_at.year in YEARS else None


def _uuid_by_pci(report: NodeReport) -> Mapping[str, str]:
    """GPU subjects by PCI address, where gpu.devices could still read them."""
    return {str(m.value).lower(): m.subject for m in report.named("gpu.device.pci")}


def _uuids_in(lines: Iterable[KernelLine]) -> Mapping[str, str]:
    """GPU subjects by PCI address, where the driver wrote both; NVML cannot name a lost GPU."""
    found = (_IDENTITY.search(line.message) for line in lines)
    return {_pci(m).removeprefix("pci:"): f"gpu:{m['uuid']}" for m in found if m}


def _xid_event(line: KernelLine) -> _KernelEvent | None:
    match = _XID.search(line.message)
    if match is None:
        return None
    xid = find_xid(int(match["code"]))
    parts = [f"Xid {xid.code}: {xid.meaning}", f"NVIDIA: {xid.immediate}", xid.disagreement]
    weight = xid.weight
    if xid.code == RECOVERY_ACTION and (found := _RECOVERY.search(line.message)):
        action = RECOVERY_ACTIONS.get(int(found["to"], 16), f"unknown action {found['to']}")
        parts[1] = f"the driver asks to: {action}"
    if xid.code in _NVLINK5 and _FATAL.search(line.message):
        weight = Weight.CONVICTS
    text = "; ".join(part for part in parts if part)
    return _KernelEvent(f"gpu.xid.{xid.code}", _pci(match), xid.fault, weight, xid.role, text, line)


def _sxid_event(line: KernelLine) -> _KernelEvent | None:
    match = _SXID.search(line.message)
    if match is None:
        return None
    code = int(match["code"])
    severity, meaning = find_sxid(code)
    fatal = bool(_FATAL.search(line.message))
    harmless = severity is Severity.NON_FATAL or _NOT_FATAL.search(line.message)
    weight = Weight.CONTEXT if harmless else Weight.HINTS
    if severity is Severity.ALWAYS_FATAL or (severity is Severity.POTENTIALLY_FATAL and fatal):
        weight = Weight.CONVICTS
    role = Role.CONTEXT if weight is Weight.CONTEXT else Role.ROOT
    text = f"SXid {code} ({severity.value}): {meaning}"
    return _KernelEvent(
        f"gpu.sxid.{code}", _pci(match), FaultClass.NVLINK, weight, role, text, line
    )


def _off_the_bus_event(line: KernelLine) -> _KernelEvent | None:
    """Some drivers say it without an Xid; it is an Xid 79 all the same."""
    if not _OFF_THE_BUS.search(line.message) or "NV" not in line.message:
        return None
    xid = find_xid(FALLEN_OFF_THE_BUS)
    text = f"{xid.meaning} (no Xid printed; the same as Xid 79); NVIDIA: {xid.immediate}"
    device = _pci(match) if (match := _ADDRESS.search(line.message)) else ""
    return _KernelEvent("gpu.xid.79", device, xid.fault, xid.weight, Role.ROOT, text, line)


def _numbered_event(line: KernelLine) -> _KernelEvent | None:
    """What the GPU driver says by number, or would have."""
    found = (event_of(line) for event_of in (_xid_event, _sxid_event, _off_the_bus_event))
    return next((event for event in found if event is not None), None)


def _gpu_event(line: KernelLine) -> _KernelEvent | None:
    return _numbered_event(line) or _signature_event(line, of_driver=True)


def _host_event(line: KernelLine) -> _KernelEvent | None:
    if _gpu_event(line) is not None:
        return None
    return _signature_event(line, of_driver=False)


def _signature_event(line: KernelLine, *, of_driver: bool) -> _KernelEvent | None:
    """The row that speaks on the line, found as in any other log."""
    # The tables of all logs hang on it, and most commands judge no line.
    from brctl.evidence.logs.kernel_lines import find_row

    row = find_row(line.message, of_driver=of_driver)
    if row is None:
        return None
    role = Role.ROOT if row.fault else Role.CONTEXT
    match = _ADDRESS.search(line.message)
    return _KernelEvent(
        row.name, _pci(match) if match else "", row.fault, row.weight, role, row.say, line
    )


def _pci(match: re.Match[str]) -> str:
    function = match.groupdict().get("function") or "0"
    return f"pci:{match['domain'][-4:]}:{match['bus']}:{match['device']}.{function}".lower()


def _grouped(events: Iterable[_KernelEvent]) -> Iterable[list[_KernelEvent]]:
    """Events of one kind on one device together, in the order of their first line."""
    groups: dict[tuple[str, str, str], list[_KernelEvent]] = {}
    for event in events:
        groups.setdefault((event.kind, event.device, event.over.why), []).append(event)
    return groups.values()


def _evidence(
    report: NodeReport,
    result: CheckResult,
    uuids: Mapping[str, str],
    names: Mapping[str, str],
    group: list[_KernelEvent],
) -> Evidence:
    """One group as evidence: judged and dated by its latest line, or dated by its end."""
    latest = max(group, key=lambda e: (e.line.at is not None, e.line.at or _LONG_AGO))
    worst = max(group, key=lambda e: list(Weight).index(e.weight))
    slot = latest.device.removeprefix("pci:")
    device = uuids.get(slot, latest.device)
    name = names.get(latest.device) or (gpu_name("", slot) if slot in uuids else "")
    at = _latest_end(group) if latest.over.why == ENDED else latest.line.at
    old = _is_old(report, at)
    ended = latest.over.why == ENDED and not old
    over = latest.over.why or ("older than a day" if old else "")
    times = f" ({len(group)} times)" if len(group) > 1 else ""
    age = f"; {over}{'' if ended else ', so history'}" if over else ""
    return Evidence(
        kind=latest.kind + HAS_ENDED if ended else latest.kind,
        subject=Subject(report.node, device, name),
        weight=Weight.CONTEXT if over else worst.weight,
        fault=worst.fault,
        role=Role.CONTEXT if over else worst.role,
        source=result.check,
        text=f"{worst.text}{times}{age}"[:RAW_LIMIT],
        raw=worst.line.raw[:RAW_LIMIT],
        at=at,
    )


def _latest_end(group: Iterable[_KernelEvent]) -> datetime | None:
    return max((e.over.at for e in group if e.over.at is not None), default=None)


def _is_old(report: NodeReport, at: datetime | None) -> bool:
    """Whether an event is history; one without a time counts as fresh."""
    return at is not None and report.received_at is not None and report.received_at - at > FRESH


def _with_victims(judged: list[Evidence]) -> Iterator[Evidence]:
    """A lost GPU makes its switches and its peers report link errors: those are victims."""
    lost = any(e.kind == "gpu.xid.79" and e.weight is Weight.CONVICTS for e in judged)
    for item in judged:
        if lost and item.kind in _FOLLOW_A_LOST_GPU:
            yield replace(item, role=Role.VICTIM, weight=Weight.CONTEXT)
        else:
            yield item
