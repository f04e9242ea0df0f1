"""The state file of a context without a scheduler: read whole, changed whole, under a lock."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from brctl.backends.contract import Cordon, Label, Reservation
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError
from brctl.model.units import parse_rfc3339, rfc3339

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class StaticState:
    """What a scheduler would know.

    Attributes:
        submitters: The user id that last submitted a job to a scheduler which has names of jobs
            for everybody.
    """

    cordons: Mapping[str, Cordon] = field(default_factory=dict)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    jobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, Label]] = field(default_factory=dict)
    submitters: Mapping[str, int] = field(default_factory=dict)


def read_state(path: Path) -> StaticState:
    """The state now; empty when nothing was ever changed.

    Raises:
        ConfigError: The file is damaged. It is never taken for "nothing is cordoned".
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return StaticState()
    try:
        return _decode(json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ConfigError(
            f"{path}: damaged: {exc}", hint="repair it or restore it; nothing was changed"
        ) from exc


def change_state(path: Path, change: Callable[[StaticState], StaticState]) -> StaticState:
    """Apply a change while holding the lock; the new state is on disk when this returns."""
    private_dir(path.parent)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, _PRIVATE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = read_state(path)
        after = change(before)
        if after != before:
            write_atomic(path, json.dumps(_encode(after), indent=1))
        return after
    finally:
        os.close(lock)


def _encode(state: StaticState) -> dict[str, object]:
    return {
        "cordons": {
            c.node: {"owner": c.owner, "reason": c.reason, "at": rfc3339(c.at) if c.at else None}
            for c in state.cordons.values()
        },
        "reservations": {
            r.node: {"owner": r.owner, "at": rfc3339(r.at)} for r in state.reservations.values()
        },
        "jobs": {name: list(nodes) for name, nodes in state.jobs.items()},
        "labels": {
            node: {key: asdict(label) for key, label in labels.items()}
            for node, labels in state.labels.items()
        },
        "submitters": dict(state.submitters),
    }


def _decode(data: Mapping[str, Mapping[str, Any]]) -> StaticState:
    return StaticState(
        cordons={
            node: Cordon(
                node, row["owner"], row["reason"], parse_rfc3339(row["at"]) if row["at"] else None
            )
            for node, row in data["cordons"].items()
        },
        reservations={
            node: Reservation(node, row["owner"], parse_rfc3339(row["at"]))
            for node, row in data["reservations"].items()
        },
        jobs={name: tuple(nodes) for name, nodes in data["jobs"].items()},
        # Files of earlier versions have no labels and no submitters.
        labels={
            node: {key: Label(**row) for key, row in rows.items()}
            for node, rows in data.get("labels", {}).items()
        },
        submitters={job: int(uid) for job, uid in data.get("submitters", {}).items()},
    )
