"""What was done once under a name and must not be done again: `idempotency_key` of a step.

An entry says who began, and later what came of it. It is on disk before the act, so two runs never
act side by side, and the result of the first is found by all that follow.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from brctl.journal.store import PRIVATE_FILE
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError, LockedError
from brctl.model.runs.playbook import Arguments
from brctl.model.units import parse_rfc3339, rfc3339, utc_text

KEEP_FOR = timedelta(days=30)
"""A node that fails again a season later needs a new ticket."""

BEGUN = timedelta(minutes=15)
"""Whoever began and said nothing for so long is dead; the other side knows the key, too."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known under a key.

    Attributes:
        done: The act succeeded; without it somebody has begun.
    """

    key: str
    run: str
    at: datetime
    done: bool = False
    out: Arguments = field(default_factory=dict)
    say: str = ""


class Keys:
    """The keys of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._dir = private_dir(state_dir / "keys")

    def begin(self, key: str, run: str, now: datetime) -> Entry | None:
        """The result somebody has already, or None: then this run acts, and the file says so.

        Raises:
            LockedError: Another run is at it now.
        """
        with self._exclusive():
            entry = self._read(key)
            if entry and entry.done and now - entry.at < KEEP_FOR:
                return entry
            if entry and not entry.done and entry.run != run and now - entry.at < BEGUN:
                raise LockedError(
                    f"{entry.run} began the same ({key}) at {utc_text(entry.at)}",
                    hint=f"brctl play show {entry.run}",
                )
            self._write(Entry(key, run, now))
        return None

    def finish(self, entry: Entry) -> None:
        """Keep the result for all that follow."""
        with self._exclusive():
            self._write(entry)

    def find(self, key: str) -> Entry | None:
        """What is known under a key."""
        with self._exclusive():
            return self._read(key)

    def forget(self, key: str, run: str) -> None:
        """The act failed for certain, or was undone: the next one may act."""
        with self._exclusive():
            entry = self._read(key)
            if entry is not None and entry.run == run:
                self._path(key).unlink()

    def _path(self, key: str) -> Path:
        return self._dir / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"

    def _read(self, key: str) -> Entry | None:
        path = self._path(key)
        if not path.exists():
            return None
        try:
            row = json.loads(path.read_bytes())
            at = parse_rfc3339(row["at"])
            return Entry(row["key"], row["run"], at, row["done"] is True, row["out"], row["say"])
        except (ValueError, KeyError, TypeError) as exc:
            raise ConfigError(f"{path}: damaged: {exc}") from exc

    def _write(self, entry: Entry) -> None:
        row = {
            "key": entry.key, "run": entry.run, "at": rfc3339(entry.at), "done": entry.done,
            "out": entry.out, "say": entry.say,
        }  # fmt: skip
        write_atomic(self._path(entry.key), json.dumps(row, indent=1, default=str))

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        descriptor = os.open(self._dir / "keys.lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
