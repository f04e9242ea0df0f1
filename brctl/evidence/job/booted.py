"""Nodes that booted while the job ran: back and well to look at, and their ranks are gone."""

from collections.abc import Iterable, Mapping

from brctl.evidence.operators import is_number
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.report import NodeReport

UPTIME = "host.kernel.uptime_s"


def booted_since(status: JobStatus, reports: Mapping[str, NodeReport]) -> Iterable[Evidence]:
    """Nodes up for a shorter time than since their ranks' last progress.

    Only where no exit status was written: whoever ends a job before booting a node leaves one.
    """
    for node in status.job.nodes:
        ages = [view.progress_age_s for view in status.ranks if view.node == node and _lost(view)]
        known = [age for age in ages if age is not None]
        uptime_s = _uptime_s(reports.get(node))
        if not known or uptime_s is None or uptime_s >= min(known):
            continue
        yield Evidence(
            kind="node.booted",
            subject=Subject(node),
            weight=Weight.CONVICTS,
            fault=FaultClass.NODE_FAILURE,
            role=Role.ROOT,
            source="host.kernel",
            text=f"{node} booted {uptime_s:.0f} s ago, after its ranks' last progress"
            f" {min(known):.0f} s ago; they ended with it",
            raw=f"{UPTIME} {uptime_s:.1f}",
        )


def _lost(view: RankView) -> bool:
    return view.alive is False and view.exit_status is None


def _uptime_s(report: NodeReport | None) -> float | None:
    """Seconds since the node booted, as it read them."""
    read = report.named(UPTIME) if report else ()
    return next((float(m.value) for m in read if is_number(m.value)), None)
