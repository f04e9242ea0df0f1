"""What is lost between two looks counts; what was lost before both does not."""

import pytest

from brctl.evidence.job.network.packet_growth import with_growth, worth_a_second_look
from brctl.model.command import Outcome
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

PEER = "peer:10.0.0.2"


def report(segments: float, lost: float) -> NodeReport:
    """A node that sent 20 packets in the 0.4 s of its probe, and lost none of these."""
    values = {"segments": segments, "lost": lost, "segments_now": 20, "lost_now": 0}
    rows = tuple(Measurement(f"fabric.tcp.{name}", PEER, value) for name, value in values.items())
    return NodeReport(
        "n1", Outcome.ANSWERED, (CheckResult("fabric.tcp", ProbeStatus.MEASURED, rows),)
    )


def now(found: NodeReport) -> dict[str, object]:
    return {
        m.name.rpartition(".")[2]: m.value for m in found.measurements if m.name.endswith("_now")
    }


@pytest.mark.parametrize(
    ("segments", "lost", "worth"), [(9000, 400, True), (9000, 2, False), (90_000, 100, False)]
)
def test_only_a_path_that_lost_more_than_a_sound_one_is_looked_at_again(
    segments: int, lost: int, *, worth: bool
) -> None:
    assert worth_a_second_look([report(segments, lost)]) is worth


def test_what_was_lost_since_the_first_look_replaces_the_short_sample() -> None:
    found = with_growth(report(9000, 400), report(9500, 421))
    assert now(found) == {"segments_now": 500, "lost_now": 21}


def test_losses_of_long_ago_do_not_grow() -> None:
    found = with_growth(report(9000, 400), report(9500, 400))
    assert now(found) == {"segments_now": 500, "lost_now": 0}


def test_counters_of_other_connections_say_nothing() -> None:
    """The job connected anew between the looks: its counters began at nothing."""
    found = with_growth(report(9000, 400), report(60, 0))
    assert now(found) == {"segments_now": 20, "lost_now": 0}
