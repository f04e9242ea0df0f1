"""What one node answered in one sweep: measurements per check, or why there are none."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from brctl.model.command import Outcome

Value = int | float | str | bool


class ProbeStatus(StrEnum):
    """How one probe ended on one node."""

    MEASURED = "measured"
    COULD_NOT_MEASURE = "could-not-measure"
    PROBE_ERROR = "probe-error"
    TIMED_OUT = "timed-out"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value a probe read; its unit stands in check.yaml.

    Attributes:
        name: Dotted measurement name, `gpu.ecc.uncorrected`.
        subject: "" for the node itself, else a device as in `Subject.device`.
        value: The reading. Not read means absent, never a default.
    """

    name: str
    subject: str
    value: Value


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check's probe gave on one node.

    Attributes:
        notes: Why values are missing, in the probe's words.
        stderr: What the probe wrote to stderr, bounded; never parsed.
    """

    check: str
    status: ProbeStatus
    measurements: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """All of one node's results in one sweep.

    Attributes:
        outcome: ANSWERED, or how reaching the node failed.
        detail: One sentence about a failed outcome.
        python: Version of the interpreter that ran the probes, "" if unknown.
        login_s: Seconds until the runner's first byte; a slow login shell shows here.
    """

    node: str
    outcome: Outcome
    results: tuple[CheckResult, ...] = ()
    detail: str = ""
    seconds: float = 0.0
    received_at: datetime | None = None
    python: str = ""
    login_s: float | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What all its checks read, in the order of the answer."""
        return tuple(m for result in self.results for m in result.measurements)

    @property
    def notes(self) -> tuple[str, ...]:
        """What all its probes say of values that are missing."""
        return tuple(note for result in self.results for note in result.notes)

    @property
    def why_silent(self) -> str:
        """Why it did not answer, in a sentence or at least a word."""
        return self.detail or self.outcome.value

    def result_of(self, check: str) -> CheckResult | None:
        """What one check gave; None where the node says nothing of it."""
        return next((result for result in self.results if result.check == check), None)

    def measured_by(self, check: str) -> tuple[Measurement, ...]:
        """What one check read."""
        return tuple(m for r in self.results if r.check == check for m in r.measurements)

    def named(self, name: str) -> tuple[Measurement, ...]:
        """The readings of one name, one a subject."""
        return tuple(m for r in self.results for m in r.measurements if m.name == name)
