"""Sweeps on disk: the newest one answers `brctl` and `brctl ls` without asking a node."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from brctl.engine.sweeps.node_states import (
    newest_answers,
    newest_reports,
    remember_nodes,
    with_findings_before,
)
from brctl.engine.sweeps.sweep_file import (
    PATTERN,
    SUFFIX,
    pack_nodes,
    read_head,
    read_sweep,
    sweep_bytes,
)
from brctl.library.durable_files import private_dir, write_atomic
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import NodeHealth, Sweep

KEPT = 200
"""Sweeps kept; at one a minute three hours, at one in five minutes most of a day."""

LOOKED_INTO = 20
"""A node that none of the newest sweeps asked is no longer known."""


def save(state_dir: Path, sweep: Sweep) -> Path:
    """Write one sweep whole or not at all, and forget the oldest beyond KEPT."""
    folder = state_dir / "sweeps"
    private_dir(folder)
    path = folder / f"{sweep.id}{SUFFIX}"
    packed = pack_nodes(sweep)
    write_atomic(path, sweep_bytes(sweep, packed))
    known_now = with_findings_before(state_dir, sweep)
    remember_nodes(state_dir, known_now, packed if known_now is sweep else None)
    for old in sorted(folder.glob(PATTERN))[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def latest(state_dir: Path) -> Sweep | None:
    """What is known of every node now: its newest answer in the newest sweeps.

    A sweep of a few nodes renews those and leaves the others as an earlier sweep saw them.
    Returns None when nothing was swept yet; a file that cannot be read is passed over.
    """
    paths = _newest(state_dir)
    newest = next((head for head in map(read_head, paths) if head is not None), None)
    if newest is None:
        return None
    nodes = newest_answers(state_dir, since_sweep=_id(paths[-1])) or _from_files(paths)
    return Sweep(newest.id, newest.level, newest.checks, newest.started_at, newest.seconds, nodes)


def latest_reports(state_dir: Path) -> dict[str, NodeReport]:
    """What every node answered last, by name, without what was made of it; see `latest`."""
    paths = _newest(state_dir)
    if not paths:
        return {}
    known = newest_reports(state_dir, since_sweep=_id(paths[-1])) or _from_files(paths)
    return {each.node: each.report for each in known}


def _newest(state_dir: Path) -> list[Path]:
    return sorted((state_dir / "sweeps").glob(PATTERN), reverse=True)[:LOOKED_INTO]


def _id(path: Path) -> str:
    return path.name.partition(".")[0]


def all_sweeps(state_dir: Path) -> Iterator[Sweep]:
    """Sweeps that are kept, oldest first; a file that cannot be read is passed over."""
    found = map(read_sweep, sorted((state_dir / "sweeps").glob(PATTERN)))
    yield from (sweep for sweep in found if sweep is not None)


def _from_files(paths: Sequence[Path]) -> tuple[NodeHealth, ...]:
    """The same from the sweeps themselves, for when the index was lost."""
    sweeps = [sweep for sweep in map(read_sweep, paths) if sweep is not None]
    return tuple({node.node: node for sweep in reversed(sweeps) for node in sweep.nodes}.values())
