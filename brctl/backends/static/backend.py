"""Bare hosts without a scheduler: brctl keeps the state itself and starts ranks over SSH.

What a scheduler would know (cordons, reservations, which nodes a job is on) is one JSON file per
context, changed under a lock. What runs is never read from that file but asked of the nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from brctl.backends.contract import (
    Cordon,
    ImagePull,
    Label,
    Reservation,
    StartReport,
    StopReport,
    labelled,
    unlabelled,
)
from brctl.backends.ranks.commands import (
    LOOK_DEADLINE_S,
    START_DEADLINE_S,
    STOP_MARGIN_S,
    RankNodes,
    start_request,
    status_request,
    stop_request,
)
from brctl.backends.static.state import StaticState, change_state, read_state
from brctl.fanout.contract import Transport
from brctl.model.errors import UsageError
from brctl.model.inventory import Inventory, NodeRole
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_run_state import JobRunState
from brctl.model.runs.playbook import Json


class StaticBackend:
    """Nodes from the inventory, state in `static/<context>.json`; see `Backend`."""

    name = "static"

    def __init__(
        self, state_file: Path, transport: Transport, inventory: Inventory, fanout: int
    ) -> None:
        self._file = state_file
        self._inventory = inventory
        self._ranks = RankNodes(transport, inventory, fanout)

    async def cordons(self) -> Mapping[str, Cordon]:
        """See `Backend.cordons`."""
        return read_state(self._file).cordons

    async def cordon(self, nodes: Sequence[str], owner: str, reason: str, at: datetime) -> None:
        """See `Backend.cordon`."""
        self._inventory.require(nodes)

        def add(state: StaticState) -> StaticState:
            fresh = {n: Cordon(n, owner, reason, at) for n in nodes if n not in state.cordons}
            return replace(state, cordons={**state.cordons, **fresh})

        change_state(self._file, add)

    async def uncordon(self, nodes: Sequence[str]) -> None:
        """See `Backend.uncordon`."""

        def drop(state: StaticState) -> StaticState:
            kept = {n: c for n, c in state.cordons.items() if n not in nodes}
            return replace(state, cordons=kept)

        change_state(self._file, drop)

    async def reservations(self) -> Mapping[str, Reservation]:
        """See `Backend.reservations`."""
        return read_state(self._file).reservations

    async def reserve(self, node: str, owner: str, at: datetime) -> bool:
        """See `Backend.reserve`."""
        self._inventory.require([node])

        def add(state: StaticState) -> StaticState:
            taken = {node: Reservation(node, owner, at), **state.reservations}
            return replace(state, reservations=taken)

        return change_state(self._file, add).reservations[node].owner == owner

    async def release(self, nodes: Sequence[str], owner: str) -> None:
        """See `Backend.release`."""

        def drop(state: StaticState) -> StaticState:
            kept = {
                n: r for n, r in state.reservations.items() if n not in nodes or r.owner != owner
            }
            return replace(state, reservations=kept)

        change_state(self._file, drop)

    async def idle_nodes(self, job: Job | None = None) -> tuple[str, ...]:
        """See `Backend.idle_nodes`: without a scheduler, every node that is no standby."""
        return self._inventory.names(NodeRole.ACTIVE)

    async def labels(self, nodes: Sequence[str], key: str) -> Mapping[str, Label]:
        """See `Backend.labels`."""
        found = read_state(self._file).labels
        return {node: found[node][key] for node in nodes if key in found.get(node, {})}

    async def label(self, nodes: Sequence[str], key: str, value: str, owner: str) -> None:
        """See `Backend.label`."""
        self._inventory.require(nodes)
        change_state(
            self._file, lambda now: _relabel(now, nodes, key, lambda b: labelled(b, value, owner))
        )

    async def unlabel(self, nodes: Sequence[str], key: str, owner: str) -> None:
        """See `Backend.unlabel`."""
        change_state(
            self._file, lambda now: _relabel(now, nodes, key, lambda b: unlabelled(b, owner))
        )

    async def evict(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """See `Backend.evict`: ranks are never ended by a drain, only waited for."""
        return await self.work_on(nodes, jobs)

    async def work_on(self, nodes: Sequence[str], jobs: Sequence[Job]) -> Mapping[str, str]:
        """See `Backend.work_on`: the ranks of declared jobs; of other work nobody here knows."""
        left: dict[str, str] = {}
        for job in jobs:
            names = [node for node in nodes if node in job.nodes]
            state = await self.job_status(job) if names else None
            for node in names:
                alive = [r for r in job.ranks_on(node) if state and r in state.alive]
                silent = state.unreachable.get(node) if state else None
                if alive:
                    left[node] = f"{len(alive)} ranks of job {job.name} run"
                elif silent is not None:
                    left[node] = f"cannot tell whether ranks of job {job.name} run: {silent}"
        return left

    async def place(self, job: Job) -> Job:
        """See `Backend.place`; a job nobody moved is where job.yaml says."""
        nodes = read_state(self._file).jobs.get(job.name, job.nodes)
        if len(nodes) != len(job.nodes):
            return job
        return replace(job, nodes=nodes)

    async def pull_images(self, job: Job, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        """See `Backend.pull_images`: these ranks are processes of the node itself."""
        return {}

    async def must_control(self, job: Job, verb: str) -> None:
        """See `Backend.must_control`: nobody else starts these ranks."""

    async def replace_nodes(self, job: Job, swaps: Mapping[str, str]) -> Job:
        """See `Backend.replace_nodes`."""
        self._inventory.require(list(swaps.values()))

        def swap(state: StaticState) -> StaticState:
            now = state.jobs.get(job.name, job.nodes)
            after = tuple(swaps.get(node, node) for node in now)
            if len(set(after)) < len(after):
                raise UsageError(f"job {job.name} would have a node twice after {dict(swaps)}")
            return replace(state, jobs={**state.jobs, job.name: after})

        return replace(job, nodes=change_state(self._file, swap).jobs[job.name])

    async def start_job(self, job: Job, checkpoint: str, incarnation: str) -> StartReport:
        """See `Backend.start_job`."""
        master = self._inventory.nodes[job.nodes[0]]
        answered, failed = await self._ranks.ask(
            job.nodes,
            lambda node: start_request(job, node, master, checkpoint, incarnation),
            START_DEADLINE_S,
        )
        failed |= _errors(answered)
        started, warm = (
            tuple(sorted(rank for value in answered.values() for rank in _ranks(value, key)))
            for key in ("started", "warm")
        )
        cold = {node: why for node, value in answered.items() if (why := _why_cold(value))}
        return StartReport(started, failed, warm, cold)

    async def stop_job(self, job: Job, grace_s: float) -> StopReport:
        """See `Backend.stop_job`."""
        answered, failed = await self._ranks.ask(
            job.nodes, lambda node: stop_request(job, node, grace_s), grace_s + STOP_MARGIN_S
        )
        failed |= _errors(answered)
        ended = {
            key: tuple(sorted(rank for value in answered.values() for rank in _ranks(value, key)))
            for key in ("stopped", "killed", "stuck")
        }
        return StopReport(ended["stopped"], ended["killed"], ended["stuck"], failed)

    async def scheduler_view(self, job: Job) -> JobRunState | None:
        """See `Backend.scheduler_view`: ranks are known to their nodes alone."""
        return None

    async def job_status(self, job: Job) -> JobRunState:
        """See `Backend.job_status`."""
        answered, failed = await self._ranks.ask(
            job.nodes, lambda node: status_request(job, node), LOOK_DEADLINE_S
        )
        rows = [row for value in answered.values() for row in _rows(value)]
        exits = {
            rank: status
            for row in rows
            if isinstance(rank := row.get("rank"), int)
            and isinstance(status := row.get("exit_status"), int)
        }
        alive = [row for row in rows if row.get("alive") is True]
        return JobRunState(
            alive=_numbers(alive),
            gone=_numbers([row for row in rows if row.get("alive") is False]),
            incarnations=frozenset(str(row.get("incarnation")) for row in alive),
            unreachable=failed,
            exits=exits,
        )


def _errors(answered: Mapping[str, Mapping[str, Json]]) -> dict[str, str]:
    return {node: str(value["error"]) for node, value in answered.items() if "error" in value}


def _why_cold(value: Mapping[str, Json]) -> str:
    """The reasons of a node's ranks, each once."""
    cold = value.get("cold")
    reasons = cold.values() if isinstance(cold, dict) else ()
    return "; ".join(dict.fromkeys(str(reason)[:300] for reason in reasons))


def _relabel(
    state: StaticState,
    nodes: Sequence[str],
    key: str,
    change: Callable[[Label | None], Label | None],
) -> StaticState:
    labels = {node: dict(rows) for node, rows in state.labels.items()}
    for node in nodes:
        rows = labels.setdefault(node, {})
        after = change(rows.pop(key, None))
        if after is not None:
            rows[key] = after
    return replace(state, labels={node: rows for node, rows in labels.items() if rows})


def _ranks(value: Mapping[str, Json], key: str) -> list[int]:
    found = value.get(key)
    return [r for r in found if isinstance(r, int)] if isinstance(found, list) else []


def _rows(value: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    found = value.get("ranks")
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _numbers(rows: Sequence[Mapping[str, Json]]) -> tuple[int, ...]:
    return tuple(sorted(rank for row in rows if isinstance(rank := row.get("rank"), int)))
