"""A run is told which suspects gave the diagnosis no connection; it goes on without being told."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from brctl.journal.store import read_journal
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from tests.engine.runs.test_remediate import start
from tests.fakes.run_context import FakeNodes, fake_context


@dataclass
class NodesOfLockedIndex(FakeNodes):
    """Another process writes the index of sweeps for longer than anybody waits for it."""

    def wait_less_for_silent(self, nodes: Sequence[str]) -> None:
        raise sqlite3.OperationalError("database is locked")


def test_a_run_goes_on_where_the_index_of_sweeps_cannot_be_read(tmp_path: Path) -> None:
    """It would only have saved seconds; that it did not is in the journal."""
    context = fake_context(tmp_path)
    assert isinstance(context.nodes, FakeNodes)
    nodes = NodesOfLockedIndex(context.nodes.world, context.nodes.cluster)
    run_dir, code = start(replace(context, nodes=nodes))
    assert code is ExitCode.OK
    notes = [e.fields["text"] for e in read_journal(run_dir).events if e.type is EventType.NOTE]
    assert "cannot be read: database is locked" in str(notes[0])
