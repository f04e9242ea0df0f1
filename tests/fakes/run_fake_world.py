"""A run's process over the cluster in a file: `python -m tests.fakes.run_fake_world RUN_DIR`.

The cluster is found beside the state directory. With KILL_AFTER_LINE=n the process kills itself
with SIGKILL right after journal line n, and with KILL_BEFORE_LINE=n right before it.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from brctl.actions.context import RunContext
from brctl.engine.runs import carry_out
from brctl.engine.runs.run_files import RunRequest
from brctl.journal.store import Journal
from brctl.library.own_program import collect_rarely
from brctl.model.runs.event import Event, EventType
from brctl.model.runs.playbook import Json
from tests.fakes.run_context import fake_context


class MortalJournal(Journal):
    """A journal whose process dies at a chosen line."""

    def append(self, kind: EventType, at: datetime, fields: Mapping[str, Json]) -> Event:
        if self._next == int(os.environ.get("KILL_BEFORE_LINE", "-1")):
            os.kill(os.getpid(), signal.SIGKILL)
        event = super().append(kind, at, fields)
        if event.seq == int(os.environ.get("KILL_AFTER_LINE", "-1")):
            os.kill(os.getpid(), signal.SIGKILL)
        return event


def main(run_dir: Path, *lock: str) -> int:
    """Run, resume or roll back the run of this folder."""
    collect_rarely()

    @asynccontextmanager
    async def open_fake(_request: RunRequest) -> AsyncIterator[RunContext]:
        yield fake_context(run_dir.parents[2])

    return carry_out.main([str(run_dir), *lock], open_fake, MortalJournal)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
