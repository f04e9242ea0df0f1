"""Whatever a node sends becomes a bounded, honest report."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.model.command import Outcome
from brctl.model.sweeps.report import Measurement, NodeReport, ProbeStatus
from brctl.sweep.parse import NOTE_LIMIT, TEXT_LIMIT, parse_report
from tests.sweep.answers import HELLO, answer, check, end, envelope, result

CHECKS = {"c": check("c")}


def parse(*lines: object, outcome: Outcome = Outcome.ANSWERED) -> NodeReport:
    return parse_report(answer(*lines, outcome=outcome), CHECKS)


def test_a_whole_answer_becomes_measurements() -> None:
    """Name, subject and value come through with the runner's own facts."""
    report = parse(HELLO, result("c", envelope(7)), end(1))
    assert (report.outcome, report.python, report.login_s) == (Outcome.ANSWERED, "3.9.2", 0.31)
    assert report.results[0].status is ProbeStatus.MEASURED
    assert report.results[0].measurements == (Measurement("m", "", 7),)


def test_what_a_login_shell_prints_does_not_spoil_the_answer() -> None:
    """A message of the day before the first JSON line is passed over."""
    report = parse(b"Welcome to gpu0412!\n[1, 2]\n", HELLO, result("c", envelope(1)), end(1))
    assert report.results[0].status is ProbeStatus.MEASURED


def test_a_stream_without_its_end_is_a_node_that_died() -> None:
    """What came before the cut is kept; what is missing is said."""
    checks = {"c": check("c"), "d": check("d")}
    report = parse_report(answer(HELLO, result("c", envelope(1))), checks)
    assert report.outcome is Outcome.DIED
    assert [r.status for r in report.results] == [ProbeStatus.MEASURED, ProbeStatus.MISSING]


def test_a_node_without_python_is_unparsable_and_quoted() -> None:
    """The shell's own words say what is wrong."""
    shell = answer(stderr=b"sh: 1: python3: not found\n")
    report = parse_report(shell, CHECKS)
    assert (report.outcome, report.results) == (Outcome.UNPARSABLE, ())
    assert "python3: not found" in report.detail


def test_a_deadline_keeps_the_results_that_came() -> None:
    """COMMAND_TIMED_OUT stays the outcome, partial results stay results."""
    report = parse(HELLO, result("c", envelope(1)), outcome=Outcome.COMMAND_TIMED_OUT)
    assert report.outcome is Outcome.COMMAND_TIMED_OUT
    assert report.results[0].status is ProbeStatus.MEASURED


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (result("c", envelope(1)), ProbeStatus.MEASURED),
        (result("c", envelope(notes=("no NVML",)), exit=1), ProbeStatus.COULD_NOT_MEASURE),
        (result("c", envelope()), ProbeStatus.COULD_NOT_MEASURE),
        (result("c", envelope(1), exit=2), ProbeStatus.PROBE_ERROR),
        (result("c", envelope(1), exit=None), ProbeStatus.PROBE_ERROR),
        (result("c", envelope(1), exit=True), ProbeStatus.PROBE_ERROR),
        (result("c", envelope(1), exit="0"), ProbeStatus.PROBE_ERROR),
        (result("c", "no json"), ProbeStatus.PROBE_ERROR),
        (result("c", ""), ProbeStatus.PROBE_ERROR),
        (result("c", '{"measurements": 3}'), ProbeStatus.PROBE_ERROR),
        (result("c", "[" * 100_000), ProbeStatus.PROBE_ERROR),
        (result("c", envelope(1), over_limit=True), ProbeStatus.PROBE_ERROR),
        (result("c", "", timed_out=True, exit=None), ProbeStatus.TIMED_OUT),
        (result("c", "", abandoned=True, exit=None), ProbeStatus.TIMED_OUT),
        (result("other", envelope(1)), ProbeStatus.MISSING),
        ({"type": "result", "check": ["c"]}, ProbeStatus.MISSING),
    ],
)
def test_only_a_clean_answer_counts_as_measured(
    line: dict[str, object], status: ProbeStatus
) -> None:
    """Everything else is named for what it is."""
    assert parse(HELLO, line, end(1)).results[0].status is status


