"""Memory error counters, asked of the nodes now or read from the sweeps that are kept."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.sweep_store import all_sweeps
from brctl.evidence.ecc import ecc_rows
from brctl.library.parameters import fill_parameters
from brctl.model.command import Outcome
from brctl.model.evidence import Gap, Subject
from brctl.model.sweeps.ecc import EccRow
from brctl.model.sweeps.report import NodeReport
from brctl.sweep.stream import sweep

CHECKS = ("gpu.devices", "gpu.ecc")


async def read_ecc(
    controller: Controller, names: Sequence[str]
) -> tuple[tuple[EccRow, ...], tuple[Gap, ...]]:
    """Counters of every GPU of some nodes, and the nodes that gave none."""
    checks = {name: controller.checks[name] for name in CHECKS}
    stream = sweep(
        controller.transport,
        controller.inventory.pick(names),
        checks,
        lambda node, check: fill_parameters(check, node, None),
        limit=controller.settings.ssh.fanout,
        root=controller.settings.ssh.root,
        now=controller.now,
    )
    async with aclosing(stream):
        reports = {report.node: report async for report in stream}
    jobs = {node: job.name for job in controller.jobs.values() for node in job.nodes}
    ordered = [reports[name] for name in names if name in reports]
    rows = tuple(row for r in ordered for row in ecc_rows(r, jobs.get(r.node, "")))
    return rows, tuple(gap for report in ordered for gap in _gaps(report))


def _gaps(report: NodeReport) -> list[Gap]:
    subject = Subject(report.node)
    if report.outcome is not Outcome.ANSWERED:
        return [Gap(subject, "gpu.ecc", report.why_silent)]
    return [
        Gap(subject, "gpu.ecc", note)
        for note in report.notes
        if not note.startswith("not supported: ")
    ]


def ecc_history(
    controller: Controller, node: str, gpu: int | None, since: datetime
) -> tuple[tuple[datetime, EccRow], ...]:
    """Counters of one node in the sweeps that are kept, oldest first, only where they changed."""
    found: list[tuple[datetime, EccRow]] = []
    last: dict[str, EccRow] = {}
    for past in all_sweeps(controller.state_dir):
        reports = [past_node.report for past_node in past.nodes if past_node.node == node]
        if past.started_at < since or not reports:
            continue
        for row in ecc_rows(reports[0]):
            # A sweep that asked other checks names the GPU without its counters.
            if row.corrected is None or (gpu is not None and row.index != gpu):
                continue
            if last.get(row.device) != replace(row, job=""):
                last[row.device] = row
                found.append((past.started_at, row))
    return tuple(found)
