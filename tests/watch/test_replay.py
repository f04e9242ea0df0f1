"""A recorded time judged again: other policies, the same facts, nothing else remembered."""

from datetime import UTC, datetime, timedelta

from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.model.watch.state import Rejudged, WatchRecord
from brctl.view.watch.pages import replay_page
from brctl.watch.replay import rejudge

BEGAN = datetime(2026, 7, 5, 3, 0, tzinfo=UTC)
ACT = WatchPolicy(mode=WatchMode.ACT)


def record(seq: int, minute: int, kind: str, **fields: object) -> WatchRecord:
    return WatchRecord(seq, BEGAN + timedelta(minutes=minute), kind, fields)


def verdict(seq: int, minute: int, number: int, fault: str = "gpu-lost") -> list[WatchRecord]:
    """A verdict and what was decided about it then: to observe."""
    name = f"V-{number}"
    return [
        record(seq, minute, "verdict", verdict=name, rule="gpu", fault=fault, confidence="high",
               nodes=[f"n{number}"], job="llm", playbook="swap-and-resume", takes_nodes=True,
               step=100 * number),
        record(seq + 1, minute, "decision", verdict=name, rule="gpu", mode="observe", known=128,
               spares=9),
    ]  # fmt: skip


NIGHT = [
    record(1, 0, "start", nodes=128),
    *verdict(2, 5, 1),
    *verdict(4, 60, 2),
    *verdict(6, 61, 3),
    *verdict(8, 62, 4),
    *verdict(10, 63, 5),
]


def judged(policy: WatchPolicy, records: list[WatchRecord]) -> list[Rejudged]:
    held = {"V-2": True, "V-3": False}
    return list(rejudge(records, policy, WatchMode.ACT, held, {}))


def test_another_policy_acts_where_the_gates_of_then_would_have_let_it() -> None:
    """V-1 came in the first ten minutes; the fourth node in five minutes opens the breaker."""
    rows = judged(ACT, NIGHT)
    assert [row.was for row in rows] == ["observe"] * 5
    assert [row.now for row in rows] == ["propose", "act", "act", "act", "propose"]
    assert rows[0].held.startswith("start-up")
    assert rows[4].held.startswith("breaker: 4 of 3")


def test_what_a_person_touched_then_is_left_alone_in_the_replay_too() -> None:
    touched = [*NIGHT[:3], record(3, 30, "quiet", nodes=["n2"]), *NIGHT[3:5]]
    assert judged(ACT, touched)[1].held.startswith("quiet")


def test_a_crowd_of_a_rule_of_another_version_holds_as_it_did_then() -> None:
    crowd = record(3, 30, "crowd", rule="fan", nodes=["n2"])
    row = judged(ACT, [*NIGHT[:3], crowd, *NIGHT[3:5]])[1]
    assert (row.now, row.held.partition(";")[0]) == (
        "propose", "crowd: 1 of 128 nodes at once: fan (n2)",
    )  # fmt: skip


def test_the_page_counts_what_is_known_to_have_been_right() -> None:
    page = replay_page(judged(ACT, NIGHT), ACT)
    assert (page.body["acts"], page.body["judged"], page.body["right"]) == (3, 2, 1)
    assert "3 of 5 decisions act; 2 judged, 1 right" in page.text


def test_the_policy_of_then_does_nothing_again() -> None:
    assert {row.now for row in judged(WatchPolicy(), NIGHT)} == {"observe"}


def test_lines_that_make_no_sense_are_passed_over() -> None:
    odd = [
        record(1, 0, "start"),
        record(2, 20, "verdict", verdict="V-1", fault="gpu-loss", confidence="high"),
        record(3, 20, "decision", verdict="V-1", known="many"),
        record(4, 20, "decision"),
    ]
    assert judged(ACT, odd) == []


def test_what_was_one_of_a_crowd_then_is_one_in_the_replay_too() -> None:
    """Until the crowd was over; a verdict about another node is none of it."""
    crowd = record(2, 4, "crowd", rule="gpu", nodes=["n1", "n2", "n3"])
    over = record(20, 90, "crowd-over", rule="gpu")
    night = [NIGHT[0], crowd, *verdict(4, 60, 2), over, *verdict(21, 100, 9)]
    found = judged(ACT, night)
    assert [row.now for row in found] == ["propose", "act"]
    assert found[0].held.startswith("crowd: 3 of 128 nodes at once")
