"""`check learn` as the engine does it: what is normal is learned from nodes that answered."""

import time
from pathlib import Path

from brctl.engine.application.baseline import learn
from brctl.library.config import Settings, load_settings
from tests.cli.test_notify import XID
from tests.cli.test_sweep import CONFIG, QUIET

NODES = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes:
  well: {labels: {kernel_log: FOLDER/quiet}}
  lost: {labels: {kernel_log: FOLDER/xid}}
  mute: {python: /nowhere/python3}
"""


def three_nodes(folder: Path) -> Settings:
    """One well, one whose GPU fell off the bus, one that cannot answer."""
    (folder / "own.yaml").write_text(NODES.replace("FOLDER", str(folder)))
    (folder / "quiet").write_text(QUIET)
    (folder / "xid").write_text(XID % int(time.monotonic() * 1e6))
    (folder / "config.yaml").write_text(CONFIG)
    return load_settings({}, config=folder / "config.yaml")


async def test_only_nodes_that_are_well_say_what_is_normal(tmp_path: Path) -> None:
    """Neither a broken node nor a silent one counts among those it was learned from."""
    found = await learn(three_nodes(tmp_path), None, None, tmp_path / "baseline.json")
    assert (found.nodes, found.left_out) == (1, ("lost", "mute"))


async def test_the_file_lies_beside_the_configuration(tmp_path: Path) -> None:
    found = await learn(three_nodes(tmp_path), "well", None)
    assert found.path.parent == tmp_path
    assert found.path.is_file()
