"""The terminal's engine over a real context: its sweep is cron's, its diagnosis is `dx`."""

import time
from pathlib import Path

import pytest

from brctl.engine.incidents import verdict_store
from brctl.engine.sweeps import sweep_store
from brctl.engine.sweeps.cycle import sweep_lock
from brctl.engine.sweeps.history import SweepHistory
from brctl.library.config import Settings, load_settings
from brctl.model.errors import LockedError
from brctl.tui.session.local_engine import LocalEngine
from tests.cli.test_notify import OWN as LOST
from tests.cli.test_notify import XID
from tests.cli.test_sweep import CONFIG, OWN
from tests.fakes.http_sink import HttpSink, http_sink


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three nodes that are this machine; n3 has no Python."""
    (tmp_path / "own.yaml").write_text(OWN % (tmp_path / "kmsg"))
    (tmp_path / "kmsg").write_text("6,1,1000,-;eth0: link becomes ready\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return load_settings({}, config=tmp_path / "config.yaml")


async def test_its_sweep_is_kept_with_what_it_changed(settings: Settings) -> None:
    """The screen's sweep is the newest one, and the next `sweep --diff` compares with it."""
    reported: list[str] = []
    engine = LocalEngine(settings, reported.append)
    try:
        name = await engine.sweep(("n3",), lambda node: reported.append(node.node))
    finally:
        await engine.close()
    newest = sweep_store.latest(settings.state_dir)
    assert newest is not None
    assert (newest.id, reported) == (name, ["n3"])
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


async def test_its_diagnosis_pages_what_it_is_sure_of(tmp_path: Path) -> None:
    """As `dx` does: the page names the verdict that the screen shows, and it comes once."""
    with http_sink() as server:
        settings = lost_gpu(tmp_path, server)
        engine = LocalEngine(settings, print)
        try:
            (first,) = await engine.diagnose(("n1",), "")
            await engine.diagnose(("n1",), "")
        finally:
            await engine.close()
    assert [body["event_action"] for body in server.bodies] == ["trigger"]
    assert server.bodies[0]["payload"]["custom_details"]["why"] == f"brctl why {first}"


async def test_a_page_that_cannot_be_delivered_is_said_on_the_screen(tmp_path: Path) -> None:
    """And the verdict is there all the same."""
    reported: list[str] = []
    with http_sink() as server:
        settings = lost_gpu(tmp_path, server)
    engine = LocalEngine(settings, reported.append)
    try:
        (found,) = await engine.diagnose(("n1",), "")
    finally:
        await engine.close()
    assert verdict_store.load(settings.state_dir, found).verdict.nodes == ("n1",)
    assert any("pagerduty" in line for line in reported)


def lost_gpu(folder: Path, server: HttpSink) -> Settings:
    """One node whose kernel tells of a lost GPU, and PagerDuty."""
    (folder / "own.yaml").write_text(LOST % (folder / "kmsg"))
    (folder / "kmsg").write_text(XID % int(time.monotonic() * 1e6))
    (folder / "key").write_text("routing-key\n")
    (folder / "key").chmod(0o600)
    pager = f"notify: {{pagerduty: {{routing_key_file: key, url: {server.url}}}}}\n"
    (folder / "config.yaml").write_text(CONFIG + pager)
    return load_settings({}, config=folder / "config.yaml")
