"""The letter, tone and order of every state: a screen is readable without any colour."""

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.sweeps.sweep import Health
from brctl.model.verdict import Confidence
from brctl.tui.rows.row import Tone
from brctl.tui.session.facts import NodeState


@dataclass(frozen=True, slots=True)
class Appearance:
    """How a state appears."""

    letter: str
    tone: Tone


APPEARANCES: Mapping[NodeState, Appearance] = {
    NodeState.CRITICAL: Appearance("X", Tone.CRIT),
    NodeState.UNKNOWN: Appearance("?", Tone.UNKNOWN),
    NodeState.WARNING: Appearance("w", Tone.WARN),
    NodeState.UNSWEPT: Appearance("-", Tone.DIM),
    NodeState.CORDONED: Appearance("c", Tone.CORDON),
    NodeState.STANDBY: Appearance("s", Tone.SPARE),
    NodeState.OK: Appearance(".", Tone.OK),
}
"""Worst first; the order is also the order of `needs attention`."""

BAD = (NodeState.CRITICAL, NodeState.UNKNOWN, NodeState.WARNING)

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
