"""Burn-ins on disk: one file each, replaced after every round, so that any terminal can follow."""

import os
from pathlib import Path

import msgspec

from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import UsageError
from brctl.model.sweeps.burnin import Burnin, BurninState


def _folder(state_dir: Path) -> Path:
    return state_dir / "burnins"


def save(state_dir: Path, burnin: Burnin) -> None:
    """Write one burn-in whole or not at all."""
    folder = _folder(state_dir)
    private_dir(folder)
    write_atomic(folder / f"{burnin.id}.json", msgspec.json.encode(burnin))


def load_all(state_dir: Path) -> tuple[Burnin, ...]:
    """All burn-ins, newest first; a file that cannot be read is passed over."""
    paths = sorted(_folder(state_dir).glob("B-*.json"), reverse=True)
    return tuple(found for found in map(_read, paths) if found is not None)


def _read(path: Path) -> Burnin | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Burnin)
    except (msgspec.MsgspecError, OSError):
        return None


def find(state_dir: Path, name: str | None) -> Burnin:
    """The burn-in of this name, or the newest.

    Raises:
        UsageError: There is none.
    """
    known = load_all(state_dir)
    chosen = [b for b in known if name in (None, b.id)]
    if not chosen:
        names = ", ".join(b.id for b in known[:5]) or "none"
        raise UsageError(f"no burn-in {name or ''}; newest: {names}".replace(" ;", ";"))
    return chosen[0]


def is_alive(burnin: Burnin) -> bool:
    """Whether its process still runs; a run that was killed leaves a file that says RUNNING."""
    if burnin.state is not BurninState.RUNNING:
        return False
    try:
        os.kill(burnin.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask_to_stop(state_dir: Path, burnin: Burnin) -> None:
    """Leave a mark that the running burn-in sees before its next round."""
    (_folder(state_dir) / f"{burnin.id}.stop").touch()


def is_asked_to_stop(state_dir: Path, name: str) -> bool:
    """Whether somebody left that mark."""
    return (_folder(state_dir) / f"{name}.stop").exists()
