"""What verifying a journal gave."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from brctl.model.sweeps.sweep import Health


class JournalState(StrEnum):
    """How far a journal can be believed."""

    SOUND = "sound"
    KEYLESS = "keyless"
    """Chained, but by nobody's key: whoever could write the file could write it so."""
    UNVERIFIED = "unverified"
    """Written with a key that is not here."""
    ALTERED = "altered"


HEALTH_OF: Mapping[JournalState, Health] = {
    JournalState.SOUND: Health.OK,
    JournalState.KEYLESS: Health.WARNING,
    JournalState.UNVERIFIED: Health.UNKNOWN,
    JournalState.ALTERED: Health.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class JournalCheck:
    """One journal.

    Attributes:
        name: The run, or `code/CONTEXT/JOB` for the ledger of a job's code.
        lines: How many events it holds.
        problems: What keeps it from being sound, in sentences.
    """

    name: str
    lines: int
    state: JournalState
    problems: tuple[str, ...] = ()