def test_a_check_whose_readings_are_all_optional_may_measure_nothing() -> None:
    """No rank on the node is a clean answer of a check about ranks."""
    checks = {"c": check("c", optional=True)}
    report = parse_report(answer(HELLO, result("c", envelope()), end(1)), checks)
    assert report.results[0].status is ProbeStatus.MEASURED


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1" * 5000, "null", "[]", "{}", "1e999"]
)
def test_a_value_that_is_no_value_is_never_a_number(value: str) -> None:
    """NaN, infinity, null and containers are refused aloud, never read as zero."""
    text = envelope("VALUE").replace('"VALUE"', value)
    outcome = parse(HELLO, result("c", text), end(1)).results[0]
    assert outcome.measurements == ()
    assert outcome.status is not ProbeStatus.MEASURED
    assert outcome.notes


def test_measurements_nobody_declared_are_not_believed() -> None:
    """A foreign name, a long or unprintable subject is dropped and counted."""
    rows = [
        {"name": "x", "subject": "", "value": 1},
        {"name": "m", "subject": "\x1b[2J", "value": 1},
        {"name": "m", "subject": "g" * 301, "value": 1},
        {"name": "m", "subject": "gpu:1", "value": 1},
    ]
    text = json.dumps({"measurements": rows, "notes": []})
    outcome = parse(HELLO, result("c", text), end(1)).results[0]
    assert outcome.measurements == (Measurement("m", "gpu:1", 1),)
    assert "3 measurements were not believed" in outcome.notes[0]


def test_a_second_result_of_one_check_is_not_believed() -> None:
    """The first one stands, so that nothing printed later can overwrite it."""
    report = parse(HELLO, result("c", envelope(1)), result("c", envelope(2)), end(2))
    assert report.results[0].measurements[0].value == 1


def test_text_is_cut_and_always_writable() -> None:
    """Long notes, values and stderr are bounded; lone surrogates cannot break a later write."""
    text = json.dumps({
        "measurements": [{"name": "m", "subject": "", "value": "\ud800" + "v" * 9999}],
        "notes": ["n" * 9999] * 999,
    })  # fmt: skip
    outcome = parse(HELLO, result("c", text, stderr="e" * 99_999), end(1)).results[0]
    value = outcome.measurements[0].value
    assert isinstance(value, str)
    assert len(value.encode()) == TEXT_LIMIT
    assert {len(note) for note in outcome.notes} == {NOTE_LIMIT}
    assert len(outcome.notes) == 50
    assert len(outcome.stderr) == TEXT_LIMIT


def test_a_streaming_probe_that_was_killed_keeps_its_whole_lines() -> None:
    """Each line is an envelope of its own; the cut one is lost, the status says killed."""
    checks = {"c": check("c", stream=True)}
    stdout = envelope(1) + "\n" + envelope(2) + "\n" + '{"measurem'
    line = result("c", stdout, timed_out=True, exit=None)
    outcome = parse_report(answer(HELLO, line, end(1)), checks).results[0]
    assert [m.value for m in outcome.measurements] == [1, 2]
    assert outcome.status is ProbeStatus.TIMED_OUT


@given(st.binary(max_size=2000))
def test_no_bytes_raise(noise: bytes) -> None:
    """Random output is always some report."""
    report = parse(noise)
    assert report.outcome in (Outcome.UNPARSABLE, Outcome.DIED, Outcome.ANSWERED)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
KEYS = ["type", "check", "exit", "stdout", "stderr", "seconds", "timed_out", "measurements"]


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON), max_size=5), JSON)
def test_no_json_raises(lines: list[dict[str, object]], envelope_: object) -> None:
    """Right keys with absurd values are always some report."""
    report = parse(HELLO, *lines, result("c", json.dumps(envelope_)), end(1))
    assert len(report.results) == 1
