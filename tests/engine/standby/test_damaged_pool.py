"""A damaged file of the pool holds up no run: the inventory's standbys hold, untested."""

from pathlib import Path

import pytest

from brctl.engine.standby.pool import Pool, Standby
from brctl.engine.standby.pool_file import load_pool, save_pool, usable_pool
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory, Node, NodeRole

INVENTORY = Inventory({"s1": Node("s1", "s1", role=NodeRole.STANDBY), "n1": Node("n1", "n1")})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"known": [{}]}', b"[" * 100_000])
def test_it_is_set_aside_and_said(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever only looks is told that it is damaged; whoever acts goes on without it."""
    save_pool(tmp_path, "prod", Pool(added=("n1",), known={"s1": Standby("s1", health="OK")}))
    path = tmp_path / "static" / "prod.standbys.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        load_pool(tmp_path, "prod")
    pool = usable_pool(tmp_path, "prod")
    assert pool.members(INVENTORY) == ("s1",)
    assert pool.of("s1").health is None
    assert "prod.standbys.json: damaged; set aside" in caplog.text
    assert "the standbys of prod are those of the inventory again" in caplog.text
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == content
