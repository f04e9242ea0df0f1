"""Stay with a run that waits for people: `python -m brctl.engine.runs.wait RUN_DIR`.

A run's process becomes this one when it ends in waiting. It holds neither the run nor its leases;
it only sleeps, and when nobody said yes in time it becomes the run again, which then does what its
playbook says about silence. If it is killed (a reboot), the next `sweep --cron` does the same.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from brctl.engine.controller.clock import now
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.run_files import RESULT, changed_playbook, load_request, save_request
from brctl.journal.store import EVENTS, is_running, run_dirs
from brctl.library.own_program import own_program
from brctl.model.errors import BrctlError
from brctl.model.units import parse_rfc3339

LOOK_S = 2.0
"""How often it looks whether somebody answered or the run's folder is gone; one `stat` each."""

NOBODY = "brctl (nobody answered)"
RUN_MODULE, WAIT_MODULE = "brctl.engine.runs.process", "brctl.engine.runs.wait"


def due_at(run_dir: Path) -> datetime | None:
    """When a waiting run's approval expires; None when it waits for none, or may do nothing."""
    if not (run_dir / RESULT).exists():
        return None
    run = read_run(run_dir)
    approval = run.playbook.approval
    if changed_playbook(run_dir, run.playbook, run.events):
        return None
    if not run.record.waits_at_gate or approval is None:
        return None
    return parse_rfc3339(run.record.asked_at) + timedelta(seconds=approval.expires_s)


def overdue(state_dir: Path, at: datetime) -> tuple[Path, ...]:
    """Runs whose approval expired while no process was left to notice."""
    found = []
    for run_dir in run_dirs(state_dir):
        try:
            due = due_at(run_dir)
        except BrctlError:
            # A damaged run is for people to look at; it must not stop the others.
            continue
        if due is not None and due < at and not is_running(run_dir):
            found.append(run_dir)
    return tuple(found)


def let_expire(run_dir: Path) -> None:
    """Leave in the run's folder that nobody asked it to go on."""
    request = replace(load_request(run_dir), by=NOBODY, yes=False, typed=None, override=None)
    save_request(run_dir, request)


def become(module: str, run_dir: Path) -> None:
    """Replace this process: nothing of the run stays in memory while people think."""
    program = own_program(module, str(run_dir))
    os.execv(program[0], program)  # noqa: S606 - our own module


def main(argv: Sequence[str]) -> int:
    """Sleep until somebody answered, the run is gone, or its time is up."""
    run_dir = Path(argv[0])
    due = due_at(run_dir)
    size = _size(run_dir)
    while due is not None and now() <= due:
        time.sleep(min(LOOK_S, max((due - now()).total_seconds(), 0.0) + 0.01))
        if _size(run_dir) != size:
            return 0
    if due is not None and not is_running(run_dir):
        let_expire(run_dir)
        become(RUN_MODULE, run_dir)
    return 0


def _size(run_dir: Path) -> int:
    try:
        return (run_dir / EVENTS).stat().st_size
    except OSError:
        return -1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
