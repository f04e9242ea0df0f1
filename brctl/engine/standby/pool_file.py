"""The file of the standby pool: read, and changed by one process at a time."""

import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from brctl.engine.standby.pool import Pool, Standby
from brctl.journal.locks import exclusive
from brctl.library.durable_files import private_dir, set_aside, write_atomic
from brctl.model.errors import ConfigError


def _path(state_dir: Path, context: str) -> Path:
    return state_dir / "static" / f"{context}.standbys.json"


def load_pool(state_dir: Path, context: str) -> Pool:
    """The pool of a context; a damaged file is an error, never an empty pool."""
    path = _path(state_dir, context)
    if not path.exists():
        return Pool()
    try:
        data = json.loads(path.read_bytes())
        known = {row["node"]: Standby(**row) for row in data["known"]}
        return Pool(tuple(data["added"]), tuple(data["removed"]), known)
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise ConfigError(f"{path}: damaged: {exc}") from exc


def usable_pool(state_dir: Path, context: str) -> Pool:
    """The same for whoever acts on it: a damaged file is set aside, and the inventory's pool holds.

    Nobody in it counts as tested then, and admission looks at each; whom people had removed is a
    member again, which is said.
    """
    try:
        return load_pool(state_dir, context)
    except ConfigError:
        with _changing(state_dir, context):
            return _usable(state_dir, context)


def change_pool(state_dir: Path, context: str, change: Callable[[Pool], Pool]) -> Pool:
    """Read the pool, change it and write it, while no other process does; the pool as it is then.

    Whatever asks nodes comes before: others wait for the lock for seconds, not for a warm-up.

    Raises:
        UnavailableError: Another process keeps the lock.
    """
    with _changing(state_dir, context):
        after = change(_usable(state_dir, context))
        save_pool(state_dir, context, after)
        return after


def _changing(state_dir: Path, context: str) -> AbstractContextManager[None]:
    path = state_dir / "locks" / f"{context}.standbys.lock"
    return exclusive(path, "another command that changes the standbys")


def _usable(state_dir: Path, context: str) -> Pool:
    """Under the lock, so that nobody's new file is set aside for the damaged one."""
    try:
        return load_pool(state_dir, context)
    except ConfigError:
        set_aside(_path(state_dir, context))
        logging.getLogger(__name__).warning(
            "warning: the standbys of %s are those of the inventory again, untested; look:"
            " brctl standby list", context,
        )  # fmt: skip
        return Pool()


def save_pool(state_dir: Path, context: str, pool: Pool) -> None:
    """Write the pool so that a reader sees all of it or the one before."""
    path = _path(state_dir, context)
    private_dir(path.parent)
    rows = [asdict(standby) for standby in pool.known.values()]
    data = {"added": list(pool.added), "removed": list(pool.removed), "known": rows}
    write_atomic(path, json.dumps(data, indent=1))
