"""A watcher's folder as it lies on disk at one moment, for whoever only looks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from brctl.model.units import parse_rfc3339
from brctl.model.watch.policy import WatchLimits
from brctl.model.watch.state import WatchRecord, WatchState


@dataclass(frozen=True, slots=True)
class WatchSnapshot:
    """What a watcher told, and what it keeps.

    Attributes:
        status: What it told last; empty where nobody ever watched.
        limits: Those of its policy; None where it does not tell them.
        records: Its newest, oldest first.
        stopped: Who switched watching off; "" where nobody did.
        problem: What of it cannot be read, and why; "" where all of it can.
    """

    status: Mapping[str, object] = field(default_factory=dict)
    limits: WatchLimits | None = None
    state: WatchState | None = None
    records: tuple[WatchRecord, ...] = ()
    stopped: str = ""
    problem: str = ""

    @property
    def told_at(self) -> datetime | None:
        """When the watcher said something last; None where it never did."""
        try:
            return parse_rfc3339(self.text("at"))
        except ValueError:
            return None

    def text(self, key: str) -> str:
        """A text of the status; "" for any other value."""
        value = self.status.get(key)
        return value if isinstance(value, str) else ""

    def count(self, key: str) -> int | None:
        """A whole number of the status; None for any other value."""
        value = self.status.get(key)
        return value if type(value) is int else None

    def names(self, key: str) -> tuple[str, ...]:
        """A list of names of the status."""
        value = self.status.get(key)
        rows = value if isinstance(value, list) else []
        return tuple(name for name in rows if isinstance(name, str))

    @property
    def reconnecting(self) -> Mapping[str, str]:
        """Nodes without a connection now, and how it ended last."""
        value = self.status.get("reconnecting")
        rows = value.items() if isinstance(value, dict) else ()
        return {node: str(why) for node, why in rows if isinstance(node, str)}
