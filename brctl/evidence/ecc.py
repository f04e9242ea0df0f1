"""Memory error counters of a node's GPUs, as rows."""

from collections.abc import Mapping

from brctl.model.sweeps.ecc import EccRow
from brctl.model.sweeps.report import NodeReport, Value


def ecc_rows(report: NodeReport, job: str = "") -> tuple[EccRow, ...]:
    """One row a GPU that any reading names, in the order of their index."""
    values: dict[str, dict[str, Value]] = {}
    for m in report.measurements:
        if m.subject.startswith("gpu:"):
            values.setdefault(m.subject, {})[m.name] = m.value
    rows = [_row(report.node, device, found, job) for device, found in values.items()]
    return tuple(sorted(rows, key=lambda row: (row.index is None, row.index, row.device)))


def _row(node: str, device: str, found: Mapping[str, Value], job: str) -> EccRow:
    serial = found.get("gpu.device.serial")
    return EccRow(
        node=node,
        device=device,
        index=_count(found, "gpu.device.index"),
        serial=serial if isinstance(serial, str) else "",
        corrected=_count(found, "gpu.ecc.volatile_corrected"),
        uncorrected=_count(found, "gpu.ecc.volatile_uncorrected"),
        uncorrected_ever=_count(found, "gpu.ecc.aggregate_uncorrected"),
        remapped=_count(found, "gpu.remap.uncorrected"),
        pending=_flag(found, "gpu.remap.pending"),
        failed=_flag(found, "gpu.remap.failed"),
        job=job,
    )


def _count(found: Mapping[str, Value], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(found: Mapping[str, Value], name: str) -> bool | None:
    value = found.get(name)
    return value if isinstance(value, bool) else None
