"""Answers of nodes keep the time they came at, however often they are read again."""

from datetime import timedelta

from brctl.library.checks import usable_checks
from brctl.model.sweeps.report import CheckResult, Measurement, ProbeStatus
from brctl.watch.answers import FleetAnswers
from tests.fakes.nodes import NOW

UPTIME_S = 4000.0
WATCHED_SINCE = NOW - timedelta(minutes=10)


def fell_off_the_bus(ago_s: float) -> CheckResult:
    """The kernel log of a node whose GPU was lost so long before it answered."""
    microseconds = round((UPTIME_S - ago_s) * 1e6)
    line = f"3,1,{microseconds},-;NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus."
    rows = (
        Measurement("gpu.xid.uptime_s", "", UPTIME_S),
        Measurement("gpu.xid.line", "", line),
    )
    return CheckResult("gpu.xid", ProbeStatus.MEASURED, rows)


def answers(ago_s: float) -> FleetAnswers:
    held = FleetAnswers(dict(usable_checks()[0]))
    held.take("n1", {"gpu.xid": fell_off_the_bus(ago_s)}, {2.0: 1}, NOW, {})
    return held


def test_a_kernel_line_from_before_the_watch_stays_history_at_every_heartbeat() -> None:
    held = answers(3600.0)
    for hour in range(1, 5):
        held.take("n1", {}, {2.0: 1 + hour}, NOW + timedelta(hours=hour), {})
        assert not list(held.node_sightings(WATCHED_SINCE, {}))


def test_a_kernel_line_that_was_judged_is_no_news_at_later_heartbeats() -> None:
    held = answers(5.0)
    assert [s.rule for s in held.node_sightings(WATCHED_SINCE, {})] == ["kernel-fatal"]
    judged = {"n1": NOW + timedelta(seconds=2)}
    held.take("n1", {}, {2.0: 2}, NOW + timedelta(minutes=1), {})
    assert not list(held.node_sightings(WATCHED_SINCE, judged))


def test_a_fatal_line_is_still_one_after_the_clock_was_set_an_hour_ahead() -> None:
    hour = timedelta(hours=1)
    held = answers(5.0)
    held.shift(hour)
    assert list(held.node_sightings(WATCHED_SINCE + hour, {}))
    held.take("n1", {}, {2.0: 2}, NOW + hour + timedelta(seconds=10), {})
    assert list(held.node_sightings(WATCHED_SINCE + hour, {}))
