"""A watcher's record as a file that somebody else may have written."""

from pathlib import Path

from brctl.engine.watch.folder import read_record_file


def test_a_line_whose_time_has_no_zone_is_no_record(tmp_path: Path) -> None:
    """Beside times that have one it could not be compared, and a replay ended in a traceback."""
    path = tmp_path / "watch.ndjson"
    path.write_text(
        '{"seq": 1, "at": "2026-07-05T03:00:00Z", "kind": "start"}\n'
        '{"seq": 2, "at": "2026-07-05T03:01:00", "kind": "quiet"}\n'
    )
    assert [record.seq for record in read_record_file(path)] == [1]
