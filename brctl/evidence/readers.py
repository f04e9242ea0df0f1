"""The readers a check.yaml may name for values that rules alone cannot judge."""

from collections.abc import Callable, Mapping

from brctl.evidence.clock import measure_skew
from brctl.evidence.kernel_log import judge_kernel_lines, judge_xid_lines
from brctl.evidence.reading import Reading
from brctl.model.sweeps.check import MeasurementSpec
from brctl.model.sweeps.report import CheckResult, NodeReport

READERS: Mapping[str, Callable[[NodeReport, CheckResult, MeasurementSpec], Reading]] = {
    "clock": measure_skew,
    "xid-lines": judge_xid_lines,
    "kernel-lines": judge_kernel_lines,
}
