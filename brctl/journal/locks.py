"""Leases on jobs and nodes, shared by every controller of one state directory, with fencing.

A lease runs out unless it is renewed, so a dead controller blocks nobody for long; a run that died
under this kernel blocks nobody at all, because its lock tells. Each grant has a higher number than
the one before. A run that slept past its lease finds a higher number than its
own, is fenced, and may not write or act any more.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from brctl.journal.shared_locks import refuse_local_locks
from brctl.journal.store import PRIVATE_FILE, is_running, locked
from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.errors import LockedError, UnavailableError
from brctl.model.units import parse_rfc3339, rfc3339, utc_text

LEASE_S = 60.0
LONGEST_LEASE = timedelta(seconds=10 * LEASE_S)
"""A lease that runs longer was written by a clock that stood elsewhere: its date says nothing."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOKENS_A_FILE = 10**9
"""More than are ever granted from one file."""


LOCK_TRIES, LOCK_PAUSE_S = 400, 0.05
"""Others hold such a lock while they read files and write one."""


@contextmanager
def exclusive(path: Path, others: str) -> Iterator[None]:
    """One process at a time goes from what it reads to what it writes.

    The kernel lets go when a process dies, so a dead one holds up nobody.

    Args:
        path: The lock's file; its folder is made.
        others: Who may hold it, for the error.

    Raises:
        UnavailableError: Another process holds it and does not go on, or a lock there is no lock.
    """
    private_dir(path.parent)
    refuse_local_locks(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        if not locked(descriptor, LOCK_TRIES, LOCK_PAUSE_S):
            waited_s = LOCK_TRIES * LOCK_PAUSE_S
            raise UnavailableError(
                f"{path}: held for {waited_s:.0f} s by {others}",
                hint="see which process hangs there: fuser " + str(path),
            )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def claiming(state_dir: Path) -> Iterator[None]:
    """One run at a time goes from what its guards say to its claim on disk.

    Raises:
        UnavailableError: Another run holds it and does not go on.
    """
    with exclusive(state_dir / "locks" / "claims.lock", "another run that asks its guards"):
        yield


@dataclass(frozen=True, slots=True)
class Lease:
    """What a run holds; `token` is higher than that of every earlier grant."""

    holder: str
    keys: tuple[str, ...]
    token: int


@dataclass(frozen=True, slots=True)
class _Grant:
    """One lease as it lies on disk.

    Attributes:
        kernel: Which kernel the holder runs under; "" when nobody can tell.
    """

    holder: str
    token: int
    until: datetime
    kernel: str = ""


def _decode(raw: bytes) -> tuple[int, dict[str, _Grant]]:
    data = json.loads(raw)
    grants = {
        key: _Grant(
            row["holder"], row["token"], parse_rfc3339(row["until"]), str(row.get("kernel", ""))
        )
        for key, row in data["grants"].items()
    }
    return int(data["last_token"]), grants


@cache
def this_kernel() -> str:
    """What tells this running kernel from every other one, and from itself before a reboot."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class Leases:
    """The leases of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._dir = private_dir(state_dir / "locks")
        self._path = self._dir / "leases.json"
        self._runs = state_dir / "runs"

    def acquire(
        self, keys: Sequence[str], holder: str, now: datetime, lease_s: float = LEASE_S
    ) -> Lease:
        """Take all keys or none; a holder may take again what it holds.

        Raises:
            LockedError: Another run holds one of them; names key, run and until when.
        """
        with self._exclusive():
            last, grants = self._read()
            for key in keys:
                grant = grants.get(key)
                if grant and grant.holder != holder and self._blocks(grant, now):
                    raise LockedError(
                        f"{key} is held by {grant.holder} until {utc_text(grant.until)}",
                        hint=f"wait, or look: `brctl play show {grant.holder}`",
                    )
            until = now + timedelta(seconds=lease_s)
            grants |= {key: _Grant(holder, last + 1, until, this_kernel()) for key in keys}
            self._write(last + 1, grants)
        return Lease(holder, tuple(keys), last + 1)

    def renew(self, lease: Lease, now: datetime, lease_s: float = LEASE_S) -> None:
        """Prolong a lease.

        Raises:
            LockedError: Somebody else was granted one of its keys meanwhile.
        """
        with self._exclusive():
            last, grants = self._read()
            self._refuse_fenced(lease, grants)
            until = now + timedelta(seconds=lease_s)
            mine = _Grant(lease.holder, lease.token, until, this_kernel())
            grants |= dict.fromkeys(lease.keys, mine)
            self._write(last, grants)

    def verify(self, lease: Lease) -> None:
        """Refuse to go on with a lease that somebody else was granted since.

        Raises:
            LockedError: It is fenced.
        """
        with self._exclusive():
            self._refuse_fenced(lease, self._read()[1])

    def release(self, lease: Lease) -> None:
        """Give back what is still ours."""
        with self._exclusive():
            last, grants = self._read()
            remaining = {
                key: grant
                for key, grant in grants.items()
                if key not in lease.keys or grant.token != lease.token
            }
            self._write(last, remaining)

    def held_by_others(self, keys: Sequence[str], holder: str, now: datetime) -> dict[str, str]:
        """Which of these keys another run holds, with that run."""
        with self._exclusive():
            grants = self._read()[1]
        return {
            key: grants[key].holder
            for key in keys
            if key in grants and grants[key].holder != holder and self._blocks(grants[key], now)
        }

    def _blocks(self, grant: _Grant, now: datetime) -> bool:
        """Whether a lease keeps others out: by its date, unless the kernel knows better.

        A process of this kernel holds its run's lock for as long as it lives. Of other machines the
        date decides, unless no clock that agrees with ours can have written it.
        """
        if grant.until <= now:
            return False
        run_dir = self._runs / grant.holder
        knows_better = grant.kernel == this_kernel() != "" or grant.until > now + LONGEST_LEASE
        return is_running(run_dir) if knows_better and run_dir.is_dir() else True

    def _refuse_fenced(self, lease: Lease, grants: Mapping[str, _Grant]) -> None:
        for key in lease.keys:
            grant = grants.get(key)
            if grant is None or grant.token != lease.token:
                who = f"{grant.holder} holds it now" if grant else "the lease ran out"
                raise LockedError(f"{lease.holder} lost its lease on {key}: {who}")

    def _read(self) -> tuple[int, dict[str, _Grant]]:
        if not self._path.exists():
            return 0, {}
        try:
            return _decode(self._path.read_bytes())
        except (ValueError, KeyError, TypeError, AttributeError):
            # Whoever held a lease is fenced by the missing grant; no token comes a second time.
            return set_aside(self._path) * _TOKENS_A_FILE, {}

    def _write(self, last: int, grants: Mapping[str, _Grant]) -> None:
        rows = {
            key: {
                "holder": g.holder,
                "token": g.token,
                "until": rfc3339(g.until),
                "kernel": g.kernel,
            }
            for key, g in sorted(grants.items())
        }
        write_atomic(self._path, json.dumps({"last_token": last, "grants": rows}, indent=1))

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        descriptor = os.open(self._dir / "leases.lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
