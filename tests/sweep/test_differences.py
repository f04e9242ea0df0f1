"""`nodes diff`: the odd one is named, two cannot outvote each other, silence is no difference."""

import time

from hypothesis import given
from hypothesis import strategies as st

from brctl.model.command import Outcome
from brctl.model.sweeps.difference import Difference
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.sweep.differences import ABSENT, compare_nodes


def answered(
    node: str, *values: tuple[str, str, Value], check: str = "host.versions"
) -> NodeReport:
    """A node whose one check gave (name, subject, value)."""
    measured = tuple(Measurement(*each) for each in values)
    result = CheckResult(check, ProbeStatus.MEASURED, measured)
    return NodeReport(node, Outcome.ANSWERED, (result,))


def driver(node: str, version: str) -> NodeReport:
    return answered(node, ("host.versions.driver", "", version))


def test_the_odd_one_is_named_with_the_majoritys_value() -> None:
    found = compare_nodes(
        [driver("n1", "570.148"), driver("n2", "570.133"), driver("n3", "570.148")]
    )
    assert found.reference == ("n1", "n3")
    assert found.differences == (
        Difference("n2", "host.versions.driver", "570.133", "570.148"),
    )  # fmt: skip


def test_one_device_unlike_its_siblings_is_a_difference_of_its_node() -> None:
    """All of a node's distinct values are shown, so the mixed node stands out."""
    name = "host.versions.nic_firmware"
    usual = [answered(f"n{i}", (name, "nic:0", "28.41"), (name, "nic:1", "28.41")) for i in (1, 2)]
    mixed = answered("n3", (name, "nic:0", "28.41"), (name, "nic:1", "28.39"))
    (odd,) = compare_nodes([*usual, mixed]).differences
    assert (odd.node, odd.value, odd.reference) == ("n3", "28.39, 28.41", "28.41")


def test_without_a_majority_nobody_is_blamed() -> None:
    """Two nodes, or two halves: the split is told, the odd one is not invented."""
    for versions in (["1", "2"], ["1", "1", "2", "2"], ["1", "2", "3"]):
        found = compare_nodes([driver(f"n{i}", v) for i, v in enumerate(versions)])
        assert found.differences == ()
        assert [split.name for split in found.splits] == ["host.versions.driver"]
        assert sum(len(nodes) for _, nodes in found.splits[0].parts) == len(versions)


def test_what_moves_by_itself_and_what_is_a_nodes_own_is_not_compared() -> None:
    """Loads, serial numbers and log lines differ on every healthy node."""
    reports = [
        answered(
            f"n{i}",
            ("host.cpu.load_per_cpu", "", i / 10),
            ("gpu.device.serial", "gpu:a", f"SN{i}"),
            ("host.kernel.line", "", f"line {i}"),
            ("host.limits.open_files", "", 1024),
        )
        for i in range(4)
    ]
    found = compare_nodes(reports)
    assert (found.differences, found.splits) == ((), ())
    assert found.compared == ("host.limits.open_files",)


def test_silence_is_said_and_is_no_difference() -> None:
    """Neither a dead node, nor a probe that failed, nor a check that was not asked."""
    failed = CheckResult("host.versions", ProbeStatus.TIMED_OUT)
    reports = [
        *(driver(f"n{i}", "570") for i in (1, 2, 3)),
        NodeReport("dead", Outcome.CONNECT_TIMED_OUT, detail="no TCP connection"),
        NodeReport("late", Outcome.ANSWERED, (failed,)),
        NodeReport("other", Outcome.ANSWERED),
    ]
    found = compare_nodes(reports)
    assert found.differences == ()
    assert found.reference == ("n1", "n2", "n3")
    assert found.silent == (
        ("dead", "no TCP connection"),
        ("late", "host.versions timed-out"),
        ("other", "host.versions not asked"),
    )


def test_a_value_that_the_majority_has_and_one_lacks_is_a_difference() -> None:
    """The check was measured there: the thing itself is absent."""
    both = [
        answered(f"n{i}", ("host.versions.kernel", "", "6.1"), ("host.versions.driver", "", "570"))
        for i in range(3)
    ]
    (odd,) = compare_nodes(
        [*both, answered("bare", ("host.versions.kernel", "", "6.1"))]
    ).differences
    assert (odd.node, odd.value, odd.reference) == ("bare", ABSENT, "570")


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=9))
def test_every_node_is_accounted_for(values: list[str | None]) -> None:
    """Reference, different, part of a split, or silent with a reason."""
    reports = [
        driver(f"n{i}", v) if v else NodeReport(f"n{i}", Outcome.REFUSED)
        for i, v in enumerate(values)
    ]
    found = compare_nodes(reports)
    named = {*found.reference, *(d.node for d in found.differences), *(n for n, _ in found.silent)}
    assert named == {report.node for report in reports}
    assert len(found.reference) + len({d.node for d in found.differences}) + len(found.silent) == (
        len(reports)
    )


def test_a_large_fleet_is_compared_in_seconds() -> None:
    """Two thousand nodes with eight devices each, by the processor's clock."""
    values = [(f"gpu.x.m{m}", f"gpu:{g}", "same") for m in range(20) for g in range(8)]
    reports = [answered(f"n{i}", *values) for i in range(2000)]
    started = time.process_time()
    found = compare_nodes(reports)
    assert time.process_time() - started < 5
    assert len(found.reference) == 2000
