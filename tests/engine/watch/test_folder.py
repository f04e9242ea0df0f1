"""The record of a watcher is read from its end."""

from pathlib import Path

from brctl.engine.watch.folder import WatchFolder
from brctl.model.watch.state import WatchRecord
from tests.fakes.nodes import NOW


def test_the_newest_record_is_read_however_long_its_line_is(tmp_path: Path) -> None:
    folder = WatchFolder(tmp_path, "here")
    for seq in (1, 2):
        folder.append(WatchRecord(seq, NOW, "decision", {"said": "x" * 5000}))
    assert [record.seq for record in folder.records(1)] == [2]
