"""A service manager hears of us by a datagram, and its absence is no trouble."""

import asyncio
import socket
from pathlib import Path

import pytest

from brctl.engine.application.watching.process import lead
from brctl.engine.watch.folder import WatchFolder
from brctl.engine.watch.leader import Leader
from brctl.engine.watch.service_manager import tell_service_manager
from tests.fakes.nodes import NOW


def test_what_is_said_arrives_a_line_each(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        told = tell_service_manager(
            {"READY": "1", "STATUS": "3 nodes"}, {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        )
        assert told
        assert manager.recv(4096) == b"READY=1\nSTATUS=3 nodes"


def test_nobody_listens_outside_of_a_unit(tmp_path: Path) -> None:
    assert not tell_service_manager({"READY": "1"}, {})
    assert not tell_service_manager({"READY": "1"}, {"NOTIFY_SOCKET": str(tmp_path / "gone")})


def test_a_watcher_that_stands_by_is_ready_and_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit of type notify is ended after 90 s that it was not ready."""
    first, second = Leader(tmp_path, "here"), Leader(tmp_path, "here")
    first.holder = "ctl1 pid 7"
    first.take(NOW)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))

        async def scenario() -> None:
            folder = WatchFolder(tmp_path, "here")
            waits = asyncio.ensure_future(
                lead(second, folder, lambda: NOW, lambda _: None, wait=True)
            )
            await asyncio.sleep(0)
            waits.cancel()

        asyncio.run(scenario())
        manager.setblocking(False)
        told = manager.recv(4096).decode().splitlines()
    assert told[:2] == ["READY=1", "WATCHDOG=1"]
    assert "ctl1 pid 7" in told[2]
