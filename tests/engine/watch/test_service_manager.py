"""A service manager hears of us by a datagram, and its absence is no trouble."""

import socket
from pathlib import Path

from brctl.engine.watch.service_manager import tell_service_manager


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
