"""A watcher's record judged again, with what became of its verdicts since."""

from pathlib import Path

from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import VerdictState, load_all
from brctl.engine.watch.folder import read_record_file
from brctl.library.calendars import load_calendar
from brctl.library.config import Settings
from brctl.model.watch.policy import WatchMode, WatchPolicy
from brctl.model.watch.state import Rejudged
from brctl.watch.replay import rejudge

_HELD = {VerdictState.CONFIRMED: True, VerdictState.DISMISSED: False}


def replay_file(
    settings: Settings, file: Path, policy: WatchPolicy, cap: WatchMode
) -> tuple[Rejudged, ...]:
    """Every decision of the file under another policy.

    Raises:
        UsageError: The file cannot be read, or is none.
    """
    stored = load_all(settings.state_dir)
    known = {one.verdict.id: _HELD[one.state] for one in stored if one.state in _HELD}
    calendars = {name: load_calendar(settings.calendars, name, now()) for name in policy.freezes}
    return tuple(rejudge(read_record_file(file), policy, cap, known, calendars))
