"""A run's journal that also tells the site's audit log what was done, by whom and why."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from brctl.engine.controller.audit import record
from brctl.engine.runs.run_files import load_request
from brctl.journal.chain_key import ChainKey, own_or_new_key
from brctl.journal.store import Journal
from brctl.library.config import Settings, load_settings
from brctl.model.errors import BrctlError
from brctl.model.nodeset import fold
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json

_BEFORE = frozenset({EventType.RUN_STARTED, EventType.RUN_RESUMED, EventType.STEP_INTENT})
"""Nothing was done yet: a site may want that nothing is done without a line."""

_TOLD = _BEFORE | {
    EventType.UNDO_INTENT, EventType.ROLLBACK_STARTED, EventType.APPROVAL_GIVEN,
    EventType.APPROVAL_DENIED, EventType.STEP_RESULT, EventType.UNDO_RESULT, EventType.END,
}  # fmt: skip
_WORDS = ("playbook", "by", "step", "uses", "result", "why")


class AuditedJournal(Journal):
    """See the head of this file."""

    def __init__(self, run_dir: Path, key: ChainKey | None, settings: Settings, by: str) -> None:
        super().__init__(run_dir, key)
        self._settings = settings
        self._by = by

    def append(self, kind: EventType, at: datetime, fields: Mapping[str, Json]) -> Event:
        """Tell of what is about to be done before it is, of all else once it is on disk.

        Raises:
            UnavailableError: One of both could not be written.
        """
        row = self._row(kind, fields)
        if kind in _BEFORE:
            record(self._settings, row)
        event = super().append(kind, at, fields)
        if kind in _TOLD - _BEFORE:
            record(self._settings, row, may_refuse=False)
        return event

    def _row(self, kind: EventType, fields: Mapping[str, Json]) -> dict[str, str]:
        """No arguments and no output: they may hold anything."""
        row = {"action": str(kind), "run": self.run, "line": str(self.next_seq), "by": self._by}
        row |= {key: str(fields[key]) for key in _WORDS if fields.get(key)}
        do = fields.get("do")
        nodes = do.get("nodes") if isinstance(do, dict) else None
        if isinstance(nodes, list) and nodes:
            row["nodes"] = fold([str(node) for node in nodes])
        if fields.get("ok") is not None:
            row["ok"] = str(fields["ok"]).lower()
        return row


def audited_journal(run_dir: Path) -> Journal:
    """The journal of a run, with the operator's key and the site's audit log.

    Without a configuration that can be read the run has ended before its journal is opened.
    """
    request, key = load_request(run_dir), own_or_new_key()
    config = Path(request.config) if request.config else None
    try:
        settings = load_settings(context=request.context or None, config=config)
    except BrctlError:
        return Journal(run_dir, key)
    return AuditedJournal(run_dir, key, settings, request.by)
