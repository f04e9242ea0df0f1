"""Where a lock is one machine's own, two controllers would act at once: nothing acts there."""

import errno
import fcntl
from pathlib import Path

import pytest

from brctl.journal import shared_locks
from brctl.journal.locks import claiming
from brctl.journal.shared_locks import lock_problem, mount_of
from brctl.journal.store import new_run, owning
from brctl.model.errors import UnavailableError

LINE = "36 35 0:44 / {point} rw,relatime shared:7 - {kind} server:/export {options}\n"
ROOT = LINE.format(point="/", kind="ext4", options="rw")


def mounted(kind: str, options: str, point: str = "/shared") -> str:
    return ROOT + LINE.format(point=point, kind=kind, options=options)


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        ("nfs4", "rw,vers=4.2,hard,local_lock=none", ""),
        ("nfs", "rw,vers=3,nolock,local_lock=all", "local_lock=all"),
        ("nfs", "rw,vers=3,local_lock=flock", "local_lock=flock"),
        ("cifs", "rw,vers=3.1.1", ""),
        ("cifs", "rw,nobrl", "nobrl"),
        ("lustre", "rw,flock", ""),
        ("lustre", "rw,localflock", "localflock"),
        ("fuse.sshfs", "rw,user_id=0", "fuse.sshfs"),
        ("ceph", "rw", ""),
        ("ext4", "rw", ""),
    ],
)
def test_mounts_whose_locks_others_do_not_see_are_known(kind: str, options: str, why: str) -> None:
    found = lock_problem(mount_of(Path("/shared/state/runs"), mounted(kind, options)))
    assert (why in found) == bool(found or not why)
    assert bool(found) == bool(why)


def test_the_innermost_and_newest_mount_counts() -> None:
    """Also where its path has a blank, and where the lines are not what we expect."""
    text = mounted("nfs", "nolock") + mounted("xfs", "rw", "/shared/a\\040disk") + "garbage\n - \n"
    assert lock_problem(mount_of(Path("/shared/a disk/state"), text)) == ""
    assert lock_problem(mount_of(Path("/shared/a"), text)) != ""
    over = text + mounted("tmpfs", "rw").removeprefix(ROOT)
    assert lock_problem(mount_of(Path("/shared/a"), over)) == ""
    assert mount_of(Path("/shared"), "") is None


def test_nothing_acts_where_a_lock_is_one_machines_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run is made, and none that was made gets through its guards."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(mounted("nfs", "rw,nolock", str(tmp_path)))
    monkeypatch.setattr(shared_locks, "_MOUNTS", mounts)
    with pytest.raises(UnavailableError, match="nfs mounted with nolock: other machines see no"):
        new_run(tmp_path / "state")
    with pytest.raises(UnavailableError, match="two controllers"), claiming(tmp_path / "state"):
        pytest.fail("it was let through")
    mounts.write_text(mounted("nfs4", "rw,local_lock=none", str(tmp_path)))
    assert new_run(tmp_path / "state").name == "R-0001"


def test_a_file_system_without_locks_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an unexpected error."""

    def flock(_descriptor: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    refused = pytest.raises(UnavailableError, match=r"owner\.lock: its file system has no locks")
    with refused, owning(tmp_path):
        pytest.fail("it was let through")
