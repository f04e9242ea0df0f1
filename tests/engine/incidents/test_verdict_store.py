"""One damaged verdict stops nothing: it is set aside, said, and the others are read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.engine.incidents.verdict_store import load_all, save_new
from brctl.verdict.decide import Scene, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("content", [b"", b'{"verdict": {"id": "V-', b"[]", b"\xff"])
def test_a_truncated_verdict_is_set_aside(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The sound one stays, the damaged one keeps its bytes under another name."""
    (verdict,) = decide((), (), Scene(NOW))
    save_new(tmp_path, verdict)
    bad = tmp_path / "verdicts" / "V-BAD.json"
    bad.write_bytes(content)
    assert [stored.verdict.id for stored in load_all(tmp_path)] == [verdict.id]
    assert "V-BAD.json: damaged; set aside" in caplog.text
    assert bad.with_name("V-BAD.json.damaged-1").read_bytes() == content
    assert not bad.exists()
