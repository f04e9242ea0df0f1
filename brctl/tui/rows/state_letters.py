"""The letter, tone and order of every state: a screen is readable without any colour."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.sweeps.sweep import Health
from brctl.model.verdict import Confidence
from brctl.tui.rows.row import Tone
from brctl.tui.session.facts import State


@dataclass(frozen=True, slots=True)
class Look:
    """How a state appears."""

    letter: str
    tone: Tone


LOOKS: Mapping[State, Look] = {
    State.CRITICAL: Look("X", Tone.CRIT),
    State.UNKNOWN: Look("?", Tone.UNKNOWN),
    State.WARNING: Look("w", Tone.WARN),
    State.UNSWEPT: Look("-", Tone.DIM),
    State.CORDONED: Look("c", Tone.CORDON),
    State.STANDBY: Look("s", Tone.SPARE),
    State.OK: Look(".", Tone.OK),
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
