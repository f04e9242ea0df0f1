"""A context in which nothing may be changed, and no node be loaded."""

from brctl.library.config import Settings
from brctl.model.errors import GuardError

_WHY = "read-only (--readonly, BRCTL_READONLY or the context says so)"


def refuse_readonly(settings: Settings, what: str = "") -> None:
    """End here when the context is read-only; `what` names what may change or load nodes.

    Raises:
        GuardError: It is read-only.
    """
    if settings.readonly:
        about = f"{what} may change or load nodes, and this context is " if what else ""
        raise GuardError(f"refused: {about}{_WHY}")
