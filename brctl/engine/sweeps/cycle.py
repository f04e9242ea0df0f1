"""What a sweep from cron needs around it: one at a time, spread over hosts, written atomically."""

import fcntl
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps.history import SweepHistory
from brctl.engine.sweeps.trend_store import TrendStore
from brctl.evidence.trends import node_samples
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.errors import ConfigError, LockedError
from brctl.model.inventory import Node
from brctl.model.sweeps.changes import Changes
from brctl.model.sweeps.sweep import Sweep

LOCK_MODES = ("skip", "wait", "fail")


@contextmanager
def sweep_lock(state_dir: Path, context: str, mode: str) -> Iterator[bool]:
    """Hold the one sweep of this context; yields False when another holds it and mode is skip.

    Raises:
        LockedError: Another sweep runs and mode is fail.
    """
    folder = state_dir / "locks"
    private_dir(folder)
    with (folder / f"sweep-{context}.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if mode == "wait" else fcntl.LOCK_NB))
        except BlockingIOError as exc:
            if mode == "fail":
                raise LockedError("another sweep of this context is running") from exc
            yield False
        else:
            yield True


def jitter_s(host: str, spread_s: float) -> float:
    """Seconds this host waits before it starts: always the same, evenly spread over hosts."""
    return zlib.crc32(host.encode()) / 2**32 * spread_s


def record_sweep(
    controller: Controller, sweep: Sweep, reminder: timedelta, *, regular: bool = False
) -> Changes:
    """Add a sweep to the history; what changed since the ones before, or since the regular ones."""
    nodes = controller.inventory.pick(node.node for node in sweep.nodes)
    trends = TrendStore(controller.state_dir, controller.settings.context)
    trends.add(sweep.started_at, node_samples(node.report for node in sweep.nodes))
    history = SweepHistory(controller.state_dir)
    return history.record(sweep, labels_of(nodes), reminder, regular=regular)


def labels_of(nodes: Iterable[Node]) -> Mapping[str, Mapping[str, str]]:
    """What nodes may share when they fail together; behind a dead gateway that is the gateway."""
    return {n.name: {**n.labels, "via": n.via} if n.via else n.labels for n in nodes}


def write_metrics(path: Path, text: str) -> None:
    """Replace a collector's file, which it reads as another user.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        write_atomic(path, text, mode=0o644)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be written: {exc.strerror}") from exc
