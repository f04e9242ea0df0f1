"""A node's report answers for all its checks at once, and for one of them."""

from brctl.model.command import Outcome
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

UP = Measurement("host.kernel.uptime_s", "", 90.0)
ETH0, ETH1 = (Measurement("fabric.eth.mtu", f"nic:eth{i}", 9000) for i in range(2))
REPORT = NodeReport(
    "n1", Outcome.ANSWERED,
    (
        CheckResult("host.kernel", ProbeStatus.MEASURED, (UP,), ("no journal",)),
        CheckResult("fabric.eth", ProbeStatus.MEASURED, (ETH0, ETH1)),
        CheckResult("gpu.ecc", ProbeStatus.TIMED_OUT, (), ("out of time",)),
    ),
)  # fmt: skip


def test_measurements_and_notes_keep_the_order_of_the_answer() -> None:
    assert REPORT.measurements == (UP, ETH0, ETH1)
    assert REPORT.notes == ("no journal", "out of time")


def test_a_name_has_one_reading_a_subject_and_a_check_all_of_its_own() -> None:
    assert REPORT.named("fabric.eth.mtu") == REPORT.measured_by("fabric.eth") == (ETH0, ETH1)
    assert REPORT.named("fabric.eth") == REPORT.measured_by("gpu.ecc") == ()


def test_a_check_the_node_says_nothing_of_has_no_result() -> None:
    assert REPORT.result_of("gpu.ecc") == REPORT.results[2]
    assert REPORT.result_of("gpu.xid") is None


def test_a_silent_node_says_why_at_least_in_a_word() -> None:
    told = NodeReport("n1", Outcome.REFUSED, detail="port 22 is closed")
    assert told.why_silent == "port 22 is closed"
    assert NodeReport("n1", Outcome.REFUSED).why_silent == "refused"
