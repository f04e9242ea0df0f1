"""What was not measured is said; what was measured is judged the same in any order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence.assess import OUT_OF_TIME, Assessment, assess
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.command import Outcome
from brctl.model.evidence import Role, Weight
from brctl.model.evidence_kinds import CLOCK_SKEW
from brctl.model.fault import FaultClass
from brctl.model.sweeps.check import Check, Condition, MeasurementSpec, Rule
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
SHIPPED = load_checks([shipped_dir("checks")])
GPU = "gpu:GPU-0"
READINGS: tuple[tuple[str, Value], ...] = (
    ("gpu.pcie.width", 8),
    ("gpu.pcie.max_width", 16),
    ("gpu.pcie.generation", 5),
    ("gpu.pcie.max_generation", 5),
    ("gpu.pcie.busy_pct", 97),
    ("gpu.pcie.replays", 0),
)


def result(
    rows: tuple[tuple[str, Value], ...] = READINGS,
    status: ProbeStatus = ProbeStatus.MEASURED,
    notes: tuple[str, ...] = (),
    stderr: str = "",
) -> CheckResult:
    measurements = tuple(Measurement(name, GPU, value) for name, value in rows)
    return CheckResult("gpu.pcie", status, measurements, notes, stderr=stderr)


def judge(*results: CheckResult, checks: tuple[str, ...] = ("gpu.pcie",)) -> Assessment:
    report = NodeReport("n1", Outcome.ANSWERED, results, received_at=NOW)
    return assess(report, {name: SHIPPED[name] for name in checks})


def whys(found: Assessment) -> list[str]:
    return [gap.why for gap in found.gaps]


def test_a_check_without_an_answer_is_a_gap() -> None:
    """The stream was cut, or the probe never ran."""
    assert whys(judge()) == ["the node's answer ended before this check"]


def test_a_node_that_gave_no_answer_is_the_reason_of_all_its_gaps() -> None:
    """Nothing "ended before this check" where nothing began."""
    report = NodeReport("n1", Outcome.UNREACHABLE, detail="no route to host", received_at=NOW)
    found = assess(report, {"gpu.pcie": SHIPPED["gpu.pcie"]})
    assert set(whys(found)) == {"unreachable: no route to host"}


def replays(count: Value, subject: str = GPU) -> NodeReport:
    """A report of one node with a single counter."""
    rows = (Measurement("gpu.pcie.replays", subject, count),)
    found = CheckResult("gpu.pcie", ProbeStatus.MEASURED, rows)
    return NodeReport("n1", Outcome.ANSWERED, (found,), received_at=NOW)


def growth(before: NodeReport, after: NodeReport) -> list[str]:
    """What is said of the counter's growth: sentences that speak against, and gaps about it."""
    found = assess(after, {"gpu.pcie": SHIPPED["gpu.pcie"]}, before)
    actual = [e.text for e in found.evidence if e.weight in (Weight.HINTS, Weight.CONVICTS)]
    return [*actual, *(why for why in whys(found) if "replays" in why)]


def test_a_counter_that_grew_is_judged_and_one_seen_first_is_not() -> None:
    """A GPU that came back or was replaced has no past to compare with, and lacks nothing."""
    assert growth(replays(0), replays(10**6))
    assert growth(replays(5, "gpu:GPU-other"), replays(10**6)) == []
    assert growth(replays(10**6), replays(0)) == []


def test_an_answer_to_a_question_nobody_asked_is_a_gap() -> None:
    """It is not believed, and not passed over."""
    found = judge(result(), CheckResult("site.x", ProbeStatus.MEASURED))
    assert whys(found) == ["answered a check that was not asked"]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (result((), ProbeStatus.PROBE_ERROR, stderr="Traceback\nKeyError: 'x'"), "KeyError: 'x'"),
        (result((), ProbeStatus.PROBE_ERROR), "no reason given"),
        (result((), ProbeStatus.COULD_NOT_MEASURE, ("no driver",)), "no driver"),
        (result((), ProbeStatus.COULD_NOT_MEASURE), "did not say why"),
        (result((), ProbeStatus.TIMED_OUT), "no answer within 8 s"),
    ],
)
def test_a_probe_that_failed_is_a_gap_and_clears_nothing(
    broken: CheckResult, expected: str
) -> None:
    """Whatever way a probe fails, the reason is kept."""
    found = judge(broken)
    assert any(expected in why for why in whys(found))
    assert not [e for e in found.evidence if e.weight is Weight.CLEARS]


