"""Guards that ask a calendar: maintenance windows and change freezes.

A calendar nobody can read is a refusal: never an open window, never the end of a freeze.
"""

from datetime import datetime

from brctl.model.runs.calendar import Calendar
from brctl.model.runs.playbook import Arguments, Need
from brctl.model.units import describe_duration, utc_text
from brctl.playbook.guard_facts import GuardDecision, GuardFacts, seconds

FREEZE_ACTIONS = ("refuse", "require_approval")


def _calendar(parameters: Arguments, facts: GuardFacts) -> Calendar:
    name = str(parameters.get("calendar", ""))
    return facts.calendars.get(name) or Calendar(name, problem="nobody read this calendar")


def _unreadable(calendar: Calendar) -> GuardDecision:
    see = f"; see {calendar.origin}" if calendar.origin else ""
    return GuardDecision(
        False,
        f"calendar {calendar.name!r} cannot be read, so nothing is allowed: {calendar.problem}",
        f"mend `calendars.{calendar.name}` of the configuration{see}",
    )


def maintenance_window(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    """Now lies in a window, and all that is left ends early enough before it closes."""
    calendar = _calendar(parameters, facts)
    if calendar.absent and parameters.get("if_configured") is True:
        return GuardDecision(
            True, f"any time will do: `calendars` of the configuration has no {calendar.name!r}"
        )
    if calendar.problem:
        return _unreadable(calendar)
    span = calendar.span_at(facts.now_at)
    if span is None:
        following = calendar.next_after(facts.now_at)
        when = f"next {_moment(following.start_at)}" if following else "none in the next 400 days"
        return GuardDecision(
            False, f"no window of {calendar.name!r} is open; {when}", "wait for the window"
        )
    margin_s = seconds(parameters, "must_end_before_close", "0s")
    left_s = (span.end_at - facts.now_at).total_seconds() - margin_s
    sentence = (
        f"{calendar.name!r} closes {_moment(span.end_at)}, {describe_duration(max(left_s, 0.0))}"
        f" to work in; the timeouts of what is left are {describe_duration(facts.left_s)}"
    )
    way_out = "fewer nodes, shorter timeouts, or the next window"
    return GuardDecision(facts.left_s <= left_s, sentence, way_out)


def freeze(parameters: Arguments, facts: GuardFacts) -> GuardDecision:
    """Outside a freeze all is well; inside it a person must agree, or nobody can."""
    calendar = _calendar(parameters, facts)
    if calendar.problem:
        return _unreadable(calendar)
    span = calendar.span_at(facts.now_at)
    if span is None:
        return GuardDecision(True, f"no freeze of {calendar.name!r} now")
    sentence = f"change freeze {calendar.name!r} until {_moment(span.end_at)}"
    if parameters.get("action", "refuse") == "refuse":
        return GuardDecision(False, sentence, f"wait until {_moment(span.end_at)}")
    if not facts.can_ask:
        why = f"{sentence} needs an approval, and this playbook has no gate to ask at"
        return GuardDecision(False, why, "give the playbook an `approval` with `gate_before`")
    return GuardDecision(True, f"{sentence}: a person must approve", people=Need.ONE)


def _moment(at: datetime) -> str:
    """With its weekday: windows and freezes are made for those."""
    return f"{at:%a} {utc_text(at)}"
