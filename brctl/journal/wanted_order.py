"""The rank order that waits for a job's next restart: one file a job.

Before a run acts it writes down which nodes it goes from and to, so that a run that died in between
orders nothing twice.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from brctl.journal.locks import exclusive
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError
from brctl.model.jobs.wanted_order import WantedOrder


class WantedOrderFile:
    """See the head of this file."""

    def __init__(self, state_dir: Path, context: str, job: str) -> None:
        self._path = state_dir / "orders" / context / f"{job}.json"

    def read(self) -> WantedOrder | None:
        """The newest wish; None where there never was one.

        Raises:
            ConfigError: The file is damaged, which is never taken for no wish.
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=WantedOrder)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as exc:
            hint = "remove it; ask again: brctl job place JOB --apply rank-order"
            raise ConfigError(f"{self._path}: damaged: {exc}", hint=hint) from exc

    def waiting(self) -> WantedOrder | None:
        """The wish that no run took yet."""
        found = self.read()
        return found if found is not None and not found.run else None

    def write(self, wish: WantedOrder) -> None:
        """Put a wish in place of the one before."""
        with self._locked():
            self._store(wish)

    def change(
        self, wish_id: str, change: Callable[[WantedOrder], WantedOrder]
    ) -> WantedOrder | None:
        """Change the wish of this id; None where another one is in its place by now."""
        with self._locked():
            found = self.read()
            if found is None or found.id != wish_id:
                return None
            changed = change(found)
            self._store(changed)
        return changed

    def _store(self, wish: WantedOrder) -> None:
        private_dir(self._path.parent)
        write_atomic(self._path, msgspec.json.encode(wish))

    def _locked(self) -> AbstractContextManager[None]:
        return exclusive(self._path.with_suffix(".lock"), "another command that orders the ranks")
