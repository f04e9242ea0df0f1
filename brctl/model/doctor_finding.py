"""One thing the doctor looked at on the controller itself."""

from dataclasses import dataclass

from brctl.model.sweeps.sweep import Health


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What was found, and what to do about it.

    Attributes:
        hint: The next step; "" when nothing is to do.
    """

    health: Health
    topic: str
    text: str
    hint: str = ""
