"""One watcher leads; another waits, and one that was frozen finds out before it acts."""

import os
import socket
from datetime import datetime
from pathlib import Path

from brctl.engine.watch.folder import WatchFolder
from brctl.journal.locks import Lease, Leases
from brctl.model.errors import GuardError, LockedError

TICK_S = 1.0
RENEW_S = 5.0
LEASE_S = 3 * RENEW_S
"""Who has not renewed three times is taken for gone."""


def refuse_stopped(folder: WatchFolder) -> None:
    """Refuse to do anything once a person has switched watchers off.

    Raises:
        GuardError: Says who did.
    """
    stopped = folder.stopped()
    if stopped:
        raise GuardError(f"refused: {stopped}", hint="brctl watch stop --lift")


def leader_key(context: str) -> str:
    """The name of the lease; one watcher a context."""
    return f"watch:{context}"


class Leader:
    """The lease on being the watcher of a context.

    Attributes:
        holder: How this process is called in it: machine and pid.
        token: Higher than that of every watcher before.
    """

    def __init__(self, state_dir: Path, context: str) -> None:
        self._leases, self._keys = Leases(state_dir), (leader_key(context),)
        self.holder = f"{socket.gethostname()} pid {os.getpid()}"
        self._lease: Lease | None = None

    @property
    def token(self) -> int:
        return self._lease.token if self._lease else 0

    def take(self, now: datetime) -> None:
        """Become the leader.

        Raises:
            LockedError: Another watcher is; says which.
        """
        held = self._leases.held_by_others(self._keys, self.holder, now)
        if held:
            who = next(iter(held.values()))
            raise LockedError(
                f"{who} watches here already", hint="brctl watch status; `--wait` stands by for it"
            )
        self._lease = self._leases.acquire(self._keys, self.holder, now, LEASE_S)

    def renew(self, now: datetime) -> None:
        """Stay the leader.

        Raises:
            LockedError: Another one took over meanwhile.
        """
        if self._lease is not None:
            self._leases.renew(self._lease, now, LEASE_S)

    def verify(self) -> None:
        """Refuse to go on as one who no longer leads.

        Raises:
            LockedError: Another one took over meanwhile.
        """
        if self._lease is not None:
            self._leases.verify(self._lease)

    def release(self) -> None:
        if self._lease is not None:
            self._leases.release(self._lease)
            self._lease = None


def refuse_old_token(state_dir: Path, context: str, token: int) -> None:
    """Refuse what a watcher decided that no longer leads, or that a person has stopped.

    Raises:
        LockedError: The token is an older leader's.
        GuardError: Watching was switched off.
    """
    refuse_stopped(WatchFolder(state_dir, context))
    key = leader_key(context)
    Leases(state_dir).verify(Lease(f"the watcher with number {token}", (key,), token))