@pytest.mark.parametrize(
    "hung",
    [
        result((), ProbeStatus.TIMED_OUT),
        result((), ProbeStatus.COULD_NOT_MEASURE, (OUT_OF_TIME,)),
    ],
)
def test_a_driver_that_does_not_answer_is_suspected(hung: CheckResult) -> None:
    """A probe of the driver that ran out of time hints at the driver."""
    kinds = {(e.kind, e.fault) for e in judge(hung).evidence}
    assert kinds == {("gpu.driver.hang", FaultClass.DRIVER_FIRMWARE)}


def test_a_node_on_which_everything_is_late_has_no_hanging_driver() -> None:
    """Where a check that asks no driver runs out of time as well, the driver explains nothing."""
    late = (result((), ProbeStatus.TIMED_OUT), CheckResult("host.disk", ProbeStatus.TIMED_OUT))
    report = NodeReport("n1", Outcome.ANSWERED, late, received_at=NOW)
    found = assess(report, {name: SHIPPED[name] for name in ("gpu.pcie", "host.disk")})
    assert not found.evidence
    assert {gap.what for gap in found.gaps} == {"gpu.pcie", "host.disk"}


@pytest.mark.parametrize("value", ["8", True, float("nan"), float("inf")])
def test_a_reading_of_another_type_is_a_gap(value: Value) -> None:
    """Text, a flag or no number where a number was promised is not judged."""
    found = judge(result((("gpu.pcie.width", value), *READINGS[1:])))
    assert any("gpu.pcie.width is" in why for why in whys(found))
    assert not [e for e in found.evidence if e.kind == "gpu.pcie.width"]


def test_an_unknown_reading_is_a_gap() -> None:
    """A probe newer than its check.yaml is heard and not believed."""
    found = judge(result((*READINGS, ("gpu.pcie.fans", 3))))
    assert whys(found) == ["unknown measurement 'gpu.pcie.fans'"]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_node_that_was_not_reached_is_said_to_be_so(outcome: Outcome) -> None:
    """Every way of not answering leaves a gap; silence of the machine hints at the machine."""
    report = NodeReport("n1", outcome, detail="why", received_at=NOW)
    found = assess(report, {})
    assert bool(found.gaps) is (outcome is not Outcome.ANSWERED)
    blamed = {e.fault for e in found.evidence}
    own = {
        Outcome.ANSWERED,
        Outcome.AUTHENTICATION_FAILED,
        Outcome.HOST_KEY_MISMATCH,
        Outcome.NOT_AVAILABLE,
        Outcome.OUTPUT_OVER_LIMIT,
        Outcome.UNPARSABLE,
    }
    assert blamed == (set() if outcome in own else {FaultClass.NODE_FAILURE})


@given(st.sets(st.sampled_from([name for name, _ in READINGS])))
def test_removing_readings_never_clears_more(removed: set[str]) -> None:
    """Less measured is never healthier: no new clearing, and nothing unsaid disappears."""
    full = judge(result())
    less = judge(result(tuple(row for row in READINGS if row[0] not in removed)))
    clears = {e for e in full.evidence if e.weight is Weight.CLEARS}
    assert {e for e in less.evidence if e.weight is Weight.CLEARS} <= clears
    assert set(full.gaps) <= set(less.gaps)


@given(st.permutations(READINGS))
def test_the_order_of_readings_does_not_matter(rows: list[tuple[str, Value]]) -> None:
    """A report says the same however its rows are sorted."""
    assert set(judge(result(tuple(rows))).evidence) == set(judge(result()).evidence)


def test_words_of_a_node_are_replaced_and_never_evaluated() -> None:
    """A reading that looks like a placeholder or a format stays text."""
    spec = MeasurementSpec("a.b", "text", "words")
    rule = Rule("a.b", "present", True, Weight.CONTEXT, None, "{value} of {subject}", "own")
    check = replace(SHIPPED["gpu.pcie"], measurements={"a.b": spec}, rules=(rule,))
    odd = "{subject.__class__}%s{0}\x1b[2J" + "x" * 9000
    report = NodeReport(
        "n1",
        Outcome.ANSWERED,
        (CheckResult("gpu.pcie", ProbeStatus.MEASURED, (Measurement("a.b", "", odd),)),),
    )
    (found,) = assess(report, {"gpu.pcie": check}).evidence
    assert "{subject.__class__}%s{0}" in found.text
    assert len(found.text) <= 1024


def one_rule(rule: Rule, optional: bool) -> Check:
    specs = {
        "a.b": MeasurementSpec("a.b", "count", "reading"),
        "a.c": MeasurementSpec("a.c", "count", "another", optional=optional),
    }
    return replace(SHIPPED["gpu.pcie"], measurements=specs, rules=(rule,))


