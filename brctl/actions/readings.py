"""What one check measured on one node, for verbs that look before they act."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.command import Outcome
from brctl.model.sweeps.report import Measurement, NodeReport, ProbeStatus, Value


@dataclass(frozen=True, slots=True)
class CheckReadings:
    """One check's measurements.

    Attributes:
        problem: Why there are none; "" when there are. Silence is no reading of zero.
        notes: What the check could not read.
    """

    measurements: tuple[Measurement, ...]
    problem: str = ""
    notes: tuple[str, ...] = ()

    def values(self, name: str) -> Mapping[str, Value]:
        """Subject to value of one measurement."""
        return {m.subject: m.value for m in self.measurements if m.name == name}


def readings_of(report: NodeReport, check: str) -> CheckReadings:
    """The measurements of a check in a report, or the reason why there are none."""
    if report.outcome is not Outcome.ANSWERED:
        return CheckReadings((), report.why_silent)
    result = report.result_of(check)
    if result is None or result.status is not ProbeStatus.MEASURED or not result.measurements:
        notes = result.notes if result is not None else ()
        return CheckReadings((), notes[0] if notes else "no measurement")
    return CheckReadings(tuple(result.measurements), notes=tuple(result.notes))
