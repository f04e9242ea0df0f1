"""A window must be open and stay open long enough; a freeze asks or refuses; silence refuses."""

from dataclasses import replace
from datetime import timedelta

from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.runs.calendar import Calendar, Span
from brctl.model.runs.playbook import GuardSpec, Json, Need
from brctl.playbook.guard_facts import GuardFacts
from brctl.playbook.guards import GUARDS, check_guards
from tests.fakes.run_context import NOON

HOUR = timedelta(hours=1)
OPEN = Calendar("c", (Span(NOON - HOUR, NOON + HOUR),), origin="config.yaml:9")
LATER = Calendar("c", (Span(NOON + HOUR, NOON + 2 * HOUR),))
BROKEN = Calendar("c", problem="c.ics: line 3: no", origin="config.yaml:9")


def ask(
    kind: str, calendar: Calendar | None, facts: GuardFacts | None = None, **more: Json
) -> tuple[bool, str, Need]:
    known = {"c": calendar} if calendar else {}
    base = facts or GuardFacts(now_at=NOON, run="R-1", can_ask=True)
    spec = GuardSpec(kind, {"calendar": "c", **more}, "guards.yaml:4")
    (result,) = check_guards([spec], replace(base, calendars=known))
    assert result.ok or result.way_out
    return result.ok, result.sentence, result.people


def test_a_calendar_nobody_can_read_refuses_everywhere() -> None:
    """Never an open window, never the end of a freeze."""
    for kind in ("maintenance_window", "freeze"):
        for calendar in (BROKEN, None):
            ok, sentence, _ = ask(kind, calendar)
            assert not ok
            assert "cannot be read, so nothing is allowed" in sentence
    assert not ask("freeze", BROKEN, action="require_approval")[0]


def test_a_window_is_open_or_says_when_the_next_one_is() -> None:
    """The sentence names the moment."""
    assert ask("maintenance_window", OPEN)[0]
    ok, sentence, _ = ask("maintenance_window", LATER)
    assert (ok, sentence) == (False, "no window of 'c' is open; next Sun 2026-07-05 13:00:00Z")
    assert "none in the next" in ask("maintenance_window", Calendar("c"))[1]


def test_what_cannot_end_before_the_window_closes_is_refused() -> None:
    """The sum of the timeouts that are left must fit, with the margin."""
    facts = GuardFacts(now_at=NOON, run="R-1", left_s=1800)
    assert ask("maintenance_window", OPEN, facts, must_end_before_close="30m")[0]
    ok, sentence, _ = ask("maintenance_window", OPEN, facts, must_end_before_close="31m")
    assert not ok
    assert "29m00 to work in; the timeouts of what is left are 30m00" in sentence


def test_a_freeze_refuses_or_raises_the_need_to_one_person() -> None:
    """A playbook without a gate cannot ask, so it is refused."""
    assert ask("freeze", LATER) == (True, "no freeze of 'c' now", Need.NONE)
    assert not ask("freeze", OPEN)[0]
    ok, sentence, people = ask("freeze", OPEN, action="require_approval")
    assert (ok, people) == (True, Need.ONE)
    assert "until Sun 2026-07-05 13:00:00Z" in sentence
    no_gate = GuardFacts(now_at=NOON, run="R-1", can_ask=False)
    assert not ask("freeze", OPEN, no_gate, action="require_approval")[0]


def test_every_refusal_has_a_way_out() -> None:
    """The table of guards has no row that says no without saying what now."""
    empty = GuardFacts(
        now_at=NOON, run="R-1", nodes=("n1", "n2"), named=("n1",), fleet=("n1", "n2"),
        busy={"n1": "demo"}, cordon_owners={"n1": "dcops"}, held={"job:demo": "R-2"},
        verdict="V-1", verdict_at=NOON - 9 * HOUR, cordon_reasons={"n1": WRONG_RESULTS},
    )  # fmt: skip
    more: dict[str, dict[str, Json]] = {
        "cooldown": {"at_most": 0}, "blast_radius": {"max_nodes": 1},
    }  # fmt: skip
    for kind in GUARDS:
        (result,) = check_guards([GuardSpec(kind, more.get(kind, {}), "g.yaml:1")], empty)
        assert not result.ok, kind
        assert result.way_out, kind
