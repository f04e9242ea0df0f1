"""Nobody can stand in for the broker: not by its folder, its lock file or its socket."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from brctl.engine.controller.doctor import broker as broker_findings
from brctl.fanout.asyncssh.transport import AsyncsshTransport
from brctl.fanout.processes import broker_transport
from brctl.fanout.processes.broker_place import LOCK_NAME, acquire_lock, is_ours, make_private
from brctl.fanout.processes.broker_transport import BrokerTransport
from brctl.library.config import Settings, SshSettings
from brctl.model.errors import UnavailableError

SOMEBODY = 54321


def _foreign(tmp_path: Path) -> Path:
    """A folder of another user: made so by root, found so by everybody else."""
    if os.geteuid() != 0:
        return Path("/usr")
    folder = tmp_path / "foreign"
    folder.mkdir(mode=0o700)
    os.chown(folder, SOMEBODY, SOMEBODY)
    return folder


def test_the_folder_and_all_above_it_are_made_private(tmp_path: Path) -> None:
    """Whatever the umask allows."""
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    for made in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """With its owner."""
    with pytest.raises(UnavailableError, match=r"belongs to user \d+, not to you"):
        make_private(_foreign(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_below_another_users_is_refused(tmp_path: Path) -> None:
    """He could replace it."""
    with pytest.raises(UnavailableError, match=str(SOMEBODY)):
        make_private(_foreign(tmp_path) / "brctl")


def test_a_link_is_refused(tmp_path: Path) -> None:
    """Even one to a private folder of ours: who made the link chose the place."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "brctl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match="is a link"):
        make_private(tmp_path / "brctl")


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """Somebody may have put a socket there already."""
    folder = tmp_path / "brctl"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnavailableError, match=r"others may write it \(mode 0777\)"):
        make_private(folder)


def test_a_folder_that_others_may_read_is_closed(tmp_path: Path) -> None:
    """Nobody could plant anything there."""
    folder = tmp_path / "brctl"
    folder.mkdir(mode=0o755)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
def test_no_file_is_emptied_through_the_lock(tmp_path: Path, kind: str) -> None:
    """A link in the lock's place is refused, and what it leads to keeps its content."""
    treasure = tmp_path / "treasure"
    treasure.write_text("kept")
    place = tmp_path / "brctl"
    place.mkdir(mode=0o700)
    if kind == "symlink":
        (place / LOCK_NAME).symlink_to(treasure)
    else:
        (place / LOCK_NAME).hardlink_to(treasure)
    with pytest.raises(UnavailableError, match=LOCK_NAME):
        acquire_lock(place)
    assert treasure.read_text() == "kept"


def test_the_second_broker_gets_no_lock(tmp_path: Path) -> None:
    """The first one's process id stays in the file."""
    first = acquire_lock(tmp_path)
    assert first is not None
    assert acquire_lock(tmp_path) is None
    assert (tmp_path / LOCK_NAME).read_text() == str(os.getpid())
    os.close(first)


def test_a_client_does_not_ask_in_a_folder_of_somebody_else(tmp_path: Path) -> None:
    """It asks the nodes itself, and connects to no socket there."""
    folder = tmp_path / "brctl"
    folder.mkdir()
    folder.chmod(0o777)
    assert asyncio.run(_clients(folder / "broker.sock")) == 0


def test_a_client_does_not_talk_to_another_users_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the folder looks right: the kernel names who listens."""
    folder = tmp_path / "brctl"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(broker_transport, "is_ours", lambda stream: False)
    assert asyncio.run(_clients(folder / "broker.sock")) == 0


async def test_the_kernel_says_who_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user at the moment it began to listen, whatever it says of itself."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        assert is_ours(writer)
        somebody_else = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: somebody_else)
        assert not is_ours(writer)
        writer.close()


def test_a_client_talks_to_a_process_of_its_own_user(tmp_path: Path) -> None:
    """What the two tests above refuse does happen otherwise."""
    folder = tmp_path / "brctl"
    folder.mkdir(mode=0o700)
    assert asyncio.run(_clients(folder / "broker.sock")) == 1


async def _clients(socket_file: Path) -> int:
    """How many conversations a client of this folder's broker holds with what listens there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_file))
        listener.listen()
        ssh = SshSettings()
        transport = BrokerTransport(ssh, {}, socket_file, lambda: AsyncsshTransport(ssh))
        await transport._connect()
        held = transport._conversation is not None
        await transport.close()
    return int(held)


def test_a_broker_that_is_refused_says_why(tmp_path: Path) -> None:
    """A sentence and no traceback, for whoever starts one by hand."""
    (tmp_path / "brctl").symlink_to(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "brctl.fanout.processes.broker", str(tmp_path / "brctl" / "s")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is a link" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_says_that_the_broker_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going without it is safe and slow; somebody has to learn why."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "brctl").symlink_to(tmp_path)
    settings = Settings("site", (), (), "static", tmp_path, ssh=SshSettings(transport="broker"))
    with pytest.raises(UnavailableError, match="is a link"):
        list(broker_findings(settings))
    (tmp_path / "brctl").unlink()
    assert [finding.topic for finding in broker_findings(settings)] == ["broker"]
