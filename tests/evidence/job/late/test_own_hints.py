"""What slows the one late node is named before its lateness."""

from dataclasses import replace

import pytest

from brctl.evidence.job.late.own_hints import why_late
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass

HOT = Evidence(
    "host.kernel.cpu_throttled", Subject("n3"), Weight.HINTS, FaultClass.THERMAL_POWER, Role.ROOT,
    "host.kernel", "a CPU is throttled by heat",
)  # fmt: skip
LATE = Evidence(
    "job.rank.waits-least", Subject("n3", "rank:2"), Weight.CONVICTS, FaultClass.STRAGGLER_SLOW,
    Role.ROOT, "job.ranks", "they wait for it",
)  # fmt: skip


def test_heat_of_the_one_late_node_is_why_it_is_late() -> None:
    """A node without its fan was a straggler HIGH, and a restart in place would not mend it."""
    hot, late = why_late([HOT, LATE])
    assert (hot.weight, late) == (Weight.CONVICTS, LATE)


@pytest.mark.parametrize(
    "items",
    [
        [HOT],
        [HOT, replace(LATE, weight=Weight.HINTS)],
        [HOT, replace(LATE, subject=Subject("n4", "rank:3"))],
        [HOT, replace(HOT, subject=Subject("n5")), LATE],
        [replace(HOT, fault=FaultClass.DRIVER_FIRMWARE), LATE],
        [replace(HOT, kind="job.gpu.sm_mhz", source="gpu.clocks"), LATE],
        [replace(HOT, strength=0.6), LATE],
    ],
    ids=[
        "nobody late",
        "late by a hint",
        "another late",
        "hot elsewhere too",
        "no slowness",
        "a comparison that knows how sure it is",
        "a line of a log",
    ],
)
def test_a_hint_stays_one_where_it_does_not_explain_who_is_late(items: list[Evidence]) -> None:
    assert why_late(items) == tuple(items)
