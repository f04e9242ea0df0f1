"""The newest answer of every node, found without decoding the sweeps of all the others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from brctl.engine.sweeps.history_database import database_path, open_history
from brctl.engine.sweeps.sweep_file import pack_nodes, read_node, unpack_node
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.model.units import parse_rfc3339, rfc3339
from brctl.sweep.problems import reason_of
from brctl.sweep.standing import with_standing


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one node now: its state, why, and from which sweep."""

    node: str
    health: Health
    check: str
    detail: str
    at: datetime
    sweep: str


@dataclass(frozen=True, slots=True)
class PastState:
    """A node's state from one moment on."""

    at: datetime
    health: Health
    check: str
    detail: str


def remember_nodes(
    state_dir: Path, sweep: Sweep, packed: Mapping[str, bytes] | None = None
) -> None:
    """Keep each node's newest answer, and its state when that changed; old sweeps add nothing.

    Args:
        state_dir: Holds the index.
        sweep: What was found.
        packed: Its nodes as `pack_nodes` made them, when they are at hand.
    """
    answers = pack_nodes(sweep) if packed is None else packed
    at = rfc3339(sweep.started_at)
    with open_history(state_dir) as database:
        newest = dict(database.execute("SELECT node, at || ' ' || health FROM nodes").fetchall())
        for node in sweep.nodes:
            before_at, _, before = newest.get(node.node, "").partition(" ")
            if before_at > at:
                continue
            check, detail = reason_of(node)
            row = (node.node, node.health.value, check, detail, at, sweep.id)
            database.execute(
                "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row, answers[node.node]),
            )
            if before != node.health.value:
                past = (node.node, at, node.health.value, check, detail)
                database.execute("INSERT OR REPLACE INTO node_past VALUES (?, ?, ?, ?, ?)", past)


def known(state_dir: Path) -> tuple[Known, ...]:
    """The newest state of every node ever swept, in order of names; none without a sweep."""
    if not database_path(state_dir).exists():
        return ()
    with open_history(state_dir) as database:
        rows = database.execute(
            "SELECT node, health, check_name, detail, at, sweep FROM nodes ORDER BY node"
        ).fetchall()
    return tuple(Known(r[0], Health(r[1]), r[2], r[3], parse_rfc3339(r[4]), r[5]) for r in rows)


def known_against(state_dir: Path, names: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """The check and the sentence of each of these nodes that shows a warning or worse."""
    wanted = frozenset(names)
    return {
        node.node: (node.check, node.detail)
        for node in known(state_dir)
        if node.node in wanted and node.health in (Health.WARNING, Health.CRITICAL)
    }


FRESH = timedelta(hours=1)
"""An answer older than this says nothing of a node now; regular sweeps run every few minutes."""


def with_findings_before(state_dir: Path, sweep: Sweep) -> Sweep:
    """The sweep's nodes with what was found against them lately and is not asked in it.

    A node that is UNKNOWN may have been found wanting before it fell silent.
    """
    past, since = _answers_not_ok(state_dir), sweep.started_at - FRESH
    nodes = tuple(
        with_standing(node, read_node(past[node.node]), sweep.checks, since)
        if node.node in past
        else node
        for node in sweep.nodes
    )
    kept = all(now is node for now, node in zip(nodes, sweep.nodes, strict=True))
    return sweep if kept else replace(sweep, nodes=nodes)


def _answers_not_ok(state_dir: Path) -> Mapping[str, bytes]:
    if not database_path(state_dir).exists():
        return {}
    with open_history(state_dir) as database:
        query = "SELECT node, answer FROM nodes WHERE health != ?"
        return dict(database.execute(query, (Health.OK.value,)).fetchall())


def ailing_nodes(
    state_dir: Path, names: Iterable[str], now: datetime
) -> tuple[frozenset[str], frozenset[str]]:
    """Nodes found sick, and nodes nobody knows anything fresh of."""
    fresh = {node.node: node.health for node in known(state_dir) if now - node.at <= FRESH}
    silent = {name for name in names if fresh.get(name, Health.UNKNOWN) is Health.UNKNOWN}
    sick = {name for name, health in fresh.items() if health is Health.CRITICAL}
    return frozenset(sick), frozenset(silent)


def node_health(state_dir: Path, node: str) -> NodeHealth | None:
    """One node's newest full answer; None when it was never swept."""
    if not database_path(state_dir).exists():
        return None
    with open_history(state_dir) as database:
        row = database.execute("SELECT answer FROM nodes WHERE node = ?", (node,)).fetchone()
    return read_node(row[0]) if row else None


class Reported(msgspec.Struct):
    """What a node answered, without what was made of it: a quarter of the work to read."""

    node: str
    report: NodeReport


def newest_answers(state_dir: Path, since_sweep: str) -> tuple[NodeHealth, ...]:
    """The newest full answer of every node that a sweep from `since_sweep` on has asked."""
    return tuple(msgspec.json.decode(x, type=NodeHealth) for x in _answers(state_dir, since_sweep))


def newest_reports(state_dir: Path, since_sweep: str) -> tuple[Reported, ...]:
    """The same nodes' reports only."""
    return tuple(msgspec.json.decode(x, type=Reported) for x in _answers(state_dir, since_sweep))


def _answers(state_dir: Path, since_sweep: str) -> Iterator[bytes]:
    if not database_path(state_dir).exists():
        return
    with open_history(state_dir) as database:
        rows = database.execute(
            "SELECT answer FROM nodes WHERE sweep >= ? ORDER BY at DESC, rowid", (since_sweep,)
        ).fetchall()
    yield from (unpack_node(row[0]) for row in rows)


def node_history(state_dir: Path, node: str, limit: int) -> tuple[PastState, ...]:
    """How a node's state changed, newest first."""
    if not database_path(state_dir).exists():
        return ()
    with open_history(state_dir) as database:
        rows = database.execute(
            "SELECT at, health, check_name, detail FROM node_past WHERE node = ? "
            "ORDER BY at DESC LIMIT ?",
            (node, limit),
        ).fetchall()
    return tuple(PastState(parse_rfc3339(r[0]), Health(r[1]), r[2], r[3]) for r in rows)
