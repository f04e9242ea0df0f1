"""One node's answer can make that node UNKNOWN, and nothing else."""

import json
import math
from datetime import UTC, datetime

import pytest

from brctl.backends.ranks.commands import read_rank_answer
from brctl.engine.sweeps.run_checks import assess_node, compare
from brctl.evidence.job.status import read_job
from brctl.evidence.kernel_line import parse_kernel_line
from brctl.model.command import CommandResult, Outcome
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Inventory, Node
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from brctl.model.sweeps.sweep import Health
from brctl.sweep.parse import parse_report
from tests.hostile.readers import JOB, NOW
from tests.sweep.answers import HELLO, answer, check, end, envelope, result

HUGE = [10**400, 1 << 63, -(1 << 70), 1e101]


@pytest.mark.parametrize("value", HUGE)
def test_a_number_that_nothing_measures_is_not_believed(value: float) -> None:
    """It became a float, a row of a database or text somewhere else, and ended the command."""
    report = parse_report(answer(HELLO, result("c", envelope(value)), end(1)), {"c": check("c")})
    assert report.results[0].status is ProbeStatus.COULD_NOT_MEASURE
    assert report.results[0].measurements == ()


def test_the_others_are_judged_as_if_it_had_been_silent() -> None:
    """Its sick answer leaves n1 UNKNOWN; n2 and n3 stay as they are."""
    checks = {"c": check("c")}
    faulty = parse_report(answer(HELLO, result("c", envelope(10**400)), end(1)), checks, NOW)
    well = [
        NodeReport(n, Outcome.ANSWERED, (CheckResult("c", ProbeStatus.MEASURED, (_one(),)),))
        for n in ("n2", "n3")
    ]
    inventory = Inventory({name: Node(name, name) for name in ("n1", "n2", "n3")})
    states = compare([assess_node(r, checks, None) for r in (faulty, *well)], inventory, None)
    alone = compare([assess_node(r, checks, None) for r in well], inventory, None)
    assert states[0].health is Health.UNKNOWN
    assert [n.health for n in states[1:]] == [n.health for n in alone]


def _one() -> Measurement:
    return Measurement("m", "", 7)


def test_true_is_no_step() -> None:
    """A verdict with it could be written and never read again."""
    rows = tuple(
        Measurement(f"job.rank.{name}", "rank:0", value)
        for name, value in (("alive", True), ("step", True), ("exit_status", False))
    )
    result_ = CheckResult("job.ranks", ProbeStatus.MEASURED, rows)
    rank = read_job(JOB, [NodeReport("n1", Outcome.ANSWERED, (result_,))]).ranks[0]
    assert (rank.alive, rank.step, rank.exit_status) == (True, None, None)


@pytest.mark.parametrize(
    "line",
    [
        "0001-01-01T00:00:00+14:00 n1 kernel: x",
        "9999-12-31T23:59:59-14:00 n1 kernel: x",
        "6,1,999999999999999999,-;x",
        "[999999999999.0] x",
    ],
)
def test_a_line_of_another_age_has_a_message_and_no_time(line: str) -> None:
    """Sums with such a moment leave the calendar."""
    parsed = parse_kernel_line(line, datetime(2026, 1, 1, tzinfo=UTC))
    assert (parsed.message, parsed.at) == ("x", None)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 5000, "9" * 5000, "1e999", "NaN", "[" * 61 + "]" * 61, "{"]
)
def test_json_that_would_raise_later_is_refused_at_once(text: str) -> None:
    """With one kind of error, whatever is wrong."""
    with pytest.raises(ForeignJsonError):
        read_foreign_json(text)


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    """It passes through JSON and breaks every later write."""
    assert read_foreign_json('{"a\\ud800": ["\\udfff"]}') == {"a?": ["?"]}


@pytest.mark.parametrize(
    "claim",
    [
        {"ranks": [{"rank": 2, "alive": False}]},
        {"ranks": [{"rank": 0, "alive": True}, {"rank": True, "alive": False}]},
        {"stopped": [0, 3]},
        {"started": ["0"]},
    ],
)
def test_a_node_that_speaks_for_ranks_of_others_is_not_believed(claim: object) -> None:
    """n1 carries rank 0 only; what it says of rank 2 would count as n3's word."""
    raw = json.dumps(claim).encode()
    found = read_rank_answer(CommandResult("n1", Outcome.ANSWERED, 0, raw, b"", 1.0), (0,))
    assert isinstance(found, str)
    assert "not on this node" in found


def test_a_node_that_speaks_for_its_own_ranks_is_believed() -> None:
    """What the tests above refuse is the claim, not the shape."""
    raw = json.dumps({"ranks": [{"rank": 0, "alive": True}], "stopped": [0]}).encode()
    found = read_rank_answer(CommandResult("n1", Outcome.ANSWERED, 0, raw, b"", 1.0), (0,))
    assert not isinstance(found, str)


def test_a_loss_that_is_no_number_is_read_where_that_is_the_finding_and_nothing_else_is() -> None:
    """A rank's own report says NaN; depth and digits stay bounded there too."""
    loss = read_foreign_json('{"loss": NaN}', finite=False)
    assert isinstance(loss, dict)
    assert math.isnan(loss["loss"])
    for text in ("[" * 100_000, "9" * 5_000, '{"a": ' * 61 + "1" + "}" * 61):
        with pytest.raises(ForeignJsonError):
            read_foreign_json(text, finite=False)
