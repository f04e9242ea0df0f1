"""A node's clock against the moment its answer came."""

from brctl.evidence.operators import is_number
from brctl.evidence.reading import Reading
from brctl.model.evidence import Gap, Subject
from brctl.model.evidence_kinds import CLOCK_SKEW
from brctl.model.sweeps.check import MeasurementSpec
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport


def measure_skew(report: NodeReport, result: CheckResult, spec: MeasurementSpec) -> Reading:
    """The least skew that explains the answer, in seconds; 0 when the travel time explains it.

    The node read its clock at some moment of the round trip, so up to `report.seconds` of the
    difference is no skew.
    """
    readings = [m.value for m in result.measurements if m.name == spec.name]
    if not readings or not is_number(readings[0]):
        return Reading()
    if report.received_at is None:
        subject = Subject(report.node)
        return Reading(
            gaps=(Gap(subject, CLOCK_SKEW, "the answer's moment of arrival is not known"),)
        )
    ahead_s = readings[0] - report.received_at.timestamp()
    skew_s = max(0.0, ahead_s, -ahead_s - max(0.0, report.seconds))
    return Reading(measurements=(Measurement(CLOCK_SKEW, "", skew_s),))
