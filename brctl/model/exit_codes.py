"""The one table of exit codes; 0 to 3 are answers, 4 and up mean "I could not do it"."""

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished command tells its caller."""

    OK = 0
    """Healthy; or done; or nothing to do."""
    WARNING = 1
    """Degraded, or a low-confidence verdict."""
    CRITICAL = 2
    """A fault was found."""
    UNKNOWN = 3
    """Cannot tell: silent nodes, a crashed check, an inconclusive result."""
    DENIED = 4
    """SSH, the scheduler or the cluster said no."""
    REFUSED = 5
    """A guard said no; nothing was changed."""
    WAITING = 6
    """An approval is needed, was denied or has expired."""
    ROLLED_BACK = 7
    """Failed, and everything was undone."""
    NEEDS_HUMAN = 8
    """Failed with changes left in place; the journal says which."""
    CANCELLED = 9
    """You answered no."""
    USAGE = 64
    """Bad flag, no such command, no node matched."""
    UNAVAILABLE = 69
    """The scheduler or an API is down."""
    BUG = 70
    """Unexpected error; the report path is printed."""
    LOCKED = 75
    """Another run holds the lock."""
    CONFIG = 78
    """Configuration, inventory, check, job or playbook is invalid."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; runs are resumable."""
    TERMINATED = 143
    """Stopped by SIGTERM; runs are resumable."""


# Worst first: a fault found beats silence, silence beats a warning.
_WORST_FIRST = (ExitCode.CRITICAL, ExitCode.UNKNOWN, ExitCode.WARNING, ExitCode.OK)


def worst(answers: Iterable[ExitCode]) -> ExitCode:
    """The answer that decides among several; no answer at all is UNKNOWN.

    Examples:
        >>> worst([ExitCode.OK, ExitCode.UNKNOWN, ExitCode.WARNING]).name
        'UNKNOWN'
    """
    found = set(answers)
    return next((code for code in _WORST_FIRST if code in found), ExitCode.UNKNOWN)