def ask(check: Check, *rows: tuple[str, Value]) -> Assessment:
    measured = tuple(Measurement(name, "", value) for name, value in rows)
    answer = CheckResult("gpu.pcie", ProbeStatus.MEASURED, measured)
    return assess(NodeReport("n1", Outcome.ANSWERED, (answer,)), {"gpu.pcie": check})


@pytest.mark.parametrize("operand", [{"measurement": "a.c"}, 3])
def test_a_rule_that_leans_on_a_missing_reading(operand: object) -> None:
    """Where its absence is normal the rule is silent; where it is not, that is a gap."""
    arguments = (Condition("a.c", "gt", 0),) if operand == 3 else ()
    rule = Rule(
        "a.b", "gt", operand, Weight.HINTS, FaultClass.PCIE, "x", "own", given=arguments  # type: ignore[arg-type]  # either of Rule's operand types
    )  # fmt: skip
    silent = ask(one_rule(rule, optional=True), ("a.b", 5))
    assert (silent.evidence, silent.gaps) == ((), ())
    actual = ask(one_rule(rule, optional=False), ("a.b", 5))
    assert whys(actual) == ["a.b: no reading of a.c to compare with"]


def test_a_rule_keeps_the_role_it_names() -> None:
    """check.yaml may say that a sign follows from something else."""
    rule = Rule("a.b", "gt", 0, Weight.HINTS, FaultClass.PCIE, "x", "own", role=Role.VICTIM)
    (found,) = ask(one_rule(rule, optional=True), ("a.b", 5)).evidence
    assert found.role is Role.VICTIM


def test_a_clearing_gives_way_to_what_speaks_against() -> None:
    """Two rules on one reading: the one that fires is heard alone."""
    fires = Rule("a.b", "gt", 1, Weight.HINTS, FaultClass.PCIE, "x", "own")
    clears = Rule("a.b", "gt", 9, Weight.CONVICTS, FaultClass.PCIE, "x", "own", Weight.CLEARS)
    check = replace(one_rule(fires, optional=True), rules=(fires, clears))
    assert [e.weight for e in ask(check, ("a.b", 5)).evidence] == [Weight.HINTS]


@given(offset=st.floats(-1e6, 1e6), travel=st.floats(0, 30))
def test_travel_time_is_no_skew(offset: float, travel: float) -> None:
    """The skew is the least that explains the answer: zero within the travel time."""
    clock = NOW.timestamp() + offset
    rows = (Measurement("host.clock.unix_s", "", clock),)
    report = NodeReport(
        "n1",
        Outcome.ANSWERED,
        (CheckResult("host.clock", ProbeStatus.MEASURED, rows),),
        seconds=travel,
        received_at=NOW,
    )
    found = assess(report, {"host.clock": SHIPPED["host.clock"]})
    (skew,) = (e for e in found.evidence if e.kind == CLOCK_SKEW)
    wrong = offset > 1.0 or -offset - travel > 1.0
    near = min(abs(offset - 1.0), abs(-offset - travel - 1.0)) < 1e-3
    assert near or (skew.weight is Weight.HINTS) is wrong


def test_a_clock_without_a_moment_of_arrival_is_a_gap() -> None:
    """Nothing can be compared with nothing."""
    rows = (Measurement("host.clock.unix_s", "", 1.0),)
    answer = CheckResult("host.clock", ProbeStatus.MEASURED, rows)
    found = assess(
        NodeReport("n1", Outcome.ANSWERED, (answer,)), {"host.clock": SHIPPED["host.clock"]}
    )
    assert whys(found) == ["the answer's moment of arrival is not known"]


def test_an_absurd_uptime_does_not_break_the_log() -> None:
    """A node may claim to have booted before the calendar began."""
    rows = (
        Measurement("gpu.xid.uptime_s", "", 1e30),
        Measurement("gpu.xid.lines_read", "", 1),
        Measurement("gpu.xid.line", "", "[ 1.0] NVRM: Xid (PCI:0000:4b:00): 79, x"),
    )
    report = NodeReport(
        "n1",
        Outcome.ANSWERED,
        (CheckResult("gpu.xid", ProbeStatus.MEASURED, rows),),
        received_at=NOW - timedelta(0),
    )
    found = assess(report, {"gpu.xid": SHIPPED["gpu.xid"]})
    assert [e.kind for e in found.evidence] == ["gpu.xid.79"]
