"""The letter, tone and order of every state: a screen is readable without any colour."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.sweeps.sweep import Health
from brctl.model.verdict import Confidence
from brctl.tui.rows.row import Tone
from brctl.tui.session.facts import State


@dataclass(frozen=True, slots=True)
class Appearance:
    """How a state appears."""

    letter: str
    tone: Tone


APPEARANCES: Mapping[State, Appearance] = {
    State.CRITICAL: Appearance("X", Tone.CRIT),
    State.UNKNOWN: Appearance("?", Tone.UNKNOWN),
    State.WARNING: Appearance("w", Tone.WARN),
    State.UNSWEPT: Appearance("-", Tone.DIM),
    State.CORDONED: Appearance("c", Tone.CORDON),
    State.STANDBY: Appearance("s", Tone.SPARE),
    State.OK: Appearance(".", Tone.OK),
}
"""Worst first; the order is also the order of `needs attention`."""

BAD = (State.CRITICAL, State.UNKNOWN, State.WARNING)

HEALTH_TONES: Mapping[Health, Tone] = {
    Health.OK: Tone.OK,
    Health.WARNING: Tone.WARN,
    Health.CRITICAL: Tone.CRIT,
    Health.UNKNOWN: Tone.UNKNOWN,
}

CONFIDENCE_TONES: Mapping[Confidence, Tone] = {
    Confidence.HIGH: Tone.CRIT,
    Confidence.MEDIUM: Tone.WARN,
    Confidence.LOW: Tone.UNKNOWN,
}
