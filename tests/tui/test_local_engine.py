"""The terminal's engine over a real context: its sweep is a sweep like cron's."""

from pathlib import Path

import pytest

from brctl.engine.sweeps import sweep_store
from brctl.engine.sweeps.cycle import sweep_lock
from brctl.engine.sweeps.history import SweepHistory
from brctl.library.config import Settings, load_settings
from brctl.model.errors import LockedError
from brctl.tui.session.local_engine import LocalEngine
from tests.cli.test_sweep import CONFIG, OWN


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three nodes that are this machine; n3 has no Python."""
    (tmp_path / "own.yaml").write_text(OWN % (tmp_path / "kmsg"))
    (tmp_path / "kmsg").write_text("6,1,1000,-;eth0: link becomes ready\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return load_settings({}, config=tmp_path / "config.yaml")


async def test_its_sweep_is_kept_with_what_it_changed(settings: Settings) -> None:
    """The screen's sweep is the newest one, and the next `sweep --diff` compares with it."""
    told: list[str] = []
    engine = LocalEngine(settings, told.append)
    try:
        name = await engine.sweep(("n3",), lambda node: told.append(node.node))
    finally:
        await engine.close()
    newest = sweep_store.latest(settings.state_dir)
    assert newest is not None
    assert (newest.id, told) == (name, ["n3"])
    assert {
        tracked.problem.node for tracked in SweepHistory(settings.state_dir).tracked().values()
    } == {"n3"}


async def test_it_does_not_sweep_beside_another_sweep(settings: Settings) -> None:
    """It says so at once instead of waiting, asks no node and keeps nothing."""
    asked: list[str] = []
    engine = LocalEngine(settings, asked.append)
    try:
        with (
            sweep_lock(settings.state_dir, settings.context, "fail"),
            pytest.raises(LockedError, match="another sweep"),
        ):
            await engine.sweep(("n3",), lambda node: asked.append(node.node))
    finally:
        await engine.close()
    assert asked == []
    assert sweep_store.latest(settings.state_dir) is None
