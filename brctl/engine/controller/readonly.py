"""A context in which nothing may be changed, and no node be loaded; what may is audited."""

from brctl.engine.controller.audit import record
from brctl.library.config import Settings
from brctl.model.errors import GuardError

_WHY = "read-only (--readonly, BRCTL_READONLY or the context says so)"


def refuse_readonly(
    settings: Settings, what: str = "", *, action: str = "", nodes: str = "", why: str = ""
) -> None:
    """End here when the context is read-only; else the site's audit log gets a line.

    Args:
        settings: Of the context.
        what: What may change or load nodes, for the refusal.
        action: The same for the audit log, where `what` is not said.
        nodes: On which nodes, as they were named.
        why: The person's reason.

    Raises:
        GuardError: It is read-only.
        UnavailableError: No audit line can be written, and the site wants nothing without one.
    """
    if settings.readonly:
        about = f"{what} may change or load nodes, and this context is " if what else ""
        raise GuardError(f"refused: {about}{_WHY}")
    record(settings, {"action": action or what or "change", "nodes": nodes, "why": why})
