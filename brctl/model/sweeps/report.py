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
